"""Granite 4, 3, 20B:  `<tool_call>\\n{"name": "f", "arguments": {"x": 1}}\\n</tool_call>`   `<|tool_call|>[{...}]`"""

from rightcall.formats.hermes import HERMES
from rightcall.formats.spec import Envelope, Format, Special, replace

_ENDS = (
    Special("<|end_of_text|>"),
    Special("<|start_of_role|>") + "assistant" + Special("<|end_of_role|>"),
)

GRANITE4 = replace(
    HERMES,
    name="granite4",
    reasoning=None,
    ends=_ENDS,
    aliases=("granite-4",),
    models="Granite 4",
)
GRANITE3 = Format(
    "granite3",
    body=Envelope(wrap=("[", ", ", "]")),
    call=((Special("<|tool_call|>"), "<tool_call>", ""), ""),
    reasoning=(("<think>", "Here is my thought process:"), ("</think>", "Here is my response:")),
    content=(("<response>", "</response>"),),
    # The last is Phi-4-mini's, which opens its calls with the same token.
    ends=(*_ENDS, Special("<|/tool_call|>")),
    tools="llama",
    aliases=("granite",),
    models="Granite 3.x",
)
GRANITE_20B_FC = Format(
    "granite_20b_fc",
    body=Envelope(),
    call=("<function_call> ", ""),
    between="\n",
    ends=(Special("<|endoftext|>"),),
    tools="library",
    aliases=("granite-20b-fc",),
    models="granite-20b-functioncalling",
)
