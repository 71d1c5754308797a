"""The histories that servers accept, in the shape of OpenAI's Chat: profiles as data, and a check against a profile.

    HISTORY_PROFILES["mistral"].ids  # "nine"
    history_faults(history, profile="mistral")

A profile lists what a server rejects: a history that its profile accepts is sent unchanged. `strict` is the narrowest
of the profiles with arguments as text, for an unknown server. The check shares no code with the sanitizer, so that it
can verify the sanitizer's result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec

from rightcall.errors import CallerError
from rightcall.ids import is_nine
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Json

# -- profiles ----------------------------------------------------------------------------------------------------------

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
_CHAT_FIELDS = frozenset("role content name tool_calls tool_call_id".split())


class HistoryProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that one kind of server accepts in a request.

    - `name`: the name of the profile.
    - `who`: the servers and templates that it describes.
    - `ids`: "any" id that is not empty and not repeated, or "nine" letters and digits.
    - `arguments`: a call's arguments are JSON "text", or the "object" itself.
    - `alternates`: users and assistants take turns; two messages in a row with one role are rejected.
    - `answers_first`: after results, an assistant message must precede a user message.
    - `system`: system messages are accepted "anywhere", or only one, as the "first" message.
    - `developer`: the server knows the role `developer`; otherwise such a message is sent as a system message.
    - `blank`: the content next to calls if there is no text: "null", "empty" (a string), or "either".
    - `parts`: content may be a list of parts; otherwise it is a string.
    - `result_parts`: the same for a result.
    - `reasoning`: the key of reasoning that is sent back; empty if the server rejects it.
    - `needs_reasoning`: reasoning is required next to calls, and must not be empty.
    - `one_voice`: next to calls the server accepts text or reasoning, not both.
    - `fields`: the keys that a message may have; None if the server ignores others.
    """

    name: str
    who: str
    ids: Literal["any", "nine"] = "any"
    arguments: Literal["text", "object"] = "text"
    alternates: bool = False
    answers_first: bool = False
    system: Literal["anywhere", "first"] = "anywhere"
    developer: bool = False
    blank: Literal["null", "empty", "either"] = "either"
    parts: bool = True
    result_parts: bool = False
    reasoning: str = ""
    needs_reasoning: bool = False
    one_voice: bool = False
    fields: frozenset[str] | None = None


_PROFILES = (
    HistoryProfile(
        name="openai",
        who="OpenAI, Azure, most hosted APIs",
        developer=True,
        result_parts=True,
        fields=_CHAT_FIELDS | {"refusal", "audio"},
    ),
    HistoryProfile(name="vllm", who="vLLM, SGLang", reasoning="reasoning_content"),
    HistoryProfile(
        name="llama_cpp", who="llama.cpp, llamafile, LM Studio", blank="empty", reasoning="reasoning_content"
    ),
    HistoryProfile(
        name="ollama",
        who="Ollama's own API",
        arguments="object",
        blank="empty",
        parts=False,
        reasoning="thinking",
    ),
    HistoryProfile(
        name="mistral",
        who="Mistral's API and templates",
        ids="nine",
        alternates=True,
        answers_first=True,
        system="first",
        blank="empty",
        fields=_CHAT_FIELDS,
    ),
    HistoryProfile(name="gemma", who="Gemma's templates", alternates=True, system="first", blank="empty"),
    HistoryProfile(name="llama3", who="Llama 3's templates", system="first", blank="empty", parts=False),
    HistoryProfile(
        name="deepseek",
        who="DeepSeek's API with thinking on",
        blank="either",
        reasoning="reasoning_content",
        needs_reasoning=True,
    ),
    HistoryProfile(
        name="kimi",
        who="Kimi's API with thinking on",
        blank="empty",
        reasoning="reasoning_content",
        needs_reasoning=True,
    ),
    HistoryProfile(name="gpt_oss", who="gpt-oss templates", reasoning="thinking", one_voice=True, blank="empty"),
    HistoryProfile(
        name="strict",
        who="any server that is not known",
        ids="nine",
        alternates=True,
        answers_first=True,
        system="first",
        blank="empty",
        parts=False,
        fields=_CHAT_FIELDS,
    ),
)
HISTORY_PROFILES: dict[str, HistoryProfile] = {profile.name: profile for profile in _PROFILES}


