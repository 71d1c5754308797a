"""Apertus, the name is the key:  `<|tools_prefix|>[{"f": {"x": 1}}]<|tools_suffix|>`"""

from rightcall.formats.spec import Envelope, Format, Special

APERTUS = Format(
    "apertus",
    body=Envelope(names=(), wrap=("[", ", ", "]")),
    call=(Special("<|tools_prefix|>"), Special("<|tools_suffix|>")),
    reasoning=(Special("<|inner_prefix|>"), Special("<|inner_suffix|>")),
    ends=(Special("<|assistant_end|>"), Special("<|assistant_start|>")),
    tools="typescript_types",
    aliases=("apertus2509",),
    models="Apertus, Apertus 1.5",
)
