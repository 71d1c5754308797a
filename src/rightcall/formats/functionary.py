"""Functionary 3.1, 3.2 and 2:
`<function=f>{"x": 1}</function>`   `>>>f\\n{"x": 1}`   `<|recipient|>f\\n<|content|>{"x": 1}`"""

from rightcall.formats.spec import Channels, Format, NameThenJson, Special

_ENDS = (Special("<|eot_id|>"), Special("<|eom_id|>"))

FUNCTIONARY_V31 = Format(
    "functionary_v31",
    body=NameThenJson(open="<function={name}>", close="</function>"),
    ends=_ENDS,
    tools="functionary",
    models="Functionary 3.1",
)
FUNCTIONARY_V32 = Format(
    "functionary_v32",
    body=NameThenJson(),
    channels=Channels(
        start=">>>",
        message="\n",
        # GLM-4 writes its calls so too, and begins each message with a role.
        ends=(*_ENDS, Special("<|assistant|>"), Special("<|observation|>")),
        kinds={"all": "content"},
        messages={"content": ("all\n", ""), "call": ("{name}\n", "")},
    ),
    tools="typescript",
    models="Functionary 3.2, GLM 4",
)
FUNCTIONARY_V2 = Format(
    "functionary_v2",
    body=NameThenJson(),
    channels=Channels(
        start="\n" + Special("<|from|>") + "assistant\n" + Special("<|recipient|>"),
        message="\n" + Special("<|content|>"),
        ends=(Special("<|stop|>"),),
        kinds={"all": "content"},
        messages={
            "content": ("all\n" + Special("<|content|>"), ""),
            "call": ("{name}\n" + Special("<|content|>"), ""),
        },
    ),
    tools="typescript",
    models="Functionary 2.x",
)
