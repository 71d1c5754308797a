"""DeepSeek V4.1, with a blank behind the token, and GigaChat 3.5, with a token of its own:
`<｜DSML｜ invoke name="f"><｜DSML｜ parameter name="k" string="true">v</｜DSML｜ parameter></｜DSML｜ invoke>`"""

from rightcall.formats.deepseek_dsml import DEEPSEEK_V32
from rightcall.formats.spec import Params, Special, replace

_OPEN, _CLOSE = Special("<｜DSML｜", ()), Special("</｜DSML｜", ())
_GCML, _GCML_CLOSE = Special("<｜GCML｜", ()), Special("</｜GCML｜", ())

DEEPSEEK_V41 = replace(
    DEEPSEEK_V32,
    name="deepseek_v41",
    body=Params(
        open=_OPEN + ' invoke name="{name}">\n',
        param=(_OPEN + ' parameter name="{key}" string="{type}">', _OPEN + ' parameter name="{key}">'),
        value_close=_CLOSE + " parameter>\n",
        close=_CLOSE + " invoke>\n",
        types={"true": "string", "false": "json"},
        empty=_OPEN + ' invoke name="{name}"/>',
    ),
    section=(_OPEN + " calls>\n", _CLOSE + " calls>"),
    between="",
    aliases=("deepseekv41", "deepseek_v4.1"),
    models="DeepSeek V4.1",
)
GIGACHAT35 = replace(
    DEEPSEEK_V32,
    name="gigachat35",
    body=Params(
        open=_GCML + 'invoke name="{name}">\n',
        param=(_GCML + 'parameter name="{key}" string="{type}">', _GCML + 'parameter name="{key}">'),
        value_close=_GCML_CLOSE + "parameter>\n",
        close=_GCML_CLOSE + "invoke>",
        types={"true": "string", "false": "json"},
    ),
    section=(_GCML + "tool_calls>\n", "\n" + _GCML_CLOSE + "tool_calls>"),
    reasoning=None,
    ends=(Special("<|message_sep|>"), Special("</s>")),
    tools="typescript",
    models="GigaChat 3.5",
)
