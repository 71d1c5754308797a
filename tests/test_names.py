"""Which tool was meant: names in other clothes, names that stand among the arguments, names that are missing."""

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


def declared(name: str, properties: Json | None = None, required: tuple[str, ...] = (), **more: Any) -> Tool:
    parameters = {"type": "object", "properties": properties or {}, "required": list(required), **more}
    return Tool(name=name, parameters=parameters)


def coding(name: str, properties: Json, *required: str) -> Tool:
    return declared(name, properties, required, additionalProperties=False)


CODING = Toolset(
    [
        coding("read_file", {"path": STRING, "line": POSITIVE, "limit": POSITIVE}, "path"),
        coding("write_file", {"path": STRING, "content": STRING}, "path", "content"),
        coding("edit_file", {"path": STRING, "old_text": STRING, "new_text": STRING}, "path", "old_text", "new_text"),
        coding("list_dir", {"path": STRING}, "path"),
        coding("bash", {"command": STRING, "cwd": STRING}, "command"),
    ]
)


def receipts(reply: Reply) -> list[tuple[str, str, str, str]]:
    return [(r.rule, r.kind, r.before, r.after) for call in reply.attempts for r in call.repairs]


# -- inference from argument keys --------------------------------------------------------------------------------------

MKDIR = "mkdir -p /tmp/app/{src,tests,docs} && touch /tmp/app/src/{__init__,main}.py && ls -R '/tmp/app'"


@pytest.mark.parametrize("command", ["ls", "", MKDIR])
def test_a_command_is_bash(command: str) -> None:
    assert infer_name({"command": command}, CODING) == "bash"


def test_a_command_and_a_folder_are_bash() -> None:
    assert infer_name({"command": "ls", "cwd": "/tmp"}, CODING) == "bash"


def test_a_long_command_seen_in_the_field_is_bash() -> None:
    reply = parse(hermes(json.dumps({"arguments": {"command": MKDIR}})), format="hermes", tools=CODING)
    assert runnable(reply) == [("bash", {"command": MKDIR})]


def test_path_and_content_are_write_file() -> None:
    assert infer_name({"path": "/x", "content": ""}, CODING) == "write_file"


def test_path_and_both_texts_are_edit_file() -> None:
    assert infer_name({"path": "/x", "old_text": "a", "new_text": "b"}, CODING) == "edit_file"


def test_a_path_alone_is_refused() -> None:
    assert infer_name({"path": "/x"}, CODING) is None


@pytest.mark.parametrize("more", [{"line": 1}, {"line": 1, "limit": 2}, {"limit": 2}])
def test_a_path_with_line_and_limit_is_refused(more: Json) -> None:
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
def test_unknown_or_lacking_keys_are_refused(arguments: Json) -> None:
    assert infer_name(arguments, CODING) is None


def test_an_empty_object_is_refused() -> None:
    assert infer_name({}, CODING) is None
    assert infer_name({}, Toolset([declared("only")])) is None


@pytest.mark.parametrize("key", ["name", "tool", "tool_name", "function"])
@pytest.mark.parametrize("said", ["find_person", "list_people", "ping"])
def test_no_tool_is_inferred_from_arguments_that_name_one(key: str, said: str) -> None:
    named = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    tools = Toolset([Tool(name="find_person", parameters=named), Tool(name="list_people"), Tool(name="ping")])
    assert infer_name({key: "Ada"}, tools) == "find_person"
    assert infer_name({key: said}, tools) is None
    text = f'<tool_call>{{"arguments": {{"{key}": "{said}"}}}}</tool_call>'
    assert not parse(text, format="hermes", tools=tools).calls


@pytest.mark.parametrize("arguments", ["x", "command", [], ["command"], None, 5, True])
def test_what_is_no_object_is_refused(arguments: Any) -> None:
    assert infer_name(arguments, CODING) is None


def test_without_tools_nothing_is_inferred() -> None:
    assert infer_name({"command": "ls"}, None) is None
    assert infer_name({"command": "ls"}, Toolset(())) is None


def test_a_tool_that_requires_nothing_is_never_inferred() -> None:
    assert infer_name({"command": "ls"}, Toolset([declared("f", {"command": STRING})])) is None


def test_a_scope_takes_part_only_with_what_it_allows() -> None:
    scoped = CODING.scoped(["read_file", "bash"])
    assert infer_name({"path": "/x"}, scoped) == "read_file"
    assert infer_name({"path": "/x", "content": ""}, scoped) is None


# -- bodies between Hermes' tags (A.10) --------------------------------------------------------------------------------

