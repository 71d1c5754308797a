"""A logged conversation, walked through turn by turn: what each turn of the model was read as, as rows of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rightcall.capture.captured_rows import CallTrace, capture_row, outcome_row
from rightcall.capture.stubs import StubOutcome
from rightcall.contracts.protocol import results_in
from rightcall.datasets.logged import Entry, Log, LogTurn
from rightcall.datasets.row_files import running_digest
from rightcall.errors import CallerError
from rightcall.formats import FORMATS
from rightcall.ids import Ids
from rightcall.parsing.parser import parse
from rightcall.providers.openai_chat import assistant_message
from rightcall.providers.provider_answers import read, read_all
from rightcall.providers.sdk_view import objects, text
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Reply

_MOST_TOLD = 256_000_000  # characters of history in all the rows of a line: each row tells what came before it
NOTHING_ASKED = "(nothing was asked)"


class LogWalk:
    """Goes through a conversation, and remembers it in OpenAI chat form. Of an exchange, `before` are digests of its
    history at each turn of the model, and `after` is one of all of it: two exchanges that follow on each other meet."""

    def __init__(
        self, log: Log, tools: Toolset | None, group: str, how: Mapping[str, str], model: str, at: int | None
    ) -> None:
        self.entries = list(log.entries)
        self.log, self.tools, self.group, self.how, self.model = log, tools, group, how, model
        self.at = at if log.at is None else log.at
        self.told = Toolset.lenient([]) if tools is None else tools
        self.before: list[bytes] = []
        self.after = b""
        self.ids = Ids.numbered("call")  # the same line gives the same rows in every run
        self.messages: list[Json] = []
        self.asked = NOTHING_ASKED
        self.results: dict[int, Call] = {}  # whose results the entries of these numbers are
        self.done: list[str] = []
        self.errors: list[str] = []
        self.turn = 0
        self._digest = running_digest()
        self._size = self._all = 0

    def rows(self) -> Iterator[Json]:
        """Raises `CallerError` where no turn of the model says anything."""
        found: list[str] = []
        for at, entry in enumerate(self.entries):
            if not isinstance(entry, LogTurn):
                self._add(self._message(at, entry))
                continue
            self.turn = self.turn if entry.number is None else entry.number
            replies = self._read(entry)
            if entry.is_history:
                self._follow(at, replies[0], assistant_message(replies[0], reasoning_key="reasoning_content"))
                self.before.append(self._digest.digest())
            else:
                found += [_nothing(reply) for reply in replies]
                yield from self._turn(at, entry, replies)
            self.turn += 1
            self.ids.next_turn()
        if all(found):
            raise CallerError(next(iter(found), "no turn of a model is in it; a log is of what a model said"))
        self.after = self._digest.digest() if self.log.is_exchange else b""

    def _add(self, message: Json) -> None:
        self.messages.append(message)
        if message["role"] == "user" and message["content"].strip():
            self.asked = message["content"]
        said = _bare(message)
        self._size += len(said)
        self._digest.update(said.encode("utf-8", "surrogatepass"))

    # -- turns of the model --------------------------------------------------------------------------------------------

    def _read(self, said: LogTurn) -> list[Reply]:
        """What it was read as, of each choice of an answer."""
        how: Any = {"tools": self.tools, "ids": self.ids, **self.how}
        if said.api == "text":
            return [parse(said.value, **how)]
        return [read(said.value, api=said.api, **how)] if said.is_history else read_all(said.value, api=said.api, **how)

    def _turn(self, at: int, said: LogTurn, replies: Sequence[Reply]) -> Iterator[Json]:
        before = list(self.messages)
        raw = _as_logged(said)
        for number, reply in enumerate(replies):
            group = f"{self.group}-choice-{number}" if number else self.group
            assistant = assistant_message(reply, reasoning_key="reasoning_content")
            shared: dict[str, Any] = {"group": group, "request": self.asked, "tools": self.told}
            shared |= {"messages": before, "assistant": assistant, "reply": raw, "completed": list(self.done)}
            shared["recent_errors"] = list(self.errors)
            shared["captured_at_unix_ms"] = self.at if said.at is None else said.at
            if number:
                yield from self._rows(said, reply, {}, shared)
            else:
                yield from self._rows(said, reply, self._follow(at, reply, assistant), shared)

    def _rows(
        self, said: LogTurn, reply: Reply, results: dict[int, StubOutcome], shared: dict[str, Any]
    ) -> Iterator[Json]:
        if not reply.attempts:
            trace = self._trace(said, reply, 0, "")
            yield outcome_row(trace=trace, text=reply.content, problems=list(reply.problems), **shared)
        of_no_call = [problem for problem in reply.problems if problem.call is None]
        for index, call in enumerate(reply.attempts):
            self._bound()
            problems = [*call.problems, *of_no_call]
            trace = self._trace(said, reply, index, call.id)
            yield capture_row(call, trace=trace, problems=problems, result=results.get(index), **shared)

    def _bound(self) -> None:
        self._all += self._size
        if self._all > _MOST_TOLD:
            raise CallerError(
                f"its rows would tell more than {_MOST_TOLD:,} characters of history, for each tells what came before "
                "it; split the conversation"
            )

    def _trace(self, said: LogTurn, reply: Reply, index: int, id: str) -> CallTrace:
        place = self.log.place or {"domain": "import", "scenario": "log", "run_index": 0}
        return CallTrace(
            **place,
            turn=self.turn,
            model=self.model,
            call_index=index,
            tool_call_id=id,
            response_id=said.id,
            finish_reason=said.finish or reply.finish,
            usage=reply.usage,
            format=reply.format,
            mode="native" if reply.api or reply.format in ("", "native") else "text",
            guard="parse",
            source="import",
            bucket="imported_log",
            log_id=self.log.id or None,
        )

    # -- results -------------------------------------------------------------------------------------------------------

    def _follow(self, at: int, reply: Reply, assistant: Json) -> dict[int, StubOutcome]:
        """Goes on behind a turn: the results right behind it, by the number of their call. A result belongs to the call
        whose id it has, else whose name, else to the first that has none."""
        self._add(assistant)
        if reply.attempts:
            self._open_results(at + 1, reply)
        waiting = dict(enumerate(reply.attempts))
        found: dict[int, StubOutcome] = {}
        for number in range(at + 1, len(self.entries)):
            entry = self.entries[number]
            if isinstance(entry, LogTurn) or entry["role"] != "tool" or not waiting:
                break
            index = self._whose(entry, waiting)
            self.results[number] = waiting.pop(index)
            status = "error" if entry.get("status") == "error" else "ok"
            found[index] = StubOutcome(status, entry.get("result", entry["content"]))  # type: ignore[arg-type]
        return found

    def _open_results(self, at: int, reply: Reply) -> None:
        """A model without a role for results is shown them in messages of the user: these become results again."""
        form = reply.format if reply.format in FORMATS else "contract"
        while at < len(self.entries):
            entry = self.entries[at]
            if isinstance(entry, LogTurn) or entry["role"] != "user":
                return
            found, rest = results_in(entry["content"], format=form)
            if not found:
                return
            told: list[Entry] = [{"role": "tool", "name": name, "content": said} for name, said in found]
            self.entries[at : at + 1] = [*told, *([{**entry, "content": rest}] if rest else [])]
            at += len(told)
            if rest:
                return

    def _whose(self, result: Json, waiting: dict[int, Call]) -> int:
        id, name = text(result.get("tool_call_id")), text(result.get("name"))
        by_id = (at for at, call in waiting.items() if id and id in (self.ids.received(call.id), call.id))
        by_name = (at for at, call in waiting.items() if name and call.name == name)
        return next(by_id, next(by_name, next(iter(waiting))))

    def _message(self, at: int, message: Json) -> Json:
        call = self.results.pop(at, None)
        if message["role"] != "tool":
            return message
        told = {key: value for key, value in message.items() if key not in ("status", "result")}
        if call is None:
            return told
        (self.errors if message.get("status") == "error" else self.done).append(
            message["content"] if message.get("status") == "error" else call.name
        )
        return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": message["content"]}


def _nothing(reply: Reply) -> str:
    """Why nothing is to be had of an answer; "" if something is."""
    failed = next((each.message for each in reply.problems if each.code in ("provider_error", "unknown_shape")), "")
    if reply.attempts or reply.content.strip() or reply.reasoning.strip():
        return ""
    return f"{failed}; leave the line out" if failed else "the answer is empty: no text and no call; leave the line out"


def _as_logged(said: LogTurn) -> Any:
    """What came from the model: its text, or the provider's message. Of a stream, the message that it comes to."""
    if said.api == "text" or not isinstance(said.value, str):
        choices = objects(said.value.get("choices")) if isinstance(said.value, dict) else []
        return choices[0]["message"] if choices and isinstance(choices[0].get("message"), dict) else said.value
    return assistant_message(read(said.value, api=said.api, repair="off"), reasoning_key="reasoning_content")


def _bare(message: Json) -> str:
    """What was said, without the ids that are given anew: for telling whether two histories are the same."""
    calls = [(each["function"]["name"], each["function"]["arguments"]) for each in _functions(message)]
    return repr((message["role"], (message.get("content") or "").strip(), calls))


def _functions(message: Json) -> list[Json]:
    return [each for each in objects(message.get("tool_calls")) if "function" in each]
