"""DeepSeek V3.2 and V4, with the type of a value in its tag:
`<｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter></｜DSML｜invoke>`"""

from rightcall.formats.spec import Format, Params, Special, add_spellings, replace

# The tag contains the token, so it does not occur in text by chance; grammars spell the tag out.
_OPEN, _CLOSE = Special("<｜DSML｜", ()), Special("</｜DSML｜", ())
# Models and providers double the bars (lsdefine/GenericAgent#804, xorbitsai/xagent#806, MetaFARS/codex-relay#49), or
# write them in ASCII (stdapi-ai/stdapi.ai#182).
_BARS = (Special("｜｜", ()), "|", "||")
_FUNCTIONS, _TOOLS = _OPEN + "function_calls>\n", _OPEN + "tool_calls>\n"
_FUNCTIONS_END, _TOOLS_END = "\n" + _CLOSE + "function_calls>", "\n" + _CLOSE + "tool_calls>"
# What models write in their place.
_ODD = (_OPEN + "tool_call>\n", _OPEN + "function_call>\n", _OPEN + "toolcalls>\n", _OPEN + "tool_calls\n")
_ODD_END = ("\n" + _CLOSE + "tool_call>", "\n" + _CLOSE + "function_call>", "\n" + _CLOSE + "toolcalls>")

_V32 = Format(
    "deepseek_v32",
    body=Params(
        open=_OPEN + 'invoke name="{name}">\n',
        param=(_OPEN + 'parameter name="{key}" string="{type}">', _OPEN + 'parameter name="{key}">'),
        value_close=_CLOSE + "parameter>\n",
        close=_CLOSE + "invoke>",
        types={"true": "string", "false": "json"},
        empty=_OPEN + 'invoke name="{name}"/>',
    ),
    section=((_FUNCTIONS, _TOOLS, *_ODD), (_FUNCTIONS_END, _TOOLS_END, *_ODD_END)),
    between="\n",
    reasoning=("<think>", "</think>"),
    ends=(Special("<｜end▁of▁sentence｜>"), Special("<｜Assistant｜>")),
    tools="functions",
    aliases=("deepseekv32",),
    models="DeepSeek V3.2",
)
_V4_SECTION = ((_TOOLS, _FUNCTIONS, *_ODD), (_TOOLS_END, _FUNCTIONS_END, *_ODD_END))
_V4 = replace(_V32, name="deepseek_v4", section=_V4_SECTION, aliases=("deepseekv4",), models="DeepSeek V4")
# There is a blank between the token and the word.
_V41 = replace(
    _V32,
    name="deepseek_v41",
    body=Params(
        open=_OPEN + ' invoke name="{name}">\n',
        param=(_OPEN + ' parameter name="{key}" string="{type}">', _OPEN + ' parameter name="{key}">'),
        value_close=_CLOSE + " parameter>\n",
        close=_CLOSE + " invoke>",
        types={"true": "string", "false": "json"},
        empty=_OPEN + ' invoke name="{name}"/>',
    ),
    section=(_OPEN + " calls>\n", "\n" + _CLOSE + " calls>"),
    aliases=("deepseekv41", "deepseek_v4_1"),
    models="DeepSeek V4.1",
)
DEEPSEEK_V32 = add_spellings(_V32, "｜", *_BARS)
DEEPSEEK_V4 = add_spellings(_V4, "｜", *_BARS)
DEEPSEEK_V41 = add_spellings(_V41, "｜", *_BARS)
