"""Inkling:  `<|message_model|>f<|content_invoke_tool_json|>{"name": "f", "args": {"x": 1}}<|end_message|>`"""

from rightcall.formats.spec import Envelope, Format, Special

_MODEL, _INVOKE = Special("<|message_model|>"), Special("<|content_invoke_tool_json|>")
_END = Special("<|end_message|>")
_OTHER_ROLES = (Special("<|message_user|>"), Special("<|message_system|>"), Special("<|message_tool|>"))

INKLING = Format(
    "inkling",
    body=Envelope(args=("args", "arguments")),
    call=((_MODEL + "{name}" + _INVOKE, _INVOKE), _END),
    reasoning=(Special("<|content_thinking|>"), _END),
    content=(
        (Special("<|content_text|>"), _END),
        (Special("<|content_invoke_tool_text|>"), _END),
        (Special("<|content_tool_error|>"), _END),
    ),
    ends=(_MODEL, Special("<|content_model_end_sampling|>"), *_OTHER_ROLES),
    models="Inkling",
)
