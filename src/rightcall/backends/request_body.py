"""Write a planned request as the body of a server's API, one function per API.

A field at its default is left out, since servers reject fields that they do not know, and an empty `tools` too.
Sampling parameters are kept under the names of OpenAI's Chat and moved to the field of each API:

    write_sampling("gemini", {"top_p": 0.9})               ->   {"generationConfig": {"topP": 0.9}}
    read_sampling("ollama", {"options": {"top_p": 0.9}})   ->   {"top_p": 0.9}

`temperature`, the token limit, `seed` and `stop` are fields of `Request` and not part of `sampling`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from rightcall.api_names import Api
from rightcall.backends.history_bodies import (
    HistoryTurn,
    read_turns_for_server,
    write_anthropic_messages,
    write_chat_messages,
    write_gemini_contents,
    write_ollama_messages,
    write_responses_items,
)
from rightcall.backends.plain_prompt import frame_of, text_format, write_prompt
from rightcall.backends.request_plan import TOOL_DIALECTS, RequestPlan
from rightcall.providers.anthropic import MESSAGES
from rightcall.providers.gemini import GEMINI
from rightcall.providers.ollama import OLLAMA
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.openai_responses import RESPONSES
from rightcall.providers.sdk_view import obj, text
from rightcall.tools.provider_forms import from_openapi, is_openapi, to_provider
from rightcall.types import Json

TOOL_FIELDS = ("tools", "tool_choice", "toolConfig", "parallel_tool_calls")
ANTHROPIC_MAX_TOKENS = 4096  # the API demands a number


def write_body(plan: RequestPlan) -> Json:
    """Return the body to send: the fields of the API, with the request's `sampling` merged in. The grammar's fields and
    then the request's `extra` replace fields of the same name."""
    local = plan.profile.name != "openai"
    body = merge_objects(_WRITERS[plan.api](plan), write_sampling(plan.api, plan.request.sampling, local=local))
    return {**body, **plan.fields, **plan.request.extra}


def write_tool_fields(plan: RequestPlan) -> Json:
    """Return those fields of the body to send that declare tools and the tool choice; {} if the request has no
    tools."""
    body = _WRITERS[plan.api](plan)
    return {name: body[name] for name in TOOL_FIELDS if name in body}


def _write_chat(plan: RequestPlan) -> Json:
    """Return the body of a request to the Chat API, without the parameters of `Request.sampling`."""
    messages = write_chat_messages([plan.naming.rename_message(each) for each in plan.messages], plan.profile.ids)
    body = {
        "model": plan.model,
        "messages": messages,
        **_tool_fields(plan, CHAT.tool_choice),
        "stream": plan.stream,
    }
    if plan.stream:
        body["stream_options"] = {"include_usage": True}
    return {**body, **_core_sampling(plan, plan.profile.max_tokens)}


def _tool_fields(plan: RequestPlan, write_choice: Callable[[str], Any]) -> Json:
    """Return `tools` and `tool_choice` of the body; {} if no tools are offered. `write_choice` converts a tool choice
    to this API's form; the choice "auto" is left out."""
    tools = plan.offered
    if tools is None:
        return {}
    fields: Json = {"tools": to_provider(tools, TOOL_DIALECTS[plan.api])}
    choice = None if plan.choice == "auto" else write_choice(plan.choice)
    if choice is not None:
        fields["tool_choice"] = choice
    return fields if plan.request.parallel or not plan.profile.parallel else _disable_parallel_calls(fields, plan)


def _disable_parallel_calls(fields: Json, plan: RequestPlan) -> Json:
    """Return the fields with the API's field that allows one call per answer; unchanged if the API has none."""
    if plan.api in ("chat", "responses"):
        return {**fields, "parallel_tool_calls": False}
    if plan.api == "messages" and plan.choice != "none":
        choice = fields.get("tool_choice") or MESSAGES.tool_choice("auto")
        return {**fields, "tool_choice": {**choice, "disable_parallel_tool_use": True}}
    return fields


