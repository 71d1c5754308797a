"""Muse: `<|start|>assistant to=f<|message|><atem:function_calls><atem:invoke name="f"><atem:parameter name="k">v...`"""

from rightcall.formats.spec import Channels, Format, Params, Special

_MESSAGE, _END = Special("<|message|>"), Special("<|eom|>")

MUSE = Format(
    "muse",
    body=Params(
        open='<atem:invoke name="{name}">\n',
        param='<atem:parameter name="{key}">',
        value_close="</atem:parameter>\n",
        close="</atem:invoke>",
    ),
    section=("<atem:function_calls>\n", "\n</atem:function_calls>"),
    channels=Channels(
        # Messages after the others are attributed to someone else by the model.
        start=(
            *(Special("<|start|>") + "assistant", Special("<|start|>") + "user"),
            *(Special("<|start|>") + "system", Special("<|start|>") + "tool"),
        ),
        message=_MESSAGE,
        ends=(_END, Special("<|eot|>"), Special("<|end_of_text|>")),
        to=" to=",
        kinds={"self": "reasoning", "user": "content", "commentary": "content", "developer": "content"},
        messages={
            "reasoning": (" to=self" + _MESSAGE, _END),
            "content": (" to=user" + _MESSAGE, _END),
            "call": (" to={name}" + _MESSAGE, _END),
        },
    ),
    tools="muse",
    aliases=("muse_glimmer",),
    models="Muse",
)
