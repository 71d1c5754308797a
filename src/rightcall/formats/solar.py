"""Solar Open:  `<|tool_calls|><|tool_call:begin|>ID<|tool_call:name|>f<|tool_call:args|>{"x": 1}<|tool_call:end|>`"""

from rightcall.formats.spec import Format, NameThenJson, Special

_END = Special("<|end|>")

SOLAR_OPEN = Format(
    "solar_open",
    body=NameThenJson(open="{id}" + Special("<|tool_call:name|>") + "{name}" + Special("<|tool_call:args|>")),
    section=(Special("<|tool_calls|>"), Special("<|calls|>")),
    call=(Special("<|tool_call:begin|>"), Special("<|tool_call:end|>")),
    reasoning=(Special("<|think|>"), _END),
    content=((Special("<|content|>"), _END),),
    ends=(Special("<|begin|>") + "assistant",),
    tools="solar",
    models="Solar Open",
)
