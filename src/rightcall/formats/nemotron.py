"""Nemotron Nano v2:  `<TOOLCALL>[{"name": "f", "arguments": {"x": 1}}]</TOOLCALL>`"""

from rightcall.formats.spec import Envelope, Format, Special

NEMOTRON_V2 = Format(
    "nemotron_v2",
    body=Envelope(wrap=("[", ", ", "]")),
    call=("<TOOLCALL>", "</TOOLCALL>"),
    reasoning=("<think>\n", "\n</think>\n\n"),
    ends=(Special("<SPECIAL_12>"), Special("</s>"), Special("<SPECIAL_11>") + "Assistant\n", Special("<|eot_id|>")),
    tools="nemotron",
    aliases=("nemotron_nano_v2",),
    models="Nemotron Nano v2, Llama-Nemotron Super",
)
