"""The auto law: what `auto` takes for calls in a text of a format's own wire, the named format takes too."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.parsing.rendering import same
from rightcall.parsing.shown import shows
from rightcall.testing.laws.case import Case, Violation, raised
from rightcall.testing.laws.marker_texts import markers_of
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import PROSE, damaged, renderings
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Reply


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
        if _is_of_other(format, found.format, text):
            return []
        for call in found.calls:
            if _is_shown(text, call, own_reply) or _is_refused(call, own_reply, apart=found.format != format.name):
                continue
            if _is_before_thought(format, found.format, text, call):
                continue
            # `any` takes what it has seen off the iterator.
            if not any(_alike(call, own, apart=found.format != format.name) for own in named):
                what = f"auto ({found.format}) finds {call.name} {call.arguments!r}, the format does not"
                return [Violation("auto", what, text)]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]
    return []


def _is_of_other(format: Format, read_as: str, text: str) -> bool:
    """Did damage give the text an opener of the format that `auto` reads it in, which the other has not? Then it is of
    that format's wire as well."""
    other = FORMATS.get(read_as)
    if other is None or other.name == format.name:
        return False
    opens = [opener for side in (other.call[0], (other.section or ("",))[0]) for opener in marker_alternatives(side)]
    own = markers_of(format)
    own_less = [str(each).strip() for each in opens if each.strip() and not any(each.strip() in mark for mark in own)]
    return any(opener in text for opener in own_less)


def _is_before_thought(format: Format, read_as: str, text: str, call: Call) -> bool:
    """Does what opens a thought stand right behind the call, in the format that `auto` reads, and is it words in the
    other? Words there refuse the call."""
    other, own = FORMATS.get(read_as), markers_of(format)
    opens = marker_alternatives(other.reasoning[0]) if other is not None and other.reasoning is not None else ()
    unknown = tuple([opener.strip() for opener in opens if not any(opener.strip() in mark for mark in own)])
    behind = text[text.rfind(call.raw) + len(call.raw) :].lstrip()
    return bool(unknown) and behind.startswith(unknown)


def _is_shown(text: str, call: Call, named: Reply) -> bool:
    """Does what the named format takes for text open code or a quotation before the call? Then the call is shown: a
    call that could not be read may leave one open."""
    at = text.rfind(call.raw)
    said = [
        text[span.start : min(span.end, at)] for span in named.spans or () if span.kind == "text" and span.start < at
    ]
    return any("`" in piece or shows(piece) for piece in said)


def _is_refused(call: Call, named: Reply, *, apart: bool) -> bool:
    """Does the named format find it, and refuse it for a marker before it, that opened a thought or named another tool?
    Or, where `auto` reads another format that begins alike, for one that may be its end or that only the other has?"""
    codes = {"call_in_open_reasoning", "names_disagree"} | ({"ambiguous_end", "unexpected_text"} if apart else set())
    refused = [own for own in named.refused if any(each.code in codes for each in own.problems)]
    return any(_alike(call, own, apart=True) for own in refused)


def _alike(a: Call, b: Call, *, apart: bool) -> bool:
    """Are they one call? Read by two formats, blanks at the edges of a value may be the value's in one and the tag's in
    the other: which of them writes its values on lines of their own is all that tells them apart."""
    one, other = (_trimmed(a.arguments), _trimmed(b.arguments)) if apart else (a.arguments, b.arguments)
    return a.name == b.name and same(one, other) is None


def _trimmed(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: value.strip() if isinstance(value, str) else value for key, value in arguments.items()}


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Renderings as they are, with prose, a lone marker or a thought before them, damaged, said twice.
    `auto` does not know what is read only when named."""
    if format.name in NAMED_ONLY:
        return
    dice = Random(f"{seed} {format.name} auto")
    markers = markers_of(format)
    for text in renderings(format, seed, count):
        yield Case("auto", _altered(dice, text, markers), seed=seed)


def _altered(dice: Random, text: str, markers: list[str]) -> str:
    said = dice.choice(PROSE)
    kind = dice.randrange(7)
    if kind == 1:
        return f"{said}{dice.choice((' ', chr(10)))}{text}"
    if kind == 2:
        return f"{text}\n{said}"
    if kind == 3:
        return damaged(dice, text, markers)
    if kind == 4:
        return f"{said} {dice.choice(markers)} {dice.choice(PROSE)}\n{text}"
    if kind == 5:
        return f"<think>{said}</think>\n{damaged(dice, text, markers)}"
    return text + dice.choice(("", "\n", " ")) + damaged(dice, text, markers) if kind == 6 else text


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return auto_law(format, case.text, tools=tools, how=how)
