"""Tool names: other spellings, names among the arguments, and missing names."""

from __future__ import annotations

import json
import time
from typing import Any, Literal

import pytest

from rightcall import Call, Reply, Tool, Toolset, parse, read, render, repair
from rightcall.formats import FORMATS
from rightcall.repairs.tool_meant import hoist_name, infer_name, resolve_tool_name
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import INTEGER, STRING, Json, args, blocking, hermes, runnable

Policy = Literal["off", "safe", "lenient"]
POSITIVE: Json = {"type": "integer", "minimum": 1}


def make_tool(name: str, properties: Json | None = None, required: tuple[str, ...] = (), **more: Any) -> Tool:
    parameters = {"type": "object", "properties": properties or {}, "required": list(required), **more}
    return Tool(name=name, parameters=parameters)


def make_strict_tool(name: str, properties: Json, *required: str) -> Tool:
    return make_tool(name, properties, required, additionalProperties=False)


CODING = Toolset(
    [
        make_strict_tool("read_file", {"path": STRING, "line": POSITIVE, "limit": POSITIVE}, "path"),
        make_strict_tool("write_file", {"path": STRING, "content": STRING}, "path", "content"),
        make_strict_tool(
            "edit_file", {"path": STRING, "old_text": STRING, "new_text": STRING}, "path", "old_text", "new_text"
        ),
        make_strict_tool("list_dir", {"path": STRING}, "path"),
        make_strict_tool("bash", {"command": STRING, "cwd": STRING}, "command"),
    ]
)


def receipts(reply: Reply) -> list[tuple[str, str, str, str]]:
    return [(r.rule, r.kind, r.before, r.after) for call in reply.attempts for r in call.repairs]


# -- inference from argument keys --------------------------------------------------------------------------------------

MKDIR = "mkdir -p /tmp/app/{src,tests,docs} && touch /tmp/app/src/{__init__,main}.py && ls -R '/tmp/app'"


@pytest.mark.parametrize("command", ["ls", "", MKDIR])
def test_a_command_implies_bash(command: str) -> None:
    assert infer_name({"command": command}, CODING) == "bash"


def test_a_command_and_a_folder_imply_bash() -> None:
    assert infer_name({"command": "ls", "cwd": "/tmp"}, CODING) == "bash"


def test_a_long_reported_command_implies_bash() -> None:
    reply = parse(hermes(json.dumps({"arguments": {"command": MKDIR}})), format="hermes", tools=CODING)
    assert runnable(reply) == [("bash", {"command": MKDIR})]


def test_path_and_content_imply_write_file() -> None:
    assert infer_name({"path": "/x", "content": ""}, CODING) == "write_file"


def test_path_and_both_texts_imply_edit_file() -> None:
    assert infer_name({"path": "/x", "old_text": "a", "new_text": "b"}, CODING) == "edit_file"


def test_a_path_alone_implies_no_tool() -> None:
    assert infer_name({"path": "/x"}, CODING) is None


@pytest.mark.parametrize("more", [{"line": 1}, {"line": 1, "limit": 2}, {"limit": 2}])
def test_a_path_with_line_and_limit_implies_no_tool(more: Json) -> None:
    assert infer_name({"path": "/x", **more}, CODING) is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "ls", "timeout": 5},
        {"command": "ls", "cwd": "/", "path": "/x"},
        {"path": "/x", "content": "", "mode": "w"},
        {"path": "/x", "old_text": "a"},
        {"cwd": "/tmp"},
    ],
)
def test_unknown_or_missing_keys_imply_no_tool(arguments: Json) -> None:
    assert infer_name(arguments, CODING) is None


def test_an_empty_object_implies_no_tool() -> None:
    assert infer_name({}, CODING) is None
    assert infer_name({}, Toolset([make_tool("only")])) is None


