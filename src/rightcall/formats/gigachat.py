"""GigaChat 3.1 and 3:  `<|function_call|>{"name": "f", "arguments": {"x": 1}}`;  3.5 writes tags, as DeepSeek does"""

from rightcall.formats.deepseek_dsml import DEEPSEEK_V32
from rightcall.formats.spec import Envelope, Format, Params, Special, replace

GIGACHAT31 = Format(
    "gigachat31",
    body=Envelope(),
    call=(Special("<|function_call|>"), ""),
    ends=(Special("<|message_sep|>"), Special("</s>")),
    tools="typescript",
    models="GigaChat 3.1",
)
GIGACHAT3 = replace(
    GIGACHAT31,
    name="gigachat3",
    call=(Special("<|message_sep|>") + "\n\nfunction call" + Special("<|role_sep|>") + "\n", ""),
    models="GigaChat 3",
)
_GCML, _GCML_END = Special("<｜GCML｜", ()), Special("</｜GCML｜", ())
GIGACHAT35 = replace(
    DEEPSEEK_V32,
    name="gigachat35",
    body=Params(
        open=_GCML + 'invoke name="{name}">\n',
        param=(_GCML + 'parameter name="{key}" string="{type}">', _GCML + 'parameter name="{key}">'),
        value_close=_GCML_END + "parameter>\n",
        close=_GCML_END + "invoke>",
        types={"true": "string", "false": "json"},
        empty=_GCML + 'invoke name="{name}"/>',
    ),
    section=(_GCML + "tool_calls>\n", "\n" + _GCML_END + "tool_calls>"),
    ends=(Special("<|message_sep|>"), Special("</s>")),
    tools="typescript",
    models="GigaChat 3.5",
)
