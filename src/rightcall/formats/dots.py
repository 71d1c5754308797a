"""dots.llm, JSON or tags inside:  `<dots_function_call>{"name": "f", "arguments": {"x": 1}}</dots_function_call>`"""

from rightcall.formats.spec import Envelope, Format, Params, Special

DOTS = Format(
    "dots",
    body=(
        Envelope(),
        Params(
            open='<invoke name="{name}">\n',
            param='<parameter name="{key}">',
            value_close="</parameter>\n",
            close="</invoke>",
        ),
    ),
    call=("<dots_function_call>", "</dots_function_call>"),
    between="\n",
    reasoning=("<think>", "</think>"),
    ends=(Special("<|endofresponse|>"),),
    models="dots.llm",
)
