"""Rows of one logged conversation, which is parsed, repaired and checked as a live answer is.

    rows_of({"messages": [...], "tools": [...]}, group="import-log-1")   ->   rows of rightcall-capture/v1

Each call becomes a row, with its receipts and problems; each answer without a call becomes an outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from rightcall.capture.captured_rows import RESPOND, CallTrace, LineFault, capture_row, outcome_row
from rightcall.capture.stubs import StubOutcome
from rightcall.contracts.protocol import results_in
from rightcall.datasets.log_entries import Entry, Log, LogTurn, PassedOver
from rightcall.datasets.logs import find_listed_tools, read_log
from rightcall.errors import CallerError, RightcallError
from rightcall.formats import FORMATS
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.parser import parse
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.provider_answers import read, read_all
from rightcall.providers.sdk_view import compact_json, objects, text
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Reply

_CACHED_CHARS = 200_000  # characters of tools that are cached


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of the lines and the options of reading, as in `import_files`. `at` is the time of lines without
    one."""

    kind: str = "auto"
    tools: Toolset | None = None
    format: str | Format = "auto"
    repair: str = "safe"
    rescue: str = "safe"
    reasoning_calls: str = "safe"
    model: str = "unknown"
    at: int | None = None


class ImportedLine(msgspec.Struct, frozen=True):
    """The rows of a line. `histories` and `end` are digests of the conversation before and after an exchange;
    `reason` says why there are no rows, and `is_refused` whether there should be some."""

    rows: list[Json] = []
    histories: list[bytes] = []
    end: bytes = b""
    reason: str = ""
    is_refused: bool = False


def import_line(row: Json | LineFault, group: str, options: ImportOptions) -> ImportedLine:
    """Return the rows of one line, or the reason why it has none. Never raises because of its content. `group` names
    its conversation if the log does not."""
    try:
        if isinstance(row, LineFault):
            raise CallerError(row.message)
        conversation = _read_conversation(row, group, options)
        rows = list(conversation.rows())
    except PassedOver as reason:
        return ImportedLine(reason=str(reason))
    except RightcallError as error:
        return ImportedLine(reason=str(error), is_refused=True)
    return ImportedLine(rows, conversation.histories, conversation.end)


def rows_of(row: Json, *, group: str, **options: Any) -> Iterator[Json]:
    """Yield the rows of one logged conversation; `options` are the fields of `ImportOptions`. Raises `RightcallError`
    if the line holds none, or its tools cannot be used, and `PassedOver` for a valid line that should have none."""
    return _read_conversation(row, group, ImportOptions(**options)).rows()


def _read_conversation(row: Json, group: str, options: ImportOptions) -> _LoggedConversation:
    """Return the conversation of a line, ready to be converted to rows: its log, its tools and the options. Raises
    `PassedOver` for a valid line without one, and `RightcallError` for any other line and for tools that cannot be
    used."""
    log = read_log(row, options.kind)
    toolset = (
        options.tools if options.tools is not None else _build_toolset(log.tools or find_listed_tools(log.entries))
    )
    format = log.format if options.format == "auto" else options.format
    how: dict[str, Any] = {"format": format, "repair": options.repair, "rescue": options.rescue}
    how |= {"reasoning_calls": options.reasoning_calls}
    return _LoggedConversation(log, toolset, log.group or group, how, log.model or options.model, options.at)


def _build_toolset(tools: Any) -> Toolset | None:
    """Return the toolset of logged tools: definitions of any provider, or JSON text with them; None if there are none
    or the text is not JSON. Raises `BadTools` for invalid definitions."""
    if isinstance(tools, str) and tools.strip():
        tools = decode(tools, MAX_DEPTH)
    if not tools or isinstance(tools, Undecodable):
        return None
    definitions = compact_json(tools)
    return _parse_tools(definitions) if len(definitions) < _CACHED_CHARS else _parse_tools.__wrapped__(definitions)


@lru_cache(64)  # conversations share their tools
def _parse_tools(definitions: str) -> Toolset:
    """Return the toolset of definitions as JSON text, without the tool `respond`, which captures add. Cached. Raises
    `BadTools`."""
    return Toolset([tool for tool in Toolset(json.loads(definitions)) if tool.name != RESPOND.name])


# -- one conversation --------------------------------------------------------------------------------------------------

_MOST_HISTORY = 256_000_000  # characters of history in all rows of a line: each row repeats what came before it
_NO_REQUEST = "(nothing was asked)"


