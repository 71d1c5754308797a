"""MiniCPM 3 and 5:  a Python fence in tags, or `<function name="f"><param name="k">v</param></function>`"""

from rightcall.formats.spec import Format, Params, Pythonic, Special
from rightcall.formats.turn_ends import CHATML_HEADER

MINICPM3 = Format(
    "minicpm3",
    body=Pythonic(wrap=("", "\n", "")),
    # The fence may be missing, or damaged.
    call=(
        (Special("<|tool_call_start|>") + "\n```python\n", Special("<|tool_call_start|>") + "\n"),
        ("\n```\n" + Special("<|tool_call_end|>") + "\n", Special("<|tool_call_end|>") + "\n"),
    ),
    reasoning=(Special("<|thought_start|>") + "\n", "\n" + Special("<|thought_end|>") + "\n"),
    ends=(Special("<|im_end|>"), CHATML_HEADER),
    tools="pythonic",
    models="MiniCPM3",
)
MINICPM5 = Format(
    "minicpm5",
    body=Params(
        open=(
            '<function name="{name}">',
            '<functionname="{name}">',
            '<function name="{name}">\n<arguments>',
            '<functionname="{name}">\n<arguments>',
        ),
        param=('<param name="{key}">', '<paramname="{key}">'),
        value_close="</param>",
        close=("</function>", "</arguments>\n</function>"),
        quote=("<![CDATA[", "]]>"),
    ),
    reasoning=("<think>\n", "\n</think>\n\n"),
    ends=(Special("<|im_end|>"), CHATML_HEADER),
    tools="hermes",
    models="MiniCPM5",
)