def _core_sampling(plan: RequestPlan, max_tokens: str, *, stop: str = "stop", seed: str = "seed") -> Json:
    """Return the request's temperature, token limit, seed and stop texts as body fields, without those that are not
    set. `max_tokens`, `stop` and `seed` are their names in the API; an empty name leaves a field out."""
    request = plan.request
    fields = {
        "temperature": request.temperature,
        max_tokens: request.max_tokens,
        seed: request.seed,
        stop: list(request.stop) or None,
    }
    return {key: value for key, value in fields.items() if key and value is not None}


# -- Responses ---------------------------------------------------------------------------------------------------------


def _write_responses(plan: RequestPlan) -> Json:
    """Return the body of a request to the Responses API, which has no seed and no stop texts."""
    body = {
        "model": plan.model,
        "input": write_responses_items(_read_plan_turns(plan)),
        **_tool_fields(plan, RESPONSES.tool_choice),
        "stream": plan.stream,
    }
    return {**body, **_core_sampling(plan, "max_output_tokens", stop="", seed="")}


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def _write_messages(plan: RequestPlan) -> Json:
    """Return the body of a request to Anthropic's Messages API, with the system messages in their own field. It always
    has a token limit, and no seed."""
    turns = _read_plan_turns(plan)
    system = "\n\n".join([turn.text for turn in turns if turn.role == "system"])
    body: Json = {"model": plan.model, "max_tokens": ANTHROPIC_MAX_TOKENS, "messages": write_anthropic_messages(turns)}
    if system:
        body["system"] = system
    tools = _tool_fields(plan, MESSAGES.tool_choice)
    return {
        **body,
        **tools,
        "stream": plan.stream,
        **_core_sampling(plan, "max_tokens", stop="stop_sequences", seed=""),
    }


# -- Ollama ------------------------------------------------------------------------------------------------------------


def _write_ollama(plan: RequestPlan) -> Json:
    """Return the body of a request to Ollama's API, with temperature, token limit, seed and stop texts in `options`."""
    body: Json = {
        "model": plan.model,
        "messages": write_ollama_messages(_read_plan_turns(plan)),
        **_tool_fields(plan, OLLAMA.tool_choice),
        "stream": plan.stream,
    }
    options = _core_sampling(plan, "num_predict")
    return {**body, "options": options} if options else body


# -- Gemini ------------------------------------------------------------------------------------------------------------


def _write_gemini(plan: RequestPlan) -> Json:
    """Return the body of a request to Gemini's API, with the system messages in their own field. The model and the
    choice to stream are part of its address, not of the body."""
    turns = _read_plan_turns(plan)
    system = "\n\n".join([turn.text for turn in turns if turn.role == "system"])
    body: Json = {"contents": write_gemini_contents(turns)}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    tools = _tool_fields(plan, GEMINI.tool_choice)
    if "tool_choice" in tools:
        tools["toolConfig"] = tools.pop("tool_choice")
    config = _core_sampling(plan, "maxOutputTokens", stop="stopSequences")
    return {**body, **tools, **({"generationConfig": config} if config else {})}


# -- completions -------------------------------------------------------------------------------------------------------


def _write_completions(plan: RequestPlan) -> Json:
    """Return the body of a request to the completions API: the messages framed as one prompt, with the frame's turn end
    as a further stop text."""
    frame = frame_of(text_format(plan.format))
    body = {"model": plan.model, "prompt": write_prompt(plan.messages, frame), "stream": plan.stream}
    if plan.stream:
        body["stream_options"] = {"include_usage": True}
    return {**body, **_core_sampling(plan, "max_tokens"), "stop": [*plan.request.stop, frame.stop]}


def _read_plan_turns(plan: RequestPlan) -> list[HistoryTurn]:
    """Return the messages of the plan as turns, with the tool names and call ids that the server accepts."""
    return read_turns_for_server([plan.naming.rename_message(each) for each in plan.messages], plan.profile.ids)