@pytest.mark.parametrize("key", ["name", "tool", "tool_name", "function"])
@pytest.mark.parametrize("other_tool", ["find_person", "list_people", "ping"])
def test_no_tool_is_inferred_from_arguments_that_name_one(key: str, other_tool: str) -> None:
    named = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    tools = Toolset([Tool(name="find_person", parameters=named), Tool(name="list_people"), Tool(name="ping")])
    assert infer_name({key: "Ada"}, tools) == "find_person"
    assert infer_name({key: other_tool}, tools) is None
    text = f'<tool_call>{{"arguments": {{"{key}": "{other_tool}"}}}}</tool_call>'
    assert not parse(text, format="hermes", tools=tools).calls


@pytest.mark.parametrize("arguments", ["x", "command", [], ["command"], None, 5, True])
def test_arguments_that_are_not_an_object_imply_no_tool(arguments: Any) -> None:
    assert infer_name(arguments, CODING) is None


def test_without_tools_nothing_is_inferred() -> None:
    assert infer_name({"command": "ls"}, None) is None
    assert infer_name({"command": "ls"}, Toolset(())) is None


def test_a_tool_without_required_arguments_is_never_inferred() -> None:
    assert infer_name({"command": "ls"}, Toolset([make_tool("f", {"command": STRING})])) is None


def test_only_tools_in_scope_are_inferred() -> None:
    scoped = CODING.scoped(["read_file", "bash"])
    assert infer_name({"path": "/x"}, scoped) == "read_file"
    assert infer_name({"path": "/x", "content": ""}, scoped) is None


# -- bodies between the tags of Hermes (A.10) --------------------------------------------------------------------------

BODIES: list[tuple[str, list[tuple[str, Json]], list[str]]] = [
    # body, runnable calls, rules
    ('{"name":"bash","arguments":{"command":"ls"}}', [("bash", {"command": "ls"})], []),
    ('{"name":"bash","arguments":{"command":"ls"}}}', [("bash", {"command": "ls"})], ["extra_closer"]),
    ('{"name":"bash","arguments":{"command":"ls"}}}}', [("bash", {"command": "ls"})], ["extra_closer"]),
    ('{"name":"bash","arguments":{"command":"ls"}}}}}', [("bash", {"command": "ls"})], ["extra_closer"]),
    ('{"arguments":{"command":"ls","name":"bash"}}', [("bash", {"command": "ls"})], ["hoisted_name"]),
    ('{"arguments":{"command":"ls","tool":"bash"}}', [("bash", {"command": "ls"})], ["hoisted_name"]),
    ('{"arguments":{"command":"ls"}}', [("bash", {"command": "ls"})], ["inferred_name"]),
    ('{"name":null,"arguments":{"command":"ls"}}', [("bash", {"command": "ls"})], ["inferred_name"]),
    ('{"name":"","arguments":{"command":"ls"}}', [("bash", {"command": "ls"})], ["inferred_name"]),
    ('{"arguments":{"path":"/x"}}', [], []),
    ('{"arguments":{"command":"ls","other":1}}', [], []),
    ('{"name":"bash","arguments":"{\\"command\\":\\"ls\\"}"}', [("bash", {"command": "ls"})], ["double_encoded"]),
    ("", [], []),
]


@pytest.mark.parametrize("body, ran, rules", BODIES)
def test_a_body_is_repaired_with_a_receipt_or_rejected(
    body: str, ran: list[tuple[str, Json]], rules: list[str]
) -> None:
    reply = hold_of_every_cut(hermes(body), Setting("hermes", CODING))
    assert runnable(reply) == ran
    assert [receipt[0] for receipt in receipts(reply)] == rules
    assert reply.content == ""
    assert bool(blocking(reply)) == (bool(body) and not ran)


def test_an_unterminated_body_is_never_completed() -> None:
    body = '{"arguments":{"command":"rm -rf build","name":"bash"}}'
    for end in range(len(body)):
        reply = parse(f"<tool_call>\n{body[:end]}", format="hermes", tools=CODING, repair="lenient")
        assert runnable(reply) == []


def test_the_receipts_of_names_contain_the_input() -> None:
    hoisted = parse(hermes('{"arguments":{"command":"ls","name":"bash"}}'), format="hermes", tools=CODING)
    assert receipts(hoisted) == [("hoisted_name", "schema", '{"command":"ls","name":"bash"}', '{"command": "ls"}')]
    inferred = parse(hermes('{"arguments":{"command":"ls"}}'), format="hermes", tools=CODING)
    assert receipts(inferred) == [("inferred_name", "schema", "", "bash")]
    assert inferred.attempts[0].json == '{"command":"ls"}'


