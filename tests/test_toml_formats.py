"""User formats in TOML: what can be expressed and what is rejected with which message. Hostile files do no harm."""

import json
import time
from typing import Any

import msgspec
import pytest

from rightcall import Format, formats, parse, render
from rightcall.errors import BadFormat
from rightcall.formats.toml import MAX_BYTES
from rightcall.formats.toml_rules import MAX_MARKER
from rightcall.testing.laws import check_format
from rightcall.types import Call, Text
from support.format_sample import sampled

TAGGED = """
name = "tagged"
models = "an example"
section = ["<calls>\\n", "\\n</calls>"]
between = "\\n"
reasoning = ["<thinking>", "</thinking>"]
ends = ["<|end|>"]

[body]
kind = "params"
open = '<use tool="{name}">'
param = '<with key="{key}">'
value_close = "</with>"
close = "</use>"
"""
HEAD = 'name = "mine"\ncall = ["<c>", "</c>"]\n'
ENVELOPE = HEAD + 'body = { kind = "envelope" }\n'


def as_toml(value: Any) -> str:
    """Return a value as TOML; JSON strings are valid TOML strings."""
    if isinstance(value, msgspec.Struct):
        return as_toml(fields_of(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def fields_of(value: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a struct that are not None, with its tag."""
    fields = {name: getattr(value, name) for name in value.__struct_fields__ if getattr(value, name) is not None}
    return {"kind": value.__struct_config__.tag, **fields} if value.__struct_config__.tag else fields


def params(**changes: str) -> str:
    body = {"open": "<{name}>", "param": "<{key}>", "value_close": "</>", "close": "</c>", **changes}
    return HEAD + "[body]\nkind = 'params'\n" + "\n".join(f"{key} = {as_toml(text)}" for key, text in body.items())


def error_message(text: str) -> str:
    with pytest.raises(BadFormat) as caught:
        Format.from_toml(text)
    return str(caught.value)


@pytest.mark.parametrize("name", sampled())
def test_every_built_in_format_can_be_written_in_toml(name: str) -> None:
    built_in = formats.find(name)
    custom = msgspec.structs.replace(built_in, name="mine", aliases=())
    text = "\n".join(f"{key} = {as_toml(value)}" for key, value in fields_of(custom).items())
    assert Format.from_toml(text) == custom


def test_a_format_from_toml_parses_and_renders() -> None:
    format = Format.from_toml(TAGGED)
    text = render([Call("look", {"what": "a </with> b"}, "")], format=format)
    assert text == '<calls>\n<use tool="look"><with key="what">a </with> b</with></use>\n</calls>'
    (call,) = parse(text, format=format).attempts
    assert (call.name, call.arguments) == ("look", {"what": "a </with> b"})


def test_a_body_may_be_an_array_of_tables() -> None:
    text = HEAD + "[[body]]\nkind = 'pythonic'\n[[body]]\nkind = 'envelope'\nwrap = ['[', ', ', ']']\n"
    format = Format.from_toml(text)
    both = '<c>[f(x=1)]</c><c>[{"name": "g", "arguments": {}}]</c>'
    assert [call.name for call in parse(both, format=format).attempts] == ["f", "g"]


def test_escapes_in_toml_strings_are_decoded() -> None:
    format = Format.from_toml(ENVELOPE.replace('"<c>"', '"<c>\\n\\u2028"'))
    assert format.call[0] == "<c>\n\u2028"


@pytest.mark.parametrize(
    "text, fragments",
    [
        ("name = ", ["no valid TOML"]),
        (HEAD, ["missing", "body"]),
        (ENVELOPE + "betwen = 'x'", ["'betwen'", "did you mean 'between'?"]),
        (HEAD + "body = { kind = 'envelop' }", ["body.kind", "did you mean 'envelope'?"]),
        (HEAD + "body = { kind = 'envelope', name = ['x'] }", ["body.'name'", "did you mean 'names'?"]),
        (HEAD + "body = { }", ["body.kind", "missing", "namethenjson"]),
        (HEAD + "body = []", ["body", "at least one"]),
        (HEAD + "body = 3", ["body", "expected `object | array`"]),
        (HEAD + "[[body]]\nkind = 'envelope'\n[[body]]\nkind = 'braced'\nopn = 'x'", ["body[1].'opn'", "'open'"]),
        (ENVELOPE + "channels = { strat = 'x' }", ["channels.'strat'", "did you mean 'start'?"]),
        (ENVELOPE + "call_ = 1", ["did you mean 'call'?"]),
        (ENVELOPE.replace('"mine"', '"hermes"'), ["name", "'hermes' is built in", "another name"]),
        (ENVELOPE.replace('"mine"', '"gpt_oss"'), ["built in"]),
        (ENVELOPE.replace('"mine"', '"auto"'), ["built in"]),
        (ENVELOPE + "aliases = ['gpt-oss']", ["aliases[0]", "built in"]),
        (ENVELOPE + "aliases = ['a b']", ["aliases[0]", "letters, digits"]),
        (ENVELOPE.replace('"mine"', '"Mine"'), ["'Mine' is no format name"]),
        (ENVELOPE.replace('"mine"', '"../mine"'), ["no format name"]),
        (ENVELOPE.replace("mine", "m" * 65), ["no format name"]),
        (ENVELOPE + "tools = 'jso'", ["tools", "did you mean 'json'?"]),
        (ENVELOPE + "models = 'a\\u001bb'".replace("'", '"'), ["models", "not printable"]),
        (ENVELOPE + "ends = ['']", ["ends[0]", "empty"]),
        (ENVELOPE + "ends = 'x'", ["ends", "expected `array`"]),
        (ENVELOPE + f"ends = ['{'x' * (MAX_MARKER + 1)}']", ["ends[0]", "at most 128"]),
        (ENVELOPE + f"ends = {['x'] * 33}", ["ends", "33 entries", "at most 32"]),
        (ENVELOPE + "section = ['', 'x']", ["section[0]", "empty"]),
        (ENVELOPE + "section = ['<a>']", ["section", "length 2"]),
        (ENVELOPE + "section = ['<{name}>', 'x']", ["section[0]", "{name} has no meaning here"]),
        (ENVELOPE + "reasoning = ['<t>', ' ']", ["reasoning[1]", "only white space"]),
        (ENVELOPE + "reasoning = [[], 'x']", ["reasoning[0]", "no alternatives"]),
        (ENVELOPE.replace('"<c>"', '"<{key}>"'), ["call[0]", "{key} has no meaning here", "only name"]),
        (ENVELOPE.replace('"</c>"', '"</{name}>"'), ["call[1]", "{name} has no meaning here"]),
        (params(open="<f>"), ["body.open", "lacks the hole {name}"]),
        (params(open="<{nam}>"), ["no hole {nam}", "did you mean 'name'?"]),
        (params(open="<{name}{id}>"), ["nothing separates {name} from {id}"]),
        (params(open="<{name}\n{id}>"), ["nothing separates {name} from {id}"]),
        (params(open="<{name} {name}>"), ["{name} occurs twice"]),
        (params(param="<p>"), ["body.param", "lacks the hole {key}"]),
        (params(param="@{key}"), ["body.param", "end it with a literal"]),
        (params(param="<{key} {type}>"), ["{type} has no meaning here"]),
        (params(value_close=""), ["body.value_close", "empty"]),
        (params(close="</{name}>"), ["body.close", "{name} has no meaning here"]),
        (params(empty="<f/>"), ["body.empty", "lacks the hole {name}"]),
        (params() + "\ntypes = { str = 'string', other = 'json' }", ["lacks the hole {type}"]),
        (params(param="<{key} {type}>") + "\ntypes = { a = 'string' }", ["body.types", "one for json"]),
        (params(param="<{key} {type}>") + "\ntypes = { 'a b' = 'string', c = 'json' }", ["not a type word"]),
        (HEAD + "body = { kind = 'namethenjson' }", ["body.open", "{name}"]),
        (HEAD + "body = { kind = 'namethenjson', open = '[ARGS]' }", ["lacks the hole {name}"]),
        (HEAD + "body = { kind = 'braced', open = '{name}', quote = '' }", ["body.quote", "empty"]),
        (HEAD + "body = { kind = 'pythonic', wrap = ['['] }", ["body.wrap", "length 3"]),
        (HEAD + "body = { kind = 'envelope', names = ['a\"b'] }", ["body.names", "plain key"]),
        (HEAD + "body = { kind = 'envelope', args = [] }", ["body.args", "empty"]),
        (HEAD + "body = { kind = 'envelope', write_id = 'middle' }", ["body.write_id"]),
    ],
)
def test_an_error_message_names_culprit_cause_and_cure(text: str, fragments: list[str]) -> None:
    message = error_message(text)
    assert message.startswith("format file, ")
    assert ": " in message and "; " in message and "\n" not in message
    assert [word for word in fragments if word not in message] == []


HOSTILE = {
    "deep arrays": "a = " + "[" * 30_000,
    "deep tables": "a = " + "{a=" * 10_000,
    "a long number": "a = " + "1" * 60_000,
    "a key of many parts": ".".join("a" * 30_000) + " = 1",
    "many keys": "\n".join(f"a{i} = 1" for i in range(7_000)),
    "a lone surrogate": "name = '\ud800'",
    "a NUL": "name = '\0'",
    "too long": "#" * (MAX_BYTES + 1),
    "too long in bytes": "#" + "ü" * (MAX_BYTES // 2),
    "nothing": "",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_toml_is_rejected_quickly(text: str) -> None:
    start = time.process_time()
    assert error_message(text)
    assert time.process_time() - start < 1.0


def test_a_value_that_is_not_text_is_rejected() -> None:
    assert "bytes" in error_message(b"name = 'x'")  # type: ignore[arg-type]


def test_a_path_is_never_opened() -> None:
    assert "no valid TOML" in error_message("/etc/hostname")


def test_markers_of_the_maximum_length_compile() -> None:
    long = "<" + "ab" * 63 + ">"
    assert len(long) == MAX_MARKER
    format = Format.from_toml(ENVELOPE.replace("<c>", long))
    text = render([Call("f", {}, "{}")], format=format)
    assert [call.name for call in parse(text, format=format).attempts] == ["f"]


TYPESCRIPT = """
name = "mine"
call = ["<use>", "</use>"]
content = [["<say>", "</say>"]]
body = { kind = "tscall", labels = ["js"] }
protocol = { done = ["<end>", "</end>"] }
"""


def test_a_protocol_with_typescript_calls_in_toml_satisfies_the_laws() -> None:
    format = Format.from_toml(TYPESCRIPT)
    reply = parse('<say>Hi</say><use>js: f({ s: "x" })</use><end>ok</end>', format=format)
    assert (reply.content, reply.parts[0], reply.done) == ("Hi", Text("Hi", "say"), "ok")
    assert [(call.name, call.arguments) for call in reply.attempts] == [("f", {"s": "x"})]
    assert check_format(format, samples=30) == []
    assert check_format(Format.from_toml(HEAD + 'body = { kind = "tscall" }'), samples=30) == []


CALLS = HEAD + 'body = { kind = "tscall" }\n'
DONE = 'protocol = { done = ["<d>", "</d>"] }\n'


@pytest.mark.parametrize(
    "text, message",
    [
        ('name = "mine"\nbody = { kind = "tscall" }', "without markers around a call"),
        (HEAD + 'body = { kind = "tscall", labels = ["a b:"] }', "is not a label"),
        (CALLS + 'protocol = { done = ["", "</d>"] }', "protocol.done"),
        (CALLS + 'protocol = { end = ["<d>", "</d>"] }', "there is no such key"),
        (CALLS + DONE + 'section = ["<s>", "</s>"]', "only one"),
        (CALLS + DONE + 'content = [[["<a>", "<b>"], "</a>"]]', "one opening"),
    ],
)
def test_an_invalid_protocol_is_rejected(text: str, message: str) -> None:
    assert message in error_message(text)
