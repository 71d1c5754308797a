"""Qwen2.5-Coder, in the tags in which its prompt lists the tools; read only when named:
`<tools>\\n{"name": "f", "arguments": {"x": 1}}\\n</tools>`"""

from rightcall.formats.spec import Envelope, Format
from rightcall.formats.turn_ends import TURN_ENDS

QWEN25_CODER = Format(
    "qwen25_coder",
    body=Envelope(wrap=("", "\n", "")),
    call=("<tools>\n", "\n</tools>"),
    between="\n",
    ends=TURN_ENDS,
    tools="hermes",
    aliases=("qwen2_5_coder", "qwen2.5_coder"),
    models="Qwen2.5-Coder",
)
