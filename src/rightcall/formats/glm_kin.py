"""Other models that write key and value in separate tags, as GLM does:
`<iquest_tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></iquest_tool_call>`"""

from rightcall.formats.glm import LING3
from rightcall.formats.spec import Params, Special, replace

IQUEST = replace(
    LING3,
    name="iquest",
    call=(("<iquest_tool_call>", "<iquestcoder_tool_call>"), ("</iquest_tool_call>", "</iquestcoder_tool_call>")),
    reasoning=("<think>", "</think>"),
    ends=(Special("<|iquest_end|>"), Special("<|im_end|>")),
    aliases=("iquest_q1", "iquest_coder_v2"),
    models="IQuest Q1, IQuest Coder 2",
)
XING4 = replace(
    LING3,
    name="xing4",
    body=Params(open="{name}", param="<param_key>{key}</param_key><param_value>", value_close="</param_value>"),
    ends=(Special("<_end>"),),
    models="Xing 4",
)
