"""Make a history acceptable to a server: repair what the server would reject, and lose no content.

    fit = sane(history, profile="mistral")
    fit.messages   # to send; the history itself is not changed
    fit.changes    # each change and its reason; empty if nothing was changed
    fit.ids        # each id that was changed, and its original

One bad call must not end a session: arguments that are not an object become `{}` and the result quotes them, a call
without a result gets one, and a result without a call becomes text. A second run changes nothing more.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from rightcall.ids import ALPHABET, is_nine
from rightcall.providers.dialect import output_text
from rightcall.providers.history_checks import REASONING_KEYS, HistoryProfile, history_profile
from rightcall.providers.history_messages import call_name
from rightcall.providers.sdk_view import compact_json, items, obj, text
from rightcall.strict_json import MAX_DEPTH, decode, is_object_text
from rightcall.types import Json, Reply

NO_RESULT = "ERROR: there is no result: the call was not run, or its result was lost"
USER_FILLER = "(The conversation goes on.)"
ASSISTANT_FILLER = "(The results were seen.)"
_INVALID_ARGUMENTS = "the arguments of this call were not a JSON object; you sent: "
_MAX_QUOTED_ARGUMENTS = 500
_ROLES = {"function": "tool", "model": "assistant", "ai": "assistant", "human": "user"}
_REQUIRED_FIELDS = frozenset(("role", "content", "tool_calls", "tool_call_id"))
_has_no_reasoning = frozenset(REASONING_KEYS).isdisjoint


class HistoryChange(msgspec.Struct, frozen=True):
    """One change.

    - `kind`: one word for a program.
    - `at`: the index in the given history of the message that was changed, omitted, or preceded by a new one.
    - `message`: the change as a sentence.
    """

    kind: str
    at: int
    message: str


class KeptFields(msgspec.Struct, frozen=True):
    """The fields that a provider requires back with a call: those of its `message`, and those of the `call` itself."""

    message: Json = {}
    call: Json = {}


class SaneHistory(msgspec.Struct, frozen=True):
    """A history that a server accepts.

    - `messages`: the messages to send; those without a change are the given objects.
    - `changes`: the changes in the order in which they were made; empty if the history was accepted as it was.
    - `ids`: each new call id, and the id that it replaces ("" for none).
    """

    messages: list[Json]
    changes: tuple[HistoryChange, ...] = ()
    ids: dict[str, str] = {}


def sane(
    history: Sequence[Any],
    *,
    profile: str | HistoryProfile = "openai",
    kept: Mapping[str, KeptFields] | None = None,
) -> SaneHistory:
    """Return the `history` as a server accepts it. The given history is not changed. An acceptable history is returned
    equal, without changes.

    - `history`: messages in the shape of OpenAI's Chat; anything else in it is repaired or omitted, and reported.
    - `profile`: the server's, by name ("openai", "vllm", "llama_cpp", "ollama", "mistral", "gemma", "llama3",
      "deepseek", "kimi", "gpt_oss", "strict") or a profile of your own.
    - `kept`: what providers require back, by call id, as `kept_of` returns it; it is restored where a client dropped
      it.

    Raises `CallerError` for an unknown profile.
    """
    sanitizer = _Sanitizer(history_profile(profile), kept or {})
    messages = [_Message(at, message) for at, message in enumerate(history)]
    for step in _STEPS:
        messages = step(sanitizer, messages)
    return SaneHistory([item.message for item in messages], tuple(sanitizer.changes), sanitizer.ids)


def kept_of(reply: Reply) -> dict[str, KeptFields]:
    """Return what must be sent back with the calls of this `reply`, by call id: reasoning and signatures. A proxy keeps
    it for clients that drop it. Rejected calls are included, calls without an id are not."""
    message = dict(reply.extras.get("", {}))
    if reply.reasoning:
        message.setdefault("reasoning_content", reply.reasoning)
    return {call.id: KeptFields(message, reply.extras.get(call.id, {})) for call in reply.attempts if call.id}


class _Message:
    """A message with its index in the given history.

    `invalid_arguments` quotes the arguments of its calls that were not an object, by the position of the call.
    """

    __slots__ = ("at", "invalid_arguments", "message")

    def __init__(self, at: int, message: Json) -> None:
        self.at, self.message = at, message
        self.invalid_arguments: dict[int, str] = {}

    def set_fields(self, **fields: Any) -> None:
        """Replace the message by a copy with these fields set; the given message is not changed."""
        self.message = {**self.message, **fields}

    def drop(self, *names: str) -> None:
        """Replace the message by a copy without these fields; the given message is not changed."""
        self.message = {key: value for key, value in self.message.items() if key not in names}


class _Sanitizer:
    """The profile, the fields to restore, and the recorded changes of one history."""

    def __init__(self, profile: HistoryProfile, kept: Mapping[str, KeptFields]) -> None:
        self.profile, self.kept = profile, kept
        self.changes: list[HistoryChange] = []
        self.ids: dict[str, str] = {}

    def record(self, kind: str, item: _Message, message: str) -> None:
        """Append a change of the message `item` to `changes`; the caller makes the change itself."""
        self.changes.append(HistoryChange(kind, item.at, message))


# -- roles -------------------------------------------------------------------------------------------------------------


def _fix_roles(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Return the messages that are objects, with roles that the server knows: a synonym such as "function" is replaced
    by its role, "developer" by "system" if the server does not know it, any unknown role by "user". The others are
    omitted. Both are recorded."""
    out: list[_Message] = []
    for item in messages:
        fields = obj(item.message)
        if fields is None:
            sanitizer.record("no_message", item, "omitted: it is not an object")
            continue
        item.message = fields
        given = fields.get("role")
        role = _ROLES.get(given, given) if isinstance(given, str) else None
        if role == "developer" and not sanitizer.profile.developer:
            role = "system"
        if role not in ("system", "developer", "user", "assistant", "tool"):
            role = "user"
        if role != given:
            sanitizer.record("role", item, f"the role {given!r:.40} became {role!r}")
            item.set_fields(role=role)
        out.append(item)
    return out


