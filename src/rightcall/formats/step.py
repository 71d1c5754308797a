"""Step-3:  `<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f">...`"""

from rightcall.formats.spec import Format, Params, Special

_BEGIN = Special("<｜tool_call_begin｜>")

STEP3 = Format(
    "step3",
    body=Params(
        open='<steptml:invoke name="{name}">',
        param='<steptml:parameter name="{key}">',
        value_close="</steptml:parameter>",
        close="</steptml:invoke>",
    ),
    section=(Special("<｜tool_calls_begin｜>"), Special("<｜tool_calls_end｜>")),
    call=((_BEGIN + "function" + Special("<｜tool_sep｜>"), _BEGIN), Special("<｜tool_call_end｜>")),
    reasoning=("<think>", "</think>"),
    ends=(Special("<|EOT|>"), Special("<|BOT|>") + "assistant\n"),
    models="Step-3",
)
