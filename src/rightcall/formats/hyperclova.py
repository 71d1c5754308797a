"""HyperCLOVA X, each message with a header of its own:
`<|im_start|>assistant -> tool/function_call\\n[{"name": "f", "arguments": {"x": 1}}]<|im_end|>`"""

from rightcall.formats.spec import Envelope, Format, Special
from rightcall.formats.turn_ends import CHATML_HEADER

_START, _END = Special("<|im_start|>"), Special("<|im_end|>")

# The prompt ends with the first word of a header, so a reply may begin with the rest of one.
HYPERCLOVAX = Format(
    "hyperclovax",
    body=Envelope(args=("arguments", "parameters", "args", "input"), wrap=("[", ", ", "]")),
    call=((_START + "assistant -> tool/function_call\n", " -> tool/function_call\n"), _END),
    reasoning=((_START + "assistant/think\n", "/think\n"), _END),
    ends=(_END, Special("<|stop|>"), Special("<|endofturn|>"), CHATML_HEADER),
    aliases=("hyperclovax_seed_think_14b", "hcx"),
    models="HyperCLOVA X SEED 14B",
)
