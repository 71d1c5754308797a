"""IQuest Q1 and K2 Horizon, as GLM in tags of their own:
`<ifm|tool_call>f\\n<ifm|arg_key>k</ifm|arg_key>\\n<ifm|arg_value>v</ifm|arg_value>\\n</ifm|tool_call>`"""

from rightcall.formats.glm import GLM45
from rightcall.formats.spec import Envelope, Format, Params, Special, replace

_KEY, _VALUE = "<ifm|arg_key>{key}</ifm|arg_key>\n", "<ifm|arg_value>"

IQUEST_Q1 = replace(
    GLM45,
    name="iquest_q1",
    call=("<iquest_tool_call>", "</iquest_tool_call>"),
    reasoning=("<think>", "</think>"),
    ends=(Special("<|iquest_end|>"), Special("<|endoftext|>")),
    aliases=("iquest",),
    models="IQuest Q1",
)
K2_HORIZON = Format(
    "k2_horizon",
    body=(
        Params(
            open="{name}\n",
            # The type of a value may stand between its key and itself; the schema says it better.
            param=(
                _KEY + _VALUE,
                _KEY + "<ifm|arg_type>string</ifm|arg_type>\n" + _VALUE,
                _KEY + "<ifm|arg_type>integer</ifm|arg_type>\n" + _VALUE,
                _KEY + "<ifm|arg_type>number</ifm|arg_type>\n" + _VALUE,
                _KEY + "<ifm|arg_type>boolean</ifm|arg_type>\n" + _VALUE,
                _KEY + "<ifm|arg_type>object</ifm|arg_type>\n" + _VALUE,
                _KEY + "<ifm|arg_type>array</ifm|arg_type>\n" + _VALUE,
                _KEY + "<ifm|arg_type>null</ifm|arg_type>\n" + _VALUE,
            ),
            value_close="</ifm|arg_value>\n",
        ),
        Envelope(),
    ),
    section=("<ifm|tool_calls>\n", "\n</ifm|tool_calls>"),
    call=("<ifm|tool_call>", "</ifm|tool_call>"),
    between="\n",
    reasoning=(
        ("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"),
        ("</ifm|think>\n", "</ifm|think_fast>\n", "</ifm|think_faster>\n"),
    ),
    tools="hermes",
    aliases=("k2_v3",),
    models="K2 Horizon",
)
