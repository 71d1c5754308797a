"""The keys law: every key that was written is in the arguments, or named in a repair or a problem."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format
from rightcall.parsing.rendering import same
from rightcall.testing.laws.case import Case, Violation, Written, raised
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import call, rendering
from rightcall.tools.toolset import Toolset
from rightcall.types import Reply

_TEXT, _ABOUT, _OTHER = "zqtextqz", "zqmatterqz", "zqotherqz"
Pairs = list[tuple[str, Any]]


def keys_law(
    format: Format, text: str, written: Sequence[Written], *, tools: Toolset | None = None, how: How = USUAL
) -> list[Violation]:
    """Each key that stands in the text with a value is in the arguments with it, or is named where it is missed.

    - `format`: the one that the text is written in.
    - `text`: what is read.
    - `written`: the keys that stand in it.
    - `tools`, `how`: as in `cut_law`.
    """
    try:
        reply = read(format, [text], tools=tools, how=how).reply
        for key in written:
            if not _is_held(reply, key) and not _is_named(reply, key):
                return [Violation("keys", f"{key.names[0]!r} with {key.value!r} is gone: {_seen(reply)}", text)]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]
    return []


def _seen(reply: Reply) -> str:
    return f"{[(call.name, call.arguments) for call in reply.attempts]}, {[p.code for p in reply.problems]}"


def _is_held(reply: Reply, key: Written) -> bool:
    held = [{"name": call.name, **call.arguments} for call in reply.attempts]
    return any(key.names[0] in values and same(values[key.names[0]], key.value) is None for values in held)


def _is_named(reply: Reply, key: Written) -> bool:
    if not reply.attempts:  # text: that it nearly was a call is all that can be said
        return bool(reply.problems)
    said = [f"{problem.path} {problem.message}" for problem in reply.problems]
    said += [f"{r.path} {r.before} {r.after}" for call in reply.attempts for r in call.repairs]
    return any(name in text for text in said for name in key.names)


# -- examples ----------------------------------------------------------------------------------------------------------


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Doubled arguments and strangers in every body; in envelopes keys beside, before and instead of the arguments."""
    made = [*_in_arguments(format), *_in_envelope(format)]
    dice = Random(f"{seed} {format.name} keys")
    dice.shuffle(made)
    for i in range(min(count, len(made) * 4)):
        case = made[i % len(made)]
        if i < len(made):
            yield case
        else:  # the same with other words: a value may look like another notation
            yield _with_other_words(case, dice)


def _with_other_words(case: Case, dice: Random) -> Case:
    word = dice.choice(("Oslo", "two words", "x" * 40, "a, b", "(c)", "é", "it is 3 pm"))
    written = [Written(w.names, word if w.value == _OTHER else w.value) for w in case.written]
    return Case("keys", case.text.replace(_OTHER, word), written=tuple(written))


def _in_arguments(format: Format) -> Iterator[Case]:
    """The block of one argument, written twice, or under a name that nobody declared."""
    block = _block(format)
    if block is None:
        return
    before, about, after = block
    first, second = about, about.replace(_ABOUT, _OTHER)
    # Which of the two was meant nobody knows: the call is refused, and need not say what else it holds.
    doubled = (Written(("about",), _ABOUT), Written(("about",), _OTHER))
    yield Case("keys", before + first + second + after, written=doubled)
    yield Case("keys", before + second + first + after, written=doubled)
    strange = about.replace("about", "zqkeyqz")
    if strange.count("zqkeyqz") == about.count("about"):
        words = (Written(("zqkeyqz",), _ABOUT), Written(("text",), _TEXT))
        yield Case("keys", before + strange + after, written=words)
        yield Case("keys", before + first + strange + after, written=(*words, Written(("about",), _ABOUT)))


def _block(format: Format) -> tuple[str, str, str] | None:
    """A call's text before the block of its second argument, that block, and what is behind it."""
    one = rendering(format, [call("take_note", {"text": _TEXT})])
    two = rendering(format, [call("take_note", {"text": _TEXT, "about": _ABOUT})])
    if one is None or two is None:
        return None
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    size = len(two) - len(one)
    return (one[:at], two[at : at + size], one[at:]) if two[at + size :] == one[at:] else None


def _in_envelope(format: Format) -> Iterator[Case]:
    names, args = next(filter(None, [BODIES[type(body)].keys(body) for body in format.bodies]), ((), ()))
    text = rendering(format, [call("get_weather", {"city": _TEXT})]) if names else None
    found = _envelope(text, names[0], args[0]) if text is not None else None
    if text is None or found is None:
        return
    start, end, rest = found
    for pairs, written in _envelopes(names[0], args[0], args[1:2], rest):
        yield Case("keys", text[:start] + _object(pairs) + text[end:], written=tuple(written))


def _envelope(text: str, name: str, args: str) -> tuple[int, int, Pairs] | None:
    """Where the object of the call stands, and what else than name and arguments it holds."""
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


def _envelopes(name: str, args: str, other: tuple[str, ...], rest: Pairs) -> Iterator[tuple[Pairs, list[Written]]]:
    named, city = (name, "get_weather"), Written(("city", args), _TEXT)
    held: tuple[str, Any] = (args, {"city": _TEXT})
    days, where = Written(("days", args), 3), Written(("zqwhereqz",), _OTHER)
    yield [named, held, ("days", 3), *rest], [city, days]
    yield [("days", 3), named, held, *rest], [city, days]
    yield [named, held, ("zqwhereqz", _OTHER), *rest], [city, where]
    yield [("zqwhereqz", _OTHER), named, held, *rest], [city, where]
    yield [named, ("city", _TEXT), ("days", 3), *rest], [Written(("city",), _TEXT), Written(("days",), 3)]
    yield [named, ("city", _TEXT), ("zqwhereqz", _OTHER), *rest], [Written(("city",), _TEXT), where]
    yield [named, held, (args, {"days": 3}), *rest], [city, days]
    yield [named, held, (args, {"city": _OTHER}), *rest], [city, Written(("city", args), _OTHER)]
    yield (
        [named, held, (name, "ping"), *rest],
        [city, Written(("name", name), "ping"), Written(("name", name), "get_weather")],
    )
    for key in other:
        yield [named, held, (key, {"days": 3}), *rest], [city, Written(("days", key), 3)]
        yield [named, (key, {"city": _OTHER}), held, *rest], [city, Written(("city", key), _OTHER)]


def _object(pairs: Pairs) -> str:
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return keys_law(format, case.text, case.written, tools=tools, how=how)
