"""DeepSeek V3 and V3.1:
`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\\n```json\\n{"x": 1}\\n```<｜tool▁call▁end｜>...`"""

from rightcall.formats.spec import Envelope, Format, NameThenJson, Special, replace

_SEP = Special("<｜tool▁sep｜>")
_ENVELOPE = Envelope(args=("parameters", "arguments"))  # some of its templates

DEEPSEEK_V3 = Format(
    "deepseek_v3",
    body=(
        NameThenJson(
            open=(
                "function" + _SEP + "{name}\n```json\n",
                "{name}" + _SEP + "```json\n",
                "function" + _SEP + "{name}\n",
            ),
            close="\n```",
        ),
        _ENVELOPE,
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
    ends=(Special("<｜end▁of▁sentence｜>"), Special("<｜Assistant｜>")),
    tools="hermes",
    aliases=("deepseekv3", "deepseek_r1", "deepseek-r1"),
    models="DeepSeek V3-0324, R1",
)
DEEPSEEK_V31 = replace(
    DEEPSEEK_V3,
    name="deepseek_v31",
    body=(NameThenJson(open="{name}" + _SEP), _ENVELOPE),
    between="",
    reasoning=("<think>", "</think>"),
    tools="deepseek",
    aliases=("deepseekv31",),
    models="DeepSeek V3.1",
)