def history_profile(profile: str | HistoryProfile) -> HistoryProfile:
    """Return the profile of this name; a profile is returned unchanged. Raises `CallerError` for an unknown name."""
    if isinstance(profile, HistoryProfile):
        return profile
    found = HISTORY_PROFILES.get(profile)
    if found is None:
        raise CallerError(f"unknown history profile {profile!r}; the profiles are {', '.join(HISTORY_PROFILES)}")
    return found


# -- checks ------------------------------------------------------------------------------------------------------------


def history_faults(history: Sequence[Any], *, profile: str | HistoryProfile = "openai") -> list[str]:
    """Return what a server of this `profile` would reject in this `history` of messages in the shape of OpenAI's Chat,
    one sentence per fault, in order; an empty list if nothing. The pairs of calls and results, and the order of roles,
    are checked only if no message has a fault of its own. Raises `CallerError` for an unknown profile."""
    found = history_profile(profile)
    faults = [
        f"message {at}: {fault}" for at, message in enumerate(history) for fault in _message_faults(message, found)
    ]
    return faults or [*_pairing_faults(history), *_order_faults(history, found)]


def _message_faults(message: Any, profile: HistoryProfile) -> Iterator[str]:
    """Yield the faults of one message: its role, content, fields, reasoning, calls, and the id of a result. The first
    two, "is not an object" and an unknown role, end the check."""
    if not isinstance(message, dict):
        yield "is not an object"
        return
    role = message.get("role")
    roles = ("system", "user", "assistant", "tool", *(("developer",) if profile.developer else ()))
    if role not in roles:
        yield f"has the role {role!r:.40}"
        return
    yield from _content_faults(message, profile)
    yield from _field_faults(message, profile)
    if role == "assistant":
        if not any(message.get(key) for key in ("content", "tool_calls", profile.reasoning, "refusal", "audio")):
            yield "has neither content nor calls"
        yield from _reasoning_faults(message, profile)
        for call in message.get("tool_calls", ()):
            yield from _call_faults(call, profile)
    elif role == "tool" and not _is_nonempty_text(message.get("tool_call_id")):
        yield "is a result without the id of a call"


def _content_faults(message: Json, profile: HistoryProfile) -> Iterator[str]:
    """Yield at most one fault of a message's content: its type, its parts, that it is missing, or an empty string where
    the profile wants null."""
    content, role = message.get("content"), message["role"]
    if isinstance(content, list):
        yield from _part_faults(content, profile.result_parts if role == "tool" else profile.parts)
    elif content is None:
        if not _may_lack_content(message, profile):
            yield "has no content"
    elif not isinstance(content, str):
        yield "has content that is not text"
    elif content == "" and role == "assistant" and message.get("tool_calls") and profile.blank == "null":
        yield "has an empty string where the server takes null"


def _part_faults(parts: list[Any], accepted: bool) -> Iterator[str]:
    """Yield at most one fault of content that is a list of parts: the server takes no parts (`accepted` is False), or
    the list is empty or has a part without a type."""
    if not accepted:
        yield "has parts where the server takes a string"
    elif not parts or not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
        yield "has parts without a type"


def _may_lack_content(message: Json, profile: HistoryProfile) -> bool:
    """Return True if the server accepts null as the content of this message: an assistant's with a refusal, audio, or
    calls unless the profile wants an empty string next to these."""
    if message["role"] != "assistant":
        return False
    return bool(
        message.get("refusal") or message.get("audio") or (profile.blank != "empty" and message.get("tool_calls"))
    )


def _field_faults(message: Json, profile: HistoryProfile) -> Iterator[str]:
    """Yield the faults of a message's keys: an empty list of calls, the legacy `function_call`, calls in a message that
    is not the assistant's, and keys that the profile does not list."""
    if "tool_calls" in message and not message["tool_calls"]:
        yield "has an empty list of calls"
    if "function_call" in message:
        yield "has the field function_call, which came before tool_calls"
    if message["role"] != "assistant" and "tool_calls" in message:
        yield "has calls, and is not the assistant's"
    if profile.fields is not None:
        allowed = profile.fields | {profile.reasoning, "role", "content", "tool_calls", "tool_call_id"}
        if unknown := [key for key in message if key not in allowed]:
            yield f"has the fields {unknown!r:.80}"


