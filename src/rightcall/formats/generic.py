"""Plain JSON, as any prompted model or forced tool choice writes it:
`{"tool_calls": [{"name": "f", "arguments": {"x": 1}}]}`    `[{"name": "f", "parameters": {"x": 1}}]`"""

from rightcall.formats.spec import Envelope, Format, NameThenJson
from rightcall.formats.turn_ends import TURN_ENDS

_LIST = ("[", ", ", "]")

GENERIC_JSON = Format(
    "generic_json",
    body=Envelope(outer=("tool_calls", "tool_call"), content="response", wrap=_LIST),
    ends=TURN_ENDS,
    models="any model that was asked for JSON",
)
FORCED_CHOICE = Format(
    "forced_choice",
    body=(Envelope(args=("parameters", "arguments"), wrap=_LIST), NameThenJson()),
    ends=TURN_ENDS,
    models="any server with tool_choice required or a named tool",
)
XLAM = Format(
    "xlam",
    body=Envelope(wrap=_LIST),
    call=(("", "[TOOL_CALLS]", "<tool_call>", "```json\n"), ("", "</tool_call>", "\n```")),
    reasoning=("<think>", "</think>"),
    ends=TURN_ENDS,
    tools="llama",
    aliases=("cogito",),
    models="xLAM, Cogito",
)
