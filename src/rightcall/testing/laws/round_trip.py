"""The round-trip law and the keys law.

A rendered reply is parsed back equal, or `render` raises `CannotCarry`. Every key in a text is in the arguments of a
call, or named in a repair or a problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from rightcall.errors import CannotCarry
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format
from rightcall.parsing.rendering import render, same
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import Case, Violation, WrittenKey, make_call, raised_violation, rendering, samples
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Reply


def round_trip_law(
    format: Format, parts: Sequence[Part], *, tools: Toolset | None = None, must_carry: bool = False, how: How = USUAL
) -> list[Violation]:
    """Return a list with one violation if a rendered reply is not parsed back equal, except for white space at the
    edges of texts; otherwise []. A reply that the format cannot express is no violation unless `must_carry` is set. An
    exception is a violation.

    - `format`: the format.
    - `parts`: texts, reasoning and calls.
    - `tools`: the declared tools; None: names are not checked.
    - `how`: the other options of the parser.
    - `must_carry`: whether `CannotCarry` is a violation too.
    """
    try:
        text = render(parts, format=format, tools=tools)
    except CannotCarry as error:
        what = f"it cannot carry what every format must: {error.path}: {error.cause}"
        return [Violation("round trip", what, repr(parts))] if must_carry else []
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, repr(parts))]
    try:
        what = _describe_difference(parts, read(format, [text], tools=tools, how=how).reply)
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, text)]
    return [Violation("round trip", what, text)] if what else []


def _part_difference(a: Part, b: Part, i: int) -> str:
    """Return a description of how the parsed part `b` differs from the rendered part `a`, number `i`; "" if it does
    not. White space at the edges of text is ignored."""
    if type(a) is not type(b):
        return f"part {i} was a {type(a).__name__} and reads back as a {type(b).__name__}"
    if isinstance(a, Call) and isinstance(b, Call):
        path = same(a.arguments, b.arguments)
        if a.name != b.name or path is not None or not b.complete:
            return f"call {a.name!r} at part {i} reads back changed at {path or 'its name or end'}"
    elif a.text.strip() != b.text.strip():  # type: ignore[union-attr]
        return f"the text of part {i} reads back changed"
    return ""


def _describe_difference(sent: Sequence[Part], reply: Reply) -> str:
    """Return a description of how a reply differs from the rendered parts `sent`, except white space at the edges of
    text; "" if it does not. Problems that block are a difference."""
    if len(sent) != len(reply.parts):
        return f"{len(sent)} parts were rendered and {len(reply.parts)} read back"
    for i, (a, b) in enumerate(zip(sent, reply.parts, strict=True)):
        if what := _part_difference(a, b, i):
            return what
    # A problem may say that a text resembles a call, but no problem may block.
    blocking = [problem.code for problem in reply.problems if problem.blocking]
    return f"it reads back with problems: {', '.join(blocking)}" if blocking else ""


def round_trip_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield cases for the round-trip law: some replies that every format must express, with `must_carry`, then `count`
    random ones."""
    for sample in samples(format, seed, count):
        yield Case("round trip", sent=sample.parts, must_carry=sample.plain)


_TEXT, _ABOUT, _OTHER = "zqtextqz", "zqmatterqz", "zqotherqz"
Pairs = list[tuple[str, Any]]


def keys_law(
    format: Format, text: str, written: Sequence[WrittenKey], *, tools: Toolset | None = None, how: How = USUAL
) -> list[Violation]:
    """Return a list with one violation for the first key of the text that is neither in the arguments of a call with
    its value, nor named in a repair or problem; otherwise []. An exception is a violation.

    - `format`: the format of the text.
    - `text`: the text to parse.
    - `written`: the keys of the text, with their values.
    - `tools`: the declared tools; None: names are not checked.
    - `how`: the other options of the parser.
    """
    try:
        reply = read(format, [text], tools=tools, how=how).reply
        for key in written:
            if not _is_argument(reply, key) and not _is_named(reply, key):
                return [
                    Violation("keys", f"{key.names[0]!r} with {key.value!r} is lost: {_describe_reply(reply)}", text)
                ]
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, text)]
    return []


def _describe_reply(reply: Reply) -> str:
    """Return a text about the attempts and the problems of a reply, for a violation."""
    return f"{[(call.name, call.arguments) for call in reply.attempts]}, {[p.code for p in reply.problems]}"


def _is_argument(reply: Reply, key: WrittenKey) -> bool:
    """Return whether a call of the reply, rejected or not, has this key with this value as an argument, or the value as
    its name if the key is `name`."""
    arguments = [{"name": call.name, **call.arguments} for call in reply.attempts]
    return any(key.names[0] in values and same(values[key.names[0]], key.value) is None for values in arguments)


def _is_named(reply: Reply, key: WrittenKey) -> bool:
    """Return whether a problem or repair of the reply mentions one of the names of the key. For a reply without
    attempts, return whether it has any problem."""
    if not reply.attempts:  # the text is no call; any problem accounts for its keys
        return bool(reply.problems)
    messages = [f"{problem.path} {problem.message}" for problem in reply.problems]
    messages += [f"{r.path} {r.before} {r.after}" for call in reply.attempts for r in call.repairs]
    return any(name in text for text in messages for name in key.names)


# -- examples ----------------------------------------------------------------------------------------------------------


