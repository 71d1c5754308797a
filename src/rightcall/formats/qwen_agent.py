"""What Qwen-Agent teaches models that have no wire of their own:  `✿FUNCTION✿: f\\n✿ARGS✿: {"x": 1}`"""

from rightcall.formats.spec import Format, NameThenJson
from rightcall.formats.turn_ends import TURN_ENDS

QWEN_AGENT = Format(
    "qwen_agent",
    body=NameThenJson(open="✿FUNCTION✿: {name}\n✿ARGS✿: "),
    between="\n",
    # What follows the first is the tool's to say; the second stands before the answer.
    ends=("\n✿RESULT✿:", "\n✿RESULT✿", "✿RETURN✿: ", "✿RETURN✿", *TURN_ENDS),
    models="Qwen 1 to 2 behind Qwen-Agent",
)
