"""Formats that prompts teach models without a native one; parsed only when named, because prose resembles them:
`Action: f\\nAction Input: {"x": 1}`   `<invoke name="f">...</invoke>`   a fence of `tool_code` with `f(x=1)`
`functions.f:\\n{"x": 1}`   `✿FUNCTION✿: f\\n✿ARGS✿: {"x": 1}`"""

from rightcall.formats.spec import Format, NameThenJson, Params, Pythonic
from rightcall.formats.turn_ends import TURN_ENDS

REACT = Format(
    "react",
    body=NameThenJson(open="Action: {name}\nAction Input: "),
    between="\n",
    # What follows is the tool's to say; a model that goes on has made it up.
    ends=("\nObservation:", *TURN_ENDS),
    models="any model that was prompted for ReAct",
)
INVOKE = Format(
    "invoke",
    body=Params(
        open='<invoke name="{name}">\n',
        param='<parameter name="{key}">',
        value_close="</parameter>\n",
        close="</invoke>",
    ),
    section=(("<function_calls>\n", "<tool_calls>\n"), ("\n</function_calls>", "\n</tool_calls>")),
    between="\n",
    models="any model that was prompted for invoke blocks",
)
TOOL_CODE = Format(
    "tool_code",
    body=Pythonic(wrap=("", "\n", "")),
    call=(("```tool_code\n", "```tool_code\nprint("), ("\n```", ")\n```")),
    between="\n",
    ends=TURN_ENDS,
    tools="pythonic",
    models="Gemma 2 and 3, any model that was prompted for tool_code",
)
FUNCTION_LINES = Format(
    "function_lines",
    body=NameThenJson(open="functions.{name}:\n"),
    between="\n",
    ends=TURN_ENDS,
    tools="library",
    aliases=("chatml-function-calling",),
    models="any model behind llama-cpp-python's chatml-function-calling",
)
QWEN_AGENT = Format(
    "qwen_agent",
    body=NameThenJson(open="✿FUNCTION✿: {name}\n✿ARGS✿: "),
    between="\n",
    ends=("\n✿RESULT✿:", "\n✿RESULT✿", "\n✿RETURN✿:", "\n✿RETURN✿", *TURN_ENDS),
    tools="library",
    aliases=("qwen-agent",),
    models="any model behind Qwen-Agent's own prompt",
)
