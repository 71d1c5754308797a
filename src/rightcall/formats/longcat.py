"""LongCat, JSON or tags inside:  `<longcat_tool_call>\\n{"name": "f", "arguments": {"x": 1}}\\n</longcat_tool_call>`"""

from rightcall.formats.hermes import HERMES
from rightcall.formats.spec import Envelope, Params, replace

LONGCAT = replace(
    HERMES,
    name="longcat",
    body=(
        Envelope(),
        Params(
            open="{name}\n",
            param="<longcat_arg_key>{key}</longcat_arg_key>\n<longcat_arg_value>",
            value_close="</longcat_arg_value>\n",
        ),
    ),
    call=("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
    reasoning=("<longcat_think>\n", "\n</longcat_think>\n"),
    ends=("</longcat_s>",),
    tools="longcat",
    models="LongCat-Flash",
)
