"""MiroThinker, and what was prompted as Cline prompts for tools of MCP servers:
`<use_mcp_tool>\\n<server_name>s</server_name>\\n<tool_name>f</tool_name>\\n<arguments>\\n{"x": 1}\\n...`"""

from rightcall.formats.spec import Format, NameThenJson, Special
from rightcall.formats.turn_ends import CHATML_HEADER

_NAME = "<tool_name>{name}</tool_name>\n<arguments>\n"

MIROTHINKER = Format(
    "mirothinker",
    body=NameThenJson(
        open=(_NAME, "<server_name>{cite}</server_name>\n" + _NAME),  # the name of the server is ignored
        close="\n</arguments>",
    ),
    section=("<use_mcp_tool>\n", "\n</use_mcp_tool>"),
    between="\n",
    reasoning=("<think>\n", "\n</think>\n\n"),
    ends=(Special("<|im_end|>"), Special("<|endoftext|>"), CHATML_HEADER),
    aliases=("use_mcp_tool",),
    models="MiroThinker 1, any model that was prompted as Cline prompts",
)