class _LoggedConversation:
    """Reads the turns of a conversation one after the other, and keeps its history in OpenAI chat form.

    Of an exchange, `histories` are digests of the history after each turn of the model in its request, and `end` is the
    digest after its answer: an exchange whose history is the end of another continues that one.
    """

    def __init__(
        self, log: Log, tools: Toolset | None, group: str, how: Mapping[str, str], model: str, at: int | None
    ) -> None:
        self.entries = list(log.entries)
        self.log, self.tools, self.group, self.how, self.model = log, tools, group, how, model
        self.at = at if log.at is None else log.at
        self.histories: list[bytes] = []
        self.end = b""
        self.ids = Ids.numbered("call")  # the same line gives the same rows in every run
        self.messages: list[Json] = []
        self.request = _NO_REQUEST
        self.calls_of_results: dict[int, Call] = {}  # by the index of the entry with the result
        self.completed: list[str] = []
        self.errors: list[str] = []
        self.turn = 0
        self._digest = blake2b(digest_size=16)
        self._history_chars = self._row_chars = 0

    def rows(self) -> Iterator[Json]:
        """Yield a row for each call of the model, and an outcome for each answer without one; a turn that is only
        history gets none. Fill `histories` and set `end`. Raises `CallerError` if no turn of the model, apart from
        history, has content."""
        reasons: list[str] = []
        for at, entry in enumerate(self.entries):
            if not isinstance(entry, LogTurn):
                self._add_message(self._prepare_message(at, entry))
                continue
            self.turn = self.turn if entry.number is None else entry.number
            replies = self._read_turn(entry)
            if entry.is_history:
                self._add_turn(at, replies[0], CHAT.assistant_message(replies[0], reasoning_key="reasoning_content"))
                self.histories.append(self._digest.digest())
            else:
                reasons += map(_explain_empty_reply, replies)
                yield from self._turn_rows(at, entry, replies)
            self.turn += 1
            self.ids.next_turn()
        if all(reasons):
            raise CallerError(next(iter(reasons), "there is no turn of a model in it; a log must have one"))
        self.end = self._digest.digest() if self.log.is_exchange else b""

    def _add_message(self, message: Json) -> None:
        """Append a message to the history, its digest and its number of characters. A user's message that is not blank
        becomes the current request."""
        self.messages.append(message)
        if message["role"] == "user" and message["content"].strip():
            self.request = message["content"]
        content = _text_without_ids(message)
        self._history_chars += len(content)
        self._digest.update(content.encode("utf-8", "surrogatepass"))

    def _read_turn(self, turn: LogTurn) -> list[Reply]:
        """Return the reply of each choice of a logged turn, parsed and repaired as the options say; exactly one for a
        text and for a turn of the history."""
        how: Any = {"tools": self.tools, "ids": self.ids, **self.how}
        if turn.api == "text":
            return [parse(turn.value, **how)]
        return [read(turn.value, api=turn.api, **how)] if turn.is_history else read_all(turn.value, api=turn.api, **how)

    def _turn_rows(self, at: int, turn: LogTurn, replies: Sequence[Reply]) -> Iterator[Json]:
        """Yield the rows of each choice of an answer, and add the first choice, with the results that follow it, to the
        history. `at` is the index of the entry. Raises as `_reply_rows`."""
        messages, raw = list(self.messages), _raw_reply(turn)
        for number, reply in enumerate(replies):
            assistant = CHAT.assistant_message(reply, reasoning_key="reasoning_content")
            shared: dict[str, Any] = {
                "group": f"{self.group}-choice-{number}" if number else self.group,
                "request": self.request,
                "tools": Toolset.lenient([]) if self.tools is None else self.tools,
                "messages": messages,
                "assistant": assistant,
                "reply": raw,
                "completed": list(self.completed),
                "recent_errors": list(self.errors),
                "captured_at_unix_ms": self.at if turn.at is None else turn.at,
            }
            results = {} if number else self._add_turn(at, reply, assistant)  # the history follows the first choice
            yield from self._reply_rows(turn, reply, results, shared)

    def _reply_rows(
        self, turn: LogTurn, reply: Reply, results: dict[int, StubOutcome], shared: dict[str, Any]
    ) -> Iterator[Json]:
        """Yield a row for each call of a reply, or an outcome if it has none. `results` are by the index of the call,
        `shared` are values of all rows. Each row counts the history that it repeats; raises `CallerError` if that is
        too much."""
        if not reply.attempts:
            trace = self._make_trace(turn, reply, 0, "")
            yield outcome_row(trace=trace, text=reply.content, problems=list(reply.problems), **shared)
        of_no_call = [problem for problem in reply.problems if problem.call is None]
        for index, call in enumerate(reply.attempts):
            self._row_chars += self._history_chars
            if self._row_chars > _MOST_HISTORY:
                raise CallerError(
                    f"its rows would have more than {_MOST_HISTORY:,} characters of history, because each repeats the "
                    "messages before it; split the conversation"
                )
            trace = self._make_trace(turn, reply, index, call.id)
            problems = [*call.problems, *of_no_call]
            yield capture_row(call, trace=trace, problems=problems, result=results.get(index), **shared)

    def _make_trace(self, turn: LogTurn, reply: Reply, index: int, id: str) -> CallTrace:
        """Return the trace of a row: its place in the log, its turn and call, and how it was read."""
        place = self.log.place or {"domain": "import", "scenario": "log", "run_index": 0}
        return CallTrace(
            **place,
            turn=self.turn,
            model=self.model,
            call_index=index,
            tool_call_id=id,
            response_id=turn.id,
            finish_reason=turn.finish or reply.finish,
            usage=reply.usage,
            format=reply.format,
            mode="native" if reply.api or reply.format in ("", "native") else "text",
            guard="parse",
            source="import",
            bucket="imported_log",
            log_id=self.log.id or None,
        )

    # -- results -------------------------------------------------------------------------------------------------------

    def _add_turn(self, at: int, reply: Reply, assistant: Json) -> dict[int, StubOutcome]:
        """Add a turn of the model to the history, and return the results that follow it at once in the log, by the
        index of their call in the turn. A result belongs to the call with its id, else to one with its name, else to
        the first without a result. `at` is the index of the turn's entry."""
        self._add_message(assistant)
        if reply.attempts:
            self._split_contract_results(at + 1, reply)
        pending = dict(enumerate(reply.attempts))
        results: dict[int, StubOutcome] = {}
        for number in range(at + 1, len(self.entries)):
            entry = self.entries[number]
            if isinstance(entry, LogTurn) or entry["role"] != "tool" or not pending:
                break
            index = self._match_call(entry, pending)
            self.calls_of_results[number] = pending.pop(index)
            status = "error" if entry.get("status") == "error" else "ok"
            results[index] = StubOutcome(status, entry.get("result", entry["content"]))  # type: ignore[arg-type]
        return results

    def _split_contract_results(self, at: int, reply: Reply) -> None:
        """Replace each user's message from the entry `at` on that holds results in the text contract (for models
        without a role for results) by messages of the role `tool`. Text after the results stays a user's message and
        ends this."""
        format = reply.format if reply.format in FORMATS else "contract"
        while at < len(self.entries):
            entry = self.entries[at]
            if isinstance(entry, LogTurn) or entry["role"] != "user":
                return
            found, trailing = results_in(entry["content"], format=format)
            if not found:
                return
            results: list[Entry] = [{"role": "tool", "name": name, "content": content} for name, content in found]
            self.entries[at : at + 1] = [*results, *([{**entry, "content": trailing}] if trailing else [])]
            at += len(results)
            if trailing:
                return

    def _match_call(self, result: Json, pending: dict[int, Call]) -> int:
        """Return the index of the call in `pending` (not empty) that a result belongs to: by id, else by name, else the
        first."""
        id, name = text(result.get("tool_call_id")), text(result.get("name"))
        by_id = (at for at, call in pending.items() if id and id in (self.ids.received(call.id), call.id))
        by_name = (at for at, call in pending.items() if name and call.name == name)
        return next(by_id, next(by_name, next(iter(pending))))

    def _prepare_message(self, at: int, message: Json) -> Json:
        """Return the message of the entry `at` for the history. The result of a known call gets its id and name, and is
        recorded as a completed step or an error; other messages lose `status` and `result` only."""
        if message["role"] != "tool":
            return message
        call = self.calls_of_results.pop(at, None)
        if call is None:
            return {key: value for key, value in message.items() if key not in ("status", "result")}
        if message.get("status") == "error":
            self.errors.append(message["content"])
        else:
            self.completed.append(call.name)
        return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": message["content"]}


