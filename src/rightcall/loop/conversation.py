"""A conversation: its messages, its ids, what it cost, and what the guard did. Goes to JSON, and goes on from it.

    conversation = Conversation(system="You are brief.")
    conversation.ask("What is in the file?")
    later = Conversation.from_json(conversation.to_json())

A turn whose calls have not been answered yet is `pending`. When a conversation is taken up again with one, those of its
calls that were to run are answered by saying that nobody knows what became of them: they are never run a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from rightcall.dispatching.trace import Intervention
from rightcall.errors import CallerError
from rightcall.ids import Ids
from rightcall.types import Json, Reply

Status = Literal["open", "done", "stopped", "cancelled"]
_LOST = "ERROR: it is not known what became of this call: the program ended while it ran. Look before you repeat it."
_VERSION = 1


class Spent(msgspec.Struct, frozen=True):
    """What a conversation cost: `turns` of the model, `calls` that ran, tokens of the `prompt` and of the `completion`
    as servers counted them, and `seconds` that models took."""

    turns: int = 0
    calls: int = 0
    prompt: int = 0
    completion: int = 0
    seconds: float = 0.0


class Conversation:
    """The messages of one conversation with a model, and what came of it.

    - `messages`: what it begins with, in the shape of OpenAI's Chat.
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
        """The user says this `text`; a conversation that was over goes on. Raises `CallerError` while calls are
        pending."""
        if self.pending is not None:
            raise CallerError("the calls of the last turn are not answered; give their results first")
        self.messages.append({"role": "user", "content": text})
        self.status, self.reason, self.answer = "open", "", ""

    def begin(self, message: Json, known: Mapping[str, str] | None = None) -> None:
        """A turn of the model, the assistant's `message`: kept apart until its calls are answered. `known` are the
        answers of calls that are not run, by their ids."""
        self.pending, self.known = message, dict(known or {})

    def settle(self, messages: Sequence[Json]) -> None:
        """The pending turn and the answers to its calls, all in `messages`, are part of the history now."""
        self.messages += messages
        self.pending, self.known = None, {}

    def end(self, status: Status, reason: str = "", answer: str = "") -> None:
        """It is over, with this `status`, for this `reason`; the `answer` is what the user is to read."""
        self.status, self.reason, self.answer = status, reason, answer

    def add(self, reply: Reply, *, calls: int = 0, seconds: float = 0.0) -> None:
        """What this `reply` cost: a turn, tokens where the provider counted them, `calls` that ran, and `seconds`."""
        counted = getattr(reply, "tokens", None)
        self.spent = Spent(
            self.spent.turns + 1,
            self.spent.calls + calls,
            self.spent.prompt + (getattr(counted, "prompt", None) or 0),
            self.spent.completion + (getattr(counted, "completion", None) or 0),
            self.spent.seconds + seconds,
        )

    def to_json(self) -> Json:
        """Plain JSON data, to be kept and taken up again."""
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
        """The conversation that `to_json` gave as `data`. Raises `CallerError` for what is none."""
        if not isinstance(data, dict) or data.get("version") != _VERSION or not isinstance(data.get("messages"), list):
            raise CallerError("this is no conversation of this version; pass what Conversation.to_json gave")
        try:
            made = cls(data["messages"])
            made.spent = msgspec.convert(data.get("spent", {}), Spent)
            made.interventions = msgspec.convert(data.get("interventions", []), list[Intervention])
            made.status = msgspec.convert(data.get("status", "open"), Status)
            known = msgspec.convert(data.get("known", {}), dict[str, str])
        except (msgspec.ValidationError, TypeError, AttributeError, ValueError) as error:
            raise CallerError(f"this is no conversation that can be taken up again: {error}") from None
        made.reason, made.answer = str(data.get("reason", "")), str(data.get("answer", ""))
        if isinstance(data.get("pending"), dict):
            made.settle(unanswered(data["pending"], known))
        return made


def unanswered(message: Json, known: Mapping[str, str]) -> list[Json]:
    """A turn whose calls were running when the program ended, and what the model is told of them."""
    ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    return [message, *[{"role": "tool", "tool_call_id": id, "content": known.get(id, _LOST)} for id in ids]]
