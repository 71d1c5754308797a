"""`Turn`: the calls, results and texts of a conversation, derived from its messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from rightcall.dispatching.budgets import fingerprint
from rightcall.providers.history_messages import chat_messages
from rightcall.providers.sdk_view import compact_json, text
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Call, Json, Reply

CallState = Literal["ok", "failed", "refused", "open"]
_POLICY_MARK = "[guard: "
_POLICY_MESSAGE = re.compile(r"(?:ERROR: )?\[guard: ([a-z_]{1,40})\] ")
_EACH_POLICY_MESSAGE = re.compile(r"^\[guard: ([a-z_]{1,40})\] ", re.MULTILINE)
_NOT_RUN = ("ERROR: the call was not run", "the call was not run")
_NO_POLICIES: frozenset[str] = frozenset()
_REMINDERS = re.compile(  # that Claude Code adds next to results
    r"(?:\s*+<system-reminder>[^<]*+(?:<(?!/system-reminder>)[^<]*+)*+</system-reminder>)++"
).fullmatch
_FAILED = ("ERROR", "Error", "error:", '{"error"', "Traceback (most")


class PastCall:
    """A call of an earlier turn.

    Made from its `name`, its `id` and the arguments as they were `given`. `result` is text, None where there is
    none; `outcome` is "ok", "failed", "refused" (it was not run) or "open"; `told` is the policy that answered
    instead of the tool, `noted` are those that added a note to the result."""

    __slots__ = ("_fingerprint", "_given", "id", "name", "noted", "outcome", "result", "told")

    def __init__(self, name: str, id: str, given: Any) -> None:
        self.name, self.id, self._given = name, id, given
        self.result: str | None = None
        self.outcome: CallState = "open"
        self.told = ""
        self.noted: tuple[str, ...] = ()
        self._fingerprint = ""

    @property
    def arguments(self) -> Json:
        """Return the arguments as an object; `{}` if they are invalid JSON or no object."""
        value = decode(self._given, MAX_DEPTH) if isinstance(self._given, str) else self._given
        return value if isinstance(value, dict) else {}

    @property
    def fingerprint(self) -> str:
        """Return a hash of name and arguments, the same for each call with equal name and arguments."""
        if not self._fingerprint:
            self._fingerprint = fingerprint(Call(self.name, self.arguments, " "))
        return self._fingerprint

    def _set_answer(self, result: str, is_error: bool | None) -> None:
        """Set `result` and `outcome` from the text of the tool's answer. The outcome is "refused" if a policy answered
        or the call was not run; else "failed" or "ok" by `is_error`, or by the beginning of the text if that is None.
        Notes of policies are removed from the end of the result, and an "ERROR: " from the start of one that is not ok.
        `told` becomes the name of the policy that answered in place of the tool, `noted` the names of those that added
        the notes."""
        if _POLICY_MARK in result:
            result = self._remove_notes(result)
        if self.told or result.startswith(_NOT_RUN):
            self.outcome = "refused"
        elif is_error or (is_error is None and result.startswith(_FAILED)):
            self.outcome = "failed"
        else:
            self.outcome = "ok"
        # Where an API has no flag for errors, the text begins with "ERROR: ".
        self.result = result if self.outcome == "ok" else result.removeprefix("ERROR: ")

    def _remove_notes(self, result: str) -> str:
        """Return the result without the notes of policies at its end. `noted` gets the names of the policies that wrote
        notes, `told` that of the policy that wrote the whole result, else ""."""
        found = _POLICY_MESSAGE.match(result)
        while not found and (note := _POLICY_MESSAGE.match(result, (end := result.rfind("\n")) + 1)):
            self.noted, result = (*self.noted, note[1]), result[:end]
        self.told = found[1] if found else ""
        return result


class PastTurn(msgspec.Struct, frozen=True):
    """An earlier turn of the model: its `text`, its `calls`, and the policies that intervened (`told`)."""

    text: str
    calls: tuple[PastCall, ...]
    told: frozenset[str]


class Turn:
    """One turn of a task, derived from the messages alone.

    - `tools`: what may be called; None if unknown.
    - `past`: the turns of the model since the last user message.
    - `reply`: the current reply; None before the model is asked.
    - `choice`: "auto", "required", "none" or the name of the one tool to call.
    - `parallel`: the model may make several calls at once.
    - `messages`: the history that the turn was made from, in the shape of OpenAI's Chat.
    """

    def __init__(
        self,
        past: tuple[PastTurn, ...],
        tools: Toolset | None,
        *,
        reply: Reply | None = None,
        choice: str = "auto",
        parallel: bool = True,
        messages: Sequence[Json] = (),
    ) -> None:
        self.past, self.tools, self.reply = past, tools, reply
        self.choice, self.parallel, self.messages = choice, parallel, messages

    @classmethod
    def of(
        cls,
        history: Sequence[Any],
        tools: Tools | None = None,
        *,
        reply: Reply | None = None,
        choice: str = "auto",
        parallel: bool = True,
        api: str = "auto",
    ) -> Turn:
        """Return the turn that follows these messages. Its `past` begins at the last message of the user, so earlier
        tasks are not in it.

        - `history`: the messages of any API, without the turn of `reply`.
        - `tools`: what may be called, as `parse` takes it.
        - `reply`: the current reply; None before the model is asked.
        - `choice`: "auto", "required", "none" or the name of the one tool to call; it is not checked.
        - `parallel`: the model may make several calls at once.
        - `api`: the API of the messages, as in `rightcall.messages.chat_messages`.

        Raises `CallerError` for an unknown `api`, and `BadTools` for unusable tools."""
        given = chat_messages(history, api=api)
        start = next((at for at in range(len(given) - 1, -1, -1) if is_from_user(given[at])), 0)
        past = tuple(_past_turns(given[start:]))
        return cls(past, Toolset.of(tools), reply=reply, choice=choice, parallel=parallel, messages=given)

    @cached_property
    def calls(self) -> tuple[PastCall, ...]:
        """Return the calls of all turns since the last message of the user, in order, without those of `reply`."""
        return tuple([call for turn in self.past for call in turn.calls])

    @cached_property
    def done(self) -> frozenset[str]:
        """Return the names of the tools that were called with success since the last message of the user."""
        return frozenset([call.name for call in self.calls if call.outcome == "ok"])

    def answered(self, reply: Reply) -> Turn:
        """Return a new turn with this `reply` and everything else of this one."""
        return Turn(
            self.past, self.tools, reply=reply, choice=self.choice, parallel=self.parallel, messages=self.messages
        )

    def told(self, policy: str) -> int:
        """Return in how many turns in a row, up to the last one before `reply`, this `policy` has intervened; 0 if not
        in the last one."""
        return _count_leading_true(policy in turn.told for turn in reversed(self.past))

    def ever_told(self, policy: str) -> int:
        """Return in how many turns since the last user message this `policy` has intervened."""
        return sum(policy in turn.told for turn in self.past)

    def streak(self, outcome: CallState) -> int:
        """Return how many turns in a row, up to the last one before `reply`, made calls that all had this `outcome`. A
        turn without calls ends the row."""
        return _count_leading_true(
            bool(turn.calls) and all(call.outcome == outcome for call in turn.calls) for turn in reversed(self.past)
        )


def _count_leading_true(holds: Iterable[bool]) -> int:
    """Return how many values are true before the first false one."""
    count = 0
    for each in holds:
        if not each:
            break
        count += 1
    return count


def is_from_user(message: Mapping[str, Any]) -> bool:
    """Return whether a message of Chat is from the user: its role is "user", and its text neither begins as a nudge of
    a policy nor consists of reminders only, which a client adds."""
    if message.get("role") != "user":
        return False
    said = content_text(message.get("content")).strip()
    return not _POLICY_MESSAGE.match(said) and not _REMINDERS(said)


def content_text(content: Any) -> str:
    """Return the content of a message as text: its text parts joined by line breaks; "" for None, JSON for anything
    else."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join([text(part.get("text")) if isinstance(part, dict) else text(part) for part in content])
    return "" if content is None else compact_json(content)


