"""A logged reply, and its findings: the repair rules of its calls, the codes that rejected calls, and faults of the
reply.

Each finding has a kind and a name; `meaning` describes it in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from rightcall.formats import FORMATS
from rightcall.formats.spec import Special
from rightcall.parsing.options import finish_of, was_cut
from rightcall.parsing.shown import shows
from rightcall.problems import CODES
from rightcall.providers.sniff import DIALECTS
from rightcall.repairs.rules import RULES
from rightcall.types import Call, Problem, Reply, Span, Text

Reread = Callable[[], Sequence[Span]]


class LoggedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of a log, and where it comes from.

    - `reply`: the parsed reply.
    - `model`, `server`, `format`: who wrote it, which server sent it, and the format of its calls; empty if unknown.
      The format of a reply without calls is known only if the user named it.
    - `path`, `line`: its place in the log.
    - `source`: the text as the model wrote it; None if the server had parsed it, or the log did not keep it.
    - `reread`: parses the source again and returns its spans; called only for replies that become samples.
    - `is_first`: whether it counts as a reply. A row of a capture with a further call of the same answer does not.
    """

    reply: Reply
    model: str = ""
    server: str = ""
    format: str = ""
    path: str = ""
    line: int = 0
    source: str | None = None
    reread: Reread | None = None
    is_first: bool = True

    def view(self) -> tuple[str, Sequence[Span]]:
        """Return the text from which samples are cut, and its spans: the source, parsed again if possible, or the parts
        as text if there is no source."""
        if self.source is None:
            return _text_of_parts(self.reply)
        return self.source, self.reread() if self.reread is not None else (Span(0, len(self.source), "text"),)

    def call_places(self, text: str) -> list[tuple[int, int] | None]:
        """Return the start and end of each call of the reply in `text`, the text of `view`; None for one that is not
        found."""
        places: list[tuple[int, int] | None] = []
        at = 0
        for call in self.reply.attempts:
            written = call.raw or call.name
            found = text.find(written, at) if written else -1
            places.append((found, found + len(written)) if found >= 0 else None)
            at = found + len(written) if found >= 0 else at
        return places


def _text_of_parts(reply: Reply) -> tuple[str, list[Span]]:
    """Return the parts of a reply as text, one after the other with a line break after each, and a span for each."""
    pieces: list[str] = []
    spans: list[Span] = []
    at = 0
    for part in reply.parts:
        kind = "call" if isinstance(part, Call) else "text" if isinstance(part, Text) else "reasoning"
        content = f"{part.name} {part.raw or part.json}" if isinstance(part, Call) else part.text
        pieces.append(content + "\n")
        spans.append(Span(at, at + len(content) + 1, kind))  # type: ignore[arg-type]
        at += len(content) + 1
    return "".join(pieces), spans


OTHER = "other"
_LEAKS = frozenset(("opener_without_call", "stray_marker", "call_in_text"))
_MAX_TOKENS = 4  # special tokens of one text that are examined
_PLACE = re.compile(r"\b(?:from (\d{1,9}) to (\d{1,9})|at (\d{1,9}))\b").search
_TOKEN = re.compile(r"'([^']{1,60})'").match
_MEANINGS = {
    "left_in_text": "The server returned the call as text instead of extracting it.",
    "special_token": "A special token of a chat template is in the text.",
    "length": "The answer reached its limit of tokens.",
    "content_filter": "A filter ended the answer.",
    "error": "An error ended the answer.",
    OTHER: "A code that this version does not know.",
} | {rule.name: rule.what for rule in reversed(RULES)}


class Finding(NamedTuple):
    """A finding. `kind` is `repaired` or `refused` (of a call), or `near`, `cut` or `leaked` (of a reply); `name`
    is the repair rule, the problem code or another word."""

    kind: str
    name: str


class ReplyFinding(NamedTuple):
    """A finding in one reply: the index of its `call`, a message (`says`), its `place` in the text if known, and the
    special `token` that was found."""

    finding: Finding
    call: int | None
    says: str
    place: tuple[int, int] | None = None
    token: str = ""


def meaning(name: str) -> str:
    """Return a description of findings of this name; "" for an unknown name."""
    return _MEANINGS[name] if name in _MEANINGS else CODES[name].cause if name in CODES else ""


def find_findings(logged: LoggedReply) -> list[ReplyFinding]:
    """Return the findings of a logged reply: of each call and, if this is the first row of its answer, of the reply as
    a whole."""
    reply = logged.reply
    found = [each for at, call in enumerate(reply.attempts) for each in _call_findings(at, call)]
    if logged.is_first:
        found += [*_near_calls(reply), *_cuts(reply), *_leaks(reply)]
    return found