_WRITERS: dict[Api, Callable[[RequestPlan], Json]] = {
    "chat": _write_chat,
    "responses": _write_responses,
    "messages": _write_messages,
    "ollama": _write_ollama,
    "completions": _write_completions,
    "gemini": _write_gemini,
}


_OPENAI = (
    *("top_p", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format"),
    *("reasoning_effort", "verbosity", "user", "metadata", "service_tier", "prompt_cache_key", "safety_identifier"),
)
_LOCAL = ("top_k", "min_p", "repetition_penalty")  # of local Chat servers; OpenAI's own rejects them
_OPTIONS = ("top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty")
_CONFIG = "generationConfig"

# The path of each parameter in the body of each API.
SAMPLING_FIELDS: dict[Api, dict[str, tuple[str, ...]]] = {
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


def write_sampling(api: Api, sampling: Mapping[str, Any], *, local: bool = True) -> Json:
    """Return the body fields for the parameters of `Request.sampling`, which are given under the names of OpenAI's
    Chat.

    Dropped are parameters without a field in this API: also temperature, token limit, seed and stop, which are fields
    of `Request`. `local=False` means that a Chat server is OpenAI's own; then parameters that only local servers accept
    are dropped too.
    """
    body: Json = {}
    for name, value in sampling.items():
        place = SAMPLING_FIELDS[api].get(name)
        if place is None or (not local and api == "chat" and name in _LOCAL):
            continue
        write = _SAMPLING_WRITERS.get((api, name))
        given = value if write is None else write(value)
        if given is not None:
            _set_field(body, place, given)
    return body


def unsupported_sampling(api: Api, sampling: Mapping[str, Any], *, local: bool = True) -> list[str]:
    """Return the names of the parameters in `sampling` that `write_sampling` would drop, since this API has no field
    for them."""
    places = SAMPLING_FIELDS[api]
    return [name for name in sampling if name not in places or (not local and api == "chat" and name in _LOCAL)]


def read_sampling(api: Api, body: Json) -> Json:
    """Return the sampling parameters of a request body of this API, under the names of OpenAI's Chat; the inverse of
    `write_sampling`. Fields in snake case are read too, and other fields are ignored."""
    sampling: Json = {}
    for name, place in SAMPLING_FIELDS[api].items():
        if place[0] not in body and _snake_case(place[0]) not in body:
            continue
        given = _get_field(body, place)
        read = _SAMPLING_READERS.get((api, name))
        value = given if read is None or given is None else read(given)
        if value is not None:
            sampling[name] = value
    return sampling


def merge_objects(body: Json, more: Json) -> Json:
    """Return a new object with the fields of both. Objects under the same key are merged at every depth; otherwise the
    value of `more` wins."""
    out = dict(body)
    for key, value in more.items():
        before = out.get(key)
        out[key] = merge_objects(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return out


def _set_field(body: Json, place: tuple[str, ...], value: Any) -> None:
    """Set the value at a path of keys in `body`, which is changed, and create objects on the way. If both the old and
    the new value are objects, they are merged."""
    *parents, last = place
    for step in parents:
        body = body.setdefault(step, {})
    before = body.get(last)
    body[last] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value


def _get_field(body: Any, place: tuple[str, ...]) -> Any:
    """Return the value at a path of camel-case keys, each of which may be in snake case in `body`; None if it is
    missing."""
    for step in place:
        found = obj(body)
        if found is None:
            return None
        body = found.get(step)
        if body is None:
            body = found.get(_snake_case(step))
    return body


@cache
def _snake_case(name: str) -> str:
    """Return a name in camel case as snake case."""
    return "".join(["_" + char.lower() if char.isupper() else char for char in name])


# -- response formats of each API --------------------------------------------------------------------------------------


def _requested_schema(format: Any) -> Json | None:
    """Return the JSON Schema that Chat's `response_format` asks for; {} for any JSON object, None for text and unknown
    formats."""
    found = obj(format) or {}
    if found.get("type") == "json_object":
        return {}
    inner = obj(found.get("json_schema")) or {}
    return obj(inner.get("schema")) or {} if found.get("type") == "json_schema" else None


def _chat_response_format(schema: Json, name: str = "") -> Json:
    """Return Chat's `response_format` for a JSON schema called `name` ("answer" by default); `json_object` for an empty
    schema, which means any JSON."""
    if not schema:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": name or "answer", "schema": schema}}


def _write_responses_format(format: Any) -> Any:
    """Convert `response_format` of Chat to `text.format` of Responses; None if it is empty. A format without a schema
    stays as it is."""
    found = obj(format) or {}
    inner = obj(found.get("json_schema"))
    return {"type": "json_schema", "name": "answer", **inner} if inner is not None else found or None


def _read_responses_format(format: Any) -> Any:
    """Convert `text.format` of Responses to `response_format` of Chat; None for plain text or an empty value."""
    found = obj(format) or {}
    if found.get("type") != "json_schema":
        return None if found.get("type") == "text" else found or None
    return {"type": "json_schema", "json_schema": {key: value for key, value in found.items() if key != "type"}}


def _write_messages_format(format: Any) -> Any:
    """Convert `response_format` of Chat to `output_config.format` of Anthropic's Messages API; None if it has no
    schema."""
    schema = _requested_schema(format)
    return {"type": "json_schema", "schema": schema} if schema else None


def _read_messages_format(format: Any) -> Any:
    """Convert `output_config.format` of Anthropic's Messages API to `response_format` of Chat; None if it has no
    schema."""
    schema = obj((obj(format) or {}).get("schema"))
    return None if schema is None else _chat_response_format(schema)


def _write_ollama_format(format: Any) -> Any:
    """Convert `response_format` of Chat to `format` of Ollama: a schema, or "json"; None for text."""
    schema = _requested_schema(format)
    return None if schema is None else schema or "json"


def _read_ollama_format(format: Any) -> Any:
    """Convert `format` of Ollama to `response_format` of Chat; None if it is neither "json" nor a schema."""
    return (
        _chat_response_format({})
        if format == "json"
        else _chat_response_format(found)
        if (found := obj(format))
        else None
    )


def _write_gemini_format(format: Any) -> Any:
    """Convert `response_format` of Chat to the fields of Gemini's `generationConfig`: a JSON media type, and the schema
    if there is one; None if it asks for text."""
    schema = _requested_schema(format)
    if schema is None:
        return None
    return {"responseMimeType": "application/json", **({"responseJsonSchema": schema} if schema else {})}


def _read_gemini_format(config: Any) -> Any:
    """Convert Gemini's `generationConfig` to `response_format` of Chat: with its schema, or any JSON if only the media
    type is JSON; None if it asks for text."""
    for name in ("responseJsonSchema", "responseSchema"):
        schema = obj(_get_field(config, (name,)))
        if schema is not None:
            return _chat_response_format(from_openapi(schema) if is_openapi(schema) else schema)
    return _chat_response_format({}) if text(_get_field(config, ("responseMimeType",))) == "application/json" else None


def _to_lower_case(value: Any) -> Any:
    """Return a text in lower case; None if it is empty or no text."""
    return text(value).lower() or None


def _to_upper_case(value: Any) -> Any:
    """Return a text in upper case; None if it is empty or no text."""
    return text(value).upper() or None


Convert = Callable[[Any], Any]
_SAMPLING_WRITERS: dict[tuple[Api, str], Convert] = {
    ("responses", "response_format"): _write_responses_format,
    ("messages", "response_format"): _write_messages_format,
    ("ollama", "response_format"): _write_ollama_format,
    ("gemini", "response_format"): _write_gemini_format,
    ("gemini", "reasoning_effort"): _to_upper_case,
}
_SAMPLING_READERS: dict[tuple[Api, str], Convert] = {
    ("responses", "response_format"): _read_responses_format,
    ("messages", "response_format"): _read_messages_format,
    ("ollama", "response_format"): _read_ollama_format,
    ("gemini", "response_format"): _read_gemini_format,
    ("gemini", "reasoning_effort"): _to_lower_case,
}
