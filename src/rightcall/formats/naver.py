"""HyperCLOVA X SEED Think, a list behind the header of the turn, with which the prompt ends:
`<|im_start|>assistant -> tool/function_call\\n[{"name": "f", "arguments": {"x": 1}}]<|im_end|>`"""

from rightcall.formats.spec import Envelope, Format, Special

_START, _END = Special("<|im_start|>") + "assistant", Special("<|im_end|>")

HYPERCLOVAX = Format(
    "hyperclovax",
    body=Envelope(wrap=("[", ", ", "]")),
    call=(" -> tool/function_call\n", ""),
    reasoning=("/think\n", _END + "\n"),
    ends=(_END, _START, Special("<|endofturn|>"), Special("<|stop|>")),
    aliases=("hyperclovax_seed_think_14b",),
    models="HyperCLOVA X SEED Think",
)