def test_a_name_that_is_an_argument_of_its_tool_is_not_hoisted() -> None:
    tools = Toolset([make_tool("create", {"name": STRING}), make_tool("delete", {"id": STRING})])
    assert hoist_name({"name": "create"}, tools) is None
    assert hoist_name({"name": "delete", "id": "1"}, tools) == ("delete", {"id": "1"})
    assert hoist_name({"name": "nobody"}, tools) is None
    assert hoist_name("delete", tools) is None
    assert hoist_name({"name": "delete"}, None) is None


def test_without_repair_no_name_is_hoisted_or_inferred() -> None:
    for body in ('{"arguments":{"command":"ls","name":"bash"}}', '{"arguments":{"command":"ls"}}'):
        reply = parse(hermes(body), format="hermes", tools=CODING, repair="off")
        assert (blocking(reply), receipts(reply)) == ([("invalid_name", 0)], [])


def test_repair_itself_hoists_and_infers_a_name() -> None:
    assert repair(Call("", {"command": "ls"}, ""), CODING).name == "bash"
    call = repair(Call("", {"command": "ls", "name": "bash"}, ""), CODING)
    assert (call.name, call.arguments, [r.rule for r in call.repairs]) == ("bash", {"command": "ls"}, ["hoisted_name"])


def test_the_name_of_a_native_call_is_inferred_too() -> None:
    native = {"id": "a", "type": "function", "function": {"name": "", "arguments": '{"command": "ls"}'}}
    reply = read({"choices": [{"message": {"tool_calls": [native]}}]}, tools=CODING)
    assert runnable(reply) == [("bash", {"command": "ls"})]


# -- other spellings of names ------------------------------------------------------------------------------------------

TOOLS = Toolset(
    [
        make_tool("get_weather", {"city": STRING, "days": INTEGER}),
        make_tool("search_files"),
        make_tool("mcp__github__search"),
        make_tool("a.read"),
        make_tool("b.read"),
        make_tool("sendMail"),
    ]
)
SPELLINGS: list[tuple[str, str, str, str]] = [
    # input, resolved name, rule, kind
    ("get_weather<|channel|>commentary", "get_weather", "control_tokens", "exact"),
    ("get_weather<|call|>", "get_weather", "control_tokens", "exact"),
    ("<|constrain|>get_weather", "get_weather", "control_tokens", "exact"),
    ("get_weather<｜tool▁sep｜>", "get_weather", "control_tokens", "exact"),
    (" get_weather\n", "get_weather", "control_tokens", "exact"),
    ("functions.get_weather", "get_weather", "namespace", "exact"),
    ("default_api.get_weather", "get_weather", "namespace", "exact"),
    ("mcp__server__get_weather", "get_weather", "namespace", "exact"),
    ("mcp__my_server__search_files", "search_files", "namespace", "exact"),
    ("tools/get_weather", "get_weather", "namespace", "exact"),
    ("functions.a.read", "a.read", "namespace", "exact"),
    ("get_weather.call", "get_weather", "namespace", "exact"),
    ("functions.get_weather<|channel|>commentary", "get_weather", "namespace", "exact"),
    ("search", "mcp__github__search", "namespace", "schema"),
    ("GetWeather", "get_weather", "folded_name", "schema"),
    ("get-weather", "get_weather", "folded_name", "schema"),
    ("GET_WEATHER", "get_weather", "folded_name", "schema"),
    ("send_mail", "sendMail", "folded_name", "schema"),
    ("functions.GetWeather", "get_weather", "folded_name", "schema"),
]


@pytest.mark.parametrize("sent, resolved, rule, kind", SPELLINGS)
def test_another_spelling_of_a_name_resolves_to_the_declared_tool(
    sent: str, resolved: str, rule: str, kind: str
) -> None:
    name, found = resolve_tool_name(sent, TOOLS, "safe")
    assert name == resolved
    assert [(r.rule, r.kind, r.path, r.before, r.after) for r in found] == [(rule, kind, "", sent, resolved)]
    assert resolve_tool_name(sent, TOOLS, "off") == (sent, ())


