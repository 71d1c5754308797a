"""Step-3:  `<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f">...`
Step-Audio 2:  `<tool_call>function\\nf\\n{"x": 1}</tool_call>`"""

from rightcall.formats.spec import Format, NameThenJson, Params, Special

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
STEP_AUDIO2 = Format(
    "step_audio2",
    body=NameThenJson(open="{name}\n"),
    call=("<tool_call>function\n", "</tool_call>"),
    reasoning=("<think>", "</think>"),
    ends=STEP3.ends,
    aliases=("step_audio_2",),
    models="Step-Audio 2",
)
