"""Lists of models: read in the shape of any server, merged, and written in the shape that a client asks for.

    found = merged(settings, {"here": read_models("chat", body)})
    model_list("openai", found)

OpenAI's shape holds `data` and `models` at once: some clients look for the one, some for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from rightcall.api_names import Api
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.serve.upstream_routes import matches
from rightcall.types import Json

Shape = Literal["openai", "codex", "messages", "tags", "gemini"]
OLLAMA_VERSION = "0.12.6"  # clients ask for it to learn what may be asked of a server: tools, thinking and all
_CONTEXT = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens",
            "inputTokenLimit")  # fmt: skip
_OUTPUT = ("max_output_tokens", "max_completion_tokens", "max_tokens", "outputTokenLimit")
_MOST = 10_000  # models of one server


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model as a server lists it: its name, what is known of it in every shape, and the entry as it came."""

    id: str
    api: Api = "chat"
    created: int = 0
    owner: str = ""
    context: int | None = None
    output: int | None = None
    entry: Json = {}


# -- reading -----------------------------------------------------------------------------------------------------------


def read_models(api: Api, body: Any) -> list[ListedModel]:
    """The models of a server's list, whatever its shape; none where it is no list."""
    found = obj(body) or {}
    entries = objects(found.get("data")) or objects(found.get("models"))
    models = [_model(api, entry) for entry in entries[:_MOST]]
    return [each for each in models if each.id]


def _model(api: Api, entry: Json) -> ListedModel:
    name = text(entry.get("id")) or text(entry.get("model")) or text(entry.get("name")).removeprefix("models/")
    meta = obj(entry.get("meta")) or {}
    return ListedModel(
        id=name,
        api=api,
        created=_created(entry),
        owner=text(entry.get("owned_by")),
        context=_number(entry, _CONTEXT) or _number(meta, ("n_ctx", "n_ctx_train")),
        output=_number(entry, _OUTPUT),
        entry=entry,
    )


def _number(entry: Json, names: Iterable[str]) -> int | None:
    return next((value for name in names if type(value := entry.get(name)) is int and value > 0), None)


def _created(entry: Json) -> int:
    if type(entry.get("created")) is int:
        return int(entry["created"])
    said = text(entry.get("created_at")) or text(entry.get("modified_at"))
    try:
        return max(0, int(datetime.fromisoformat(said).timestamp())) if said else 0
    except (ValueError, OverflowError):
        return 0


# -- merging -----------------------------------------------------------------------------------------------------------


def merged(settings: ProxySettings, lists: Mapping[str, Iterable[ListedModel]]) -> list[ListedModel]:
    """The models of all upstreams, by their names, each once and only those that the upstream is asked for; then the
    names that stand for others."""
    found: dict[str, ListedModel] = {}
    for upstream in settings.upstream:
        for model in lists.get(upstream.name, ()):
            if not upstream.models or matches(model.id, upstream.models):
                found.setdefault(model.id, model)
    for name, table in settings.models.items():
        if table.alias and name not in found and not any(char in name for char in "*?["):
            meant = found.get(table.alias) or ListedModel(id=table.alias)
            found[name] = msgspec.structs.replace(meant, id=name)
    return list(found.values())


# -- writing -----------------------------------------------------------------------------------------------------------


def model_list(shape: Shape, models: Iterable[ListedModel]) -> Json:
    """The list in this shape. "codex" is OpenAI's with an empty `models`: Codex reads only that key, takes no entry
    without instructions of its own for the model, and for a model it does not find has better ones than we."""
    models = list(models)
    entries = [_WRITERS[shape](each) for each in models]
    if shape in ("openai", "codex"):
        named = [] if shape == "codex" else [_tag(each) for each in models]
        return {"object": "list", "data": entries, "models": named}
    if shape == "messages":
        ends = {"first_id": models[0].id if models else None, "last_id": models[-1].id if models else None}
        return {"data": entries, "has_more": False, **ends}
    return {"models": entries}


def model_entry(shape: Shape, model: ListedModel) -> Json:
    """One model in this shape."""
    return _WRITERS[shape](model)


def shown_model(model: ListedModel) -> Json:
    """What Ollama's `/api/show` says of a model, as far as it is known."""
    details = obj(model.entry.get("details")) or {}
    family = text(details.get("family")) or "unknown"
    facts: Json = {"general.architecture": family, "general.basename": model.id}
    if model.context:
        facts[f"{family}.context_length"] = model.context
    return {
        "modelfile": f"FROM {model.id}",
        "parameters": "",
        "template": "{{ .Prompt }}{{ .Tools }}",  # clients look for tools in it
        "details": {**_DETAILS, **details},
        "model_info": facts,
        "capabilities": ["completion", "tools"],
        "modified_at": _when(model.created),
    }


_DETAILS: Json = {"parent_model": "", "format": "", "family": "", "families": [], "parameter_size": "",
                  "quantization_level": ""}  # fmt: skip


def _openai(model: ListedModel) -> Json:
    own = model.entry if model.api in ("chat", "responses", "completions") else {}
    known = {"context_length": model.context, "max_output_tokens": model.output}
    facts = {name: value for name, value in known.items() if value is not None}
    named = {"id": model.id, "object": "model", "created": model.created, "owned_by": model.owner or "rightcall"}
    return {**facts, **own, **named}


def _messages(model: ListedModel) -> Json:
    own = model.entry if model.api == "messages" else {}
    named = {"type": "model", "id": model.id, "created_at": _when(model.created)}
    return {"display_name": model.id, **own, **named}


def _tag(model: ListedModel) -> Json:
    own = model.entry if model.api == "ollama" else {}
    details = {**_DETAILS, **(obj(own.get("details")) or {})}
    usual: Json = {
        "modified_at": _when(model.created),
        "size": 0,
        "digest": "",
        "capabilities": ["completion", "tools"],
    }
    return {**usual, **own, "name": model.id, "model": model.id, "details": details}


def _gemini(model: ListedModel) -> Json:
    own = model.entry if model.api == "gemini" else {}
    known = {"inputTokenLimit": model.context, "outputTokenLimit": model.output}
    facts = {name: value for name, value in known.items() if value is not None}
    methods = ["generateContent", "streamGenerateContent"]
    usual = {"displayName": model.id, "version": "001", "supportedGenerationMethods": methods}
    return {**usual, **facts, **own, "name": f"models/{model.id}"}


def _when(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "1970-01-01T00:00:00Z"


_WRITERS: dict[Shape, Callable[[ListedModel], Json]] = {
    "openai": _openai,
    "codex": _openai,
    "messages": _messages,
    "tags": _tag,
    "gemini": _gemini,
}
