"""Llama 3 and 4:  `<|python_tag|>{"name": "f", "parameters": {"x": 1}}`   `<|python_start|>[f(x=1)]<|python_end|>`"""

from rightcall.formats.spec import Envelope, Format, Pythonic, Special
from rightcall.formats.turn_ends import TURN_ENDS

_START, _END = Special("<|python_start|>"), Special("<|python_end|>")
_HEADERS = (
    Special("<|start_header_id|>") + "assistant" + Special("<|end_header_id|>") + "\n\n",
    Special("<|header_start|>") + "assistant" + Special("<|header_end|>") + "\n\n",
)
_ENDS = (Special("<|eom_id|>"), Special("<|eot_id|>"), Special("<|eot|>"), Special("<|eom|>"), *_HEADERS)

LLAMA3_JSON = Format(
    "llama3_json",
    body=(Envelope(args=("parameters", "arguments")), Pythonic(wrap=("", "; ", ""))),
    call=((Special("<|python_tag|>"), "", _START), ""),
    between="; ",
    ends=(*_ENDS, _END),  # Llama 4 also writes JSON between its own two tokens, or after them
    tools="llama",
    aliases=("llama3", "llama4_json", "llama3.1", "llama3.2", "llama3.3"),
    models="Llama 3.x, Llama 4",
)
LLAMA4_PYTHONIC = Format(
    "llama4_pythonic",
    body=(Pythonic(), Envelope(args=("parameters", "arguments"), wrap=("[", ", ", "]"))),
    call=((_START, ""), (_END, "")),
    ends=_ENDS,
    tools="indented",
    aliases=("llama4",),
    models="Llama 4",
)
PYTHONIC = Format(
    "pythonic",
    body=Pythonic(),
    ends=TURN_ENDS,
    tools="indented",
    aliases=("toolace", "llama3_pythonic"),
    models="Llama 3.2, ToolACE",
)
