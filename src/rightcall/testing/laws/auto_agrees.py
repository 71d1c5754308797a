"""The auto law: a call that `auto` finds in a text of a format, the named format finds too."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.parsing.rendering import same
from rightcall.parsing.shown import shows
from rightcall.testing.laws.marker_texts import markers_of
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import PROSE, Case, Violation, damage, raised_violation, renderings
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Reply


def auto_law(format: Format, text: str, *, tools: Toolset | None = None, how: How = USUAL) -> list[Violation]:
    """Return a list with one violation for the first runnable call that `auto` finds and the named format does not find
    in the same order; otherwise []. An exception is a violation. Calls that the named format may reject, or that may be
    quoted, are no violation.

    - `format`: the format of the text.
    - `text`: any text in this format.
    - `tools`: the declared tools; None: names are not checked.
    - `how`: the other options of the parser.
    """
    try:
        found = read("auto", [text], tools=tools, how=how).reply
        own_reply = read(format, [text], tools=tools, how=how).reply
        named = iter(own_reply.calls)
        if _belongs_to_other(format, found.format, text):
            return []
        for call in found.calls:
            if _may_be_quoted(text, call, own_reply) or _is_rejected(
                call, own_reply, apart=found.format != format.name
            ):
                continue
            if _is_before_reasoning(format, found.format, text, call):
                continue
            # `any` consumes the iterator up to the call, so that the order counts.
            if not any(_are_equal_calls(call, own, apart=found.format != format.name) for own in named):
                what = f"auto ({found.format}) finds {call.name} {call.arguments!r}, the format does not"
                return [Violation("auto", what, text)]
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, text)]
    return []


def _belongs_to_other(format: Format, detected: str, text: str) -> bool:
    """Return whether the text contains an opener of the format named `detected` that is no marker of `format`: then
    damage has made it a text of that format as well. False if both are the same format."""
    other = FORMATS.get(detected)
    if other is None or other.name == format.name:
        return False
    opens = [opener for side in (other.call[0], (other.section or ("",))[0]) for opener in marker_alternatives(side)]
    own = markers_of(format)
    own_less = [str(each).strip() for each in opens if each.strip() and not any(each.strip() in mark for mark in own)]
    return any(opener in text for opener in own_less)


def _is_before_reasoning(format: Format, detected: str, text: str, call: Call) -> bool:
    """Return whether, after the call in the text, an opener of reasoning follows that only the format named `detected`
    has. `format` reads it as text, and rejects a call before text."""
    other, own = FORMATS.get(detected), markers_of(format)
    opens = marker_alternatives(other.reasoning[0]) if other is not None and other.reasoning is not None else ()
    unknown = tuple([opener.strip() for opener in opens if not any(opener.strip() in mark for mark in own)])
    behind = text[text.rfind(call.raw) + len(call.raw) :].lstrip()
    return bool(unknown) and behind.startswith(unknown)


def _may_be_quoted(text: str, call: Call, named: Reply) -> bool:
    """Return whether the text before the call, as the reply `named` of the named format has it, contains a backtick or
    leaves code or a quotation open. Closed code counts too: a call that could not be parsed may be inside it."""
    at = text.rfind(call.raw)
    before = [
        text[span.start : min(span.end, at)] for span in named.spans or () if span.kind == "text" and span.start < at
    ]
    return any("`" in piece or shows(piece) for piece in before)


def _is_rejected(call: Call, named: Reply, *, apart: bool) -> bool:
    """Return whether the reply `named` of the named format has the same call, rejected for a marker before it that
    opens reasoning or names another tool; with `apart`, also for an ambiguous end or unexpected text. `apart` is True
    if `auto` detected another format."""
    codes = {"call_in_open_reasoning", "names_disagree"} | ({"ambiguous_end", "unexpected_text"} if apart else set())
    rejected = [own for own in named.refused if any(each.code in codes for each in own.problems)]
    return any(_are_equal_calls(call, own, apart=True) for own in rejected)


def _are_equal_calls(a: Call, b: Call, *, apart: bool) -> bool:
    """Return whether two calls have the same name and arguments. If they were parsed in two formats (`apart`), white
    space at the edges of values is ignored: it may belong to the value in one format, and to the tag in the other."""
    one, other = (_strip_values(a.arguments), _strip_values(b.arguments)) if apart else (a.arguments, b.arguments)
    return a.name == b.name and same(one, other) is None


def _strip_values(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the arguments in which the strings at the top have no white space at their edges."""
    return {key: value.strip() if isinstance(value, str) else value for key, value in arguments.items()}


def auto_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield `count` cases at most, for the auto law: renderings in this format that are unchanged, with prose, a single
    marker or reasoning around them, damaged, or repeated. Nothing for a format that `auto` does not detect."""
    if format.name in NAMED_ONLY:
        return
    dice = Random(f"{seed} {format.name} auto")
    markers = markers_of(format)
    for text in renderings(format, seed, count):
        yield Case("auto", _vary(dice, text, markers), seed=seed)


def _vary(dice: Random, text: str, markers: list[str]) -> str:
    """Return a rendering as one of seven random variants: unchanged, with prose before or after it, damaged, with a
    marker or reasoning before it, or repeated damaged."""
    prose = dice.choice(PROSE)
    kind = dice.randrange(7)
    if kind == 1:
        return f"{prose}{dice.choice((' ', chr(10)))}{text}"
    if kind == 2:
        return f"{text}\n{prose}"
    if kind == 3:
        return damage(dice, text, markers)
    if kind == 4:
        return f"{prose} {dice.choice(markers)} {dice.choice(PROSE)}\n{text}"
    if kind == 5:
        return f"<think>{prose}</think>\n{damage(dice, text, markers)}"
    return text + dice.choice(("", "\n", " ")) + damage(dice, text, markers) if kind == 6 else text
