"""What is tried when a server refuses a request: without the fields it names, with a history by narrower rules, with
its tools offered in another way. What works is remembered, and what does not leaves the server's first words standing.

    ways = SecondWays(board, request, reached, exchanged)
    question, choice = ways.after(error, question, choice, sent)        raises the refusal where nothing is left
    ways.worked()
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rightcall.backends.request_plan import ModeChoice
from rightcall.errors import BackendError, StatusError
from rightcall.providers.history_checks import HISTORY_PROFILES, HistoryProfile
from rightcall.providers.history_sanitizer import SaneHistory
from rightcall.serve.client_ask import UpstreamQuestion, taken_ids
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.exchanged import Exchanged
from rightcall.serve.refused_fields import refused_fields
from rightcall.serve.switchboard import Reached, Switchboard
from rightcall.serve.upstream_body import to_request
from rightcall.serve.upstream_link import UpstreamLink
from rightcall.types import Json

_STATUSES = (400, 422, 500)  # a template that cannot render a history is mostly a 500
_NO_MATTER = re.compile(r"context|too (?:long|large|many)|maximum|does not support tools|grammar", re.IGNORECASE)
_FIELDS = re.compile(r"extra|unexpected|unknown|unrecogni|permitted|(?:un|not )supported", re.IGNORECASE)
_THOUGHTS = re.compile(r"reasoning|thought|thinking", re.IGNORECASE)
_ONE_VOICE = re.compile(r"\bboth\b", re.IGNORECASE)
_STRICT = HISTORY_PROFILES["strict"]
# All that some kind of server insists on, but nothing by which something that was said would be lost.
_CAREFUL = msgspec.structs.replace(
    _STRICT, name="careful", parts=True, result_parts=True, reasoning="reasoning_content", fields=None
)


def upstream_question(request: ClientRequest, reached: Reached, history: SaneHistory) -> UpstreamQuestion:
    """What this server is asked, with this history."""
    messages = history.messages
    asked = to_request(
        request,
        reached.link.api,
        messages=messages,
        model=reached.model,
        mode=reached.how.mode,
        ids=taken_ids(messages),
    )
    return UpstreamQuestion(asked, messages if history.changes or request.previous else None, request.stream)


def narrower_rules(error: BackendError, messages: Sequence[Json]) -> HistoryProfile | None:
    """The rules by which a history goes again that was refused with this error; None where it is no matter of that."""
    if not isinstance(error, StatusError) or error.status not in _STATUSES or _NO_MATTER.search(error.body):
        return None
    if _THOUGHTS.search(error.body) and not _FIELDS.search(error.body):
        return HISTORY_PROFILES["gpt_oss" if _ONE_VOICE.search(error.body) else "deepseek"]
    has_parts = any(each.get("role") == "tool" and isinstance(each.get("content"), list) for each in messages)
    found = msgspec.structs.replace(_CAREFUL, result_parts=not has_parts)
    return msgspec.structs.replace(found, fields=_STRICT.fields, reasoning="") if _FIELDS.search(error.body) else found


def leaves_out(link: UpstreamLink, error: BackendError, sent: Json, exchanged: Exchanged) -> bool:
    """Was what was `sent` refused for fields that the server can do without? It is not sent them again."""
    found = refused_fields(error, sent)
    link.refused |= found
    exchanged.warnings += [f"the server refuses {name!r}, which was left out" for name in sorted(found)]
    return bool(found)


class SecondWays:
    """Of one request."""

    def __init__(self, board: Switchboard, request: ClientRequest, reached: Reached, exchanged: Exchanged) -> None:
        self._board, self._request, self._reached, self._exchanged = board, request, reached, exchanged
        self._has_narrowed = False
        self._rules: HistoryProfile | None = None  # that are being tried
        self._first: tuple[BackendError, UpstreamQuestion] | None = None  # before that

    def after(
        self, error: BackendError, question: UpstreamQuestion, choice: ModeChoice, sent: Json
    ) -> tuple[UpstreamQuestion, ModeChoice]:
        """What is asked next. Raises the refusal where nothing is left."""
        if leaves_out(self._reached.link, error, sent, self._exchanged):
            return question, choice
        if not self._has_narrowed and (narrowed := self._narrowed(error, question)) is not None:
            self._first = error, question
            return narrowed, choice
        if self._first is not None:  # narrower rules did not help
            error, question = self._first
            self._first = self._rules = None
        other = self._reached.other_way(question.asked, choice, error)
        if other is not None:
            return question, other
        try:
            raise error
        finally:
            del error  # it knows this frame: neither would go without the other

    def worked(self) -> None:
        """The server took what it was asked last."""
        self._first = None
        if self._rules is not None:
            self._reached.rules, self._rules = self._rules, None
            self._exchanged.warnings.append("the server refuses the history as it is; it was put right for it")

    def _narrowed(self, error: BackendError, question: UpstreamQuestion) -> UpstreamQuestion | None:
        if self._reached.link.api != "chat":
            return None
        rules = narrower_rules(error, question.asked.messages)
        if rules is None:
            return None
        history = self._board.history(self._request, self._reached, rules)
        found = upstream_question(self._request, self._reached, history)
        if found.asked.messages == question.asked.messages:
            return None
        self._rules, self._has_narrowed = rules, True
        return msgspec.structs.replace(found, again=question.again, stream=question.stream)
