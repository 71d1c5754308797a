"""DeepSeek V3.2 and V4, the type of a value stands in its tag:
`<｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter></｜DSML｜invoke>`"""

from rightcall.formats.spec import Format, Params, Special, replace

# Models and providers double the bars (lsdefine/GenericAgent#804, xorbitsai/xagent#806, MetaFARS/codex-relay#49), or
# write them in ASCII (stdapi-ai/stdapi.ai#182). All tags of a call have the same bars.
_BARS = ("｜", "｜｜", "|", "||")


def _tags(bars: str, *texts: str) -> tuple[str, ...]:
    """Return tags with these bars. Nobody writes the token `｜DSML｜` by chance; grammars spell the tag out."""
    tags = [text.replace("｜", bars) for text in texts]
    return tuple([Special(tag, ()) if "｜" in bars else tag for tag in tags])


def _section(*texts: str) -> tuple[str, ...]:
    return tuple([tag for bars in _BARS for tag in _tags(bars, *texts)])


def _bodies(blank: str = "") -> tuple[Params, ...]:
    """Return a body for each kind of bars; `blank` is between the token and the word."""
    return tuple(
        [
            Params(
                open=_tags(bars, f'<｜DSML｜{blank}invoke name="{{name}}">\n'),
                param=_tags(
                    bars,
                    f'<｜DSML｜{blank}parameter name="{{key}}" string="{{type}}">',
                    f'<｜DSML｜{blank}parameter name="{{key}}">',
                ),
                value_close=_tags(bars, f"</｜DSML｜{blank}parameter>\n"),
                close=_tags(bars, f"</｜DSML｜{blank}invoke>"),
                types={"true": "string", "false": "json"},
                empty=_tags(bars, f'<｜DSML｜{blank}invoke name="{{name}}"/>'),
            )
            for bars in _BARS
        ]
    )


_FUNCTIONS, _TOOLS = "<｜DSML｜function_calls>\n", "<｜DSML｜tool_calls>\n"
_FUNCTIONS_END, _TOOLS_END = "\n</｜DSML｜function_calls>", "\n</｜DSML｜tool_calls>"
# What models write in their place.
_ODD = ("<｜DSML｜tool_call>\n", "<｜DSML｜function_call>\n", "<｜DSML｜toolcalls>\n", "<｜DSML｜tool_calls\n")
_ODD_END = ("\n</｜DSML｜tool_call>", "\n</｜DSML｜function_call>", "\n</｜DSML｜toolcalls>")

DEEPSEEK_V32 = Format(
    "deepseek_v32",
    body=_bodies(),
    section=(_section(_FUNCTIONS, _TOOLS, *_ODD), _section(_FUNCTIONS_END, _TOOLS_END, *_ODD_END)),
    between="\n",
    reasoning=("<think>", "</think>"),
    ends=(Special("<｜end▁of▁sentence｜>"), Special("<｜Assistant｜>")),
    tools="functions",
    aliases=("deepseekv32",),
    models="DeepSeek V3.2",
)
DEEPSEEK_V4 = replace(
    DEEPSEEK_V32,
    name="deepseek_v4",
    section=(_section(_TOOLS, _FUNCTIONS, *_ODD), _section(_TOOLS_END, _FUNCTIONS_END, *_ODD_END)),
    aliases=("deepseekv4",),
    models="DeepSeek V4",
)
DEEPSEEK_V41 = replace(
    DEEPSEEK_V32,
    name="deepseek_v41",
    body=_bodies(" "),
    section=(_section("<｜DSML｜ calls>\n"), _section("\n</｜DSML｜ calls>")),
    aliases=("deepseekv41", "deepseek_v4_1"),
    models="DeepSeek V4.1",
)
