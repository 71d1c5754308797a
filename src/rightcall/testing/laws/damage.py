"""Laws about calls that are incomplete, ambiguous or damaged.

- truncation: no prefix of a text completes a call, whatever the finish reason is;
- ends: a raw value that contains closing markers of the format is never parsed as a shorter one:

      <parameter=word>\\na </parameter>\\n</function>\\n</tool_call> b\\n</parameter>\\n</function>\\n</tool_call>

  The text is ambiguous, so such a call must not run with another value;
- swallowing: if markers of several calls are removed or damaged, no call absorbs another:

      <invoke name="f"><parameter name="k">owl</parameter>\\n<invoke name="f"><parameter
      name="k">bat</parameter></invoke>

  must not run `f` with `k = 'owl</parameter>\\n<invoke ...>bat'`. Nor may an abandoned call absorb its repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.parsing.rendering import same
from rightcall.testing.laws.marker_texts import closers_of, fill, literals, openers_of
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import Case, Violation, make_call, raised_violation, rendering, renderings
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Reply, Text

_PREFIXES = 24
_TRUNCATED_FINISHES = ("length", "content_filter", "error")
_FOUND_ELSEWHERE = {"rescued", "call_in_reasoning"}


def truncation_law(
    format: Format,
    text: str,
    *,
    tools: Toolset | None = None,
    seed: int = 0,
    how: How = USUAL,
    prefixes: int = _PREFIXES,
) -> list[Violation]:
    """Return a list with the first violation of this law, [] if there is none: no prefix of the text has a complete
    call that the whole text does not have at that position. If the finish reason says that the answer was truncated,
    only complete calls before the end are runnable: no rescued call, and none in reasoning. An exception is a
    violation.

    - `format`: the format of the text.
    - `text`: any text.
    - `tools`: the declared tools; None: names are not checked.
    - `how`: the other options of the parser.
    - `seed`: selects the prefixes.
    - `prefixes`: the number of prefixes.
    """
    try:
        whole = read(format, [text], tools=tools, how=how).reply
        for end in _prefix_lengths(text, seed, prefixes):
            reply = read(format, [text[:end]], tools=tools, how=how).reply
            what = _new_complete_call(reply, whole) or _finish_fault(format, text[:end], tools, how, end, reply)
            if what:
                return [Violation("truncation", what, text[:end])]
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, text)]
    return []


def _new_complete_call(cut: Reply, whole: Reply) -> str:
    """Return a description of a complete call in the reply `cut` to a prefix that the reply `whole` to the whole text
    does not have at its position; "" if there is none."""
    for i, attempt in enumerate(cut.attempts):
        if attempt.complete and not (i < len(whole.attempts) and _is_same_call(attempt, whole.attempts[i])):
            return f"call {i + 1} of the text cut off here is complete"
    return ""


def _finish_fault(format: Format, text: str, tools: Toolset | None, how: How, end: int, without: Reply) -> str:
    """Return a description of what a finish reason of truncation wrongly makes runnable in a prefix `text` of the
    length `end`; "" if nothing, or if `how` has a finish reason. `without` is the reply without one."""
    if how.finish is not None:
        return ""
    finish = _TRUNCATED_FINISHES[end % len(_TRUNCATED_FINISHES)]
    reply = read(format, [text], tools=tools, how=msgspec.structs.replace(how, finish=finish)).reply
    remaining = iter(without.calls)
    if not all(any(_is_same_call(call, other) for other in remaining) for call in reply.calls):
        return f"finish={finish!r} makes calls that are not there without it"
    if any(problem.code in _FOUND_ELSEWHERE for call in reply.calls for problem in call.problems):
        return f"a call found outside its place is runnable although finish={finish!r}"
    return ""


def _prefix_lengths(text: str, seed: int, prefixes: int) -> list[int]:
    """Return the lengths of `prefixes` random proper prefixes of a text, ascending, selected by `seed`; those of all
    proper prefixes if there are not more."""
    if len(text) <= prefixes:
        return list(range(len(text)))
    return sorted(Random(f"{seed} {len(text)} ends").sample(range(len(text)), prefixes))


def _is_same_call(cut: Call, whole: Call) -> bool:
    """Return whether the whole text's call is complete and has the same name and arguments."""
    return whole.complete and cut.name == whole.name and same(cut.arguments, whole.arguments) is None


