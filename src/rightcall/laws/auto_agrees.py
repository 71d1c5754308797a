"""The auto law: what `auto` takes for calls in a text of a format's own wire, the named format takes too."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from rightcall.declare.toolset import Toolset
from rightcall.formats import NAMED_ONLY
from rightcall.formats.spec import Format
from rightcall.laws.case import Case, Violation, raised
from rightcall.laws.marker_texts import markers_of
from rightcall.laws.reading import USUAL, How, read
from rightcall.laws.samples import PROSE, damaged, renderings
from rightcall.types import Call, Reply
from rightcall.wire.rendering import same


def auto_law(format: Format, text: str, *, tools: Toolset | None = None, how: How = USUAL) -> list[Violation]:
    """Every call that may run for `auto` may run for the named format, in the same order.

    - `format`: the one that the text is written in.
    - `text`: any text of its wire.
    - `tools`, `how`: as in `cut_law`.
    """
    try:
        found = read("auto", [text], tools=tools, how=how).reply
        own_reply = read(format, [text], tools=tools, how=how).reply
        named = iter(own_reply.calls)
        for call in found.calls:
            if _is_in_code(text, call, own_reply):
                continue
            # `any` takes what it has seen off the iterator.
            if not any(_alike(call, own, apart=found.format != format.name) for own in named):
                what = f"auto ({found.format}) finds {call.name} {call.arguments!r}, the format does not"
                return [Violation("auto", what, text)]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]
    return []


def _is_in_code(text: str, call: Call, named: Reply) -> bool:
    """Does a backtick open code before the call, in what the named format takes for text? Then the call is shown."""
    at = text.find(call.raw)
    said = [
        text[span.start : min(span.end, at)] for span in named.spans or () if span.kind == "text" and span.start < at
    ]
    return any("`" in piece for piece in said)


def _alike(a: Call, b: Call, *, apart: bool) -> bool:
    """Are they one call? Read by two formats, blanks at the edges of a value may be the value's in one and the tag's in
    the other: which of them writes its values on lines of their own is all that tells them apart."""
    one, other = (_trimmed(a.arguments), _trimmed(b.arguments)) if apart else (a.arguments, b.arguments)
    return a.name == b.name and same(one, other) is None


def _trimmed(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: value.strip() if isinstance(value, str) else value for key, value in arguments.items()}


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Renderings as they are, with prose around them, damaged. `auto` does not know what is read only when named."""
    if format.name in NAMED_ONLY:
        return
    dice = Random(f"{seed} {format.name} auto")
    for text in renderings(format, seed, count):
        kind = dice.randrange(4)
        if kind == 1:
            text = f"{dice.choice(PROSE)}{dice.choice((' ', chr(10)))}{text}"
        elif kind == 2:
            text = f"{text}\n{dice.choice(PROSE)}"
        elif kind == 3:
            text = damaged(dice, text, markers_of(format))
        yield Case("auto", text, seed=seed)


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return auto_law(format, case.text, tools=tools, how=how)
