"""Rows of captures as conversations: the turns of one run of a scenario, in order, with their verdict.

conversation = CapturedConversation(rows)
conversation.turns[-1].messages, conversation.turns[-1].assistant, conversation.turns[-1].good
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

from rightcall.capture.captured_rows import OUTCOME, blocking_of, call_of, conversation_before, tools_of
from rightcall.capture.settings import SYSTEM
from rightcall.contracts.listing import TITLE
from rightcall.datasets.schemas import label_of
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.sdk_view import compact_json
from rightcall.tools.provider_forms import to_provider
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json


def conversation_key(row: Json) -> str:
    """What the rows of one conversation have in common."""
    return f"{row['example_group_id']}\0{row['proxy_trace']['model']}"


def verdict(row: Json) -> bool | None:
    """True for a row that is right, False for one that is wrong, None where nobody has said."""
    label = label_of(row)
    if label is not None:
        return label == "valid"
    return False if blocking_of(row) else None


class CapturedTurn:
    """One turn of a model: what it was told before, what it said, and the rows of its calls."""

    def __init__(self, rows: list[Json], messages: list[Json]) -> None:
        self.rows, self.messages = rows, messages

    @property
    def outcome(self) -> bool:
        return bool(self.rows[0]["kind"] == OUTCOME)

    @cached_property
    def calls(self) -> list[Call]:
        return [] if self.outcome else [call_of(row) for row in self.rows]

    @cached_property
    def lacks(self) -> str:
        """Why this is an example of nothing, in words; "" if it is one: there is a request and an answer."""
        said = [_text(message.get("content")) for message in self.messages if message.get("role") == "user"]
        if not any(each.strip() for each in said):
            return "nobody asked anything: there is no user turn"
        return "" if self.calls or _text(self.assistant["content"]).strip() else "the answer is empty"

    @cached_property
    def good(self) -> bool | None:
        """False if any of its rows is wrong, True if all are right, None where nobody has said."""
        found = {verdict(row) for row in self.rows}
        return False if False in found or not self._said else None if None in found else True

    @property
    def _said(self) -> bool:
        """Is there anything that could be trained on? A run that ended in an error says nothing."""
        return not self.outcome or self.rows[0]["outcome"]["ended"] == "answer"

    @cached_property
    def assistant(self) -> Json:
        """The turn in OpenAI chat form, with the calls as they were settled."""
        said = self.rows[0].get("assistant") or {}
        thought = said.get("reasoning_content") or said.get("reasoning")
        message = CHAT.assistant_message(
            _text(said.get("content")),
            self.calls,
            reasoning=thought if isinstance(thought, str) else None,
            reasoning_key="reasoning_content",
        )
        return message if message["content"] or not self.calls else {**message, "content": None}


class CapturedConversation:
    """The rows of one run, in order. There is at least one. With `keep_system` the prompt with which a capture tests a
    model stays in its messages; otherwise it is left out, for nobody wants to train on it."""

    def __init__(self, rows: list[Json], *, keep_system: bool = False) -> None:
        self.rows = sorted(rows, key=_order)
        self._kept = keep_system

    @cached_property
    def tools(self) -> Toolset:
        return tools_of(self.rows[0])

    @cached_property
    def definitions(self) -> list[Json]:
        """The tools, OpenAI style."""
        return _definitions(self.tools)

    @cached_property
    def turns(self) -> list[CapturedTurn]:
        made: list[CapturedTurn] = []
        for _, rows in groupby(self.rows, key=lambda row: _order(row)[:3]):
            found = list(rows)
            messages = conversation_before(found[0]) if "messages" in found[0] else _history(found[0], made)
            made.append(CapturedTurn(found, messages if self._kept else list(_without_harness(messages))))
        return made


def _without_harness(messages: list[Json]) -> Iterator[Json]:
    """What a capture tells a model begins its system message, and the contract of a backend that asks for text ends it;
    examples say in their own way what can be called."""
    for message in messages:
        said = message.get("content")
        if message.get("role") != "system" or not isinstance(said, str):
            yield message
            continue
        before, contract, _ = said.partition(TITLE)
        rest = (before if before.endswith("\n\n") or (contract and not before) else said).removeprefix(SYSTEM).strip()
        if rest == said.strip():
            yield message
        elif rest:
            yield {**message, "content": rest}


@lru_cache(64)
def _definitions(tools: Toolset) -> list[Json]:
    """Under their own names, as the calls have them, also where OpenAI's API would not take such a name."""
    told = zip(tools, to_provider(tools, "chat"), strict=True)
    return [{**entry, "function": {**entry["function"], "name": tool.name}} for tool, entry in told]


def _order(row: Json) -> tuple[int, bool, int, int]:
    trace = row["proxy_trace"]
    attempt = row.get("attempt")
    return trace["turn"], row["kind"] == OUTCOME, attempt if isinstance(attempt, int) else 1, trace["call_index"]


def _history(row: Json, before: list[CapturedTurn]) -> list[Json]:
    """The conversation before a row that does not tell it: the request, the calls and what they gave."""
    messages: list[Json] = [{"role": "user", "content": row["user_request"]}]
    for turn in before:
        messages.append(turn.assistant)
        messages += [_result(each, call) for each, call in zip(turn.rows, turn.calls, strict=True)]
    return messages


def _result(row: Json, call: Call) -> Json:
    content: Any = (row.get("tool_result") or {}).get("content")
    said = content if isinstance(content, str) else compact_json(content)
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": said}


def _text(content: Any) -> str:
    """Text, or the texts of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join([part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)])