def _explain_empty_reply(reply: Reply) -> str:
    """Return the reason why a reply has neither call, text nor reasoning, as a message; "" if it has any."""
    failure = next((each.message for each in reply.problems if each.code in ("provider_error", "unknown_shape")), "")
    if reply.attempts or reply.content.strip() or reply.reasoning.strip():
        return ""
    return f"{failure or 'the answer is empty: no text and no call'}; leave the line out"


def _raw_reply(turn: LogTurn) -> Any:
    """Return the logged value of a turn: the message of its first choice if it has choices, else the value. A recorded
    stream gives the message that its events add up to."""
    if turn.api == "text" or not isinstance(turn.value, str):
        choices = objects(turn.value.get("choices")) if isinstance(turn.value, dict) else []
        return choices[0]["message"] if choices and isinstance(choices[0].get("message"), dict) else turn.value
    return CHAT.assistant_message(read(turn.value, api=turn.api, repair="off"), reasoning_key="reasoning_content")


def _text_without_ids(message: Json) -> str:
    """Return role, text and calls of a message as one text without ids, which differ between equal histories."""
    functions = [each["function"] for each in objects(message.get("tool_calls")) if "function" in each]
    calls = [(function["name"], function["arguments"]) for function in functions]
    return repr((message["role"], (message.get("content") or "").strip(), calls))