def _call_findings(at: int, call: Call) -> Iterator[ReplyFinding]:
    """Yield the findings of the call at index `at`: one for each repair rule of a runnable call, or for each blocking
    code of a rejected one."""
    if call.ok:
        for name, repair in {known_name(each.rule): each for each in reversed(call.repairs)}.items():
            before, after = repair.before[:200] or "(nothing)", repair.after[:200] or "(nothing)"
            yield ReplyFinding(Finding("repaired", name), at, f"{before} -> {after}")
        return
    blocking = {known_name(each.code): each.message for each in reversed(call.problems) if each.blocking}
    for name, says in (blocking or {"incomplete": "the call is incomplete"}).items():
        yield ReplyFinding(Finding("refused", name), at, says)


def known_name(name: str) -> str:
    """Return the name if it is a rule or code of this version, else `other`: rows from outside may have any name."""
    return name if name in _MEANINGS or name in CODES else OTHER


def _near_calls(reply: Reply) -> Iterator[ReplyFinding]:
    """Yield one finding if the reply has text that looks like a call, for the first such problem."""
    first = _first_problem(reply, "looks_like_a_call")
    if first is not None:
        yield ReplyFinding(Finding("near", first.code), None, first.message, _parse_place(first.message))


def _parse_place(message: str) -> tuple[int, int] | None:
    """Return start and end of the position that a problem's message mentions ("from 3 to 9", "at 3"); None if it
    mentions none."""
    found = _PLACE(message)
    if found is None:
        return None
    return (int(found[3]), int(found[3])) if found[3] else (int(found[1]), int(found[2]))


def _first_problem(reply: Reply, code: str) -> Problem | None:
    return next((problem for problem in reply.problems if problem.code == code), None)


def _cuts(reply: Reply) -> Iterator[ReplyFinding]:
    """Yield the findings that say why a reply is incomplete: a truncated call, else each blocking problem of the whole
    reply, else a finish reason such as `length`."""
    cut = _first_problem(reply, "truncated")
    if cut is not None:
        yield ReplyFinding(Finding("cut", cut.code), cut.call, cut.message)
        return
    failed = {known_name(each.code): each for each in reversed(reply.problems) if each.blocking and each.call is None}
    for name, problem in failed.items():
        yield ReplyFinding(Finding("cut", name), None, problem.message)
    if not failed and reply.finish and was_cut(reply.finish):
        reason = finish_of(reply.finish)
        yield ReplyFinding(Finding("cut", reason), None, f"the answer ended with {reason!r}")


def _leaks(reply: Reply) -> Iterator[ReplyFinding]:
    """Yield the findings of what the server should have removed from the text: each kind of marker, a call, and a
    special token."""
    for name, problem in {each.code: each for each in reversed(reply.problems) if each.code in _LEAKS}.items():
        quoted = _TOKEN(problem.message)
        token = quoted[1] if quoted else ""
        yield ReplyFinding(Finding("leaked", name), None, problem.message, _parse_place(problem.message), token)
    if reply.api and reply.attempts and reply.format not in DIALECTS:
        says = f"the server's answer has a call in its text, in the format {reply.format}"
        yield ReplyFinding(Finding("leaked", "left_in_text"), 0, says)
    token = _leaked_token(reply.content)
    if token:
        yield ReplyFinding(Finding("leaked", "special_token"), None, f"{token!r} is in the text", token=token)


def _leaked_token(content: str) -> str:
    """Return the first special token in the text that is not quoted, as in code; "" if there is none among the first
    few."""
    for _, found in zip(range(_MAX_TOKENS), _token_pattern().finditer(content), strict=False):
        if not shows(content[: found.start()]):
            return found[0]
    return ""


@lru_cache(1)
def _token_pattern() -> re.Pattern[str]:
    """Return the pattern that finds the special tokens of all formats, without short or alphanumeric ones, which
    ordinary text may have. It is built once."""
    tokens = {token.strip() for format in FORMATS.values() for token in _special_tokens(format)}
    # A short or alphanumeric token may be a word or a mark of ordinary text.
    distinct = [token for token in tokens if len(token) > 3 and not token.isalnum()]
    return re.compile("|".join(map(re.escape, sorted(distinct, key=lambda token: (-len(token), token)))))


def _special_tokens(value: Any) -> Iterator[str]:
    """Yield the special tokens in a `Special`, a tuple or a struct such as a format, at any depth; nothing for another
    value."""
    if isinstance(value, Special):
        yield from value.tokens
    elif isinstance(value, tuple):
        for each in value:
            yield from _special_tokens(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _special_tokens(getattr(value, name))
