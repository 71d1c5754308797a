"""Cohere:  `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"x": 1}}]<|END_ACTION|>`"""

from rightcall.formats.spec import Envelope, Format, Params, Special, replace

_LIST = Envelope(
    names=("tool_name", "name"),
    args=("parameters", "arguments"),
    ids=("tool_call_id", "id"),
    write_id="first",
    wrap=("[\n    ", ",\n    ", "\n]"),
)
_RESPONSE = (Special("<|START_RESPONSE|>"), Special("<|END_RESPONSE|>"))
_TEXT = (Special("<|START_TEXT|>"), Special("<|END_TEXT|>"))
_ENDS = (Special("<|END_OF_TURN_TOKEN|>"), Special("<|START_OF_TURN_TOKEN|>"), Special("<|CHATBOT_TOKEN|>"))

COHERE_COMMAND3 = Format(
    "cohere_command3",
    body=_LIST,
    call=(Special("<|START_ACTION|>"), Special("<|END_ACTION|>")),
    reasoning=(Special("<|START_THINKING|>"), Special("<|END_THINKING|>")),
    content=(_RESPONSE, _TEXT),
    citations=(("<co>", "<co:{cite}>"), ("</co>", "</co:{cite}>")),
    ends=_ENDS,
    tools="cohere",
    aliases=("command_r7b", "command_a"),
    models="Command R7B, Command A",
)
COHERE_COMMAND4 = replace(COHERE_COMMAND3, name="cohere_command4", content=(_TEXT, _RESPONSE), models="Command 4")
COMMAND_R_PLUS = Format(
    "command_r_plus",
    body=Envelope(names=("tool_name", "name"), args=("parameters", "arguments"), wrap=("[\n    ", ",\n    ", "\n]")),
    call=("Action:\n```json\n", "\n```"),
    ends=_ENDS,
    tools="pythonic",
    models="Command R, Command R+",
)
COHERE_COMMAND5 = replace(
    COHERE_COMMAND4,
    name="cohere_command5",
    body=Params(
        open='<cofl:tool_call id="{id}" name="{name}">',
        param=('<cofl:tool_param name="{key}" string="{type}">', '<cofl:value name="{key}" type="{type}">'),
        value_close=("</cofl:tool_param>", "</cofl:value>"),
        close="</cofl:tool_call>",
        # Lists and objects are nested tags in one of its layouts, which is not read: no JSON, so they are refused.
        types={"true": "string", "false": "json", "raw": "string", "json": "json", "dict": "json", "list": "json"},
    ),
    section=("<cofl:tool_calls>", "</cofl:tool_calls>"),
    call=("", ""),
    models="Command 5",
)
