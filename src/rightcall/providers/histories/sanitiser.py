"""A history made fit for a server: what it would refuse is put right, nothing that was said is lost.

    fit = sane(history, profile="mistral")
    fit.messages   # to send; the history itself is as it was
    fit.changes    # what was done and why, empty where nothing was
    fit.ids        # each id that was changed, and what it was

One bad call must not end a session: arguments that are no object go out as `{}` and its result says what was sent,
calls without a result get one, results without a call become text. Doing it twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from rightcall.providers.histories.history_calls import written_calls
from rightcall.providers.histories.history_profiles import HistoryProfile, history_profile
from rightcall.providers.histories.history_work import HistoryChange, HistoryItem, HistoryWork, KeptFields
from rightcall.providers.histories.message_content import fit_content, fit_fields, fit_reasoning
from rightcall.providers.histories.pairing import paired
from rightcall.providers.histories.role_order import ordered
from rightcall.providers.sdk_view import obj
from rightcall.types import Json, Reply


class SaneHistory(msgspec.Struct, frozen=True):
    """A history that a server takes.

    - `messages`: what to send.
    - `changes`: what was done, in order; empty where the history was taken as it is.
    - `ids`: each call id that is new, and the one it stands for ("" for none).
    """

    messages: list[Json]
    changes: tuple[HistoryChange, ...] = ()
    ids: dict[str, str] = {}


Step = Callable[[HistoryWork, list[HistoryItem]], list[HistoryItem]]


def _known(work: HistoryWork, items: list[HistoryItem]) -> list[HistoryItem]:
    """Roles by one name each, and only messages that are one."""
    out: list[HistoryItem] = []
    for item in items:
        found = obj(item.message)
        if found is None:
            work.tell("no_message", item, "left out: it is no object")
            continue
        item.message = found
        role = found.get("role")
        meant = _ROLES.get(role, role) if isinstance(role, str) else None
        if meant == "developer" and not work.profile.developer:
            meant = "system"
        if meant not in ("system", "developer", "user", "assistant", "tool"):
            meant = "user"
        if meant != role:
            work.tell("role", item, f"the role {role!r:.40} became {meant!r}")
            item.put(role=meant)
        out.append(item)
    return out


_ROLES = {"function": "tool", "model": "assistant", "ai": "assistant", "human": "user"}
_STEPS: tuple[Step, ...] = (_known, written_calls, paired, fit_reasoning, fit_fields, fit_content, ordered)


def sane(
    history: Sequence[Any],
    *,
    profile: str | HistoryProfile = "openai",
    kept: Mapping[str, KeptFields] | None = None,
) -> SaneHistory:
    """The `history` as a server takes it; what was given is not touched. A history that is taken already comes back
    equal, without changes.

    - `history`: messages in the shape of OpenAI's Chat; anything else in it is put right or left out, and told.
    - `profile`: the server's, by name ("openai", "vllm", "llama_cpp", "ollama", "mistral", "gemma", "llama3",
      "deepseek", "kimi", "gpt_oss", "strict") or one of your own.
    - `kept`: what providers want back, by call id, as `kept_of` gives it; it is put where a client dropped it.

    Raises `CallerError` for a profile that there is none of.
    """
    work = HistoryWork(history_profile(profile), kept or {})
    items = [HistoryItem(at, message) for at, message in enumerate(history)]
    for step in _STEPS:
        items = step(work, items)
    return SaneHistory([item.message for item in items], tuple(work.changes), work.ids)


def kept_of(reply: Reply) -> dict[str, KeptFields]:
    """What must go back with the calls of this `reply`, by call id: reasoning, signatures. KeptFields by whoever stands
    between a client and a server, for clients that drop it."""
    message = dict(reply.extras.get("", {}))
    if reply.reasoning:
        message.setdefault("reasoning_content", reply.reasoning)
    return {call.id: KeptFields(message, reply.extras.get(call.id, {})) for call in reply.attempts if call.id}
