"""A JSON list of envelopes:  `<tool_calls>[{"name": "f", "arguments": {"x": 1}}]</tool_calls>`"""

from rightcall.formats.spec import Envelope, Format, Special, replace

_LIST = Envelope(wrap=("[", ", ", "]"))
_THINK = ("<think>\n", "\n</think>\n\n")

JAMBA = Format(
    "jamba",
    body=_LIST,
    call=("<tool_calls>", "</tool_calls>"),
    ends=(Special("<|eom|>"), Special("<|eos|>"), Special("<|bom|>") + Special("<|assistant|>")),
    models="Jamba 1.5 and later",
)
HUNYUAN_A13B = replace(
    JAMBA,
    name="hunyuan_a13b",
    reasoning=_THINK,
    content=(("<answer>\n", "\n</answer>"),),
    ends=(Special("<|eos|>"),),
    models="Hunyuan-A13B",
)
APRIEL = replace(
    JAMBA,
    name="apriel",
    reasoning=("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
    content=(("", "\n[END FINAL RESPONSE]"),),
    ends=(Special("<|end|>"), Special("<|assistant|>")),
    tools="apriel",
    models="Apriel 1.5/1.6",
)
MINIMAX_M1 = Format(
    "minimax_m1",
    body=Envelope(wrap=("", "\n", "")),
    call=("<tool_calls>\n", "\n</tool_calls>"),
    reasoning=_THINK,
    ends=(Special("<end_of_sentence>"),),
    tools="hermes",
    models="MiniMax-M1",
)
