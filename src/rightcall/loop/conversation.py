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
    """Estimate the tokens of messages: one for four characters."""
    return sum(len(compact_json(message)) for message in messages) // 4


def fit(
    messages: Sequence[Json], tokens: int, *, count: Count = estimate_tokens, summarise: Summary | None = None
) -> list[Json]:
    """Return the `messages` shortened to `tokens`, as far as possible: what must stay stays even if it is too long.

    - `count`: counts the tokens of messages.
    - `summarise`: returns a text about the messages that are left out; without it their number is stated.
    """
    if count(messages) <= tokens:
        return list(messages)
    window = _Window(messages)
    gone = window.fewest_to_drop(tokens, count)
    if not gone or summarise is None:
        return window.without(gone)
    said = summarise(window.dropped(gone))
    if count(window.without(gone, said)) > tokens:  # a long summary, which needs room of its own
        gone = window.fewest_to_drop(tokens, count, said)
        said = summarise(window.dropped(gone))
    return window.without(gone, said)


class _Window:
    """Messages in exchanges that are kept or dropped as a whole.

    The leading messages, the last exchanges and the last user message stay; results in the others are shortened
    before any exchange is dropped."""

    def __init__(self, messages: Sequence[Json]) -> None:
        self._head, groups = _grouped(messages)
        self._recent = groups[-RECENT:]
        self._old = groups[:-RECENT]
        self._short = [[_shortened(message) for message in group] for group in self._old]
        asked = [at for at, group in enumerate(groups) if is_from_user(group[0])]
        self._stays = asked[-1] if asked else -1

    def fewest_to_drop(self, tokens: int, count: Count, said: str = "") -> int:
        """Return how many of the oldest exchanges must be dropped to fit."""
        return bisect_left(range(len(self._old)), True, key=lambda gone: count(self.without(gone, said)) <= tokens)

    def dropped(self, gone: int) -> list[Json]:
        """Return the messages of the dropped exchanges."""
        return _flat([group for at, group in enumerate(self._old[:gone]) if at != self._stays])

    def without(self, gone: int, said: str = "") -> list[Json]:
        """Return the messages without the oldest `gone` exchanges; `said` replaces them."""
        asked = self._old[self._stays] if 0 <= self._stays < gone else []
        note = _note(self.dropped(gone), said)
        return [*self._head, *note, *asked, *_flat(self._short[gone:]), *_flat(self._recent)]


def _grouped(messages: Sequence[Json]) -> tuple[list[Json], list[list[Json]]]:
    """Return the leading messages (system messages, the first user), then exchanges: a turn with its results, or one
    message."""
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


def _shortened(message: Json) -> Json:
    """Return a long result with only its head and tail; other messages unchanged."""
    said = message.get("content")
    if message.get("role") != "tool" or not isinstance(said, str) or len(said) <= SHORT:
        return message
    half = SHORT // 2
    return {**message, "content": said[:half] + _SHORTENED.format(lost=len(said) - SHORT) + said[-half:]}


def _note(gone: list[Json], said: str) -> list[Json]:
    """Return the message that replaces dropped exchanges; none if nothing was dropped."""
    if not gone:
        return []
    calls = sum(len(message.get("tool_calls") or ()) for message in gone)
    turns = sum(message.get("role") == "assistant" for message in gone)
    return [{"role": "user", "content": said or _DROPPED.format(turns=turns, calls=calls)}]


def _flat(groups: Sequence[Sequence[Any]]) -> list[Any]:
    return [each for group in groups for each in group]


Status = Literal["open", "done", "stopped", "cancelled"]
_LOST = "ERROR: it is not known what became of this call: the program ended while it ran. Look before you repeat it."
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
            raise CallerError("the calls of the last turn are not answered; give their results first")
        self.messages.append({"role": "user", "content": text})
        self.status, self.reason, self.answer = "open", "", ""

    def begin(self, message: Json, known: Mapping[str, str] | None = None) -> None:
        """Keep a turn of the model, the assistant's `message`, until its calls are answered.

        `known` are the answers of calls that are not run, by their ids."""
        self.pending, self.known = message, dict(known or {})

    def settle(self, messages: Sequence[Json]) -> None:
        """Append the pending turn and the answers to its calls, all in `messages`, to the history."""
        self.messages += messages
        self.pending, self.known = None, {}

    def end(self, status: Status, reason: str = "", answer: str = "") -> None:
        """End the conversation with this `status` and `reason`; the `answer` is the text for the user."""
        self.status, self.reason, self.answer = status, reason, answer

    def add(self, reply: Reply, *, calls: int = 0, seconds: float = 0.0) -> None:
        """Add the cost of this `reply`: a turn, tokens where the provider counted them, `calls` that ran, and
        `seconds`."""
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
        """Return the conversation that `to_json` wrote as `data`. Raises `CallerError` for anything else."""
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
            made.settle(interrupted_turn(data["pending"], known))
        return made


def interrupted_turn(message: Json, known: Mapping[str, str]) -> list[Json]:
    """Return a turn whose calls were running when the program ended, with answers that say so."""
    ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    return [message, *[{"role": "tool", "tool_call_id": id, "content": known.get(id, _LOST)} for id in ids]]
