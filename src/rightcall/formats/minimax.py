"""MiniMax M2 and M3:
`<minimax:tool_call><invoke name="f"><parameter name="k">v</parameter></invoke></minimax:tool_call>`
M3 puts its namespace token before every tag, names each tag after the argument and nests them."""

from rightcall.formats.spec import Format, Params, Special

_NS = Special("]<]minimax[>[")
_ENDS = (Special("[e~["), Special("]~b]") + "ai\n")

MINIMAX_M2 = Format(
    "minimax_m2",
    body=Params(
        open='<invoke name="{name}">\n',
        param='<parameter name="{key}">',
        value_close="</parameter>\n",
        close="</invoke>",
    ),
    section=("<minimax:tool_call>\n", "\n</minimax:tool_call>"),
    between="\n",
    reasoning=("<think>\n", "\n</think>\n\n"),
    ends=_ENDS,
    tools="minimax",
    aliases=("minimax-m2", "minimax", "minimax_m2.1"),
    models="MiniMax M2, M2.1",
)
MINIMAX_M3 = Format(
    "minimax_m3",
    body=Params(
        open=_NS + '<invoke name="{name}">',
        param=_NS + "<{key}>",
        value_close=_NS + "</{key}>",
        close=_NS + "</invoke>",
        item="item",
    ),
    section=(_NS + "<tool_call>\n", "\n" + _NS + "</tool_call>"),
    between="\n",
    reasoning=("<mm:think>", "</mm:think>"),
    ends=_ENDS,
    tools="minimax",
    aliases=("minimax-m3",),
    models="MiniMax M3",
)
