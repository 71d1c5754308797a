"""What a message holds, as a server takes it: text or parts, reasoning, and no field that it refuses."""

from __future__ import annotations

from typing import Any

from rightcall.providers.histories.history_profiles import REASONING_KEYS
from rightcall.providers.histories.history_work import HistoryItem, HistoryWork
from rightcall.providers.outgoing import output_text
from rightcall.providers.sdk_view import obj, text
from rightcall.types import Json

_ALWAYS = frozenset(("role", "content", "tool_calls", "tool_call_id"))
_UNTHOUGHT = frozenset(REASONING_KEYS).isdisjoint


def fit_content(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    """Content that is text, or parts where those are taken. A turn of an assistant that says nothing is left out."""
    out: list[HistoryItem] = []
    for item in messages:
        if _is_silent(item.message):
            work.tell("empty_turn", item, "a turn without text or calls is left out")
            continue
        had = item.message.get("content")
        if type(had) is str and had:
            out.append(item)
            continue
        fit = _content(work, item.message)
        if fit != had or "content" not in item.message:
            if had is not None or not item.message.get("tool_calls"):
                work.tell("content", item, f"content {_kind(had)} became {_kind(fit)}")
            else:
                work.tell("content", item, f"beside calls, no content is written as {_kind(fit)}")
            item.put(content=fit)
        out.append(item)
    return out


def _kind(content: Any) -> str:
    if content == "":
        return "an empty string"
    return (
        "null" if content is None else "text" if isinstance(content, str) else f"of the type {type(content).__name__}"
    )


def _is_silent(message: Json) -> bool:
    if message["role"] != "assistant" or message.get("tool_calls"):
        return False
    return not message.get("content") and not any(message.get(key) for key in (*REASONING_KEYS, "refusal", "audio"))


def _content(work: HistoryWork, message: Json) -> Any:
    content, role = message.get("content"), message["role"]
    if role == "assistant" and not content:
        blank = work.profile.blank if message.get("tool_calls") else "empty"
        if blank == "either" and "content" in message and content in (None, ""):
            return content
        return None if blank == "null" else ""
    if content is None:
        return ""
    if isinstance(content, list):
        takes = work.profile.result_parts if role == "tool" else work.profile.parts
        return content if takes and _are_parts(content) else flat(content)
    return content if isinstance(content, str) else output_text(content)


def _are_parts(content: list[Any]) -> bool:
    return bool(content) and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in content)


def flat(content: list[Any]) -> str:
    """Parts as text; one that is no text is named."""
    return "\n".join([_part(part) for part in content])


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    found = obj(part)
    if found is None:
        return "" if part is None else output_text(part)
    said = found.get("text")
    if isinstance(said, str):
        return said
    kind = text(found.get("type"))
    return f"({kind} was here; it cannot be sent)" if kind else output_text(found)


def fit_reasoning(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    """Reasoning goes back under the name the server knows, and fields that a client dropped are put back."""
    for item in messages:
        if item.message["role"] == "assistant" and (_asks_more(work) or not _UNTHOUGHT(item.message)):
            _put_back(work, item)
            _fit_thought(work, item)
    return messages


def _asks_more(work: HistoryWork) -> bool:
    """May something have to be put where there is no reasoning?"""
    return work.profile.needs_reasoning or bool(work.kept)


def _put_back(work: HistoryWork, item: HistoryItem) -> None:
    calls = item.message.get("tool_calls")
    if not calls or not work.kept:
        return
    known = [
        work.kept.get(text(call.get("id"))) or work.kept.get(work.ids.get(text(call.get("id")), "")) for call in calls
    ]
    fields = {key: value for kept in known if kept is not None for key, value in kept.message.items()}
    missing = {key: value for key, value in fields.items() if not item.message.get(key)}
    if any(item.message.get(key) for key in REASONING_KEYS):
        missing = {key: value for key, value in missing.items() if key not in REASONING_KEYS}
    full = [{**(kept.call if kept is not None else {}), **call} for kept, call in zip(known, calls, strict=True)]
    if missing or full != calls:
        work.tell("put_back", item, "what the provider wants back was not there, and is put back")
        item.put(**missing, tool_calls=full)


def _fit_thought(work: HistoryWork, item: HistoryItem) -> None:
    message, wanted = item.message, work.profile.reasoning
    said = [message[key] for key in REASONING_KEYS if isinstance(message.get(key), str)]
    thought = next((each for each in said if each.strip()), "")
    needed = work.profile.needs_reasoning and bool(message.get("tool_calls"))
    fit = thought or (" " if needed else message.get(wanted)) if wanted else None
    fits = {wanted: fit} if isinstance(fit, str) else {}
    had = {key: message[key] for key in REASONING_KEYS if key in message}
    if had != fits:
        where = f"as {wanted}" if fits else "nowhere: the server takes none"
        work.tell("reasoning", item, f"reasoning goes back {where}")
        item.drop(*REASONING_KEYS)
        item.put(**fits)
    _one_voice(work, item, thought if wanted else "")


def _one_voice(work: HistoryWork, item: HistoryItem, thought: str) -> None:
    said = item.message.get("content")
    if not (work.profile.one_voice and thought and said and item.message.get("tool_calls")):
        return
    joined = flat(said) if isinstance(said, list) else str(said)
    work.tell("reasoning", item, "beside calls there is text or reasoning: the text goes with the reasoning")
    item.put(**{work.profile.reasoning: f"{thought}\n{joined}", "content": ""})


def fit_fields(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    """Fields that the server refuses are left out; so are those that say nothing."""
    fields = work.profile.fields
    known = None if fields is None else fields | _ALWAYS | {work.profile.reasoning}
    for item in messages:
        if item.message.get("tool_calls", True) and (known is None or item.message.keys() <= known):
            continue
        refused = [key for key in item.message if not _may_stand(key, item.message, fields, work.profile.reasoning)]
        if refused:
            work.tell("field", item, f"left out, since the server refuses it: {', '.join(map(str, refused))[:120]}")
            item.drop(*refused)
    return messages


def _may_stand(key: str, message: Json, fields: frozenset[str] | None, reasoning: str) -> bool:
    if key == "tool_calls" and not message[key]:
        return False
    return key in _ALWAYS or fields is None or key in fields or bool(reasoning and key == reasoning)
