"""The messages of a run, kept within the context window (`Conversation`, `fit`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from rightcall.dispatching.trace import Intervention
from rightcall.errors import CallerError
from rightcall.guard.turn import is_from_user
from rightcall.ids import Ids
from rightcall.providers.sdk_view import compact_json
from rightcall.types import Json, Reply

SHORT = 400
RECENT = 2
_SHORTENED = "\n[... {lost:,} characters of an old result are left out ...]\n"
_DROPPED = "(Earlier turns are left out: {turns} of them, with {calls} calls.)"

Count = Callable[[Sequence[Json]], int]
Summary = Callable[[Sequence[Json]], str]


def estimate_tokens(messages: Sequence[Json]) -> int:
    """Estimate the tokens of messages: one for four characters of their JSON."""
    return sum(len(compact_json(message)) for message in messages) // 4


def fit(
    messages: Sequence[Json], tokens: int, *, count: Count = estimate_tokens, summarise: Summary | None = None
) -> list[Json]:
    """Return the `messages` shortened to `tokens`, as far as possible; unchanged if they fit. First long tool results
    before the last two exchanges are shortened to head and tail, then the oldest exchanges are replaced by a message
    about them. The leading system messages with the first user message, the last two exchanges and the last user
    message are always kept, even if they are too long.

    - `count`: counts the tokens of messages.
    - `summarise`: returns a text about the messages that are left out; without it their number is stated.
    """
    if count(messages) <= tokens:
        return list(messages)
    window = _Window(messages)
    gone = window.fewest_to_drop(tokens, count)
    if not gone or summarise is None:
        return window.without(gone)
    summary = summarise(window.dropped(gone))
    if count(window.without(gone, summary)) > tokens:  # a long summary needs room too
        gone = window.fewest_to_drop(tokens, count, summary)
        summary = summarise(window.dropped(gone))
    return window.without(gone, summary)


class _Window:
    """Messages in exchanges that are kept or dropped as a whole.

    The leading messages, the last exchanges and the last user message stay; results in the others are shortened
    before any exchange is dropped."""

    def __init__(self, messages: Sequence[Json]) -> None:
        self._head, groups = _group_exchanges(messages)
        self._recent = groups[-RECENT:]
        self._old = groups[:-RECENT]
        self._short = [[_shorten_result(message) for message in group] for group in self._old]
        asked = [at for at, group in enumerate(groups) if is_from_user(group[0])]
        self._last_user_group = asked[-1] if asked else -1

    def fewest_to_drop(self, tokens: int, count: Count, summary: str = "") -> int:
        """Return how many of the oldest exchanges must be dropped so that the remaining messages, with `summary` in
        place of the dropped ones, have at most `tokens` as `count` counts them; all droppable ones if that is not
        enough."""
        return bisect_left(range(len(self._old)), True, key=lambda gone: count(self.without(gone, summary)) <= tokens)

    def dropped(self, gone: int) -> list[Json]:
        """Return the messages of the oldest `gone` exchanges, except the last user message."""
        return _flatten([group for at, group in enumerate(self._old[:gone]) if at != self._last_user_group])

    def without(self, gone: int, summary: str = "") -> list[Json]:
        """Return the messages without the oldest `gone` exchanges. A message with `summary`, or with their number if it
        is empty, replaces them; the last user message is kept, and old results are shortened."""
        asked = self._old[self._last_user_group] if 0 <= self._last_user_group < gone else []
        note = _drop_notice(self.dropped(gone), summary)
        return [*self._head, *note, *asked, *_flatten(self._short[gone:]), *_flatten(self._recent)]


def _group_exchanges(messages: Sequence[Json]) -> tuple[list[Json], list[list[Json]]]:
    """Return the leading messages (system messages and then one user message), and the others in groups that are kept
    or dropped whole: a message with the tool results after it."""
    head: list[Json] = []
    rest = list(messages)
    while rest and rest[0].get("role") in ("system", "developer"):
        head.append(rest.pop(0))
    if rest and rest[0].get("role") == "user":
        head.append(rest.pop(0))
    groups: list[list[Json]] = []
    for message in rest:
        if message.get("role") == "tool" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return head, groups


def _shorten_result(message: Json) -> Json:
    """Return a tool result longer than `SHORT` characters with only its head and tail and a note between them; any
    other message unchanged."""
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, str) or len(content) <= SHORT:
        return message
    half = SHORT // 2
    return {**message, "content": content[:half] + _SHORTENED.format(lost=len(content) - SHORT) + content[-half:]}


def _drop_notice(gone: list[Json], summary: str) -> list[Json]:
    """Return the user message that replaces the dropped messages `gone`, as a list: the summary or, if it is empty, the
    number of turns and calls. An empty list if nothing was dropped."""
    if not gone:
        return []
    calls = sum(len(message.get("tool_calls") or ()) for message in gone)
    turns = sum(message.get("role") == "assistant" for message in gone)
    return [{"role": "user", "content": summary or _DROPPED.format(turns=turns, calls=calls)}]


def _flatten(groups: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the items of all groups in one list."""
    return [each for group in groups for each in group]


