"""Hunyuan Hy3 and Hy4, as GLM writes, in a section:
`<tool_calls><tool_call>f<tool_sep><arg_key>k</arg_key><arg_value>v</arg_value></tool_call></tool_calls>`"""

from rightcall.formats.spec import Envelope, Format, NameThenJson, Params, Special, replace

# How each checkpoint's vocabulary distinguishes its tags from those in text.
_A, _B = ":opensource", ":6124c78e"
_PARAM = (
    "<arg_key>{key}</arg_key>\n<arg_value>",
    f"<arg_key{_A}>{{key}}</arg_key{_A}>\n<arg_value{_A}>",
    f"<arg_key{_B}>{{key}}</arg_key{_B}>\n<arg_value{_B}>",
)
_VALUE_CLOSE = ("</arg_value>\n", f"</arg_value{_A}>\n", f"</arg_value{_B}>\n")

HY_V3 = Format(
    "hy_v3",
    body=Params(
        open=("{name}<tool_sep>\n", f"{{name}}<tool_sep{_A}>\n", f"{{name}}<tool_sep{_B}>\n"),
        param=_PARAM,
        value_close=_VALUE_CLOSE,
    ),
    section=(
        ("<tool_calls>\n", f"<tool_calls{_A}>\n", f"<tool_calls{_B}>\n"),
        ("\n</tool_calls>", f"\n</tool_calls{_A}>", f"\n</tool_calls{_B}>"),
    ),
    call=(
        ("<tool_call>", f"<tool_call{_A}>", f"<tool_call{_B}>"),
        ("</tool_call>", f"</tool_call{_A}>", f"</tool_call{_B}>"),
    ),
    between="\n",
    reasoning=(("<think>", f"<think{_A}>", f"<think{_B}>"), ("</think>", f"</think{_A}>", f"</think{_B}>")),
    ends=(Special("<｜hy_eos｜>"), Special(f"<｜hy_eos{_A}｜>"), Special(f"<｜hy_eos{_B}｜>")),
    tools="hermes",
    aliases=("hunyuan",),
    models="Hunyuan Hy3",
)
# Without the separator.
HY_V4 = replace(
    HY_V3,
    name="hy_v4",
    body=Params(open="{name}\n", param=_PARAM, value_close=_VALUE_CLOSE),
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