BODIES: list[tuple[str, list[tuple[str, Json]], list[str]]] = [
    # body, what may run, rules
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
def test_a_body_is_repaired_with_a_receipt_or_blocked(body: str, ran: list[tuple[str, Json]], rules: list[str]) -> None:
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


def test_the_receipts_of_names_say_what_was_sent() -> None:
    hoisted = parse(hermes('{"arguments":{"command":"ls","name":"bash"}}'), format="hermes", tools=CODING)
    assert receipts(hoisted) == [("hoisted_name", "schema", '{"command":"ls","name":"bash"}', '{"command": "ls"}')]
    inferred = parse(hermes('{"arguments":{"command":"ls"}}'), format="hermes", tools=CODING)
    assert receipts(inferred) == [("inferred_name", "schema", "", "bash")]
    assert inferred.attempts[0].json == '{"command":"ls"}'


def test_a_name_that_is_an_argument_of_its_tool_is_not_hoisted() -> None:
    tools = Toolset([declared("create", {"name": STRING}), declared("delete", {"id": STRING})])
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


def test_a_native_call_without_a_name_is_inferred_too() -> None:
    native = {"id": "a", "type": "function", "function": {"name": "", "arguments": '{"command": "ls"}'}}
    reply = read({"choices": [{"message": {"tool_calls": [native]}}]}, tools=CODING)
    assert runnable(reply) == [("bash", {"command": "ls"})]


# -- names in other clothes --------------------------------------------------------------------------------------------

TOOLS = Toolset(
    [
        declared("get_weather", {"city": STRING, "days": INTEGER}),
        declared("search_files"),
        declared("mcp__github__search"),
        declared("a.read"),
        declared("b.read"),
        declared("sendMail"),
    ]
)
CLOTHES: list[tuple[str, str, str, str]] = [
    # sent, meant, rule, kind
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


@pytest.mark.parametrize("sent, meant, rule, kind", CLOTHES)
def test_a_name_in_other_clothes_is_the_tool_that_was_meant(sent: str, meant: str, rule: str, kind: str) -> None:
    name, found = resolve_tool_name(sent, TOOLS, "safe")
    assert name == meant
    assert [(r.rule, r.kind, r.path, r.before, r.after) for r in found] == [(rule, kind, "", sent, meant)]
    assert resolve_tool_name(sent, TOOLS, "off") == (sent, ())


@pytest.mark.parametrize("sent, meant, rule, kind", CLOTHES)
def test_a_call_by_another_name_runs_with_a_receipt(sent: str, meant: str, rule: str, kind: str) -> None:
    text = hermes(json.dumps({"name": sent, "arguments": {}}))
    reply = hold_of_every_cut(text, Setting("hermes", TOOLS))
    assert runnable(reply) == [(meant, {})]
    assert [receipt[:2] for receipt in receipts(reply)] == [(rule, kind)]
    assert repair(Call(sent, {}, "{}"), TOOLS).name == meant
    off = parse(text, format="hermes", tools=TOOLS, repair="off")
    assert [call.name for call in off.attempts] == [sent]
    assert runnable(off) == []


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if name != "forced_choice"))
def test_a_namespaced_name_is_folded_on_every_wire(name: str) -> None:
    text = render(Call("default_api.get_weather", {"city": "Oslo"}, '{"city": "Oslo"}'), format=name, tools=TOOLS)
    reply = parse(text, format=name, tools=TOOLS)
    assert runnable(reply) == [("get_weather", {"city": "Oslo"})]


AMBIGUOUS = ["read", "x.read", "READ", "multi_tool_use.parallel", "weather", "files", "get", "", " ", "_", "."]


@pytest.mark.parametrize("sent", AMBIGUOUS)
@pytest.mark.parametrize("policy", ["safe", "lenient"])
def test_a_name_that_could_be_two_or_none_stays_as_it_is(sent: str, policy: Policy) -> None:
    assert resolve_tool_name(sent, TOOLS, policy) == (sent, ())


def test_names_that_fold_to_the_same_are_not_folded() -> None:
    tools = Toolset([declared("get_user"), declared("getUser")])
    assert resolve_tool_name("GetUser", tools, "lenient") == ("GetUser", ())
    assert resolve_tool_name("get_user", tools, "lenient") == ("get_user", ())


@pytest.mark.parametrize("near", ["get_wether", "get_weathers", "gett_weather", "serch_files"])
@pytest.mark.parametrize("policy", ["safe", "lenient"])
def test_a_similar_name_is_never_replaced(near: str, policy: Policy) -> None:
    assert resolve_tool_name(near, TOOLS, policy) == (near, ())


def test_a_scope_is_never_left_by_another_name() -> None:
    scoped = TOOLS.scoped(["search_files"])
    for sent in ("functions.get_weather", "GetWeather", "get_wether", "search"):
        assert resolve_tool_name(sent, scoped, "lenient")[0] not in ("get_weather", "mcp__github__search")
    reply = parse(hermes('{"name": "functions.get_weather"}'), format="hermes", tools=scoped)
    assert blocking(reply) == [("not_authorised", 0)]


def test_without_tools_a_name_is_not_touched() -> None:
    assert resolve_tool_name("functions.f", None, "lenient") == ("functions.f", ())
    assert args(parse(hermes('{"name": "functions.f"}'), format="hermes")) == [("functions.f", {})]


def test_the_problem_of_an_unknown_tool_says_which_was_meant() -> None:
    for near, meant in (("get_wether", "get_weather"), ("searchfile", "search_files")):
        reply = parse(hermes(json.dumps({"name": near})), format="hermes", tools=TOOLS)
        assert blocking(reply) == [("unknown_tool", 0)]
        assert f"did you mean '{meant}'" in reply.problems[0].message


@pytest.mark.parametrize("sent", ["x" * 200_000, "a." * 100_000, "__" * 100_000, "<|" * 100_000, "_" * 200_000])
def test_a_long_name_takes_no_longer(sent: str) -> None:
    tools = Toolset([declared(f"tool_{n}") for n in range(500)])
    start = time.process_time()
    resolve_tool_name(sent, tools, "lenient")
    parse(hermes(json.dumps({"name": sent})), format="hermes", tools=tools, repair="lenient")
    assert time.process_time() - start < 1