def keys_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield `count` cases at most, for the keys law: texts with repeated and unknown arguments and, in JSON envelopes,
    with keys next to, before and instead of the arguments. After all of them, they are repeated with other values, up
    to three times."""
    cases = [*_argument_cases(format), *_envelope_cases(format)]
    dice = Random(f"{seed} {format.name} keys")
    dice.shuffle(cases)
    for i in range(min(count, len(cases) * 4)):
        case = cases[i % len(cases)]
        if i < len(cases):
            yield case
        else:  # the same with another value, which may look like another notation
            yield _with_other_value(case, dice)


def _with_other_value(case: Case, dice: Random) -> Case:
    """Return the case with a random other value in place of the word `_OTHER`, in its text and in its keys."""
    word = dice.choice(("Oslo", "two words", "x" * 40, "a, b", "(c)", "é", "it is 3 pm"))
    written = [WrittenKey(w.names, word if w.value == _OTHER else w.value) for w in case.written]
    return Case("keys", case.text.replace(_OTHER, word), written=tuple(written))


def _argument_cases(format: Format) -> Iterator[Case]:
    """Yield cases for the keys law with a call that has an argument twice, or one with an undeclared name; nothing for
    a format in which arguments cannot be inserted as text."""
    block = _argument_block(format)
    if block is None:
        return
    before, about, after = block
    first, second = about, about.replace(_ABOUT, _OTHER)
    # It is unknown which of the two is meant: the call is rejected, and its other keys need not be named.
    doubled = (WrittenKey(("about",), _ABOUT), WrittenKey(("about",), _OTHER))
    yield Case("keys", before + first + second + after, written=doubled)
    yield Case("keys", before + second + first + after, written=doubled)
    strange = about.replace("about", "zqkeyqz")
    if strange.count("zqkeyqz") == about.count("about"):
        words = (WrittenKey(("zqkeyqz",), _ABOUT), WrittenKey(("text",), _TEXT))
        yield Case("keys", before + strange + after, written=words)
        yield Case("keys", before + first + strange + after, written=(*words, WrittenKey(("about",), _ABOUT)))


def _argument_block(format: Format) -> tuple[str, str, str] | None:
    """Return the text of a call in three pieces: before its second argument, this argument with its markers, and after
    it; None if the format cannot express the call, or the argument cannot be told from the text around it."""
    one = rendering(format, [make_call("take_note", {"text": _TEXT})])
    two = rendering(format, [make_call("take_note", {"text": _TEXT, "about": _ABOUT})])
    if one is None or two is None:
        return None
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    size = len(two) - len(one)
    return (one[:at], two[at : at + size], one[at:]) if two[at + size :] == one[at:] else None


def _envelope_cases(format: Format) -> Iterator[Case]:
    """Yield cases for the keys law with a call in a JSON envelope that has unknown, repeated or misplaced keys; none
    for a format without one."""
    names, args = next(filter(None, [BODIES[type(body)].keys(body) for body in format.bodies]), ((), ()))
    text = rendering(format, [make_call("get_weather", {"city": _TEXT})]) if names else None
    found = _find_envelope(text, names[0], args[0]) if text is not None else None
    if text is None or found is None:
        return
    start, end, rest = found
    for pairs, written in _envelopes_with_keys(names[0], args[0], args[1:2], rest):
        yield Case("keys", text[:start] + _write_object(pairs) + text[end:], written=tuple(written))


def _find_envelope(text: str, name: str, args: str) -> tuple[int, int, Pairs] | None:
    """Return the start and end of the first JSON object in a text that has the keys `name` and `args`, and its other
    items; None if there is none."""
    at = text.find("{")
    while at >= 0:
        try:
            value, size = json.JSONDecoder().raw_decode(text[at:])
        except ValueError:
            value, size = None, 0
        if isinstance(value, dict) and name in value and args in value:
            rest = [(k, v) for k, v in value.items() if k not in (name, args)]
            return at, at + size, rest
        at = text.find("{", at + 1)
    return None


def _envelopes_with_keys(
    name: str, args: str, other: tuple[str, ...], rest: Pairs
) -> Iterator[tuple[Pairs, list[WrittenKey]]]:
    """Yield JSON envelopes of one call with unknown, repeated and misplaced keys: each as its members, and the keys
    with their values that must not be lost. `name` and `args` are the keys of the tool's name and its arguments,
    `other` further keys for arguments, and `rest` further members."""
    named, city = (name, "get_weather"), WrittenKey(("city", args), _TEXT)
    held: tuple[str, Any] = (args, {"city": _TEXT})
    days, where = WrittenKey(("days", args), 3), WrittenKey(("zqwhereqz",), _OTHER)
    yield [named, held, ("days", 3), *rest], [city, days]
    yield [("days", 3), named, held, *rest], [city, days]
    yield [named, held, ("zqwhereqz", _OTHER), *rest], [city, where]
    yield [("zqwhereqz", _OTHER), named, held, *rest], [city, where]
    yield [named, ("city", _TEXT), ("days", 3), *rest], [WrittenKey(("city",), _TEXT), WrittenKey(("days",), 3)]
    yield [named, ("city", _TEXT), ("zqwhereqz", _OTHER), *rest], [WrittenKey(("city",), _TEXT), where]
    yield [named, held, (args, {"days": 3}), *rest], [city, days]
    yield [named, held, (args, {"city": _OTHER}), *rest], [city, WrittenKey(("city", args), _OTHER)]
    yield (
        [named, held, (name, "ping"), *rest],
        [city, WrittenKey(("name", name), "ping"), WrittenKey(("name", name), "get_weather")],
    )
    for key in other:
        yield [named, held, (key, {"days": 3}), *rest], [city, WrittenKey(("days", key), 3)]
        yield [named, (key, {"city": _OTHER}), held, *rest], [city, WrittenKey(("city", key), _OTHER)]


def _write_object(pairs: Pairs) -> str:
    """Return pairs as a JSON object, in which keys may be repeated."""
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"