def truncation_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield renderings; the law truncates them."""
    for text in renderings(format, seed, count):
        yield Case("truncation", text, seed=seed)


_PLACEHOLDER_WORD = "zqvalueqz"


def ends_law(
    format: Format, text: str, value: str, *, tools: Toolset | None = None, how: How = USUAL
) -> list[Violation]:
    """Return a list with one violation if a call of `take_note` is runnable whose argument `text` differs from `value`
    in more than white space at its edges; otherwise []. An exception is a violation.

    - `format`: a format with raw values.
    - `text`: the text to parse, which contains `value`.
    - `tools`: the declared tools; None: names are not checked.
    - `how`: the other options of the parser.
    """
    try:
        for got in read(format, [text], tools=tools, how=how).reply.calls:
            given = got.arguments.get("text")
            if got.name == "take_note" and not (isinstance(given, str) and given.strip() == value.strip()):
                return [Violation("ends", f"it runs with {given!r}, and the text has {value!r}", text)]
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, text)]
    return []


def ends_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield up to `count` cases for the ends law: texts of calls whose value contains some closing markers in their
    order, and text after them. Nothing for a format without raw values."""
    if not BODIES[type(format.bodies[0])].value_closing(format.bodies[0]):
        return
    dice = Random(f"{seed} {format.name} ends")
    closers = closers_of(format, "text", "take_note")
    for _ in range(count):
        value = _value_with_closers(dice, closers)
        text = _render_placeholder(format, dice)
        if text is not None:
            yield Case("ends", text.replace(_PLACEHOLDER_WORD, value), value=value, seed=seed)


def _value_with_closers(dice: Random, closers: list[list[str]]) -> str:
    """Return a value that contains one or several closing markers between other text. `closers` has the alternatives of
    each level, from the value's to the section's, and they are written in this order."""
    alternatives = [markers for markers in closers if markers]
    first = 0 if dice.random() < 0.7 else dice.randrange(len(alternatives))
    last = dice.randrange(first + 1, len(alternatives) + 1)
    pieces = [dice.choice(markers) for markers in alternatives[first:last]]
    if dice.random() < 0.3:
        pieces = [piece.strip() for piece in pieces]
    return dice.choice(("a ", "owl\n", "say ")) + "".join(pieces) + dice.choice((" b", "\nand more", " is the end"))


def _render_placeholder(format: Format, dice: Random) -> str | None:
    """Return the text of one or two calls, of which the first has the value `_PLACEHOLDER_WORD`; None if the format
    cannot express them."""
    note = make_call(
        "take_note", {"text": _PLACEHOLDER_WORD, "weight": 3} if dice.random() < 0.4 else {"text": _PLACEHOLDER_WORD}
    )
    other = [make_call("get_weather", {"city": "Bergen"})] if dice.random() < 0.3 else list[Call]()
    return rendering(format, [note, *other])


# No word is part of another, or of a tag.
_ANIMALS = "zebra quokka walrus badger jackal lynx ocelot gibbon puffin marmot".split()
_MAX_DISTANCE = 64  # characters between two removed markers
_SECOND_FAULT = 0.25  # probability of a second removed marker


def swallowing_law(
    format: Format, text: str, sent: Sequence[Part], *, tools: Toolset | None = None, how: How = USUAL
) -> list[Violation]:
    """Return a list with one violation if more calls are runnable than were rendered, or if an argument of one contains
    strings of several rendered calls, or an opening tag that no rendered string contains; otherwise []. An exception is
    a violation.

    - `format`: the format of the text.
    - `text`: the rendered text from which pieces of markers were removed.
    - `sent`: the rendered parts.
    - `tools`: the declared tools; None: names are not checked.
    - `how`: the other options of the parser.
    """
    calls = [part for part in sent if isinstance(part, Call)]
    try:
        ran = read(format, [text], tools=tools, how=how).reply.calls
        what = f"{len(ran)} calls run, {len(calls)} were sent" if len(ran) > len(calls) else ""
        what = what or next(filter(None, [_absorbed_text(format, call, calls) for call in ran]), "")
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, text)]
    return [Violation("swallowing", what, text)] if what else []


def _foreign_tags(format: Format, given: list[list[str]]) -> list[str]:
    """Return the opening tags of a format that occur in none of the strings of `given`, which has a list for each
    call."""
    strings_given = [string for strings in given for string in strings]
    return [tag for tag in _opening_tags(format) if not any(tag in string for string in strings_given)]


