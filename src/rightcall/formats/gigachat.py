"""GigaChat 3.1 and 3:  `<|function_call|>{"name": "f", "arguments": {"x": 1}}`;  3.5 writes tags, as DeepSeek does"""

from rightcall.formats.deepseek_dsml import DEEPSEEK_V32, typed_tags
from rightcall.formats.spec import Envelope, Format, Special, replace

GIGACHAT31 = Format(
    "gigachat31",
    body=Envelope(),
    call=(Special("<|function_call|>"), ""),
    ends=(Special("<|message_sep|>"), Special("</s>")),
    tools="typescript",
    models="GigaChat 3.1",
)
GIGACHAT3 = replace(
    GIGACHAT31,
    name="gigachat3",
    call=(Special("<|message_sep|>") + "\n\nfunction call" + Special("<|role_sep|>") + "\n", ""),
    models="GigaChat 3",
)
_GCML, _GCML_END = Special("<｜GCML｜", ()), Special("</｜GCML｜", ())
GIGACHAT35 = replace(
    DEEPSEEK_V32,
    name="gigachat35",
    body=typed_tags(_GCML, _GCML_END),
    section=(_GCML + "tool_calls>\n", "\n" + _GCML_END + "tool_calls>"),
    ends=(Special("<|message_sep|>"), Special("</s>")),
    tools="typescript",
    models="GigaChat 3.5",
)
