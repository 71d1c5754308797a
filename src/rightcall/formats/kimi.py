"""Kimi K2 and K3:
`<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|>...`
`<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="k" type="string"<|sep|>v...`"""

from rightcall.formats.spec import Format, NameThenJson, Params, Special

_BEGIN = Special("<|tool_call_argument_begin|>")
_OPEN, _CLOSE, _SEP = Special("<|open|>"), Special("<|close|>"), Special("<|sep|>")
# Also where the last token is missing: the text ends there, or another marker follows.
_THOUGHT = (_CLOSE + "think" + _SEP, _CLOSE + "think")
_SAYS, _SAID = (_OPEN + "response" + _SEP, _OPEN + "response"), (_CLOSE + "response" + _SEP, _CLOSE + "response")

KIMI_K2 = Format(
    "kimi_k2",
    body=NameThenJson(
        open=("functions.{name}:{index}" + _BEGIN, "{name}:{index}" + _BEGIN, "{name}" + _BEGIN),
        id="functions.{name}:{index}",
    ),
    section=(
        (Special("<|tool_calls_section_begin|>"), Special("<|tool_call_section_begin|>")),
        (Special("<|tool_calls_section_end|>"), Special("<|tool_call_section_end|>")),
    ),
    call=(Special("<|tool_call_begin|>"), Special("<|tool_call_end|>")),
    reasoning=("<think>", "</think>"),
    ends=(Special("<|im_end|>"), Special("<|im_assistant|>") + "assistant" + Special("<|im_middle|>")),
    aliases=("kimi",),
    models="Kimi K2, K2-Thinking",
)
KIMI_K3 = Format(
    "kimi_k3",
    body=Params(
        open=(_OPEN + 'call tool="{name}" index="{number}"' + _SEP, _OPEN + 'call tool="{name}"' + _SEP),
        param=_OPEN + 'argument key="{key}" type="{type}"' + _SEP,
        value_close=_CLOSE + "argument" + _SEP,
        close=_CLOSE + "call" + _SEP,
        types={
            "string": "string",
            "number": "json",
            "integer": "json",
            "boolean": "json",
            "null": "json",
            "object": "json",
            "array": "json",
        },
        json=(_OPEN + 'json type="object"' + _SEP, _CLOSE + "json" + _SEP),
        escapes={"&": "&amp;", '"': "&quot;"},
    ),
    section=(_OPEN + "tools" + _SEP, (_CLOSE + "tools" + _SEP, _CLOSE + "tools")),
    reasoning=(_OPEN + "think" + _SEP, _THOUGHT),
    content=((_SAYS, _SAID),),
    ends=(
        *(_CLOSE + "message" + _SEP, _CLOSE + "message", Special("<|end_of_msg|>")),
        *(_OPEN + 'message role="assistant"' + _SEP, _OPEN + "message" + _SEP),
    ),
    tools="fenced",
    models="Kimi K3",
)
