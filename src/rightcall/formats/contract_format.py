"""The contract's own wire, for models without native tools; a long string is a heredoc:
`<tool_call>\\nf({ path: "a.py", text: <<EOF\\n...\\nEOF\\n})\\n</tool_call>`"""

from rightcall.formats.spec import Envelope, Format, Protocol, TsCall

CONTRACT = Format(
    "contract",
    body=(TsCall(), Envelope(wrap=("[", ", ", "]"))),
    call=("<tool_call>\n", "\n</tool_call>"),
    between="\n",
    reasoning=("<think>\n", "\n</think>\n\n"),
    content=(
        ("<assistant_prose>\n", "\n</assistant_prose>\n"),
        ("<user_response>\n", "\n</user_response>\n"),
    ),
    protocol=Protocol(done=("<done>", "</done>")),
    tools="typescript",
    models="any model that was given the contract",
)
