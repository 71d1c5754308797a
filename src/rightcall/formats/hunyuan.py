"""Hunyuan Hy3 and Hy4, as GLM writes, in a section:
`<tool_calls><tool_call>f<tool_sep><arg_key>k</arg_key><arg_value>v</arg_value></tool_call></tool_calls>`"""

from rightcall.formats.spec import Envelope, Format, NameThenJson, Params, Special, replace

HY_V3 = Format(
    "hy_v3",
    body=Params(
        open=("{name}<tool_sep>\n", "{name}<tool_sep:opensource>\n"),
        param=(
            "<arg_key>{key}</arg_key>\n<arg_value>",
            "<arg_key:opensource>{key}</arg_key:opensource>\n<arg_value:opensource>",
        ),
        value_close=("</arg_value>\n", "</arg_value:opensource>\n"),
    ),
    section=(("<tool_calls>\n", "<tool_calls:opensource>\n"), ("\n</tool_calls>", "\n</tool_calls:opensource>")),
    call=(("<tool_call>", "<tool_call:opensource>"), ("</tool_call>", "</tool_call:opensource>")),
    between="\n",
    reasoning=(("<think>", "<think:opensource>"), ("</think>", "</think:opensource>")),
    ends=(Special("<｜hy_eos｜>"), Special("<｜hy_eos:opensource｜>")),
    tools="hermes",
    aliases=("hunyuan",),
    models="Hunyuan Hy3",
)
# Without the separator; the suffix is how its vocabulary tells its own tags from those in text.
_HY4 = ":6124c78e"
HY_V4 = replace(
    HY_V3,
    name="hy_v4",
    body=Params(
        open="{name}\n",
        param=(
            "<arg_key>{key}</arg_key>\n<arg_value>",
            f"<arg_key{_HY4}>{{key}}</arg_key{_HY4}>\n<arg_value{_HY4}>",
        ),
        value_close=("</arg_value>\n", f"</arg_value{_HY4}>\n"),
    ),
    section=(("<tool_calls>\n", f"<tool_calls{_HY4}>\n"), ("\n</tool_calls>", f"\n</tool_calls{_HY4}>")),
    call=(("<tool_call>", f"<tool_call{_HY4}>"), ("</tool_call>", f"</tool_call{_HY4}>")),
    reasoning=(("<think>", f"<think{_HY4}>"), ("</think>", f"</think{_HY4}>")),
    ends=(Special("<｜hy_eos｜>"), Special(f"<｜hy_eos{_HY4}｜>")),
    models="Hunyuan Hy4",
)
HUNYUAN_DENSE = Format(
    "hunyuan_dense",
    body=(NameThenJson(open="{name}\n```json\n", close="\n```"), Envelope()),
    section=("<tool_calls>", "</tool_calls>"),
    call=("<tool_call>", "</tool_call>"),
    between="\n",
    reasoning=("<think>\n", "\n</think>\n"),
    content=(("<answer>\n", "\n</answer>"),),
    ends=(Special("<｜hy_place▁holder▁no▁2｜>"),),
    tools="hermes",
    models="Hunyuan 0.5B to 7B",
)