def _absorbed_text(format: Format, ran: Call, sent: list[Call]) -> str:
    """Return a description of text in an argument of the call `ran` that cannot be its own: strings of several of the
    calls `sent`, or an opening tag that none of them contains; "" if there is none."""
    given = [list(_iterate_strings(call.arguments)) for call in sent]
    tags = _foreign_tags(format, given)
    for value in _iterate_strings(ran.arguments):
        holders = [i for i, strings in enumerate(given) if any(string and string in value for string in strings)]
        if len(holders) > 1:
            return f"{ran.name} runs with {value!r}, which contains strings of calls {holders}"
        tag = next((tag for tag in tags if tag in value), "")
        if tag:
            return f"{ran.name} runs with {value!r}, which contains the tag {tag!r}"
    return ""


def _iterate_strings(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, at any depth, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _iterate_strings(item)


def _opening_tags(format: Format) -> list[str]:
    """Return the tags that open a call or an argument of a format, cut before their first placeholder, sorted; those of
    one or two characters are left out."""
    params = [text for body in format.bodies for text in marker_alternatives(BODIES[type(body)].param_opening(body))]
    found = {re.split(r"\{\w+\}", text)[0].strip() for text in params} | set(openers_of(format))
    return sorted(tag for tag in found if len(tag) > 2)


# -- examples ----------------------------------------------------------------------------------------------------------


def swallowing_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield `count` cases at most, for the swallowing law: texts of calls without one or two markers or characters of
    them, and texts of a truncated call followed by other calls."""
    dice = Random(f"{seed} {format.name} swallowing")
    yielded = 0
    for _ in range(4 * count):
        sent = tuple(_random_calls(dice))
        text = rendering(format, sent)
        places = list(marker_places(format, text)) if text is not None else []
        for start, end in dice.sample(places, min(4, len(places))):
            if yielded == count or text is None:
                return
            yielded += 1
            yield Case("swallowing", _remove_markers(text, (start, end), places, dice), sent=sent, seed=seed)
        if yielded < count and (abandoned := _abandoned_call(format, sent, dice)):
            yielded += 1
            yield Case("swallowing", abandoned, sent=sent, seed=seed)


def _remove_markers(text: str, place: tuple[int, int], places: list[tuple[int, int]], dice: Random) -> str:
    """Return the text without the marker at `place`, and with a probability of 1/4 without a second one of `places`
    that follows within 64 characters."""
    others = (
        [(start, end) for start, end in places if 0 <= start - place[1] < _MAX_DISTANCE]
        if dice.random() < _SECOND_FAULT
        else []
    )
    if others:
        start, end = dice.choice(others)
        text = text[:start] + text[end:]
    return text[: place[0]] + text[place[1] :]


def _abandoned_call(format: Format, sent: tuple[Part, ...], dice: Random) -> str:
    """Return the text of the first part, truncated at a random place, followed by the text of the other parts, as if
    the model began again; "" if there is only one part, or the format cannot express them."""
    first, text = rendering(format, sent[:1]), rendering(format, sent[1:])
    if not first or not text:
        return ""
    return first[: dice.randrange(1, len(first))] + dice.choice(("\n", "", "\n\n")) + text


def _random_calls(dice: Random) -> Iterator[Part]:
    """Yield one to three random calls, of which no two share a word, and sometimes a text after them."""
    words = dice.sample(_ANIMALS, 8)
    for _ in range(dice.choice((1, 2, 2, 3))):
        kind = dice.randrange(3)
        if kind == 0:
            yield make_call("get_weather", {"city": words.pop(), "days": dice.randrange(100, 999)})
        elif kind == 1:
            yield make_call("take_note", {"text": words.pop(), "about": words.pop()})
        else:
            yield make_call("get_weather", {"city": words.pop()})
    if dice.random() < 0.2:
        yield Text("That is all.")


def marker_places(format: Format, text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of every literal piece of the format's markers in a text, and of each single character of
    a longer piece. Pieces of only letters and digits are left out."""
    pieces = [piece for piece in literals(format) if not piece.isalnum()]
    whole = [fill(piece) for piece in pieces]
    if not whole:
        return
    for match in re.finditer("|".join(map(re.escape, sorted(whole, key=len, reverse=True))), text):
        yield match.span()
        if len(match.group()) > 1:
            for at in range(match.start(), match.end()):
                yield at, at + 1