def _reasoning_faults(message: Json, profile: HistoryProfile) -> Iterator[str]:
    """Yield the faults of a message's reasoning: a wrong key, or next to calls missing reasoning, or text and reasoning
    where the server takes one. Blank reasoning counts as present."""
    for key in REASONING_KEYS:
        if key in message and key != profile.reasoning:
            yield f"has the field {key}"
    reasoning = message.get(profile.reasoning)
    if message.get("tool_calls"):
        if profile.needs_reasoning and not reasoning:
            yield f"needs {profile.reasoning} next to its calls"
        if profile.one_voice and reasoning and message.get("content"):
            yield "has both text and reasoning next to its calls"


def _call_faults(call: Any, profile: HistoryProfile) -> Iterator[str]:
    """Yield the faults of one call: its type, id, name and arguments. The name and input of a custom call are not
    checked."""
    if not isinstance(call, dict) or call.get("type") not in ("function", "custom"):
        yield "has a call that is not a function call or a custom call"
        return
    if not _is_accepted_id(call.get("id"), profile):
        yield f"has a call with the id {call.get('id')!r:.40}"
    if call["type"] == "custom":
        return
    function: Any = call.get("function")
    if not _has_name(function):
        yield "has a call without a name"
        return
    given = function.get("arguments")
    if not isinstance(given, str if profile.arguments == "text" else dict):
        yield f"has arguments of the type {type(given).__name__}"
    elif isinstance(given, str) and not isinstance(decode(given, MAX_DEPTH), dict):
        yield "has arguments that are not a JSON object"


def _is_accepted_id(id: Any, profile: HistoryProfile) -> bool:
    """Return True if the value is a string that is not empty, and of nine letters and digits if the profile requires
    it."""
    return _is_nonempty_text(id) and (profile.ids != "nine" or is_nine(id))


def _is_nonempty_text(value: Any) -> bool:
    """Return True for a string that is not empty; a blank one counts."""
    return isinstance(value, str) and value != ""


def _has_name(function: Any) -> bool:
    """Return True for an object with a `name` that is not blank."""
    return isinstance(function, dict) and isinstance(function.get("name"), str) and bool(function["name"].strip())


def _pairing_faults(history: Sequence[Json]) -> Iterator[str]:
    """Yield a fault for each result without an open call, each call that the next message that is no result leaves
    without a result, and each id that is used twice. Results of one turn may have any order."""
    open_ids: set[str] = set()
    used: set[str] = set()
    for at, message in enumerate(history):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                yield f"message {at}: answers no call"
            open_ids.discard(message["tool_call_id"])
            continue
        if open_ids:
            yield f"message {at}: comes before {len(open_ids)} calls were answered"
        ids = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(ids)) < len(ids) or used & set(ids):
            yield f"message {at}: has a call with an id that was used before"
        used |= set(ids)
        open_ids = set(ids)
    if open_ids:
        yield f"{len(open_ids)} calls at the end have no result"


def _order_faults(history: Sequence[Json], profile: HistoryProfile) -> Iterator[str]:
    """Yield the faults of the order of roles, as far as the profile forbids them: late system messages, a first message
    of the assistant, turns that do not alternate, and a user message right after results."""
    roles = [message["role"] for message in history]
    if profile.system == "first" and any(role in ("system", "developer") for role in roles[1:]):
        yield "a system message is not the first, or not the only one"
    others = [role for role in roles if role != "system"]
    if profile.alternates and others[:1] == ["assistant"]:
        yield "the first message is the assistant's"
    for role, next_role in pairwise(others):
        if profile.alternates and role == next_role and role != "tool":
            yield f"two messages in a row have the role {role}"
        if profile.answers_first and (role, next_role) == ("tool", "user"):
            yield "a user message follows results, before an assistant message"
