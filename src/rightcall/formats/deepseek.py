"""DeepSeek, from V3 to V4:
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\\n```json\\n{"x": 1}\\n```<｜tool▁call▁end｜>...
<｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter></｜DSML｜invoke>"""

from rightcall.formats.spec import Format, NameThenJson, Params, Special, replace

_SEP = Special("<｜tool▁sep｜>")

DEEPSEEK_V3 = Format(
    "deepseek_v3",
    body=NameThenJson(
        open=("function" + _SEP + "{name}\n```json\n", "{name}" + _SEP + "```json\n", "function" + _SEP + "{name}\n"),
        close="\n```",
    ),
    section=(
        (
            Special("<｜tool▁calls▁begin｜>"),
            Special("<｜tool_calls_begin｜>"),
            Special("<｜tool calls begin｜>"),
            Special("<｜tool\\_calls\\_begin｜>"),
            Special("<｜tool▁calls｜>"),
        ),
        Special("<｜tool▁calls▁end｜>"),
    ),
    call=(Special("<｜tool▁call▁begin｜>"), Special("<｜tool▁call▁end｜>")),
    between="\n",
    reasoning=("<think>\n", "\n</think>\n\n"),
    ends=(Special("<｜end▁of▁sentence｜>"),),
    aliases=("deepseekv3", "deepseek_r1", "deepseek-r1"),
    models="DeepSeek V3-0324, R1",
)
DEEPSEEK_V31 = replace(
    DEEPSEEK_V3,
    name="deepseek_v31",
    body=NameThenJson(open="{name}" + _SEP),
    between="",
    reasoning=("<think>", "</think>"),
    aliases=("deepseekv31",),
    models="DeepSeek V3.1",
)
DEEPSEEK_V32 = Format(
    "deepseek_v32",
    body=Params(
        open='<｜DSML｜invoke name="{name}">\n',
        param='<｜DSML｜parameter name="{key}" string="{type}">',
        value_close="</｜DSML｜parameter>\n",
        close="</｜DSML｜invoke>",
        types={"true": "string", "false": "json"},
        empty='<｜DSML｜invoke name="{name}"/>',
    ),
    section=("<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>"),
    between="\n",
    reasoning=("<think>", "</think>"),
    ends=(Special("<｜end▁of▁sentence｜>"),),
    aliases=("deepseekv32",),
    models="DeepSeek V3.2",
)
DEEPSEEK_V4 = replace(
    DEEPSEEK_V32,
    name="deepseek_v4",
    section=("<｜DSML｜tool_calls>\n", "\n</｜DSML｜tool_calls>"),
    aliases=("deepseekv4",),
    models="DeepSeek V4",
)
