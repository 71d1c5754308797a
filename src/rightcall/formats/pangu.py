"""openPangu:  `[unused11][{"name": "f", "arguments": {"x": 1}}][unused12]`"""

from rightcall.formats.spec import Envelope, Format, Special

PANGU = Format(
    "pangu",
    body=Envelope(wrap=("[", ", ", "]")),
    call=(
        (Special("[unused11]"), Special("<|tool_call_start|>")),  # the other is that of version 2
        (Special("[unused12]"), Special("<|tool_call_end|>")),
    ),
    reasoning=(Special("[unused16]"), Special("[unused17]")),
    ends=(Special("[unused10]"),),
    aliases=("openpangu", "openpangu_v2"),
    models="openPangu, openPangu 2",
)
