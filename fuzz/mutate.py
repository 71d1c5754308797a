"""Texts that are almost well formed: a rendered reply with a few mutations."""

from __future__ import annotations

import functools
from random import Random

from rightcall.formats import FORMATS
from support.hostile import markers, places, stresses

_WORDS = (
    *" \n\t\r\0<>[]{}()\"'`|,:;=/\\#-.1_aé\ud800\U0001f600",
    "\r\n",
    "\n\n",
    "  ",
    "null",
    "True",
    "1e5",
    "007",
    '{"a": [1, "b"]}',
    "{'a': None}",
    "\\n",
    "\\u00e9",
    "\\ud83d",
    '"name"',
    '"arguments": {',
    "it's <b>bold</b>",
    "```json\n",
    "```",
)


@functools.cache
def all_markers() -> tuple[str, ...]:
    return tuple(sorted({marker for name in FORMATS for marker in markers(name)}))


def sample(format: str, rng: Random) -> str:
    """Return a reply as a model writes it, with one unusual piece in it."""
    places_found = places(format)
    before, after = places_found[rng.choice(list(places_found))]
    own = markers(format)
    text: str = before + rng.choice([*_WORDS, *own, "a\nb", ""]) + after
    return text


def mutated_sample(format: str, rng: Random) -> str:
    return mutated_text(sample(format, rng), format, rng)


def mutated_text(text: str, format: str, rng: Random) -> str:
    """Apply a few mutations to the text."""
    for _ in range(rng.randint(0, 6)):
        text = _mutate_once(text, format, rng)
    return text


def small_stress(format: str, rng: Random) -> str:
    """Return a hostile shape, small enough to be parsed one character at a time."""
    kinds = stresses(format)
    before, after = rng.choice(list(places(format).values()))
    return before + kinds[rng.choice(list(kinds))](rng.choice((1, 30, 150, 400))) + after


def noise(format: str, rng: Random) -> str:
    """Return markers, halves of markers and words in any order."""
    own = markers(format) or _WORDS
    out: list[str] = []
    for _ in range(rng.randint(1, 12)):
        piece = rng.choice(own if rng.random() < 0.6 else _WORDS if rng.random() < 0.8 else all_markers())
        out.append(piece if rng.random() < 0.8 else piece[: rng.randint(1, len(piece))])
    return "".join(out)


def _mutate_once(text: str, format: str, rng: Random) -> str:
    start = rng.randint(0, len(text))
    end = min(len(text), start + rng.choice((1, 1, 2, 5, 20, 80)))
    change = rng.randrange(8)
    if change == 0:
        return text[:start] + text[end:]
    if change == 1:
        return text[:end] + text[start:end] + text[end:]
    if change == 2:
        there = rng.randint(0, len(text))
        return text[:start] + text[there : there + 12] + text[start:]
    if change == 3:
        return text[:start]
    if change == 4:
        return text + rng.choice(("", "\n", " ", "x")) + sample(format, rng)
    return text[:start] + _insertion(format, rng) + text[start:]


def _insertion(format: str, rng: Random) -> str:
    own = markers(format) or _WORDS
    words: tuple[str, ...] = rng.choice((own, own, _WORDS, all_markers()))
    word = rng.choice(words)
    return word if rng.random() < 0.7 else word[: rng.randint(1, len(word))]
