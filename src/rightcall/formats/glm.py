"""GLM 4.5 and related models, with key and value in separate tags:
`<tool_call>f\\n<arg_key>k</arg_key>\\n<arg_value>v</arg_value>\\n</tool_call>`"""

from rightcall.formats.spec import Format, Params, Special, replace

GLM45 = Format(
    "glm45",
    body=Params(
        open="{name}\n",
        param="<arg_key>{key}</arg_key>\n<arg_value>",
        value_close="</arg_value>\n",
    ),
    call=("<tool_call>", "</tool_call>"),
    between="\n",
    reasoning=("<think>", "</think>\n"),
    ends=(Special("<|user|>"), Special("<|observation|>"), Special("<|endoftext|>"), Special("<|assistant|>")),
    citations=(Special("<|begin_of_box|>"), Special("<|end_of_box|>")),  # the answer of a model that sees
    tools="hermes",
    aliases=("glm", "glm47", "glm4_moe", "spark25"),
    models="GLM 4.5, 4.6, 4.7 (its inline layout), Spark 2.5",
)
LING3 = replace(
    GLM45,
    name="ling3",
    body=Params(open="{name}", param="<arg_key>{key}</arg_key><arg_value>", value_close="</arg_value>"),
    between="",
    ends=(Special("<|role_end|>"), *GLM45.ends),
    models="Ling 3, GLM 4.7 to 5.3",
)
POOLSIDE_V1 = replace(
    GLM45,
    name="poolside_v1",
    ends=(Special("<|im_end|>"), Special("</assistant>")),
    aliases=("laguna",),
    models="Poolside Laguna",
)
