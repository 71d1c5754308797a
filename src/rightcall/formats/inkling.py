"""Inkling:  `<|message_model|>f<|content_invoke_tool_json|>{"name": "f", "args": {"x": 1}}<|end_message|>`"""

from rightcall.formats.spec import Envelope, Format, Special

_MODEL, _INVOKE = Special("<|message_model|>"), Special("<|content_invoke_tool_json|>")
_END = Special("<|end_message|>")
_TEXT, _ERROR = Special("<|content_invoke_tool_text|>"), Special("<|content_tool_error|>")

INKLING = Format(
    "inkling",
    body=Envelope(args=("args", "arguments")),
    call=((_MODEL + "{name}" + _INVOKE, _INVOKE), _END),
    reasoning=(Special("<|content_thinking|>"), _END),
    content=(
        (Special("<|content_text|>"), _END),
        ((_MODEL + "{name}" + _TEXT, _TEXT), _END),
        ((_MODEL + "{name}" + _ERROR, _ERROR), _END),
    ),
    ends=(
        _MODEL,
        Special("<|content_model_end_sampling|>"),
        # What others say begins like this, and what is no text.
        Special("<|message_user|>"),
        Special("<|message_system|>"),
        Special("<|message_tool|>"),
        Special("<|content_image|>"),
        Special("<|content_audio_input|>"),
        Special("<|audio_end|>"),
    ),
    models="Inkling",
)
