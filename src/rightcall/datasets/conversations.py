"""Rows of captures as conversations: the turns of one run of a scenario, in order, each with its verdict.

conversation = CapturedConversation(rows)
conversation.turns[-1].messages, conversation.turns[-1].assistant, conversation.turns[-1].good
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

from rightcall.backends.history_bodies import join_text_parts
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
    """Return the key that the rows of one conversation share: its group and its model."""
    return f"{row['example_group_id']}\0{row['proxy_trace']['model']}"


def judge_row(row: Json) -> bool | None:
    """Return True for a row labelled valid; False for any other label, or a blocking problem in a row without a
    label; None if neither decides."""
    label = label_of(row)
    if label is not None:
        return label == "valid"
    return False if blocking_of(row) else None


class CapturedTurn:
    """One turn of a model: the messages before it, the rows of its calls, and the answer."""

    def __init__(self, rows: list[Json], messages: list[Json]) -> None:
        self.rows, self.messages = rows, messages

    @property
    def is_outcome(self) -> bool:
        """Whether it is the end of a conversation instead of calls."""
        return bool(self.rows[0]["kind"] == OUTCOME)

    @property
    def has_answer(self) -> bool:
        """Whether it has calls or ended with an answer, not with an error or out of turns."""
        return not self.is_outcome or self.rows[0]["outcome"]["ended"] == "answer"

    @cached_property
    def calls(self) -> list[Call]:
        """The calls, as they were repaired."""
        return [] if self.is_outcome else [call_of(row) for row in self.rows]

    @cached_property
    def unusable(self) -> str:
        """The reason why this turn cannot be an example: the conversation has no request, or the answer is empty; ""
        if it can."""
        requests = [message.get("content") for message in self.messages if message.get("role") == "user"]
        if not any(join_text_parts(content).strip() for content in requests):
            return "there is no request: no user turn"
        return "" if self.calls or join_text_parts(self.assistant["content"]).strip() else "the answer is empty"

    @cached_property
    def good(self) -> bool | None:
        """False if any row of the turn is wrong or there is no answer, True if all rows are labelled valid, None if
        it is unknown."""
        found = {judge_row(row) for row in self.rows}
        return False if False in found or not self.has_answer else None if None in found else True

    @cached_property
    def assistant(self) -> Json:
        """The turn in OpenAI chat form, with the calls as they were repaired."""
        captured = self.rows[0].get("assistant") or {}
        reasoning = captured.get("reasoning_content") or captured.get("reasoning")
        message = CHAT.assistant_message(
            join_text_parts(captured.get("content")),
            self.calls,
            reasoning=reasoning if isinstance(reasoning, str) else None,
            reasoning_key="reasoning_content",
        )
        return message if message["content"] or not self.calls else {**message, "content": None}


class CapturedConversation:
    """The rows of one run, in order; there is at least one. The prompt with which a capture tests a model is left out
    of its messages, because no model should be trained on it, unless `keep_system` is set."""

    def __init__(self, rows: list[Json], *, keep_system: bool = False) -> None:
        self.rows = sorted(rows, key=_row_order)
        self._keep_system = keep_system

    @cached_property
    def tools(self) -> Toolset:
        """The tools that could be called."""
        return tools_of(self.rows[0])

    @cached_property
    def definitions(self) -> list[Json]:
        """The definitions of the tools in the form of OpenAI."""
        return _convert_definitions(self.tools)

    @cached_property
    def turns(self) -> list[CapturedTurn]:
        """The turns, in order, each with the rows of one turn and attempt, and the messages before it."""
        turns: list[CapturedTurn] = []
        for _, group in groupby(self.rows, key=lambda row: _row_order(row)[:3]):
            rows = list(group)
            messages = conversation_before(rows[0]) if "messages" in rows[0] else _rebuild_history(rows[0], turns)
            turns.append(CapturedTurn(rows, messages if self._keep_system else list(_drop_capture_prompts(messages))))
        return turns


def _drop_capture_prompts(messages: list[Json]) -> Iterator[Json]:
    """Yield the messages without what a capture added to system messages: its own prompt at the beginning, and the
    contract of a text backend at the end. A system message with nothing else is left out."""
    for message in messages:
        content = message.get("content")
        if message.get("role") != "system" or not isinstance(content, str):
            yield message
            continue
        before, contract, _ = content.partition(TITLE)
        own = before if before.endswith("\n\n") or (contract and not before) else content
        remainder = own.removeprefix(SYSTEM).strip()
        if remainder == content.strip():
            yield message
        elif remainder:
            yield {**message, "content": remainder}


@lru_cache(64)
def _convert_definitions(tools: Toolset) -> list[Json]:
    """Return the definitions in OpenAI's form under the tools' own names, which calls use, even if OpenAI's API
    would reject them."""
    entries = zip(tools, to_provider(tools, "chat"), strict=True)
    return [{**entry, "function": {**entry["function"], "name": tool.name}} for tool, entry in entries]


def _row_order(row: Json) -> tuple[int, bool, int, int]:
    """Return the sort key of a row in its conversation: turn, calls before the outcome, attempt, call."""
    trace = row["proxy_trace"]
    attempt = row.get("attempt")
    return trace["turn"], row["kind"] == OUTCOME, attempt if isinstance(attempt, int) else 1, trace["call_index"]


def _rebuild_history(row: Json, before: list[CapturedTurn]) -> list[Json]:
    """Return the messages before a row that has no `messages`: the request, and the turns `before` it with the results
    of their calls. A call without a result gets the content `null`."""
    messages: list[Json] = [{"role": "user", "content": row["user_request"]}]
    for turn in before:
        messages.append(turn.assistant)
        for each, call in zip(turn.rows, turn.calls, strict=True):
            content: Any = (each.get("tool_result") or {}).get("content")
            text = content if isinstance(content, str) else compact_json(content)
            messages.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text})
    return messages
