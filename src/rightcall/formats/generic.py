"""Plain JSON, as any prompted model or forced tool choice writes it:
`{"tool_calls": [{"name": "f", "arguments": {"x": 1}}]}`    `[{"name": "f", "parameters": {"x": 1}}]`"""

from rightcall.formats.spec import Envelope, Format, NameThenJson, Special

_LIST = ("[", ", ", "]")

GENERIC_JSON = Format(
    "generic_json",
    body=Envelope(outer=("tool_calls", "tool_call"), content="response", wrap=_LIST),
    models="any model that was asked for JSON",
)
FORCED_CHOICE = Format(
    "forced_choice",
    body=(Envelope(args=("parameters", "arguments"), wrap=_LIST), NameThenJson()),
    models="any server with tool_choice required or a named tool",
)
XLAM = Format(
    "xlam",
    body=Envelope(wrap=_LIST),
    call=(("", "[TOOL_CALLS]", "<tool_call>", "```json\n"), ("", "</tool_call>", "\n```")),
    reasoning=("<think>", "</think>"),
    ends=(Special("<|eot_id|>"), Special("<|im_end|>")),
    tools="llama",
    aliases=("cogito",),
    models="xLAM, Cogito",
)
