"""DeepSeek V3.2 and V4, the type of a value stands in its tag:
`<｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter></｜DSML｜invoke>`"""

from rightcall.formats.spec import Format, Params, Special, replace

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
    tools="functions",
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
