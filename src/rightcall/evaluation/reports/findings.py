"""What there is to say of one reply: which rules repaired its calls, which codes refused them, and what went wrong with
the reply itself. Each is named by a kind and a name; `meaning` says in words what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from rightcall.evaluation.reports.logged_reply import LoggedReply
from rightcall.formats import FORMATS
from rightcall.formats.spec import Special
from rightcall.parsing.options import finish_of, was_cut
from rightcall.parsing.shown import shows
from rightcall.problems import CODES
from rightcall.providers.sniff import DIALECTS
from rightcall.repairs.rules import RULES
from rightcall.types import Call, Problem, Reply

OTHER = "other"
_LEAKS = frozenset(("opener_without_call", "stray_marker", "call_in_text"))
_LOOKS = 4  # special tokens of one text that are looked at
_PLACE = re.compile(r"\b(?:from (\d{1,9}) to (\d{1,9})|at (\d{1,9}))\b").search
_TOKEN = re.compile(r"'([^']{1,60})'").match
_MEANINGS = {
    "left_in_text": "The server gave the call as text instead of taking it out.",
    "special_token": "A special token of a chat template stands in the text.",
    "length": "The answer came to its limit of tokens.",
    "content_filter": "A filter ended the answer.",
    "error": "An error ended the answer.",
    OTHER: "A code that this version does not know.",
} | {rule.name: rule.what for rule in reversed(RULES)}


class Finding(NamedTuple):
    """`kind` is one of `repaired` and `refused`, of calls, and `near`, `cut` and `leaked`, of replies; `name` is the
    rule, the code or the word for it."""

    kind: str
    name: str


class Noted(NamedTuple):
    """A finding in one reply: of which attempt it is, what is said of it, and where it stands if that is known."""

    finding: Finding
    call: int | None
    says: str
    place: tuple[int, int] | None = None
    token: str = ""


def meaning(name: str) -> str:
    """What a finding of that name is, in a sentence or two."""
    return _MEANINGS[name] if name in _MEANINGS else CODES[name].cause if name in CODES else ""


def findings(logged: LoggedReply) -> list[Noted]:
    """All that there is to say of a reply; each finding once for each call, or once for the reply."""
    reply = logged.reply
    found = [noted for at, call in enumerate(reply.attempts) for noted in _of_call(at, call)]
    if logged.is_first:
        found += [*_near(reply), *_cut(reply), *_leaked(reply)]
    return found


def _of_call(at: int, call: Call) -> Iterator[Noted]:
    if call.ok:
        for name, repair in {known(each.rule): each for each in reversed(call.repairs)}.items():
            before, after = repair.before[:200] or "(nothing)", repair.after[:200] or "(nothing)"
            yield Noted(Finding("repaired", name), at, f"{before} -> {after}")
        return
    blocking = {known(each.code): each.message for each in reversed(call.problems) if each.blocking}
    for name, says in (blocking or {"incomplete": "the call never became complete"}).items():
        yield Noted(Finding("refused", name), at, says)


def known(name: str) -> str:
    """The name of a rule or code of ours; lines of others may say anything."""
    return name if name in _MEANINGS or name in CODES else OTHER


def _near(reply: Reply) -> Iterator[Noted]:
    first = _first(reply, "looks_like_a_call")
    if first is not None:
        yield Noted(Finding("near", first.code), None, first.message, _place(first.message))


def _place(message: str) -> tuple[int, int] | None:
    """Where the thing stands that a message speaks of, if it says so."""
    found = _PLACE(message)
    if found is None:
        return None
    return (int(found[3]), int(found[3])) if found[3] else (int(found[1]), int(found[2]))


def _first(reply: Reply, code: str) -> Problem | None:
    return next((problem for problem in reply.problems if problem.code == code), None)


def _cut(reply: Reply) -> Iterator[Noted]:
    """Cut off, by what the calls show or by what the server says; or there is no answer, and an error in its place."""
    cut = _first(reply, "truncated")
    if cut is not None:
        yield Noted(Finding("cut", cut.code), cut.call, cut.message)
        return
    failed = {known(each.code): each for each in reversed(reply.problems) if each.blocking and each.call is None}
    for name, problem in failed.items():
        yield Noted(Finding("cut", name), None, problem.message)
    if not failed and reply.finish and was_cut(reply.finish):
        word = finish_of(reply.finish)
        yield Noted(Finding("cut", word), None, f"the answer ended with {word!r}")


def _leaked(reply: Reply) -> Iterator[Noted]:
    for name, problem in {each.code: each for each in reversed(reply.problems) if each.code in _LEAKS}.items():
        quoted = _TOKEN(problem.message)
        token = quoted[1] if quoted else ""
        yield Noted(Finding("leaked", name), None, problem.message, _place(problem.message), token)
    if reply.api and reply.attempts and reply.format not in DIALECTS:
        says = f"the server's answer has a call in its text, as {reply.format} writes it"
        yield Noted(Finding("leaked", "left_in_text"), 0, says)
    token = _token(reply.content)
    if token:
        yield Noted(Finding("leaked", "special_token"), None, f"{token!r} stands in the text", token=token)


def _token(content: str) -> str:
    """A special token that stands in the text and is not only shown there, as in code."""
    for _, found in zip(range(_LOOKS), _tokens().finditer(content), strict=False):
        if not shows(content[: found.start()]):
            return found[0]
    return ""


@lru_cache(1)
def _tokens() -> re.Pattern[str]:
    tokens = {token.strip() for format in FORMATS.values() for token in _specials(format)}
    # What could be a word or a mark of prose is not told from one.
    telling = [token for token in tokens if len(token) > 3 and not token.isalnum()]
    return re.compile("|".join(map(re.escape, sorted(telling, key=lambda token: (-len(token), token)))))


def _specials(value: Any) -> Iterator[str]:
    """The special tokens anywhere in the data of a format."""
    if isinstance(value, Special):
        yield from value.tokens
    elif isinstance(value, tuple):
        for each in value:
            yield from _specials(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _specials(getattr(value, name))
