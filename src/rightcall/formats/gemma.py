"""FunctionGemma and Gemma 4:  `<|tool_call>call:f{k:<|"|>v<|"|>,l:[1]}<tool_call|>`"""

from rightcall.formats.spec import Braced, Format, Special

FUNCTIONGEMMA = Format(
    "functiongemma",
    body=Braced(open="call:{name}", quote=Special("<escape>"), quoted="raw"),
    call=(Special("<start_function_call>"), Special("<end_function_call>")),
    ends=(
        Special("<end_of_turn>"),
        Special("<start_function_response>"),
        Special("<eos>"),
        Special("<start_of_turn>") + "model\n",
    ),
    tools="functiongemma",
    models="FunctionGemma",
)
GEMMA4 = Format(
    "gemma4",
    body=Braced(open="call:{name}", quote=Special('<|"|>')),
    call=(Special("<|tool_call>"), Special("<tool_call|>")),
    # The label of a thought may be missing. One of an answer ends a thought that was left open.
    reasoning=(
        (Special("<|channel>") + "thought\n", Special("<|channel>")),
        (
            "\n" + Special("<channel|>"),
            Special("<|channel>") + "content\n",
            Special("<|channel>") + "response\n",
            Special("<|channel>") + "final\n",
        ),
    ),
    ends=(
        *(Special("<|tool_response>"), Special("<turn|>"), Special("<eos>"), Special("<|turn>") + "model\n"),
        *(Special("<|tool>"), Special("<tool|>")),  # some are trained with them around their calls
    ),
    tools="gemma",
    aliases=("gemma-4",),
    models="Gemma 4",
)
