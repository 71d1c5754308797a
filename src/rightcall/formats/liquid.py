"""LFM2:  `<|tool_call_start|>[f(k="v")]<|tool_call_end|>`"""

from rightcall.formats.spec import Envelope, Format, Pythonic, Special
from rightcall.formats.turn_ends import CHATML_HEADER

LFM2 = Format(
    "lfm2",
    body=(Pythonic(), Envelope(wrap=("[", ", ", "]"))),
    call=(Special("<|tool_call_start|>"), Special("<|tool_call_end|>")),
    reasoning=("<think>", "</think>"),
    ends=(Special("<|im_end|>"), CHATML_HEADER),
    tools="lfm2",
    aliases=("lfm2.5", "lfm"),
    models="LFM2, LFM2.5",
)
