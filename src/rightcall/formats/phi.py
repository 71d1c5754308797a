"""Phi-4-mini and Firefunction:  `functools[{"name": "f", "arguments": {"x": 1}}]`"""

from rightcall.formats.spec import Envelope, Format, Special, replace

PHI4_MINI = Format(
    "phi4_mini",
    body=Envelope(wrap=("[", ", ", "]")),
    call=(("functools", Special("<|tool_call|>")), ""),
    ends=(Special("<|end|>"), Special("<|/tool_call|>"), Special("<|assistant|>")),
    tools="llama",
    aliases=("phi4_mini_json",),
    models="Phi-4-mini",
)
FIREFUNCTION_V2 = replace(
    PHI4_MINI,
    name="firefunction_v2",
    call=(" functools", ""),
    tools="json",
    ends=(Special("<|eot_id|>"),),
    models="Firefunction v2",
)
