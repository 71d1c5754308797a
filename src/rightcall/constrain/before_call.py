"""Text that a call may follow: it opens nothing that would show the call.

Its paragraphs hold no code fence and no `<`; whatever else they open ends with them. The last one is of lines that
begin with a letter, `(`, `;` or `,`, without quotation marks, backticks and square brackets. Behind a role, or what may
begin a date, its line has no colon: `User: ...` is a line of a transcript.
"""

from __future__ import annotations

from functools import cache

from rightcall.constrain.algebra import DIGIT, Chars, chars, inverse, minus
from rightcall.constrain.regex import regex_text

FENCES = ("```", "~~~")
RESULTS = ("[TOOL_RESULTS]", "[tool_results]")
# What may open something in a text that is counted: narrower than the rest, because pieces have no lines.
OPENING = (
    *"\"'`>|\t:\uff1a\u00ab\u00bb\u2018\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a\u300c\u300e",
    *(
        "<pre",
        "<code",
        "<textarea",
        "<!--",
        "<![CDATA[",
        "<think",
        "<tool_re",
        "<tool_ou",
        "<function_re",
        "<function_ou",
    ),
    *(
        "<response",
        "    ",
        "diff --git ",
        "@@ ",
        "+++ ",
        *[f"{digit}{mark}" for digit in "0123456789" for mark in "-/."],
    ),
)
_ROLES = "user|human|customer|assistant|ai|bot|chatbot|model|agent|system|developer|tool|function".split("|")
_DATES = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun".split("|")
_DIFF = "diff"
_QUOTES = "\u00ab\u00bb\u2018\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a\u300c\u300d\u300e\u300f"
_ASCII = chars((0x41, 0x5A), (0x61, 0x7A))
LETTER = minus(inverse(chars((0, 0x7F))), chars(_QUOTES + "\u2019\u00a0\u0085\u2028\u2029\uff1a"))  # beyond ASCII
_OTHER = chars(" !#$%&()*+,-./:;=?^_\u2019")
_NO_COLON, _NO_DATE = minus(_OTHER, chars(":")), minus(_OTHER, chars(":-./"))
_BREAK, _APOSTROPHE = chars("\n"), chars("'")
Row = list[tuple[Chars, str]]


@cache
def states() -> dict[str, Row]:
    """Return a state machine that accepts the last paragraph of text before a call, which must be plain prose; it
    rejects some harmless text. For each state there are pairs of the accepted characters and the next state. It starts
    in "line" and may end in any state."""
    rows: dict[str, Row] = {}
    for name, other in (("free", _OTHER), ("plain", _NO_COLON), ("note", _NO_DATE)):
        behind = f"{name}-a"  # the last was a letter or a digit
        rows[name] = [(_ASCII, behind), (LETTER, behind), (DIGIT, behind), (other, name), (_BREAK, "line")]
        rows[behind] = [*rows[name], (_APOSTROPHE, name)]
    rows["blank"] = []  # one that belongs to the opener
    rows["line"] = [
        (_BREAK, "line"),
        (chars(" "), "blank"),
        (chars("("), "note"),
        (chars(";,"), "free"),
        *_transitions_after_prefix(rows, ""),
    ]
    return rows


def _transitions_after_word(rows: dict[str, Row], word: str) -> Row:
    """Return the transitions of the state in which `word` is read at the beginning of a line, and add to `rows` the
    states that they lead to. A month or a weekday, a role such as `user`, and `diff` limit which characters follow."""
    lines = {**dict.fromkeys(_DATES, "plain-a"), _DIFF: "note-a"}
    if word in lines:
        return rows[lines[word]]
    rest, other = ("plain", _NO_COLON) if word in _ROLES else ("free", _OTHER)
    ends = [(DIGIT, f"{rest}-a"), (other, rest), (_APOSTROPHE, rest), (_BREAK, "line")]
    return [*ends, *_transitions_after_prefix(rows, word)]


def _transitions_after_prefix(rows: dict[str, Row], prefix: str) -> Row:
    """Return the transitions on letters in the first word of a line of which `prefix` is read, and add to `rows` the
    states that they lead to: letters that continue a role, a month, a weekday or `diff` are tracked, others are not."""
    words = [word for word in (*_ROLES, *_DATES, _DIFF) if word.startswith(prefix) and word != prefix]
    heads = sorted({word[len(prefix)] for word in words})
    for head in heads:
        rows[f"w{prefix}{head}"] = _transitions_after_word(rows, prefix + head)
    row = [(chars(head + head.upper()), f"w{prefix}{head}") for head in heads]
    known = chars("".join([head + head.upper() for head in heads]))
    return [*row, (minus(_ASCII, known) if heads else _ASCII, "free-a"), (LETTER, "free-a")]


@cache
def regex() -> str:
    """Return a regular expression for text that ends with lines of plain prose, so that a call behind it is no
    quotation. It rejects some harmless text, such as list items and lines that begin with a digit. It accepts code
    fences in earlier paragraphs and lines of a transcript or a log: exclude these with `FENCES` and
    `transcript_regex`."""
    word = regex_text(Chars((*_ASCII.spans, *LETTER.spans)))
    rest = f"(?:(?:{word}|[0-9])'?|{regex_text(_OTHER)})*"
    line = f"(?:(?:{word}'?|[(;,]){rest})?"
    return f"(?:[^<]*\\n\\n)?{line}(?:\\n{line})* ?"


@cache
def transcript_regex() -> str:
    """Return a regular expression for text whose last paragraph has a line as in a transcript, a log or a diff: it
    begins with a role, a month or a weekday and has a colon, or begins with `(` or "diff" and has a colon, period,
    slash or hyphen. Harmless lines match too: the words are beginnings, in any case, as "may" is in "Maybe: yes"."""
    behind = "[ !#$%&()*+,.\\x2f;=?^_\u2019'0-9-][^\\n:]*"
    bad = (
        f"(?i:{'|'.join(_ROLES)})(?:{behind})?:|(?i:{'|'.join(_DATES)})[^\\n:]*:|(?:\\(|(?i:{_DIFF}))[^\\n]*[:.\\x2f-]"
    )
    return f"(?:(?s:.*)\\n)?(?:{bad})[^\\n]*(?:\\n[^\\n]+)*\\n?"
