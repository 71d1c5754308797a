"""Damaged calls from public bug threads: each is parsed with the intended arguments, or rejected and reported.

Every text is parsed under every chunking, with its format named and, if it has markers, with `auto`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from rightcall import Call, Reply, Tool, Toolset, render, repair
from rightcall.formats import FORMATS
from rightcall.formats.spec import Params, marker_alternatives
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import INTEGER, STRING

Args = dict[str, Any]


def make_tool(name: str, *required: str, **properties: Any) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": list(required)})


TOOLS = Toolset(
    [
        make_tool("bash", "command", command=STRING, timeout=INTEGER),
        make_tool("write_file", "path", "content", path=STRING, content=STRING),
        make_tool("get_weather", "city", city=STRING, days=INTEGER),
        make_tool("search", query=STRING, limit=INTEGER, exact={"type": "boolean"}),
        make_tool("view", "path", path=STRING, view_range={"type": "array", "items": INTEGER}),
        make_tool("tag", labels={"type": "array", "items": STRING}, options={"type": "object"}),
        make_tool("list_mailboxes"),
    ]
)


def parse_every_cut(text: str, format: str) -> Reply:
    return hold_of_every_cut(text, Setting(format, TOOLS))


def runnable_calls(text: str, format: str) -> list[tuple[str, Args]]:
    return [(call.name, call.arguments) for call in parse_every_cut(text, format).calls]


def repair_rules(reply: Reply) -> list[str]:
    return [repair.rule for call in reply.calls for repair in call.repairs]


# -- LFM2: the arguments inside `properties` (ml-explore/mlx-swift-lm#481, cloudwego/eino#385) ---

PYTHONIC = {
    "lfm2": "<|tool_call_start|>[%s]<|tool_call_end|>",
    "auto": "<|tool_call_start|>[%s]<|tool_call_end|>",
    "pythonic": "[%s]",
    "olmo3": "<function_calls>%s</function_calls>",
}
IN_PROPERTIES = {
    "all required": ('get_weather(properties={"city": "Oslo"})', {"city": "Oslo"}),
    "two types": ('get_weather(properties={"city": "Oslo", "days": 2})', {"city": "Oslo", "days": 2}),
    "python literals": ("search(properties={'query': 'a, b', 'exact': True})", {"query": "a, b", "exact": True}),
    "all optional": ('search(properties={"limit": 3})', {"limit": 3}),
    "a value to be repaired": ('search(properties={"query": "x", "limit": "3"})', {"query": "x", "limit": 3}),
    "nested values": ('tag(properties={"options": {"a": [1]}})', {"options": {"a": [1]}}),
    "no arguments": ("list_mailboxes(properties={})", {}),
    "with the type of the schema": ('get_weather(type="object", properties={"city": "Oslo"})', {"city": "Oslo"}),
    "before a declared argument": ('get_weather(properties={"city": "Oslo"}, days=2)', {"city": "Oslo", "days": 2}),
    "after a declared argument": ('get_weather(city="Oslo", properties={"days": 2})', {"city": "Oslo", "days": 2}),
}


@pytest.mark.parametrize("format", sampled(PYTHONIC))
@pytest.mark.parametrize(("call", "arguments"), IN_PROPERTIES.values(), ids=IN_PROPERTIES)
def test_arguments_in_properties_are_the_arguments(call: str, arguments: Args, format: str) -> None:
    reply = parse_every_cut(PYTHONIC[format] % call, format)
    assert [call.arguments for call in reply.calls] == [arguments]
    assert "unwrapped" in repair_rules(reply)


NOT_ARGUMENTS = {
    "the schema itself": 'get_weather(properties={"city": {"type": "string"}})',
    "another argument": 'get_weather(properties={"town": "Oslo"})',
    "a text": 'get_weather(properties="{\\"city\\": \\"Oslo\\"}")',
}


@pytest.mark.parametrize("call", NOT_ARGUMENTS.values(), ids=NOT_ARGUMENTS)
def test_properties_without_the_arguments_are_rejected(call: str) -> None:
    reply = parse_every_cut(PYTHONIC["lfm2"] % call, "lfm2")
    assert not reply.calls and reply.problems


def test_a_declared_argument_named_properties_is_not_unwrapped() -> None:
    for extra in ({"properties": {"properties": {"type": "object"}}}, {"properties": {}, "additionalProperties": True}):
        tools = Toolset([Tool(name="make", parameters={"type": "object", **extra})])
        text = PYTHONIC["lfm2"] % 'make(properties={"city": "Oslo"})'
        reply = hold_of_every_cut(text, Setting("lfm2", tools))
        assert [call.arguments for call in reply.calls] == [{"properties": {"city": "Oslo"}}]


# -- GLM: damaged tags around keys and values (vllm#49249, #47190, #54971, fw-ai-external/python-sdk#119, sigit#95) ---


class SplitTags(NamedTuple):
    """The markers of a format whose keys and values have separate tags."""

    opens: str  # the call
    name_end: str  # after the name of the tool
    key: str
    key_close: str
    value: str
    value_close: str
    closes: str


_GLM = SplitTags("<tool_call>", "\n", "<arg_key>", "</arg_key>\n", "<arg_value>", "</arg_value>\n", "</tool_call>")
_INLINE = SplitTags("<tool_call>", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "</tool_call>")
SPLIT_TAGS = {
    "glm45": _GLM,
    "glm47": _INLINE,
    "ling3": _INLINE,
    "poolside_v1": _GLM,
    "auto": _GLM,
    "auto inline": _INLINE,
    "hy_v3": _GLM._replace(
        opens="<tool_calls>\n<tool_call>", name_end="<tool_sep>\n", closes="</tool_call>\n</tool_calls>"
    ),
    "hy_v4": _GLM._replace(opens="<tool_calls>\n<tool_call>", closes="</tool_call>\n</tool_calls>"),
    "iquest": _INLINE._replace(opens="<iquest_tool_call>", closes="</iquest_tool_call>"),
    "xing4": SplitTags(
        *("<tool_call>", "", "<param_key>", "</param_key>", "<param_value>", "</param_value>", "</tool_call>")
    ),
    "longcat": SplitTags(
        *("<longcat_tool_call>", "\n", "<longcat_arg_key>", "</longcat_arg_key>\n", "<longcat_arg_value>"),
        *("</longcat_arg_value>\n", "</longcat_tool_call>"),
    ),
}
# `{O}` opens the call, `{again}` does so once more, `{n}` follows the name, `{C}` closes the call; `{k}` and `{_k}` are
# around a key, `{v}` and `{_v}` around a value.
DAMAGED_TAGS = {
    "no value tag": ("{O}bash{n}{k}command{_k}ls -la{_v}{C}", [("bash", {"command": "ls -la"})]),
    "no value tag before a later argument": (
        "{O}search{n}{k}query{_k}how many days{_v}{k}limit{_k}{v}3{_v}{C}",
        [("search", {"query": "how many days", "limit": 3})],
    ),
    "no value tag of the last argument": (
        "{O}search{n}{k}query{_k}{v}how many days{_v}{k}limit{_k}3{_v}{C}",
        [("search", {"query": "how many days", "limit": 3})],
    ),
    "no value tag at all": (
        "{O}write_file{n}{k}path{_k}a.txt{_v}{k}content{_k}a\n<b>{_v}{C}",
        [("write_file", {"path": "a.txt", "content": "a\n<b>"})],
    ),
    "no value tag, other types": (
        "{O}view{n}{k}path{_k}{v}q.py{_v}{k}view_range{_k}[1, 20]{_v}{C}",
        [("view", {"path": "q.py", "view_range": [1, 20]})],
    ),
    "no value tag in the second call": (
        "{O}view{n}{k}path{_k}{v}a.py{_v}{C}\n{O}view{n}{k}path{_k}b.py{_v}{C}",
        [("view", {"path": "a.py"}), ("view", {"path": "b.py"})],
    ),
    "key tag doubled": ("{O}bash{n}{k}{k}command{_k}{v}ls{_v}{C}", [("bash", {"command": "ls"})]),
    "closing key tag doubled": ("{O}bash{n}{k}command{_k}{_k}{v}ls{_v}{C}", [("bash", {"command": "ls"})]),
    "key tags doubled later": (
        "{O}search{n}{k}query{_k}{v}x{_v}{k}{k}limit{_k}{v}3{_v}{k}exact{_k}{_k}{v}true{_v}{C}",
        [("search", {"query": "x", "limit": 3, "exact": True})],
    ),
    "key doubled and no value tag": ("{O}bash{n}{k}{k}command{_k}ls{_v}{C}", [("bash", {"command": "ls"})]),
    "stray close, no arguments": ("{O}list_mailboxes{n}{_v}{C}", [("list_mailboxes", {})]),
    "stray close before the arguments": ("{O}bash{n}{_v}{k}command{_k}{v}ls{_v}{C}", [("bash", {"command": "ls"})]),
    "text before and after": ("I look.\n{O}view{n}{k}path{_k}a.py{_v}{C}\nDone.", [("view", {"path": "a.py"})]),
}
DAMAGED_FIRST_TAGS = {
    "name and key on one line": ("{O}bash command{_k}{v}echo test{_v}{C}", [("bash", {"command": "echo test"})]),
    "key on the next line": (
        "{O}bash\ncommand{_k}{v}ls{_v}{k}timeout{_k}{v}3{_v}{C}",
        [("bash", {"command": "ls", "timeout": 3})],
    ),
    "name glued to the key": ("{O}bashcommand{_k}{v}echo test{_v}{C}", [("bash", {"command": "echo test"})]),
    "name glued to the key of two": (
        "{O}write_filepath{_k}{v}a{_v}{k}content{_k}{v}b{_v}{C}",
        [("write_file", {"path": "a", "content": "b"})],
    ),
    "neither key tag nor value tag": ("{O}bash{n}command{_k}echo test{_v}{C}", [("bash", {"command": "echo test"})]),
    "stray close behind the name": ("{O}list_mailboxes{_v}{C}", [("list_mailboxes", {})]),
    "a second opener": ("{O}bash{again}command{_k}{v}ls{_v}{C}", [("bash", {"command": "ls"})]),
    "a second opener on a line": (
        "{O}bash\n{again}command{_k}{v}ls{_v}{k}timeout{_k}{v}3{_v}{C}",
        [("bash", {"command": "ls", "timeout": 3})],
    ),
    "a second opener, no value tag": ("{O}bash{n}{again}command{_k}ls{_v}{C}", [("bash", {"command": "ls"})]),
}
UNCERTAIN_TAGS = {
    "the value tag inside the value": "{O}bash{n}{k}command{_k}echo {v}ls{_v}{C}",
    "the value tag twice": "{O}bash{n}{k}command{_k}echo {v}ls{v}{_v}{C}",
    "no value": "{O}bash{n}{k}command{_k}{_v}{C}",
    "the value and its tags missing": "{O}search{n}{k}query{_k}{k}limit{_k}{v}3{_v}{C}",
    "the end of the value tag": "{O}bash{n}{k}command{_k}value>ls{_v}{C}",
    "a damaged value tag": "{O}bash{n}{k}command{_k}<arg_vlue>ls{_v}{C}",
    "an undeclared argument": "{O}bash{n}{k}command{_k}{v}ls{_v}{k}cwd{_k}/tmp{_v}{C}",
    "an undeclared argument after a second opener": "{O}bash{again}cwd{_k}{v}/tmp{_v}{C}",
    "another call after a second opener": "{O}bash{again}search{_k}{v}x{_v}{C}",
    "an undeclared argument glued": "{O}bashcwd{_k}{v}/tmp{_v}{C}",
    "an unknown tool": "{O}zshcommand{_k}{v}ls{_v}{C}",
    "an argument twice": "{O}bash{n}{k}command{_k}ls{_v}{k}command{_k}pwd{_v}{C}",
    "cut in the value": "{O}bash{n}{k}command{_k}ls",
    "cut in the key": "{O}bash{n}{k}{k}comm",
    "required arguments lost": "{O}bash{_v}{C}",
    "optional arguments lost": "{O}search{n}{_v}{C}",
}


def with_tags(text: str, tags: SplitTags) -> str:
    again = tags.opens[tags.opens.rindex("<") :]
    return text.format(
        O=tags.opens,
        C=tags.closes,
        n=tags.name_end,
        again=again,
        k=tags.key,
        _k=tags.key_close,
        v=tags.value,
        _v=tags.value_close,
    )


@pytest.mark.parametrize("format", sampled(SPLIT_TAGS))
@pytest.mark.parametrize("case", [*DAMAGED_TAGS, *DAMAGED_FIRST_TAGS])
def test_damaged_tags_around_keys_and_values_are_repaired(case: str, format: str) -> None:
    text, calls = (DAMAGED_TAGS | DAMAGED_FIRST_TAGS)[case]
    tags = SPLIT_TAGS[format]
    if case in DAMAGED_FIRST_TAGS and tags.name_end.strip():
        pytest.skip("a marker follows the name of the tool")
    reply = parse_every_cut(with_tags(text, tags), format.split()[0])
    assert [(call.name, call.arguments) for call in reply.calls] == calls
    assert set(repair_rules(reply)) == {"broken_opener"}


@pytest.mark.parametrize("format", sampled(SPLIT_TAGS))
@pytest.mark.parametrize("case", UNCERTAIN_TAGS)
def test_uncertain_damaged_tags_are_reported(case: str, format: str) -> None:
    reply = parse_every_cut(with_tags(UNCERTAIN_TAGS[case], SPLIT_TAGS[format]), format.split()[0])
    assert not reply.calls and reply.problems


# -- Qwen3-Coder: `<parameter=bash>` for `<function=bash>` (antirez/ds4#1050), no last `</parameter>` (ollama#17914) ---

CODER = {
    "qwen3_coder": "tool_call",
    "step3p5": "tool_call",
    "mimo": "tool_call",
    "zaya": "zyphra_tool_call",
    "seed_oss": "seed:tool_call",
    "auto": "tool_call",
}
COMMAND = "<parameter=command>\nls -la\n</parameter>\n"
MISNAMED_OPENERS = {
    "one argument": (f"<parameter=bash>\n{COMMAND}</function>", "bash", {"command": "ls -la"}),
    "two arguments": (
        f"<parameter=bash>\n{COMMAND}<parameter=timeout>\n3\n</parameter>\n</function>",
        "bash",
        {"command": "ls -la", "timeout": 3},
    ),
    "a file": (
        "<parameter=write_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=content>\nx = '<parameter=k>'\n"
        "</parameter>\n</function>",
        "write_file",
        {"path": "a.py", "content": "x = '<parameter=k>'"},
    ),
    "no arguments": ("<parameter=list_mailboxes>\n</function>", "list_mailboxes", {}),
    "on one line": (
        "<parameter=get_weather><parameter=city>Oslo</parameter></function>",
        "get_weather",
        {"city": "Oslo"},
    ),
}
NO_MISNAMED_OPENERS = {
    "an unknown tool": f"<parameter=zsh>\n{COMMAND}</function>",
    "an argument of another tool": f"<parameter=get_weather>\n{COMMAND}</function>",
    "an argument with its value": f"<parameter=bash>\nls\n</parameter>\n{COMMAND}</function>",
    "an argument's name": "<parameter=path>\n<parameter=content>\nx\n</parameter>\n</function>",
    "cut": "<parameter=bash>\n<parameter=command>\nls",
}


@pytest.mark.parametrize("format", sampled(CODER))
@pytest.mark.parametrize(("inside", "name", "arguments"), MISNAMED_OPENERS.values(), ids=MISNAMED_OPENERS)
def test_an_argument_tag_with_a_tool_name_opens_its_call(inside: str, name: str, arguments: Args, format: str) -> None:
    call = f"<{CODER[format]}>\n{inside}\n</{CODER[format]}>"
    other = f"<{CODER[format]}>\n<function=list_mailboxes>\n</function>\n</{CODER[format]}>"
    for text, calls in {
        call: [(name, arguments)],
        f"I run it.\n\n{call}\nDone.": [(name, arguments)],
        f"{other}\n{call}": [("list_mailboxes", {}), (name, arguments)],
    }.items():
        reply = parse_every_cut(text, format)
        assert [(call.name, call.arguments) for call in reply.calls] == calls
        assert repair_rules(reply) == ["broken_opener"]


@pytest.mark.parametrize("format", sampled(CODER))
@pytest.mark.parametrize("inside", NO_MISNAMED_OPENERS.values(), ids=NO_MISNAMED_OPENERS)
def test_an_argument_tag_without_a_tool_name_is_reported(inside: str, format: str) -> None:
    closes = "" if inside.endswith("ls") else f"\n</{CODER[format]}>"
    reply = parse_every_cut(f"<{CODER[format]}>\n{inside}{closes}", format)
    assert not reply.calls and reply.problems


UNCLOSED = [*CODER, "minimax_m2", "deepseek_v32", "deepseek_v4", "deepseek_v41", "hy_v3", "muse"]
VALUES: dict[str, tuple[str, Args]] = {
    "text": ("bash", {"command": "ls -la"}),
    "lines": ("bash", {"command": "cd /tmp\n  ls"}),
    "a number": ("bash", {"command": "ls", "timeout": 3}),
    "a list": ("view", {"path": "a.py", "view_range": [1, 2]}),
    "other tags": ("write_file", {"path": "a.html", "content": "<b>bold</b> text"}),
}


def without_last_close(name: str, arguments: Args, format: str) -> str:
    written = "qwen3_coder" if format == "auto" else format
    text = render([Call(name, arguments)], format=written, tools=TOOLS)
    body = FORMATS[written].bodies[0]
    assert isinstance(body, Params)
    before, _, after = text.rpartition(marker_alternatives(body.value_close)[0].rstrip("\n"))
    return before + after


@pytest.mark.parametrize("format", sampled(UNCLOSED))
@pytest.mark.parametrize(("name", "arguments"), VALUES.values(), ids=VALUES)
def test_the_end_of_the_call_closes_its_last_value(name: str, arguments: Args, format: str) -> None:
    text = without_last_close(name, arguments, format)
    reply = parse_every_cut(text, format)
    assert [(call.name, call.arguments) for call in reply.calls] == [(name, arguments)]
    assert [problem.code for problem in reply.problems] == ["unclosed_argument"]


@pytest.mark.parametrize("format", ["glm45", "ling3"])
def test_one_closing_marker_does_not_end_a_value_without_closing_tag(format: str) -> None:
    reply = parse_every_cut(without_last_close("bash", {"command": "ls -la"}, format), format)
    assert not reply.calls and reply.problems


# Muse ends each message with a special token: text after it is not part of a value.
@pytest.mark.parametrize("format", sampled(format for format in UNCLOSED if format != "muse"))
def test_another_call_does_not_end_a_value_without_closing_tag(format: str) -> None:
    text = without_last_close(
        "bash", {"command": "ls"}, format
    )  # a file may contain the end of a call and another call
    reply = parse_every_cut(f"{text}\n{text}", format)
    assert len(reply.calls) < 2 and "ambiguous_end" in [problem.code for problem in reply.problems]


@pytest.mark.parametrize("format", sampled(format for format in UNCLOSED if format != "muse"))
def test_a_value_whose_end_is_uncertain_is_reported(format: str) -> None:
    text = without_last_close("bash", {"command": "VALUE"}, format)
    closing = text.partition("VALUE")[2].strip()
    for wrong in (
        text.replace("VALUE", f"echo {closing}"),  # the end of the call twice
        text + "\nand then",  # text that the value may contain
        text.replace("VALUE", "echo </param"),  # the remainder of the closing tag
        text.removesuffix(closing) + closing[: closing.index(">")],  # cut in the end of the call
    ):
        reply = parse_every_cut(wrong, format)
        assert not reply.calls and reply.problems, wrong


# -- JSON: escaped white space between values (OpenHands/software-agent-sdk#2488) ---

WITH_JSON = {
    "hermes": '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>',
    "auto": '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>',
    "mistral": '[TOOL_CALLS][{"name": "%s", "arguments": %s}]',
    "mistral_v11": "[TOOL_CALLS]%s[ARGS]%s",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.%s:0<|tool_call_argument_begin|>%s"
    "<|tool_call_end|><|tool_calls_section_end|>",
    "deepseek_v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>%s<｜tool▁sep｜>%s<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>",
    "qwen3_coder": "<tool_call>\n<function=%s>\n%s\n</function>\n</tool_call>",
}
ESCAPED_BLANKS = {
    "before a value and the end": (r'{"path": "q.py", "view_range": \n[2142, 2250]\n\n}', [2142, 2250]),
    "after the first bracket": (r'{\n"path": "q.py", "view_range": [1, 2]}', [1, 2]),
    "between the members": (r'{"path": "q.py",\n  "view_range": [1, 2]}', [1, 2]),
    "around the colon": (r'{"path"\n:\n"q.py", "view_range"\t: [1, 2]}', [1, 2]),
    "in the array": (r'{"path": "q.py", "view_range": [\n1,\n2\n]}', [1, 2]),
    "Windows": (r'{\r\n"path": "q.py",\r\n"view_range": [1, 2]\r\n}', [1, 2]),
    "with line breaks": ('{\\n\n"path": "q.py", "view_range": \\n [1, 2]}\n', [1, 2]),
}
NO_BLANKS = {
    "an unquoted path": r'{"path": \new\table}',
    "no value": r'{"path": \n}',
    "a string without its first quote": r'{"path": \nq.py", "view_range": [1, 2]}',
}


@pytest.mark.parametrize("format", sampled(WITH_JSON))
@pytest.mark.parametrize(("arguments", "lines"), ESCAPED_BLANKS.values(), ids=ESCAPED_BLANKS)
def test_escapes_between_json_values_are_white_space(arguments: str, lines: list[int], format: str) -> None:
    reply = parse_every_cut(WITH_JSON[format] % ("view", arguments), format)
    assert [call.arguments for call in reply.calls] == [{"path": "q.py", "view_range": lines}]
    assert repair_rules(reply) == ["bad_escape"]


@pytest.mark.parametrize("format", sampled(WITH_JSON))
@pytest.mark.parametrize("arguments", NO_BLANKS.values(), ids=NO_BLANKS)
def test_escapes_that_may_belong_to_a_value_are_reported(arguments: str, format: str) -> None:
    reply = parse_every_cut(WITH_JSON[format] % ("view", arguments), format)
    assert not reply.calls and reply.problems


def test_escapes_inside_strings_are_unchanged() -> None:
    for path in (r"a\nb", r"\n", r"x\n\n}", r"[\n1]"):
        text = WITH_JSON["hermes"] % ("view", f'{{\\n"path": "{path}"}}')
        assert runnable_calls(text, "hermes") == [("view", {"path": path.replace(r"\n", "\n")})]


def test_escapes_between_the_values_of_native_arguments_are_white_space() -> None:
    call = repair(Call("view", json=r'{"path": "q.py", "view_range": \n[1, 2]\n}\n'), TOOLS)
    assert call.arguments == {"path": "q.py", "view_range": [1, 2]}


# -- Remainders of an opener are reported (stdapi-ai/stdapi.ai#182, vercel-labs/fx#899, xalgorix#248, #278) ---

REMAINDERS = {
    "DeepSeek's block at the end": "I'll check the weather.\n\n<｜DSML｜function_calls",
    "DeepSeek's block before text": "I'll read it.\n\n<｜DSML｜tool_calls\n\nThe note says: 42",
    "with ASCII bars": "One moment.\n<|DSML|function_calls",
    "with doubled bars": "One moment.\n<｜｜DSML｜｜tool_calls",
    "with a double bar": "One moment. <‖DSML‖invoke",
    "a name and a quote": '=bash">\n<parameter=command>ls</parameter>\n</function>',
    "the word of the tag": 'function=bash">\n<parameter=command>ls</parameter></function>',
    "without a quote": "=bash><parameter=command>ls</parameter></function>",
    "the name alone": 'bash">\n<parameter=command>\nls\n</parameter>\n</function>',
    "an unknown name": '=terminal_execute">\n<parameter=command>ls</parameter>\n</function>',
    "the end of a name": "_plan>\n<parameter=task>one</parameter>\n<parameter=status>done</parameter>\n</function>",
    "no name": "parameter=method>POST</parameter>\n<parameter=url>https://a.b</parameter>\n</function>",
    "of another tag": '="x">\n<parameter name="command">ls</parameter>\n</invoke>',
    "nothing after it": 'I run it now.\n=bash">',
}
NO_REMAINDERS = {
    "an attribute": 'Write <div class=bash> and <p id="bash">',
    "a comparison": "It holds if a=bash> or b.",
    "a tag in a sentence": "The tag `<｜DSML｜invoke` opens a call.",
    "a form": "<form><parameter>x</parameter></form>",
}


@pytest.mark.parametrize("format", sampled(["auto", "qwen3_coder", "deepseek_v32", "deepseek_v41", "hermes"]))
@pytest.mark.parametrize("text", REMAINDERS.values(), ids=REMAINDERS)
def test_the_remainder_of_an_opener_is_reported(text: str, format: str) -> None:
    reply = parse_every_cut(text, format)
    assert not reply.calls
    assert {problem.code for problem in reply.problems} & {"looks_like_a_call", "opener_without_call", "truncated"}


@pytest.mark.parametrize("text", NO_REMAINDERS.values(), ids=NO_REMAINDERS)
def test_other_text_is_not_a_remainder_of_an_opener(text: str) -> None:
    reply = parse_every_cut(text, "auto")
    assert (reply.calls, reply.problems, reply.content) == ((), (), text)


# -- DeepSeek: doubled and ASCII bars (GenericAgent#804, xagent#806, codex-relay#49, stdapi.ai#182) ---

DSML = ["deepseek_v32", "deepseek_v4", "deepseek_v41", "auto"]
BARS = {"doubled": "｜｜", "ASCII": "|", "doubled ASCII": "||"}
DSML_CALLS: dict[str, list[tuple[str, Args]]] = {
    "text": [("bash", {"command": "ls | wc -l && echo a || b"})],
    "lines": [("write_file", {"path": "a.py", "content": "if a || b:\n    pass\n"})],
    "other types": [("view", {"path": "a.py", "view_range": [1, 2]})],
    "no arguments": [("list_mailboxes", {})],
    "two calls": [("bash", {"command": "ls", "timeout": 3}), ("get_weather", {"city": "Oslo", "days": 2})],
}


def dsml(calls: list[tuple[str, Args]], format: str) -> str:
    written = "deepseek_v32" if format == "auto" else format
    return render([Call(name, arguments) for name, arguments in calls], format=written, tools=TOOLS)


@pytest.mark.parametrize("format", sampled(DSML))
@pytest.mark.parametrize("bars", BARS.values(), ids=BARS)
@pytest.mark.parametrize("calls", DSML_CALLS.values(), ids=DSML_CALLS)
def test_dsml_bars_can_be_doubled_or_ascii(calls: list[tuple[str, Args]], bars: str, format: str) -> None:
    text = dsml(calls, format).replace("｜DSML｜", f"{bars}DSML{bars}")
    assert runnable_calls(text, format) == calls
    reply = parse_every_cut(f"I look.\n\n{text}", format)
    assert (len(reply.calls), reply.content.strip()) == (len(calls), "I look.")


@pytest.mark.parametrize("format", sampled(DSML))
@pytest.mark.parametrize("bars", BARS.values(), ids=BARS)
def test_uncertain_calls_with_other_bars_are_rejected(bars: str, format: str) -> None:
    text = dsml([("bash", {"command": "VALUE"})], format).replace("｜DSML｜", f"{bars}DSML{bars}")
    opens = text.partition("VALUE")[0]
    other = opens[opens.rindex("<") :].replace("command", "timeout")
    for wrong in (
        text[: text.index("VALUE") + 3],  # cut in the value
        text.replace("VALUE", "ls" + text.partition("VALUE")[2] + "\necho"),  # the end of the call twice
        text.replace(f"</{bars}DSML", "</｜DSML"),  # the other closing tags
    ):
        reply = parse_every_cut(wrong, format)
        assert not reply.calls and reply.problems, wrong
    if bars != BARS["doubled"]:  # the other tags may occur in the text by chance
        reply = parse_every_cut(text.replace("VALUE", f"ls {other} 3"), format)
        assert not reply.calls and reply.problems
    quoted = f"The tag `{opens[opens.index('<') : opens.index('>') + 1]}` opens the calls."
    assert parse_every_cut(quoted, format).calls == ()


@pytest.mark.parametrize("format", sampled(DSML))
@pytest.mark.parametrize("bars", BARS.values(), ids=BARS)
def test_tags_with_other_bars_in_a_value_are_text(bars: str, format: str) -> None:
    for calls in DSML_CALLS.values():
        inside = dsml(calls, format).replace("｜DSML｜", f"{bars}DSML{bars}")
        for content in (inside, f"Write\n{inside}\nonce.", inside.rpartition("</")[0], inside.partition("\n")[2]):
            call = ("write_file", {"path": "a.md", "content": content})
            assert runnable_calls(dsml([call], format), format) == [call]


# -- Kimi: ids as clients return them (exo-explore/exo#2281), ids of another API (vllm-project/vllm#32146) ---

KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>%s<|tool_call_argument_begin|>%s<|tool_call_end|>"
    "<|tool_calls_section_end|>"
)
OSLO = '{"city": "Oslo", "days": 2}'


def kimi(id: str, arguments: str, *names: str) -> Reply:
    tools = Toolset([*TOOLS, *[make_tool(name, city=STRING, days=INTEGER) for name in names]])
    replies = [hold_of_every_cut(KIMI % (id, arguments), Setting(format, tools)) for format in ("kimi_k2", "auto")]
    assert replies[0].calls == replies[1].calls
    return replies[0]


@pytest.mark.parametrize(
    ("id", "name", "others"),
    [
        ("functions_get_weather_1", "get_weather", ()),
        ("functions_get_weather_12", "get_weather", ("get_weather_2",)),
        ("functions_get_weather_1_2", "get_weather_1", ("get_weather_1",)),
        ("functions_maps_route_0", "maps.route", ("maps.route",)),
        ("functions_get-weather_0", "get-weather", ("get-weather",)),
        ("functions_get_weather_1", "functions_get_weather_1", ("functions_get_weather_1",)),  # a name, not an id
    ],
)
def test_an_id_without_separators_names_the_only_matching_tool(id: str, name: str, others: tuple[str, ...]) -> None:
    reply = kimi(id, OSLO, *others)
    assert [(call.name, call.arguments) for call in reply.calls] == [(name, {"city": "Oslo", "days": 2})]
    assert repair_rules(reply) == ([] if id == name else ["namespace"])
    if id != name:
        assert reply.calls[0].id == f"functions.{name}:{id.rpartition('_')[2]}"


@pytest.mark.parametrize(
    ("id", "others"),
    [
        ("functions_get_weather_1", ("get_weather_1",)),  # the number may belong to the name
        ("functions_maps_route_0", ("maps.route", "maps_route")),
        ("functions_get_weather", ()),
        ("functions_get_weather_x", ()),
        ("functions_get_weather_1_2", ()),
        ("functions_weather_1", ()),
        ("get_weather_1", ()),
    ],
)
def test_an_uncertain_id_without_separators_is_reported(id: str, others: tuple[str, ...]) -> None:
    reply = kimi(id, OSLO, *others)
    assert not reply.calls and "unknown_tool" in {problem.code for problem in reply.problems}


@pytest.mark.parametrize("id", ["call_abc123def456", "chatcmpl-tool-0f3a9c"])
def test_a_whole_call_after_an_id_of_another_api_is_used(id: str) -> None:
    for members in (f'"name": "get_weather", "arguments": {OSLO}', f'"arguments":{OSLO},"name":"get_weather"'):
        reply = kimi(id, f"{{{members}}}")
        assert [(call.name, call.arguments) for call in reply.calls] == [("get_weather", {"city": "Oslo", "days": 2})]
        assert repair_rules(reply) == ["hoisted_name", "unwrapped"]
    reply = kimi(id, '{"name": "list_mailboxes", "arguments": {}}')
    assert [(call.name, call.arguments) for call in reply.calls] == [("list_mailboxes", {})]


@pytest.mark.parametrize(
    ("id", "arguments"),
    [
        ("call_1", OSLO),
        ("call_1", f'{{"name": "forecast", "arguments": {OSLO}}}'),
        ("call_1", f'{{"name": "get_weather", "arguments": {OSLO}, "limit": 1}}'),
        ("call_1", '{"name": "get_weather", "arguments": "Oslo"}'),
        ("call_1", '{"name": "get_weather", "city": "Oslo"}'),
        ("call_1", '[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'),
        ("call_1", '{"name": "get_weather", "arguments": {"city": "Oslo"}'),
        ("call_1", '{"name": "run", "arguments": {}}'),  # `run` has an argument of that name
        ("weather_1", f'{{"name": "get_weather", "arguments": {OSLO}}}'),
    ],
)
def test_other_arguments_after_an_id_of_another_api_are_reported(id: str, arguments: str) -> None:
    tools = Toolset([*TOOLS, make_tool("run", arguments={"type": "object"})])
    reply = hold_of_every_cut(KIMI % (id, arguments), Setting("kimi_k2", tools))
    assert not reply.calls and "unknown_tool" in {problem.code for problem in reply.problems}


def test_ids_of_kimi_are_kept_as_names_without_tools_or_repair() -> None:
    for id in ("functions_get_weather_1", "call_1"):
        text = KIMI % (id, f'{{"name": "get_weather", "arguments": {OSLO}}}')
        assert [call.name for call in hold_of_every_cut(text, Setting("kimi_k2")).calls] == [id]
        assert not hold_of_every_cut(text, Setting("kimi_k2", TOOLS, repair="off")).calls


def test_a_truncated_call_with_a_number_as_its_name_is_reported() -> None:
    reply = parse_every_cut("<|tool_call_begin|>0<|tool_call_argument_begin|>", "kimi_k2")
    assert [problem.code for problem in reply.problems] == ["truncated"]


# -- Gemma: `key='v'` (ollama#17882), round brackets (omlx#1886, vllm#53657), a missing comma (yzma#243) ---

GEMMA = {
    "gemma4": ("<|tool_call>", '<|"|>', "<tool_call|>"),
    "auto": ("<|tool_call>", '<|"|>', "<tool_call|>"),
    "functiongemma": ("<start_function_call>", "<escape>", "<end_function_call>"),
}
# `Q` is the format's quote.
KEYWORDS: dict[str, tuple[str, str, Args]] = {
    "one": ("{command='ls'}", "bash", {"command": "ls"}),
    "the second": ("{command:QlsQ,timeout=3}", "bash", {"command": "ls", "timeout": 3}),
    "a later string": ("{path:QaQ,content='b'}", "write_file", {"path": "a", "content": "b"}),
    "double quotes": ('{path="a.py", content="b"}', "write_file", {"path": "a.py", "content": "b"}),
    "the format's quotes": ("{path=QaQ,content=QbQ}", "write_file", {"path": "a", "content": "b"}),
    "both signs": ("{path='a',content:'b'}", "write_file", {"path": "a", "content": "b"}),
    "blanks": ("{path = 'a', content = 'b'}", "write_file", {"path": "a", "content": "b"}),
    "other types": ("{query='x',limit=3,exact=true}", "search", {"query": "x", "limit": 3, "exact": True}),
    "a list": ("{path='a',view_range=[1,2]}", "view", {"path": "a", "view_range": [1, 2]}),
    "assignments in a value": ("{command:Qmake A='b', timeout=3Q}", "bash", {"command": "make A='b', timeout=3"}),
    "assignments in quotes": ("{command=\"a='b', c='d'\"}", "bash", {"command": "a='b', c='d'"}),
    "commas in quotes": ("{path='a',content='x, y: z, w=1'}", "write_file", {"path": "a", "content": "x, y: z, w=1"}),
    "escaped quotes": ("{path='a',content='it\\'s'}", "write_file", {"path": "a", "content": "it's"}),
    "a bracket in quotes": ("{command='f()}'}", "bash", {"command": "f()}"}),
    "round": ("(command=QlsQ)", "bash", {"command": "ls"}),
    "round with colons": ("(command:Qls -aQ, timeout: 3)", "bash", {"command": "ls -a", "timeout": 3}),
    "round with quotes": ("(path='a', content=\"b\")", "write_file", {"path": "a", "content": "b"}),
    "round without arguments": ("()", "list_mailboxes", {}),
    "round with a list": ("(path=QaQ, view_range=[1, 2])", "view", {"path": "a", "view_range": [1, 2]}),
    "round with a list of strings": ("(labels=[QaQ, QbQ])", "tag", {"labels": ["a", "b"]}),
    "round with an object": ("(options={a:1,b:QcQ})", "tag", {"options": {"a": 1, "b": "c"}}),
    "round, brackets in a value": ("(command=Qf(a), g(b)Q)", "bash", {"command": "f(a), g(b)"}),
    "round, a word": ("(query=Oslo, limit=3)", "search", {"query": "Oslo", "limit": 3}),
}
ADJACENT: dict[str, tuple[str, str, Args]] = {
    "a number": ("{command:QlsQtimeout:3}", "bash", {"command": "ls", "timeout": 3}),
    "a string": ("{path:QaQcontent:QbQ}", "write_file", {"path": "a", "content": "b"}),
    "a blank": ("{path:QaQ content:QbQ}", "write_file", {"path": "a", "content": "b"}),
    "in the middle": ("{limit:3,query:QxQexact:true}", "search", {"limit": 3, "query": "x", "exact": True}),
    "before a list": ("{path:QaQview_range:[1,2]}", "view", {"path": "a", "view_range": [1, 2]}),
    "after a list": ("{view_range:[1,2]path:QaQ}", "view", {"path": "a", "view_range": [1, 2]}),
    "two": ("{query:QxQlimit:3,exact:true}", "search", {"query": "x", "limit": 3, "exact": True}),
}
UNCERTAIN_BRACES = {
    "an undeclared argument": "bash{command:QlsQ,cwd='/tmp'}",
    "an undeclared argument alone": "bash{cwd='/tmp'}",
    "an undeclared argument without a comma": "bash{command:QlsQcwd:Q/tmpQ}",
    "an argument twice": "bash{command='ls',command='pwd'}",
    "an argument twice without a comma": "bash{command:QlsQcommand:QpwdQ}",
    "an assignment in a string": "write_file{content:'set path='a', mode='b'',path:QxQ}",
    "an inner quote before an argument": "write_file{content='it's', path='x'}",
    "an open quote": "bash{command='ls}",
    "an open quote in front": "write_file{path='a,content='b'}",
    "a string with half an argument": "search{query:QsaysQlimit:5Q}",
    "text after a value": "bash{command:QlsQ3,timeout:5}",
    "text after a quote": "bash{command='ls' -la,timeout=3}",
    "a bare value before the argument": "search{limit:3 query:QxQ}",
    "another bracket": "bash(command=QlsQ}",
    "a brace closed by another bracket": "bash{command:QlsQ)",
    "an open bracket": "bash(command=QlsQ",
    "a value without its key": "bash(QlsQ)",
    "a value in brackets": "bash(timeout=(3), command=QlsQ)",
    "a bracket twice": "bash(command=QlsQ))",
    "text after the bracket": "bash(command=QlsQ) and more",
    "an unknown tool": "zsh(command=QlsQ)",
    "a call as a value": "bash(command=str(QlsQ))",
    "an escaped line break before a key": "view{path:Qq.pyQ,\\nview_range:[1,2]}",
    "two signs behind a key": "bash{command:QlsQ,timeout=:3}",
    "a key in brackets": "bash{command:QlsQ,(timeout):3}",
    "a comment before a key": "bash{command:QlsQ,//x timeout:3}",
    "a second call": "list_mailboxes()call:bash(command=QlsQ)call:bash(command='x'",
}


@pytest.mark.parametrize("format", GEMMA)
@pytest.mark.parametrize("case", [*KEYWORDS, *[f"no comma, {case}" for case in ADJACENT]])
def test_keyword_arguments_and_missing_commas_of_gemma_are_repaired(case: str, format: str) -> None:
    inside, name, arguments = (KEYWORDS | {f"no comma, {case}": each for case, each in ADJACENT.items()})[case]
    opens, quote, closes = GEMMA[format]
    text = opens + f"call:{name}{inside.replace('Q', quote)}" + closes
    reply = parse_every_cut(f"I look.\n{text}", format)
    assert [(call.name, call.arguments) for call in reply.calls] == [(name, arguments)]
    rule = "missing_comma" if case.startswith("no comma") else "keyword_arguments"
    assert rule in repair_rules(reply) or case == "assignments in a value"
    assert runnable_calls(text + text, format) == [(name, arguments)] * 2
    if repair_rules(reply):
        off = hold_of_every_cut(text, Setting(format, TOOLS, repair="off"))
        assert not off.calls and off.problems


@pytest.mark.parametrize("format", GEMMA)
@pytest.mark.parametrize("inside", UNCERTAIN_BRACES.values(), ids=UNCERTAIN_BRACES)
def test_uncertain_arguments_of_gemma_are_reported(inside: str, format: str) -> None:
    opens, quote, closes = GEMMA[format]
    reply = parse_every_cut(opens + "call:" + inside.replace("Q", quote) + closes, format)
    assert not [call for call in reply.calls if call.name != "list_mailboxes"] and reply.problems


@pytest.mark.parametrize("format", GEMMA)
def test_without_declared_tools_a_comma_must_precede_the_next_argument(format: str) -> None:
    opens, quote, closes = GEMMA[format]
    for inside, arguments in {
        "{a:QxQ,b='y'}": {"a": "x", "b": "y"},
        "{a='x',b='y'}": {"a": "x", "b": "y"},
        "(a='x', b=QyQ)": {"a": "x", "b": "y"},
        "{a:QxQb:QyQ}": None,
        "{a:'x',b='y'}": None,  # `x',b='y` may be one string
        "{a:QxQ,b c:QyQ}": {"a": "x", "b c": "y"},
        "{a:QxQ,\\nb:QyQ}": None,
        "{a:QxQ,b=:QyQ}": None,
        "{a:QxQ,(b):QyQ}": None,
        "{a:QxQ,//x b:QyQ}": None,
    }.items():
        reply = hold_of_every_cut(opens + "call:f" + inside.replace("Q", quote) + closes, Setting(format))
        assert [call.arguments for call in reply.calls] == ([arguments] if arguments else [])
        assert arguments or reply.problems


@pytest.mark.parametrize("format", GEMMA)
def test_round_brackets_are_a_call_only_between_markers(format: str) -> None:
    for text in ("I use call:bash(command='ls') for that.", "call:bash(command='ls')"):
        assert parse_every_cut(text, format).calls == ()
