"""The swallowing law: take markers, or characters of them, out of k rendered calls, and no call takes in another.

    <invoke name="f"><parameter name="k">owl</parameter>\\n<invoke name="f"><parameter name="k">bat</parameter></invoke>

must not run `f` with `k = 'owl</parameter>\\n<invoke ...>bat'`. Nor may a call that was given up, wherever that was,
take in the one that was sent in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.testing.laws.case import Case, Violation, raised
from rightcall.testing.laws.marker_texts import fill, literals, openers_of
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import call, rendering
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Text

# No word is a piece of another, or of a tag.
_WORDS = "zebra quokka walrus badger jackal lynx ocelot gibbon puffin marmot".split()
_NEAR = 64  # characters: two faults in one value, and what follows it
_TWICE = 0.25  # how often there are two


def swallowing_law(
    format: Format, text: str, sent: Sequence[Part], *, tools: Toolset | None = None, how: How = USUAL
) -> list[Violation]:
    """Of a text whose calls lost a piece of a marker: no more calls run than were sent, none with the words of another
    call, or a tag that opens something, in an argument that did not have it.

    - `format`: the one that the text is written in.
    - `text`: what was rendered, without that piece.
    - `sent`: the parts that it was made of.
    - `tools`, `how`: as in `cut_law`.
    """
    calls = [part for part in sent if isinstance(part, Call)]
    try:
        ran = read(format, [text], tools=tools, how=how).reply.calls
        what = f"{len(ran)} calls run, {len(calls)} were sent" if len(ran) > len(calls) else ""
        what = what or next(filter(None, [_swallowed(format, call, calls) for call in ran]), "")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]
    return [Violation("swallowing", what, text)] if what else []


def _foreign_tags(format: Format, given: list[list[str]]) -> list[str]:
    """The opening tags that stand in nothing that was given."""
    known = [string for strings in given for string in strings]
    return [tag for tag in _opening_tags(format) if not any(tag in string for string in known)]


def _swallowed(format: Format, ran: Call, sent: list[Call]) -> str:
    """What an argument of this call holds that it was not given, if it is more than one call's."""
    given = [list(_strings(call.arguments)) for call in sent]
    tags = _foreign_tags(format, given)
    for value in _strings(ran.arguments):
        holders = [i for i, strings in enumerate(given) if any(string and string in value for string in strings)]
        if len(holders) > 1:
            return f"{ran.name} runs with {value!r}, which holds words of calls {holders}"
        tag = next((tag for tag in tags if tag in value), "")
        if tag:
            return f"{ran.name} runs with {value!r}, which holds the tag {tag!r}"
    return ""


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _opening_tags(format: Format) -> list[str]:
    """Tags that open a call or an argument, up to their first hole."""
    params = [text for body in format.bodies for text in marker_alternatives(BODIES[type(body)].param_opening(body))]
    found = {re.split(r"\{\w+\}", text)[0].strip() for text in params} | set(openers_of(format))
    return sorted(tag for tag in found if len(tag) > 2)


# -- examples ----------------------------------------------------------------------------------------------------------


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    dice = Random(f"{seed} {format.name} swallowing")
    made = 0
    for _ in range(4 * count):
        sent = tuple(_sent(dice))
        text = rendering(format, sent)
        places = list(marked(format, text)) if text is not None else []
        for start, end in dice.sample(places, min(4, len(places))):
            if made == count or text is None:
                return
            made += 1
            yield Case("swallowing", _less(text, (start, end), places, dice), sent=sent, seed=seed)
        if made < count and (given_up := _given_up(format, sent, dice)):
            made += 1
            yield Case("swallowing", given_up, sent=sent, seed=seed)


def _less(text: str, place: tuple[int, int], places: list[tuple[int, int]], dice: Random) -> str:
    """The text without that place, and in one case of four without a second one near it."""
    others = [(start, end) for start, end in places if 0 <= start - place[1] < _NEAR] if dice.random() < _TWICE else []
    if others:
        start, end = dice.choice(others)
        text = text[:start] + text[end:]
    return text[: place[0]] + text[place[1] :]


def _given_up(format: Format, sent: tuple[Part, ...], dice: Random) -> str:
    """The first call up to some place, and then all of them: the model began again."""
    first, text = rendering(format, sent[:1]), rendering(format, sent[1:])
    if not first or not text:
        return ""
    return first[: dice.randrange(1, len(first))] + dice.choice(("\n", "", "\n\n")) + text


def _sent(dice: Random) -> Iterator[Part]:
    """One to three calls with words that no other call has."""
    words = dice.sample(_WORDS, 8)
    for _ in range(dice.choice((1, 2, 2, 3))):
        kind = dice.randrange(3)
        if kind == 0:
            yield call("get_weather", {"city": words.pop(), "days": dice.randrange(100, 999)})
        elif kind == 1:
            yield call("take_note", {"text": words.pop(), "about": words.pop()})
        else:
            yield call("get_weather", {"city": words.pop()})
    if dice.random() < 0.2:
        yield Text("That is all.")


def marked(format: Format, text: str) -> Iterator[tuple[int, int]]:
    """Every marker in a text, and every character of each."""
    pieces = [piece for piece in literals(format) if not piece.isalnum()]
    whole = [fill(piece) for piece in pieces]
    if not whole:
        return
    for match in re.finditer("|".join(map(re.escape, sorted(whole, key=len, reverse=True))), text):
        yield match.span()
        if len(match.group()) > 1:
            for at in range(match.start(), match.end()):
                yield at, at + 1


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return swallowing_law(format, case.text, case.sent, tools=tools, how=how)
