"""Hermes, Qwen 2.5, Qwen 3 and related models:  `<tool_call>\\n{"name": "f", "arguments": {"x": 1}}\\n</tool_call>`"""

from rightcall.formats.spec import Envelope, Format, Special, replace
from rightcall.formats.turn_ends import CHATML_HEADER

_THINK = ("<think>\n", "\n</think>\n\n")

HERMES = Format(
    "hermes",
    body=Envelope(),
    call=("<tool_call>\n", "\n</tool_call>"),
    between="\n",
    reasoning=(("<think>\n", "<scratch_pad>\n"), ("\n</think>\n\n", "\n</scratch_pad>\n")),
    ends=(
        *(Special("<|im_end|>"), Special("<|endoftext|>"), CHATML_HEADER),
        *(Special("[|endofturn|]"), Special("<|endofturn|>"), Special("<|role_end|>")),  # EXAONE, K-EXAONE, Ling
    ),
    tools="hermes",
    aliases=("qwen", "qwen25", "qwen2.5", "qwen3", "trinity", "qwq", "internvl", "smollm3"),
    models="Hermes 2/3, Qwen2.5, Qwen3, QwQ, Trinity, InternVL, SmolLM3, EXAONE 4, Ling 1 and 2",
)
ERNIE45 = replace(
    HERMES,
    name="ernie45",
    reasoning=_THINK,
    content=(("<response>\n", "\n</response>\n"),),
    ends=(Special("</s>"), Special("<|end_of_sentence|>"), Special("<|im_end|>"), CHATML_HEADER),
    tools="ernie",
    aliases=("ernie",),
    models="ERNIE 4.5",
)
REKA_EDGE = replace(
    HERMES,
    name="reka_edge",
    call=("<tool_call>\n", "</tool_call>"),
    reasoning=_THINK,
    ends=(Special("<sep>"),),
    models="Reka Edge",
)
INTERNLM2 = Format(
    "internlm2",
    body=Envelope(args=("parameters", "arguments")),
    call=(Special("<|action_start|>") + Special("<|plugin|>") + "\n", Special("<|action_end|>")),
    reasoning=_THINK,
    ends=(Special("<|im_end|>"), CHATML_HEADER),
    tools="flat",
    aliases=("internlm", "interns1"),
    models="InternLM2.5, Intern-S1",
)
