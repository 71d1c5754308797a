"""How an answer is to be written, under Chat's names, and where each dialect says it.

    said("gemini", {"top_p": 0.9})          ->   {"generationConfig": {"topP": 0.9}}
    read_sampling("ollama", {"options": {"top_p": 0.9}})   ->   {"top_p": 0.9}

`temperature`, the limit on tokens, `seed` and `stop` are fields of a `Request` of their own and not in here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from rightcall.api_names import Api
from rightcall.providers.sdk_view import obj, text
from rightcall.tools.provider_forms import from_openapi, is_openapi
from rightcall.types import Json

_OPENAI = (
    *("top_p", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format"),
    *("reasoning_effort", "verbosity", "user", "metadata", "service_tier", "prompt_cache_key", "safety_identifier"),
)
_LOCAL = ("top_k", "min_p", "repetition_penalty")  # of servers that speak Chat too; OpenAI's own refuses them
_OPTIONS = ("top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty")
_CONFIG = "generationConfig"

# Where each dialect says it: the way to a field of the body.
PLACES: dict[Api, dict[str, tuple[str, ...]]] = {
    "chat": {name: (name,) for name in (*_OPENAI, *_LOCAL)},
    "completions": {name: (name,) for name in (*_OPENAI[:6], *_LOCAL)},
    "responses": {
        **{name: (name,) for name in ("top_p", "top_logprobs", *_OPENAI[9:])},
        "reasoning_effort": ("reasoning", "effort"),
        "verbosity": ("text", "verbosity"),
        "response_format": ("text", "format"),
    },
    "messages": {
        **{name: (name,) for name in ("top_p", "top_k")},
        "reasoning_effort": ("output_config", "effort"),
        "response_format": ("output_config", "format"),
        "user": ("metadata", "user_id"),
    },
    "ollama": {
        **{name: ("options", name) for name in _OPTIONS},
        "repetition_penalty": ("options", "repeat_penalty"),
        "response_format": ("format",),
        "logprobs": ("logprobs",),
        "top_logprobs": ("top_logprobs",),
    },
    "gemini": {
        "top_p": (_CONFIG, "topP"),
        "top_k": (_CONFIG, "topK"),
        "presence_penalty": (_CONFIG, "presencePenalty"),
        "frequency_penalty": (_CONFIG, "frequencyPenalty"),
        "logprobs": (_CONFIG, "responseLogprobs"),
        "top_logprobs": (_CONFIG, "logprobs"),
        "reasoning_effort": (_CONFIG, "thinkingConfig", "thinkingLevel"),
        "response_format": (_CONFIG,),
    },
}


def said(api: Api, sampling: Mapping[str, Any], *, local: bool = True) -> Json:
    """The fields of a body of this dialect; what it has no place for is left out. `local=False`: the server is
    OpenAI's own, which knows only its own fields."""
    body: Json = {}
    for name, value in sampling.items():
        place = PLACES[api].get(name)
        if place is None or (not local and api == "chat" and name in _LOCAL):
            continue
        write = _WRITTEN.get((api, name))
        given = value if write is None else write(value)
        if given is not None:
            _put(body, place, given)
    return body


def unsayable(api: Api, sampling: Mapping[str, Any], *, local: bool = True) -> list[str]:
    """The names of what this dialect cannot say."""
    places = PLACES[api]
    return [name for name in sampling if name not in places or (not local and api == "chat" and name in _LOCAL)]


def read_sampling(api: Api, body: Json) -> Json:
    """What a body of this dialect says, under Chat's names."""
    found: Json = {}
    for name, place in PLACES[api].items():
        if place[0] not in body and _snake(place[0]) not in body:
            continue
        given = _at(body, place)
        read = _READ.get((api, name))
        value = given if read is None or given is None else read(given)
        if value is not None:
            found[name] = value
    return found


def merged(body: Json, more: Json) -> Json:
    """Two bodies as one: objects that both have are joined, else the second wins."""
    out = dict(body)
    for key, value in more.items():
        before = out.get(key)
        out[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return out


def _put(body: Json, place: tuple[str, ...], value: Any) -> None:
    *way, last = place
    for step in way:
        body = body.setdefault(step, {})
    before = body.get(last)
    body[last] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value


def _at(body: Any, place: tuple[str, ...]) -> Any:
    for step in place:
        found = obj(body)
        if found is None:
            return None
        body = found.get(step)
        if body is None:
            body = found.get(_snake(step))
    return body


@cache
def _snake(name: str) -> str:
    return "".join(["_" + char.lower() if char.isupper() else char for char in name])


# -- formats of an answer, in the words of each dialect ----------------------------------------------------------------


def _schema_of(format: Any) -> Json | None:
    """The schema that Chat's `response_format` asks for; {} for any JSON, None for text."""
    found = obj(format) or {}
    if found.get("type") == "json_object":
        return {}
    inner = obj(found.get("json_schema")) or {}
    return obj(inner.get("schema")) or {} if found.get("type") == "json_schema" else None


def _chat_format(schema: Json, name: str = "") -> Json:
    if not schema:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": name or "answer", "schema": schema}}


def _responses_format(format: Any) -> Any:
    found = obj(format) or {}
    inner = obj(found.get("json_schema"))
    return {"type": "json_schema", "name": "answer", **inner} if inner is not None else found or None


def _from_responses(format: Any) -> Any:
    found = obj(format) or {}
    if found.get("type") != "json_schema":
        return None if found.get("type") == "text" else found or None
    return {"type": "json_schema", "json_schema": {key: value for key, value in found.items() if key != "type"}}


def _messages_format(format: Any) -> Any:
    schema = _schema_of(format)
    return {"type": "json_schema", "schema": schema} if schema else None


def _from_messages(format: Any) -> Any:
    schema = obj((obj(format) or {}).get("schema"))
    return None if schema is None else _chat_format(schema)


def _ollama_format(format: Any) -> Any:
    schema = _schema_of(format)
    return None if schema is None else schema or "json"


def _from_ollama(format: Any) -> Any:
    return _chat_format({}) if format == "json" else _chat_format(found) if (found := obj(format)) else None


def _gemini_format(format: Any) -> Any:
    schema = _schema_of(format)
    if schema is None:
        return None
    return {"responseMimeType": "application/json", **({"responseJsonSchema": schema} if schema else {})}


def _from_gemini(config: Any) -> Any:
    for name in ("responseJsonSchema", "responseSchema"):
        schema = obj(_at(config, (name,)))
        if schema is not None:
            return _chat_format(from_openapi(schema) if is_openapi(schema) else schema)
    return _chat_format({}) if text(_at(config, ("responseMimeType",))) == "application/json" else None


def _lower(value: Any) -> Any:
    return text(value).lower() or None


def _upper(value: Any) -> Any:
    return text(value).upper() or None


Convert = Callable[[Any], Any]
_WRITTEN: dict[tuple[Api, str], Convert] = {
    ("responses", "response_format"): _responses_format,
    ("messages", "response_format"): _messages_format,
    ("ollama", "response_format"): _ollama_format,
    ("gemini", "response_format"): _gemini_format,
    ("gemini", "reasoning_effort"): _upper,
}
_READ: dict[tuple[Api, str], Convert] = {
    ("responses", "response_format"): _from_responses,
    ("messages", "response_format"): _from_messages,
    ("ollama", "response_format"): _from_ollama,
    ("gemini", "response_format"): _from_gemini,
    ("gemini", "reasoning_effort"): _lower,
}