@pytest.mark.parametrize("sent, resolved, rule, kind", SPELLINGS)
def test_a_call_with_another_spelling_of_its_name_is_runnable_with_a_receipt(
    sent: str, resolved: str, rule: str, kind: str
) -> None:
    text = hermes(json.dumps({"name": sent, "arguments": {}}))
    reply = hold_of_every_cut(text, Setting("hermes", TOOLS))
    assert runnable(reply) == [(resolved, {})]
    assert [receipt[:2] for receipt in receipts(reply)] == [(rule, kind)]
    assert repair(Call(sent, {}, "{}"), TOOLS).name == resolved
    off = parse(text, format="hermes", tools=TOOLS, repair="off")
    assert [call.name for call in off.attempts] == [sent]
    assert runnable(off) == []


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if name != "forced_choice"))
def test_a_namespaced_name_is_folded_in_every_format(name: str) -> None:
    text = render(Call("default_api.get_weather", {"city": "Oslo"}, '{"city": "Oslo"}'), format=name, tools=TOOLS)
    reply = parse(text, format=name, tools=TOOLS)
    assert runnable(reply) == [("get_weather", {"city": "Oslo"})]


AMBIGUOUS = ["read", "x.read", "READ", "multi_tool_use.parallel", "weather", "files", "get", "", " ", "_", "."]


@pytest.mark.parametrize("sent", AMBIGUOUS)
@pytest.mark.parametrize("policy", ["safe", "lenient"])
def test_an_ambiguous_name_or_an_unknown_name_is_kept(sent: str, policy: Policy) -> None:
    assert resolve_tool_name(sent, TOOLS, policy) == (sent, ())


def test_names_with_the_same_folded_form_are_not_folded() -> None:
    tools = Toolset([make_tool("get_user"), make_tool("getUser")])
    assert resolve_tool_name("GetUser", tools, "lenient") == ("GetUser", ())
    assert resolve_tool_name("get_user", tools, "lenient") == ("get_user", ())


@pytest.mark.parametrize("near", ["get_wether", "get_weathers", "gett_weather", "serch_files"])
@pytest.mark.parametrize("policy", ["safe", "lenient"])
def test_a_similar_name_is_never_replaced(near: str, policy: Policy) -> None:
    assert resolve_tool_name(near, TOOLS, policy) == (near, ())


def test_name_resolution_stays_within_the_scope() -> None:
    scoped = TOOLS.scoped(["search_files"])
    for sent in ("functions.get_weather", "GetWeather", "get_wether", "search"):
        assert resolve_tool_name(sent, scoped, "lenient")[0] not in ("get_weather", "mcp__github__search")
    reply = parse(hermes('{"name": "functions.get_weather"}'), format="hermes", tools=scoped)
    assert blocking(reply) == [("not_authorised", 0)]


def test_without_tools_a_name_is_kept() -> None:
    assert resolve_tool_name("functions.f", None, "lenient") == ("functions.f", ())
    assert args(parse(hermes('{"name": "functions.f"}'), format="hermes")) == [("functions.f", {})]


def test_an_unknown_tool_problem_suggests_the_nearest_name() -> None:
    for near, suggestion in (("get_wether", "get_weather"), ("searchfile", "search_files")):
        reply = parse(hermes(json.dumps({"name": near})), format="hermes", tools=TOOLS)
        assert blocking(reply) == [("unknown_tool", 0)]
        assert f"did you mean '{suggestion}'" in reply.problems[0].message


@pytest.mark.parametrize("sent", ["x" * 200_000, "a." * 100_000, "__" * 100_000, "<|" * 100_000, "_" * 200_000])
def test_a_long_name_is_resolved_in_bounded_time(sent: str) -> None:
    tools = Toolset([make_tool(f"tool_{n}") for n in range(500)])
    start = time.process_time()
    resolve_tool_name(sent, tools, "lenient")
    parse(hermes(json.dumps({"name": sent})), format="hermes", tools=tools, repair="lenient")
    assert time.process_time() - start < 1
