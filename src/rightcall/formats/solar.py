"""Solar Open, and Solar Open 2 with values as bare text:
`<|tool_calls|><|tool_call:begin|>ID<|tool_call:name|>f<|tool_call:args|>{"x": 1}<|tool_call:end|>`
`<|tool_call:start|>f\\n<|tool_arg:start|>k<|tool_arg:value|>v<|tool_arg:end|>\\n<|tool_call:end|>`"""

from rightcall.formats.spec import Format, NameThenJson, Params, Special

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
SOLAR_OPEN2 = Format(
    "solar_open2",
    body=Params(
        open="{name}\n",
        param=Special("<|tool_arg:start|>") + "{key}" + Special("<|tool_arg:value|>"),
        value_close=Special("<|tool_arg:end|>") + "\n",
    ),
    call=(Special("<|tool_call:start|>"), Special("<|tool_call:end|>")),
    reasoning=(Special("<|think:start|>"), Special("<|think:end|>")),
    ends=(Special("<|im:end|>"), Special("<|im:start|>") + "assistant" + Special("<|im:content|>")),
    tools="solar",
    aliases=("solar_pro4",),
    models="Solar Open 2, Solar Pro 4",
)
