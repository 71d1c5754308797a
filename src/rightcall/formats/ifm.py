"""K2 Horizon:
`<ifm|tool_call>f\\n<ifm|arg_key>k</ifm|arg_key>\\n<ifm|arg_value>v</ifm|arg_value>\\n</ifm|tool_call>`"""

from rightcall.formats.spec import Envelope, Format, Params, Special

K2_HORIZON = Format(
    "k2_horizon",
    body=(
        Params(
            open="{name}\n",
            param=(
                "<ifm|arg_key>{key}</ifm|arg_key>\n<ifm|arg_type>{type}</ifm|arg_type>\n<ifm|arg_value>",
                "<ifm|arg_key>{key}</ifm|arg_key>\n<ifm|arg_value>",
            ),
            value_close="</ifm|arg_value>\n",
            types={
                "string": "string",
                "object": "json",
                "array": "json",
                "integer": "json",
                "number": "json",
                "boolean": "json",
                "null": "json",
            },
        ),
        Envelope(),
    ),
    section=("<ifm|tool_calls>\n", "\n</ifm|tool_calls>"),
    call=("<ifm|tool_call>", "</ifm|tool_call>"),
    between="\n",
    reasoning=(
        ("<ifm|think>\n", "<ifm|think_fast>\n", "<ifm|think_faster>\n"),
        ("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"),
    ),
    ends=(Special("<|ifm|im_end|>"),),
    tools="hermes",
    aliases=("k2_v3", "ifm"),
    models="K2 Horizon",
)
