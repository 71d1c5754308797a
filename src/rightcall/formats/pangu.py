"""openPangu:  `[unused11][{"name": "f", "arguments": {"x": 1}}][unused12]`"""

from rightcall.formats.spec import Envelope, Format, Special

PANGU = Format(
    "pangu",
    body=Envelope(wrap=("[", ", ", "]")),
    call=(Special("[unused11]"), Special("[unused12]")),
    reasoning=(Special("[unused16]"), Special("[unused17]")),
    ends=(Special("[unused10]"),),
    aliases=("openpangu",),
    models="openPangu",
)
