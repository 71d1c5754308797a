"""GigaChat 3.1 and 3:  `<|function_call|>{"name": "f", "arguments": {"x": 1}}`"""

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
