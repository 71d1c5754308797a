"""OLMo 3, one call a line:  `<function_calls>f(k='v')\\ng()</function_calls>`"""

from rightcall.formats.spec import Format, Pythonic, Special
from rightcall.formats.turn_ends import CHATML_HEADER

OLMO3 = Format(
    "olmo3",
    body=Pythonic(wrap=("", "\n", "")),
    call=("<function_calls>", "</function_calls>"),
    reasoning=("<think>", "</think>"),
    ends=(Special("<|im_end|>"), Special("<|endoftext|>"), CHATML_HEADER),
    tools="functions",
    models="OLMo 3",
)