# -- calls -------------------------------------------------------------------------------------------------------------


def _fix_calls(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Write all calls as the server accepts them: each has a name, and arguments that are a JSON object. Calls of other
    roles than the assistant's, and those without a name, are omitted and recorded. Returns the same list; its messages
    are changed."""
    for item in messages:
        if item.message["role"] == "assistant":
            _convert_function_call(sanitizer, item)
            if "tool_calls" in item.message:
                _fix_call_list(sanitizer, item)
        elif "tool_calls" in item.message or "function_call" in item.message:
            sanitizer.record("misplaced_calls", item, "only an assistant makes calls; others are omitted")
            item.drop("tool_calls", "function_call")
    return messages


def _convert_function_call(sanitizer: _Sanitizer, item: _Message) -> None:
    """Convert the legacy field `function_call` of a message to `tool_calls`, and record that. The field is dropped
    without a record if it is empty or no object, or if the message has `tool_calls` too."""
    if "function_call" not in item.message:
        return
    function = obj(item.message.get("function_call"))
    item.drop("function_call")
    if function and not item.message.get("tool_calls"):
        sanitizer.record("old_call", item, "function_call became tool_calls")
        item.set_fields(tool_calls=[{"type": "function", "function": function}])


def _fix_call_list(sanitizer: _Sanitizer, item: _Message) -> None:
    """Replace the `tool_calls` of an assistant message by fixed calls, without those that have no name; an empty list
    is removed from the message, which is recorded if it had calls."""
    given = items(item.message["tool_calls"])
    named: list[Json] = []
    for each in given:
        call = _fix_call(sanitizer, item, len(named), each)
        if call is not None:
            named.append(call)
    if not named:
        if given:
            sanitizer.record("no_calls", item, "its calls have no names and are omitted")
        item.drop("tool_calls")
    elif named != given:
        item.set_fields(tool_calls=named)


def _fix_call(sanitizer: _Sanitizer, item: _Message, at: int, given: Any) -> Json | None:
    """Return one call of a message as the server accepts it: the same object if nothing changes, None if it has no
    name, which is recorded. An entry that is no object gives None without a record. Custom calls are returned
    unchanged.

    `at` is the position that the call gets in its message."""
    if sanitizer.profile.arguments == "text" and _is_usual_call(given):
        return given  # type: ignore[no-any-return]
    call = obj(given)
    if call is None:
        return None
    if call.get("type") == "custom" and obj(call.get("custom")) is not None:
        return call
    function = obj(call.get("function")) or {key: call[key] for key in ("name", "arguments") if key in call}
    name = text(function.get("name")).strip()
    if not name:
        sanitizer.record("unnamed_call", item, "a call without a name is omitted")
        return None
    arguments = _fix_arguments(sanitizer, item, at, function.get("arguments"))
    others = {key: value for key, value in call.items() if key not in ("name", "arguments")}
    fixed = {**others, "type": "function", "function": {**function, "name": name, "arguments": arguments}}
    return call if fixed == call and type(arguments) is type(function.get("arguments")) else fixed


def _is_usual_call(call: Any) -> bool:
    """Return True if this is a function call that needs no fix: with a name, and arguments that are the text of an
    object. The id is not checked."""
    if type(call) is not dict or call.get("type") != "function" or "name" in call or "arguments" in call:
        return False
    function = call.get("function")
    if type(function) is not dict:
        return False
    name, given = function.get("name"), function.get("arguments")
    return type(name) is str and name != "" and name == name.strip() and type(given) is str and is_object_text(given)


def _fix_arguments(sanitizer: _Sanitizer, item: _Message, at: int, given: Any) -> Any:
    """Return the arguments of a call as the profile wants them, a text or an object. None and "" become `{}`; JSON in a
    string of JSON is decoded once more.

    A value that is not an object becomes `{}` and is stored in the message, so that the call's result quotes it.
    That, and a second decoding, are recorded.
    """
    value = decode(given, MAX_DEPTH) if isinstance(given, str) and given.strip() else given
    if isinstance(value, str) and value.strip():  # encoded twice
        inner = decode(value, MAX_DEPTH)
        if isinstance(inner, dict):
            sanitizer.record("double_encoded", item, "arguments were JSON in a string of JSON")
            given, value = value, inner
    if value is None or value == "":
        value, given = {}, "{}" if isinstance(given, str) else given
    if not isinstance(value, dict):
        quote = given if isinstance(given, str) else compact_json(given)
        is_short = len(quote) <= _MAX_QUOTED_ARGUMENTS
        item.invalid_arguments[at] = quote if is_short else quote[:_MAX_QUOTED_ARGUMENTS] + "..."
        message = "arguments that are not a JSON object became {}; the result quotes them"
        sanitizer.record("poisoned_arguments", item, message)
        value, given = {}, None
    if sanitizer.profile.arguments == "object":
        return value
    return given if isinstance(given, str) and given.strip() else compact_json(value)


# -- pairs of calls and results ----------------------------------------------------------------------------------------


class _PendingCall:
    """One call of the history, with its message and, once `_match_results` found it, its result."""

    def __init__(self, call: Json, item: _Message, invalid_arguments: str) -> None:
        self.call, self.item, self.invalid_arguments = call, item, invalid_arguments
        self.result: _Message | None = None

    @property
    def id(self) -> str:
        """Return the call's id, or "" if it has none."""
        return text(self.call.get("id"))

    @property
    def name(self) -> str:
        """Return the name of the call's tool."""
        return call_name(self.call)


def _pair_results(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Return the messages with each turn's results behind its calls, in the calls' order, with ids that the server
    accepts and that are used once. A call without a result gets one, and a result without a call becomes text or is
    omitted. Each change is recorded. The same list is returned if it is in order already."""
    if _are_paired(sanitizer, messages):
        return messages
    calls_of = {id(item): _list_calls(item) for item in messages if item.message["role"] == "assistant"}
    orphans = _match_results(messages, calls_of)
    out: list[_Message] = []
    used: set[str] = set()
    given_ids = {call.id for calls in calls_of.values() for call in calls}
    for item in messages:
        if item.message["role"] == "tool":
            if id(item) in orphans:
                out += _convert_to_text(sanitizer, item)
            continue
        out.append(item)
        if calls := calls_of.get(id(item)):
            _fix_ids(sanitizer, item, calls, used, given_ids)
            out += [_make_result(sanitizer, call) for call in calls]
    _record_moved(sanitizer, messages, out)
    return out


def _are_paired(sanitizer: _Sanitizer, messages: list[_Message]) -> bool:
    """Return True if `_pair_results` has nothing to do: all results follow their calls in order, every id is acceptable
    and used once, and no arguments were replaced."""
    waiting: list[str] = []
    used: set[str] = set()
    for item in messages:
        message = item.message
        if message["role"] == "tool":
            if not waiting or message.get("tool_call_id") != waiting.pop():
                return False
            continue
        if waiting or item.invalid_arguments:
            return False
        waiting = [text(call.get("id")) for call in reversed(items(message.get("tool_calls")))]
        used.update(waiting)
        if not all(waiting):
            return False
    nine = sanitizer.profile.ids == "nine"
    count = sum(len(items(item.message.get("tool_calls"))) for item in messages)
    return not waiting and len(used) == count and not (nine and not all(map(is_nine, used)))


def _list_calls(item: _Message) -> list[_PendingCall]:
    """Return the calls of an assistant message, with their invalid arguments. Their results are assigned by
    `_match_results`."""
    calls = enumerate(items(item.message.get("tool_calls")))
    return [_PendingCall(call, item, item.invalid_arguments.get(at, "")) for at, call in calls]


def _match_results(messages: list[_Message], calls_of: dict[int, list[_PendingCall]]) -> set[int]:
    """Assign each result to its call, and return the `id()` of each message with a result that has no call."""
    waiting: dict[str, deque[_PendingCall]] = {}
    last: list[_PendingCall] = []
    orphans: set[int] = set()
    for item in messages:
        if calls := calls_of.get(id(item)):
            last = calls
            for call in calls:
                waiting.setdefault(call.id, deque()).append(call)
        elif item.message["role"] == "tool":
            found = _find_call(item.message, waiting, last)
            if found is None:
                orphans.add(id(item))
            else:
                found.result = item
    return orphans


def _find_call(result: Json, waiting: dict[str, deque[_PendingCall]], last: list[_PendingCall]) -> _PendingCall | None:
    """Find the call that a result answers, remove it from `waiting` and return it; None if there is none.

    It is the first call without a result that has the result's id; if several messages use the id, the first of the
    newest message. For a result without a usable id it is the first call of `last`, the calls of the last turn, with
    the result's tool, or any tool if the result names none. `waiting` has the calls by id."""
    wanted = text(result.get("tool_call_id"))
    queue = waiting.get(wanted)
    while wanted and queue:
        newest = queue[-1].item
        call = next(each for each in queue if each.item is newest)
        queue.remove(call)
        if call.result is None:
            return call
    name = text(result.get("name")) or text(result.get("tool_name"))
    for call in last:
        if call.result is None and (not wanted or not call.id) and (not name or call.name == name):
            return call
    return None


def _fix_ids(
    sanitizer: _Sanitizer, item: _Message, calls: list[_PendingCall], used: set[str], given_ids: set[str]
) -> None:
    """Give the calls of one message ids that the server accepts, in the message and in `calls`, and add all to `used`.
    Acceptable ids that are not used yet are kept.

    A new id is a digest of the call, so it is the same when the history is sanitized again. It is recorded in
    `sanitizer.ids`."""
    ids: list[str] = []
    for call in calls:
        new = call.id
        if not new or new in used or (sanitizer.profile.ids == "nine" and not is_nine(new)):
            new = _new_id(sanitizer, call, len(used), used | given_ids)
            sanitizer.ids[new] = call.id
            sanitizer.record("id", item, f"the id {call.id!r:.60} of a call became {new!r}")
        used.add(new)
        ids.append(new)
    if ids != [call.id for call in calls]:
        item.set_fields(tool_calls=[{**call.call, "id": new} for call, new in zip(calls, ids, strict=True)])
    for call, new in zip(calls, ids, strict=True):
        call.call = {**call.call, "id": new}


def _new_id(sanitizer: _Sanitizer, call: _PendingCall, at: int, taken: set[str]) -> str:
    """Return an id for a call: a digest of its name, its old id and its number `at`, that is not in `taken`. It is not
    added."""
    for salt in range(len(taken) + 1):
        digest = hashlib.sha256(f"{at} {salt} {call.name} {call.id}".encode("utf-8", "surrogatepass")).digest()
        nine = "".join([ALPHABET[byte % len(ALPHABET)] for byte in digest[:9]])
        new = nine if sanitizer.profile.ids == "nine" else f"call_{digest.hex()[:24]}"
        if new not in taken:
            return new
    raise AssertionError("more ids were tried than are taken")


def _make_result(sanitizer: _Sanitizer, call: _PendingCall) -> _Message:
    """Return the result message of a call, with the call's id; if it has none, a new one which says so, which is
    recorded. A quotation of invalid arguments is appended to its content."""
    result = call.result
    if result is None:
        result = _Message(call.item.at, {"role": "tool", "tool_call_id": call.id, "content": NO_RESULT})
        message = f"a result was added for the call of {call.name!r:.60}, which had none"
        sanitizer.record("unanswered_call", call.item, message)
    elif result.message.get("tool_call_id") != call.id:
        result.set_fields(tool_call_id=call.id)
    if call.invalid_arguments:
        content = _plain_text(result.message.get("content"))
        quote = _INVALID_ARGUMENTS + call.invalid_arguments
        result.set_fields(content=f"{content}\n({quote})" if content else quote)
    return result


def _plain_text(content: Any) -> str:
    """Return a message's content as text: a string unchanged, "" for None, anything else as JSON."""
    return content if isinstance(content, str) else "" if content is None else output_text(content)


def _convert_to_text(sanitizer: _Sanitizer, item: _Message) -> list[_Message]:
    """Turn a result without a call into a user message that quotes it, and return it in a list; an empty list if the
    result is empty. Both are recorded."""
    content = _plain_text(item.message.get("content"))
    if not content:
        sanitizer.record("orphan_result", item, "an empty result without a call is omitted")
        return []
    sanitizer.record("orphan_result", item, "a result without a call became text")
    name = text(item.message.get("name"))
    item.message = {"role": "user", "content": f"Result of an earlier call{f' of {name}' if name else ''}:\n{content}"}
    return [item]


def _record_moved(sanitizer: _Sanitizer, before: list[_Message], after: list[_Message]) -> None:
    """Record one change, for the first message out of order, if the messages of `before` that are still in `after` have
    another order there; otherwise do nothing. No message is moved here."""
    places = {id(item): at for at, item in enumerate(before)}
    kept = [places[id(item)] for item in after if id(item) in places]
    for at, (place, sorted_place) in enumerate(zip(kept, sorted(kept), strict=True)):
        if place != sorted_place:
            message = "results were moved behind the turn that made their calls, into its order"
            sanitizer.record("moved", before[kept[at]], message)
            return


# -- reasoning and opaque fields ---------------------------------------------------------------------------------------


def _fix_reasoning(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """In the assistant's messages, restore the fields that a client dropped, and move reasoning to the key that the
    server knows. Returns the same list; its messages are changed."""
    may_add = sanitizer.profile.needs_reasoning or bool(sanitizer.kept)
    for item in messages:
        if item.message["role"] == "assistant" and (may_add or not _has_no_reasoning(item.message)):
            _restore_fields(sanitizer, item)
            _fix_reasoning_key(sanitizer, item)
    return messages


def _restore_fields(sanitizer: _Sanitizer, item: _Message) -> None:
    """Add to a message with calls the fields in `sanitizer.kept` that the provider requires back with them, and record
    that. Fields that the message has are not replaced, and reasoning under any key counts as present."""
    calls = item.message.get("tool_calls")
    if not calls or not sanitizer.kept:
        return
    ids = [text(call.get("id")) for call in calls]
    known = [sanitizer.kept.get(id) or sanitizer.kept.get(sanitizer.ids.get(id, "")) for id in ids]
    fields = {key: value for kept in known if kept is not None for key, value in kept.message.items()}
    missing = {key: value for key, value in fields.items() if not item.message.get(key)}
    if any(item.message.get(key) for key in REASONING_KEYS):
        missing = {key: value for key, value in missing.items() if key not in REASONING_KEYS}
    restored = [{**(kept.call if kept is not None else {}), **call} for kept, call in zip(known, calls, strict=True)]
    if missing or restored != calls:
        sanitizer.record("put_back", item, "fields that the provider requires back were missing, and are restored")
        item.set_fields(**missing, tool_calls=restored)


def _fix_reasoning_key(sanitizer: _Sanitizer, item: _Message) -> None:
    """Write the reasoning of a message under the server's key, or omit it if the server takes none. If reasoning is
    required next to calls and missing, it is one blank. Join text to it if only one of them is accepted next to calls.
    Each change is recorded."""
    message, profile = item.message, sanitizer.profile
    key, calls = profile.reasoning, message.get("tool_calls")
    given = [message[each] for each in REASONING_KEYS if isinstance(message.get(each), str)]
    reasoning = next((each for each in given if each.strip()), "")
    content = reasoning or (" " if profile.needs_reasoning and calls else message.get(key)) if key else None
    fit = {key: content} if isinstance(content, str) else {}
    before = {each: message[each] for each in REASONING_KEYS if each in message}
    if before != fit:
        change = f"reasoning is sent as {key}" if fit else "reasoning is omitted: the server accepts none"
        sanitizer.record("reasoning", item, change)
        item.drop(*REASONING_KEYS)
        item.set_fields(**fit)
    text_content = item.message.get("content")
    if profile.one_voice and key and reasoning and text_content and calls:
        joined = _join_parts(text_content) if isinstance(text_content, list) else str(text_content)
        sanitizer.record("reasoning", item, "next to calls there is text or reasoning: the text joins the reasoning")
        item.set_fields(**{key: f"{reasoning}\n{joined}", "content": ""})


# -- fields and content ------------------------------------------------------------------------------------------------


def _fix_fields(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Remove fields that the server rejects, and empty lists of calls, from the messages, and record them. Returns the
    same list."""
    fields, reasoning = sanitizer.profile.fields, sanitizer.profile.reasoning
    allowed = None if fields is None else fields | _REQUIRED_FIELDS | ({reasoning} if reasoning else set())
    for item in messages:
        message = item.message
        refused: list[str] = []
        if allowed is not None and not message.keys() <= allowed:
            refused = [key for key in message if key not in allowed]
        if not message.get("tool_calls", True):
            refused.append("tool_calls")
        if refused:
            names = ", ".join(map(str, refused))[:120]
            sanitizer.record("field", item, f"omitted, because the server refuses it: {names}")
            item.drop(*refused)
    return messages


def _fix_content(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Return the messages with their content as text, or as parts if the server accepts them. An assistant turn without
    content, calls and reasoning is omitted. Changes are recorded."""
    out: list[_Message] = []
    for item in messages:
        if _is_empty_turn(item.message):
            sanitizer.record("empty_turn", item, "a turn without text or calls is omitted")
            continue
        given = item.message.get("content")
        if type(given) is str and given:
            out.append(item)
            continue
        fit = _acceptable_content(sanitizer, item.message)
        if fit != given or "content" not in item.message:
            if given is not None or not item.message.get("tool_calls"):
                sanitizer.record("content", item, f"content {_describe(given)} became {_describe(fit)}")
            else:
                sanitizer.record("content", item, f"next to calls, no content is written as {_describe(fit)}")
            item.set_fields(content=fit)
        out.append(item)
    return out


def _is_empty_turn(message: Json) -> bool:
    """Return True if this is an assistant's turn without content, calls, reasoning, refusal and audio."""
    if message["role"] != "assistant" or message.get("tool_calls"):
        return False
    return not message.get("content") and not any(message.get(key) for key in (*REASONING_KEYS, "refusal", "audio"))


def _acceptable_content(sanitizer: _Sanitizer, message: Json) -> Any:
    """Return the content of a message in the form that the server accepts; the message is not changed, and nothing is
    recorded. Missing or empty content of an assistant is what the profile wants next to calls, else ""; missing content
    of other roles is "". A list that the server does not take becomes text, any other value JSON."""
    content, role, profile = message.get("content"), message["role"], sanitizer.profile
    if role == "assistant" and not content:
        blank = profile.blank if message.get("tool_calls") else "empty"
        if blank == "either" and "content" in message and content in (None, ""):
            return content
        return None if blank == "null" else ""
    if content is None:
        return ""
    if isinstance(content, list):
        takes_parts = profile.result_parts if role == "tool" else profile.parts
        has_types = all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in content)
        return content if takes_parts and content and has_types else _join_parts(content)
    return content if isinstance(content, str) else output_text(content)


def _join_parts(content: list[Any]) -> str:
    """Return parts as one text, separated by line breaks. A part that is not text becomes a note that names its
    type."""
    return "\n".join([_part_text(part) for part in content])


def _part_text(part: Any) -> str:
    """Return one part of a message's content as text: a string unchanged, of an object its `text`, and without one a
    note that names its type. An object with neither, or another value, is written as JSON; None is ""."""
    if isinstance(part, str):
        return part
    fields = obj(part)
    if fields is None:
        return "" if part is None else output_text(part)
    content = fields.get("text")
    if isinstance(content, str):
        return content
    kind = text(fields.get("type"))
    return f"({kind} was here; it cannot be sent)" if kind else output_text(fields)


def _describe(content: Any) -> str:
    """Return a phrase for a message's content, by its type: "an empty string", "null", "text", or "of the type
    list"."""
    if content == "":
        return "an empty string"
    if content is None:
        return "null"
    return "text" if isinstance(content, str) else f"of the type {type(content).__name__}"


# -- the order of messages ---------------------------------------------------------------------------------------------


def _fix_order(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Return the messages in an order that the profile accepts: system messages first, an assistant between results and
    a user, users and assistants in turn. Messages are merged, turned into a user's, or inserted, but never moved; each
    change is recorded."""
    if sanitizer.profile.system == "first":
        messages = _put_system_first(sanitizer, messages)
    if sanitizer.profile.answers_first:
        messages = _answer_results(sanitizer, messages)
    return _alternate_roles(sanitizer, messages) if sanitizer.profile.alternates else messages


def _put_system_first(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Merge the leading system and developer messages into the first one and return the messages. A later one keeps its
    place and becomes a user message. Both are recorded."""
    lead = 0
    while lead < len(messages) and messages[lead].message["role"] in ("system", "developer"):
        lead += 1
    for item in messages[lead:]:
        if item.message["role"] in ("system", "developer"):
            sanitizer.record("late_system", item, "a system message that is not the first became a user message")
            item.set_fields(role="user")
    if lead > 1:
        _merge_messages(sanitizer, messages[:lead], "several system messages are merged")
        return [messages[0], *messages[lead:]]
    return messages


def _answer_results(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Return the messages with an assistant message inserted, and recorded, before each user message that directly
    follows results."""
    out: list[_Message] = []
    for item in messages:
        if out and out[-1].message["role"] == "tool" and item.message["role"] == "user":
            sanitizer.record("role_order", item, "after results, an assistant message must precede a user message")
            out.append(_Message(item.at, {"role": "assistant", "content": ASSISTANT_FILLER}))
        out.append(item)
    return out


def _alternate_roles(sanitizer: _Sanitizer, messages: list[_Message]) -> list[_Message]:
    """Return the messages with adjacent messages of the user merged, and those of the assistant too, and with a user
    message inserted if the first message after the system's is the assistant's. Each change is recorded."""
    out: list[_Message] = []
    for item in messages:
        role, before = item.message["role"], out[-1].message["role"] if out else "system"
        if before == "system" and role == "assistant":
            sanitizer.record("role_order", item, "a user message must be the first")
            out.append(_Message(item.at, {"role": "user", "content": USER_FILLER}))
        elif role == before and role in ("user", "assistant"):
            _merge_messages(sanitizer, [out[-1], item], f"two messages in a row with the role {role} are merged")
            continue
        out.append(item)
    return out


def _merge_messages(sanitizer: _Sanitizer, messages: list[_Message], reason: str) -> None:
    """Merge messages into the first, in place: their contents and reasoning in order; of any other field the last value
    counts. Record each of the others with this reason; they are not changed, and the caller leaves them out."""
    first, *others = messages
    for item in others:
        sanitizer.record("role_order", item, reason)
        before, after = first.message, item.message
        merged = {**before, **after, "content": _join_contents(before.get("content"), after.get("content"))}
        for key in REASONING_KEYS:
            if before.get(key) and after.get(key):
                merged[key] = f"{before[key]}\n{after[key]}"
        first.message = merged


def _join_contents(first: Any, second: Any) -> Any:
    """Return two contents as one: a list of parts if either is one, else text with an empty line between. Empty text
    adds nothing."""
    if isinstance(first, list) or isinstance(second, list):
        parts: list[Any] = []
        for content in (first, second):
            parts += content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        return parts
    return "\n\n".join([content for content in (first, second) if content])


_Step = Callable[[_Sanitizer, list[_Message]], list[_Message]]
_STEPS: tuple[_Step, ...] = (
    _fix_roles,
    _fix_calls,
    _pair_results,
    _fix_reasoning,
    _fix_fields,
    _fix_content,
    _fix_order,
)
