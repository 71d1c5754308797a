"""PLaMo 3, with name and arguments in separate tags:
`<|plamo:begin_tool_name:plamo|>f<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>...{"x": 1}...`"""

from rightcall.formats.spec import Format, NameThenJson, Special

# A tag is several tokens that do not occur in text by chance; grammars spell it out.
_REQUEST = Special("<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>", ())
_NAMED = "{name}" + Special("<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>", ())
_MESSAGE = Special("<|plamo:msg|>")

PLAMO3 = Format(
    "plamo3",
    body=NameThenJson(
        open=(_NAMED + Special("<|plamo:constrain|>") + "json" + _MESSAGE, _NAMED + _MESSAGE),
        close=Special("<|plamo:end_tool_arguments:plamo|>", ()),
    ),
    section=(Special("<|plamo:begin_tool_requests:plamo|>", ()), Special("<|plamo:end_tool_requests:plamo|>", ())),
    call=(_REQUEST, Special("<|plamo:end_tool_request:plamo|>", ())),
    reasoning=(Special("<|plamo:begin_think:plamo|>", ()), Special("<|plamo:end_think:plamo|>", ())),
    ends=(Special("<|plamo:tag|>"),),
    aliases=("plamo",),
    models="PLaMo 2.1, PLaMo 3",
)