Status = Literal["open", "done", "stopped", "cancelled"]
_LOST = "ERROR: the outcome of this call is unknown: the program ended while it ran. Check its effects first."
_VERSION = 1


class Spent(msgspec.Struct, frozen=True):
    """The cost of a conversation: `turns` of the model, `calls` that ran, tokens of the `prompt` and of the
    `completion` as servers counted them, and the `seconds` that models took."""

    turns: int = 0
    calls: int = 0
    prompt: int = 0
    completion: int = 0
    seconds: float = 0.0


class Conversation:
    """The messages of one conversation with a model, its cost and its outcome.

    - `messages`: the initial messages, in the shape of OpenAI's Chat.
    - `system`: a system message to put before them.
    """

    def __init__(self, messages: Iterable[Json] = (), *, system: str = "") -> None:
        self.messages: list[Json] = [{"role": "system", "content": system}] if system else []
        self.messages += [dict(message) for message in messages]
        self.ids = Ids()
        self.spent = Spent()
        self.interventions: list[Intervention] = []
        self.status: Status = "open"
        self.reason = ""
        self.answer = ""
        self.pending: Json | None = None
        self.known: dict[str, str] = {}
        for message in self.messages:
            for call in message.get("tool_calls") or ():
                self.ids.take(str(call.get("id") or ""))

    def ask(self, text: str) -> None:
        """Append a user message with this `text`; a conversation that was over is open again.

        Raises `CallerError` while calls are pending."""
        if self.pending is not None:
            raise CallerError("the calls of the last turn have no results yet; add their results first")
        self.messages.append({"role": "user", "content": text})
        self.status, self.reason, self.answer = "open", "", ""

    def begin(self, message: Json, known: Mapping[str, str] | None = None) -> None:
        """Store the model's turn, the assistant's `message`, as pending until its calls are answered.

        `known` are the answers of calls that are not run, by call id.
        """
        self.pending, self.known = message, dict(known or {})

    def settle(self, messages: Sequence[Json]) -> None:
        """Append `messages`, the pending turn with the answers to its calls, to the history; nothing is pending any
        more."""
        self.messages += messages
        self.pending, self.known = None, {}

    def end(self, status: Status, reason: str = "", answer: str = "") -> None:
        """End the conversation with this `status` and `reason`; the `answer` is the text for the user."""
        self.status, self.reason, self.answer = status, reason, answer

    def add(self, reply: Reply, *, calls: int = 0, seconds: float = 0.0) -> None:
        """Add the cost of this `reply` to `spent`: one turn, the tokens where the provider counted them, the `calls`
        to run, and the `seconds` it took. The history is unchanged."""
        counted = getattr(reply, "tokens", None)
        self.spent = Spent(
            self.spent.turns + 1,
            self.spent.calls + calls,
            self.spent.prompt + (getattr(counted, "prompt", None) or 0),
            self.spent.completion + (getattr(counted, "completion", None) or 0),
            self.spent.seconds + seconds,
        )

    def to_json(self) -> Json:
        """Return plain JSON data, to be stored and continued."""
        return {
            "version": _VERSION,
            "messages": self.messages,
            "pending": self.pending,
            "known": self.known,
            "status": self.status,
            "reason": self.reason,
            "answer": self.answer,
            "spent": msgspec.to_builtins(self.spent),
            "interventions": msgspec.to_builtins(self.interventions),
        }

    @classmethod
    def from_json(cls, data: Any) -> Conversation:
        """Return the conversation that `to_json` wrote as `data`; the calls of a pending turn are answered as
        interrupted. Raises `CallerError` for anything else."""
        if not isinstance(data, dict) or data.get("version") != _VERSION or not isinstance(data.get("messages"), list):
            raise CallerError("not a conversation of this version; pass what Conversation.to_json returned")
        try:
            made = cls(data["messages"])
            made.spent = msgspec.convert(data.get("spent", {}), Spent)
            made.interventions = msgspec.convert(data.get("interventions", []), list[Intervention])
            made.status = msgspec.convert(data.get("status", "open"), Status)
            known = msgspec.convert(data.get("known", {}), dict[str, str])
        except (msgspec.ValidationError, TypeError, AttributeError, ValueError) as error:
            raise CallerError(f"not a conversation that can be continued: {error}") from None
        made.reason, made.answer = str(data.get("reason", "")), str(data.get("answer", ""))
        if isinstance(data.get("pending"), dict):
            made.settle(close_interrupted_turn(data["pending"], known))
        return made


def close_interrupted_turn(message: Json, known: Mapping[str, str]) -> list[Json]:
    """Return the assistant `message` and a result for each of its calls: the one in `known` by call id, or a note
    that the program ended before it."""
    ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    return [message, *[{"role": "tool", "tool_call_id": id, "content": known.get(id, _LOST)} for id in ids]]
