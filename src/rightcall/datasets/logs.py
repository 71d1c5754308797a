"""Kinds of logs, and the reading of one line as a conversation in the form of the chat API.

    read_log({"conversations": [{"from": "human", "value": "..."}, ...], "tools": "[...]"})

A kind of log is one entry of `KINDS`; the first that recognizes a line reads it. Each turn of the model is kept as it
was logged (a provider's message, a list of items, or text) and is read later by the code that reads models. Logs of
provider APIs are in `api_logs`; here are captures and logs of text:

    {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}], "tools": "[...]"}
    {"system": "SYSTEM: ... {tools}", "chat": "USER: ...\\n\\n\\nASSISTANT: <functioncall> {...} <|endoftext|>"}
    {"prompt": "...", "generated_text": "<tool_call>...</tool_call>"}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rightcall.api_names import api_name
from rightcall.capture.captured_rows import FORGE, SCHEMA
from rightcall.datasets.api_logs import (
    batch_key,
    detect_line_api,
    is_batch,
    is_cassette,
    join_batch,
    make_log_reader,
    read_batch,
    read_cassette,
)
from rightcall.datasets.conversations import CapturedConversation, CapturedTurn
from rightcall.datasets.log_entries import Entry, Log, LogTurn, find_id, find_model, find_time_ms, flatten_content
from rightcall.datasets.schemas import first_fault
from rightcall.errors import CallerError
from rightcall.providers.sdk_view import compact_json, objects, text
from rightcall.types import Json

# -- ShareGPT and Hermes -----------------------------------------------------------------------------------------------

_ROLES = {"human": "user", "user": "user", "system": "system", "observation": "tool", "tool": "tool"}


def is_sharegpt(row: Json) -> bool:
    """Return whether a line has a list `conversations`."""
    return isinstance(row.get("conversations"), list)


def read_sharegpt(row: Json) -> Log:
    """Return a line in the form of ShareGPT, Hermes or LLaMA-Factory as a `Log`. Turns of any side that is not user,
    system or tool are turns of the model."""
    entries: list[Entry] = []
    if text(row.get("system")):
        entries.append({"role": "system", "content": row["system"]})
    for turn in objects(row.get("conversations")):
        side, value = text(turn.get("from", turn.get("role"))), turn.get("value", turn.get("content"))
        content = value if isinstance(value, str) else compact_json(value)
        if side == "function_call":
            entries.append(_parse_function_calls(content))
        elif side not in _ROLES:
            entries.append(LogTurn(content, "text"))
        elif _ROLES[side] == "tool":  # one entry may have the results of several calls
            tagged = list(_extract_between(content, "<tool_response>", "</tool_response>"))
            entries += [{"role": "tool", "content": each.strip()} for each in tagged or [content]]
        else:
            entries.append({"role": _ROLES[side], "content": content})
    return _make_log(row, entries)


def _make_log(row: Json, entries: list[Entry]) -> Log:
    """Return a `Log` of these entries, with tools, format, model, time and id of the line."""
    format = text(row.get("format")) or "auto"
    return Log(tuple(entries), row.get("tools"), format, find_model(row), find_time_ms(row), find_id(row))


def _parse_function_calls(content: str) -> LogTurn:
    """Return the turn of a JSON text with a name and arguments, or a list of such; a text that is not JSON becomes the
    text of a model. Items that are not objects are dropped."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return LogTurn(content, "text")
    calls = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
    return _make_calls_turn("", *[(each.get("name"), each.get("arguments")) for each in calls])


