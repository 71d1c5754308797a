"""PLaMo 3:
`<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>f<|plamo:end_tool_name:plamo|>...{"x": 1}...`"""

from rightcall.formats.spec import Format, NameThenJson, Special

_BEGIN = Special("<|plamo:begin_tool_request:plamo|>") + Special("<|plamo:begin_tool_name:plamo|>")
_JSON = Special("<|plamo:constrain|>") + "json" + Special("<|plamo:msg|>")
_ARGUMENTS = Special("<|plamo:begin_tool_arguments:plamo|>") + _JSON

PLAMO3 = Format(
    "plamo3",
    body=NameThenJson(
        open="{name}" + Special("<|plamo:end_tool_name:plamo|>") + _ARGUMENTS,
        close=Special("<|plamo:end_tool_arguments:plamo|>"),
    ),
    section=(Special("<|plamo:begin_tool_requests:plamo|>"), Special("<|plamo:end_tool_requests:plamo|>")),
    call=(_BEGIN, Special("<|plamo:end_tool_request:plamo|>")),
    reasoning=(Special("<|plamo:begin_think:plamo|>"), Special("<|plamo:end_think:plamo|>")),
    ends=(Special("<|plamo:tag|>"),),
    models="PLaMo 3",
)