def _past_turns(messages: Sequence[Mapping[str, Any]]) -> list[PastTurn]:
    """Return the model's turns in these messages of Chat, each with its text, its calls and their results, and the
    names of the policies that intervened. A nudge that follows no turn counts as an empty turn. Results without a
    matching call are ignored."""
    made: list[tuple[str, list[PastCall], set[str]]] = []
    waiting: dict[str, PastCall] = {}
    answered = True  # a nudge that follows no turn was for an empty one, which not every API can represent
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            calls = [_to_past_call(each) for each in message.get("tool_calls") or ()]
            waiting.update({call.id: call for call in calls})
            made.append((content_text(message.get("content")), calls, set()))
            answered = False
        elif role == "tool":
            answered = True
            call = waiting.pop(text(message.get("tool_call_id")), None)
            if call is not None:
                call._set_answer(content_text(message.get("content")), message.get("is_error"))
                if made and (call.told or call.noted):
                    made[-1][2].update({call.told, *call.noted} - {""})
        elif role == "user" and _POLICY_MESSAGE.match(said := content_text(message.get("content"))):
            if answered:
                made.append(("", [], set()))
            made[-1][2].update(_EACH_POLICY_MESSAGE.findall(said))
            answered = True
    return [PastTurn(said, tuple(calls), frozenset(told) if told else _NO_POLICIES) for said, calls, told in made]


def _to_past_call(given: Any) -> PastCall:
    """Return the call in an entry of `tool_calls`, also in one without `function`. Name and id are "" where they are
    missing; the arguments are not decoded."""
    call = given if isinstance(given, dict) else {}
    function = call.get("function")
    function = function if isinstance(function, dict) else call
    return PastCall(text(function.get("name")), text(call.get("id")), function.get("arguments"))