def _make_calls_turn(content: str, *calls: tuple[Any, Any]) -> LogTurn:
    """Return a turn in the form of the chat API with this text and these calls, each a name and its arguments."""
    entries = [{"type": "function", "function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    return LogTurn({"role": "assistant", "content": content, "tool_calls": entries}, "chat")


def _extract_between(content: str, opening: str, closing: str) -> Iterator[str]:
    """Yield each text between an opening and the next closing tag, in order; nothing for an opening tag that is not
    closed."""
    start = content.find(opening)
    while start >= 0:
        end = content.find(closing, start)
        if end < 0:
            return
        yield content[start + len(opening) : end]
        start = content.find(opening, end)


# -- Glaive ------------------------------------------------------------------------------------------------------------

_TURN = re.compile(r"^(USER|ASSISTANT|FUNCTION RESPONSE):[ ]?", re.M)


def is_glaive(row: Json) -> bool:
    """Return whether a line has a text `chat`, as the datasets of Glaive do."""
    return isinstance(row.get("chat"), str) and isinstance(row.get("system", ""), str)


def read_glaive(row: Json) -> Log:
    """Return a line of a Glaive dataset as a `Log`: its text `chat` has the turns of user, assistant and functions. A
    call that cannot be parsed stays the text of the model."""
    system = text(row.get("system")).removeprefix("SYSTEM:").strip()
    entries: list[Entry] = [{"role": "system", "content": system}] if system else []
    pieces = _TURN.split(row["chat"])
    for side, content in zip(pieces[1::2], pieces[2::2], strict=True):
        if side != "ASSISTANT":
            entries.append({"role": "user" if side == "USER" else "tool", "content": content.strip()})
            continue
        content = content.replace("<|endoftext|>", "").strip()
        before, opening, body = content.partition("<functioncall>")
        call = _parse_glaive_call(body.strip()) if opening else None
        entries.append(LogTurn(content, "text") if call is None else _make_calls_turn(before.strip(), call))
    return _make_log(row, entries)


def _parse_glaive_call(body: str) -> tuple[Any, Any] | None:
    """Return name and arguments of `{"name": "f", "arguments": '{"a": 1}'}`, whose arguments are JSON in apostrophes
    and so not valid JSON; None if it cannot be parsed."""
    try:
        found, _ = _DECODER.raw_decode(body)
        return (found.get("name"), found.get("arguments")) if isinstance(found, dict) else None
    except (ValueError, RecursionError):
        head, _, rest = body.partition('"arguments":')
    first, last = rest.find("'"), rest.rfind("'")
    try:
        name = json.loads(head.rstrip().rstrip(",") + "}").get("name")
    except (ValueError, RecursionError, AttributeError):
        return None
    return (name, rest[first + 1 : last].replace("\\'", "'")) if 0 <= first < last else None


# -- prompts and completions -------------------------------------------------------------------------------------------

_COMPLETIONS = ("text", "completion", "output", "response", "generated_text", "generation", "answer", "prediction")
_PROMPTS = ("prompt", "instruction", "input", "question", "query", "request")


def is_completion(row: Json) -> bool:
    """Return whether a line has the text of a model, or the messages that a pipeline generated."""
    return any(isinstance(row.get(key), str) for key in _COMPLETIONS) or bool(_generated_messages(row))


def _generated_messages(row: Json) -> list[Json]:
    """Return the messages of a pipeline's `generated_text`, of which the last is the model's; [] if it has none."""
    return [each for each in objects(row.get("generated_text")) if "role" in each]


def read_completion(row: Json) -> Log:
    """Return a prompt and the completion of a model as a `Log`, or the messages that a pipeline generated. The first of
    the usual keys with a text is the completion, "" without one."""
    if messages := _generated_messages(row):
        return _make_log(row, [_make_entry(each) for each in messages])
    prompt = [_make_entry(each) for key in ("messages", *_PROMPTS) for each in objects(row.get(key))]
    asked = "\n".join([row[key] for key in _PROMPTS if text(row.get(key)).strip()])
    entries: list[Entry] = [{"role": "system", "content": row["system"]}] if text(row.get("system")) else []
    entries += prompt or ([{"role": "user", "content": asked}] if asked else [])
    completion = next((row[key] for key in _COMPLETIONS if text(row.get(key))), "")
    return _make_log(row, [*entries, LogTurn(completion, "text")])


def _make_entry(message: Json) -> Entry:
    """Return a message of the assistant as the text of a model, any other as a message with its content as text."""
    role, content = text(message.get("role")), flatten_content(message.get("content"))
    return LogTurn(content, "text") if role == "assistant" else {"role": role or "user", "content": content}


# -- captures ----------------------------------------------------------------------------------------------------------

_JOURNAL = "rightcall_journal"


def is_capture(row: Json) -> bool:
    """Return whether a line is a row or the journal head of a capture of rightcall, or a row of
    `forge-dataset-capture/v1`."""
    return row.get("schema_version") in (FORGE, SCHEMA) or _JOURNAL in row


def forge_group_key(row: Json) -> str:
    """Return the key that the rows of one conversation of `forge-dataset-capture/v1` share; "" for rows of
    rightcall, which need no import."""
    trace = row.get("proxy_trace")
    model = trace.get("model") if isinstance(trace, dict) else ""
    return f"{row.get('example_group_id')}\0{model}" if row.get("schema_version") == FORGE else ""


def join_forge_rows(rows: list[Json]) -> Json:
    """Return the rows of one conversation as one line, which `read_forge_capture` reads."""
    return {"schema_version": FORGE, "rows": rows}


def read_forge_capture(row: Json) -> Log:
    """Return the conversation of a line from `join_forge_rows`, or of a single row, as a `Log` with the results of its
    calls. Raises `CallerError` for a capture of rightcall, which needs no import, and for an invalid row."""
    if row.get("schema_version") == SCHEMA or _JOURNAL in row:
        raise CallerError("this is a capture of rightcall: `dataset label`, `split` and `export` read it as it is")
    rows: list[Json] = row.get("rows") or [row]
    fault = next((fault for each in rows if (fault := first_fault(each))), "")
    if fault:
        raise CallerError(fault)
    first = rows[0]
    trace = first["proxy_trace"]
    entries: list[Entry] = [{"role": "user", "content": first["user_request"]}]
    for turn in CapturedConversation(rows).turns:
        entries += [_make_log_turn(turn), *map(_make_result_message, turn.rows)]
    return Log(
        tuple(entries),
        first["available_tools"],
        model=trace["model"],
        group=first["example_group_id"],
        place={key: trace[key] for key in ("domain", "scenario", "run_index")},
    )


def _make_log_turn(turn: CapturedTurn) -> LogTurn:
    """Return a turn of a capture with its id, finish reason, time and number."""
    trace, provenance = turn.rows[0]["proxy_trace"], turn.rows[0]["metadata"].get("provenance", {})
    return LogTurn(
        turn.assistant,
        "chat",
        id=trace.get("response_id"),
        finish=trace.get("finish_reason"),
        at=find_time_ms({"time": provenance.get("captured_at_unix_ms")}),
        number=trace["turn"],
    )


def _make_result_message(row: Json) -> Json:
    """Return the message with the result of a row's call as text, its status, and the result itself under `result`."""
    found = row["tool_result"]
    result = found.get("content")
    content = result if isinstance(result, str) else compact_json(result)
    message = {"role": "tool", "tool_call_id": row["proxy_trace"].get("tool_call_id") or "", "content": content}
    return {**message, "status": "error" if found.get("status") == "error" else "ok", "result": result}


# -- kinds -------------------------------------------------------------------------------------------------------------


class LogKind(NamedTuple):
    """A kind of log.

    - `recognize`: returns whether a line is of this kind.
    - `read`: returns the conversation of a line. Raises `CallerError` if it has none although it should, `PassedOver`
      if it should have none.
    - `key`, `join`: the key that lines of one conversation share, and the line that they are joined to.
    """

    recognize: Callable[[Json], bool]
    read: Callable[[Json], Log]
    key: Callable[[Json], str] | None = None
    join: Callable[[list[Json]], Json] | None = None


def _make_api_kind(api: str) -> LogKind:
    """Return the kind of logs of the provider API with this name: it recognizes lines by their keys and reads them."""
    return LogKind(lambda row: detect_line_api(row) == api, make_log_reader(api))


KINDS: dict[str, LogKind] = {
    "capture": LogKind(is_capture, read_forge_capture, forge_group_key, join_forge_rows),
    "cassette": LogKind(is_cassette, read_cassette),
    "batch": LogKind(is_batch, read_batch, batch_key, join_batch),
    "sharegpt": LogKind(is_sharegpt, read_sharegpt),
    "glaive": LogKind(is_glaive, read_glaive),
    "chat": _make_api_kind("chat"),
    "messages": _make_api_kind("messages"),
    "responses": _make_api_kind("responses"),
    "gemini": _make_api_kind("gemini"),
    "ollama": _make_api_kind("ollama"),
    "text": LogKind(is_completion, read_completion),
}
_CURE = "name its kind with --from; the text of a model is `text`"


def read_log(row: Json, kind: str = "auto") -> Log:
    """Return the conversation of a line as a `Log`; "auto" detects its kind. Raises `CallerError` for an unknown
    kind and for a line without a conversation, `PassedOver` for a valid line that has none, such as the head of a
    cassette."""
    name = resolve_log_kind(kind)
    log = KINDS[detect_kind(row) if name == "auto" else name].read(row)
    if not log.entries:
        raise CallerError(f"there is no conversation in it; its keys are {_list_keys(row)}; {_CURE}")
    return log


def resolve_log_kind(name: str) -> str:
    """Return the canonical name of a kind of log, or "auto". Raise `CallerError` for an unknown name."""
    return api_name(name, ("auto", *KINDS), what="kind of log")


def detect_kind(row: Json) -> str:
    """Return the first kind in `KINDS` that recognizes a line by its keys. Raises `CallerError` if none does."""
    kind = next((name for name, kind in KINDS.items() if kind.recognize(row)), None)
    if kind is None:
        raise CallerError(f"unknown log format; its keys are {_list_keys(row)}; {_CURE}")
    return kind


def _list_keys(row: Json) -> str:
    """Return the first eight keys of a line for a message; "none" if it has none."""
    return ", ".join([repr(key)[:40] for key in list(row)[:8]]) or "none"


def find_join_key(row: Json, kind: str = "auto") -> tuple[str, str]:
    """Return the kind of a line and the key that it shares with the lines of the same conversation; ("", "") if its
    kind is never joined, and an empty key if this line is not."""
    for name in KINDS if kind == "auto" else (kind,):
        known = KINDS[name]
        if known.key is not None and (kind == name or known.recognize(row)):
            return name, known.key(row)
    return "", ""


# -- tools that a prompt lists -----------------------------------------------------------------------------------------

_DECODER = json.JSONDecoder()
_MOST_FAILURES = 50
_JSON_START = re.compile(r"^[ \t]*+[\[{]", re.M)


def find_listed_tools(entries: tuple[Entry, ...]) -> list[Json]:
    """Return the tool definitions that the system message lists as JSON, in `<tools>` or on their own lines; [] if
    there are none."""
    system = next((each["content"] for each in entries if isinstance(each, dict) and each["role"] == "system"), "")
    block = next(_extract_between(system, "<tools>", "</tools>"), system)
    values = (each for value in _iterate_json_values(block) for each in (value if isinstance(value, list) else [value]))
    return [each for each in values if _is_tool_definition(each)]


def _iterate_json_values(content: str) -> Iterator[Any]:
    """Yield the JSON values in a text that begin at the start of a line; the search ends after 50 starts that are not
    JSON."""
    at = failures = 0
    while failures < _MOST_FAILURES and (found := _JSON_START.search(content, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(content, found.end() - 1)
        except json.JSONDecodeError as error:
            at, failures = max(error.pos, found.end()), failures + 1
        except RecursionError:
            return
        else:
            yield value


def _is_tool_definition(value: Any) -> bool:
    """Return whether a value is the definition of a tool, with a name and a schema of parameters."""
    found = value.get("function", value) if isinstance(value, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return False
    return isinstance(found.get("parameters", found.get("input_schema", found.get("inputSchema"))), dict)
