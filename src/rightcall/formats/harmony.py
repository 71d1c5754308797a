"""gpt-oss:  `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": 1}<|call|>`"""

from rightcall.formats.spec import Channels, Format, NameThenJson, Special

_CHANNEL, _MESSAGE = Special("<|channel|>"), Special("<|message|>")
_END, _CALL = Special("<|end|>"), Special("<|call|>")

HARMONY = Format(
    "harmony",
    body=NameThenJson(),
    channels=Channels(
        start=(
            *(Special("<|start|>") + "assistant", Special("<|start|>") + "user", Special("<|start|>") + "functions."),
            *(Special("<|start|>") + "system", Special("<|start|>") + "developer", Special("<|start|>") + "tool"),
        ),
        message=_MESSAGE,
        ends=(_END, Special("<|return|>"), _CALL),
        to=" to=",
        channel=_CHANNEL,
        prefix="functions.",
        kinds={
            "analysis": "reasoning",
            "commentary": "content",
            "final": "content",
            "user": "content",
            "assistant": "content",
        },
        messages={
            "reasoning": (_CHANNEL + "analysis" + _MESSAGE, _END),
            "content": (_CHANNEL + "final" + _MESSAGE, _END),
            "call": (
                _CHANNEL + "commentary to=functions.{name} " + Special("<|constrain|>") + "json" + _MESSAGE,
                _CALL,
            ),
        },
    ),
    tools="typescript",
    aliases=("openai", "gpt-oss", "gpt_oss"),
    models="gpt-oss",
)
