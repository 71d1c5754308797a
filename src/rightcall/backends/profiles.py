"""Profiles of model servers: what each kind of server supports, and how it is recognised.

A profile describes a kind of server, not a model: a server with native tools may serve a model without them. Mode
"auto" starts from the profile and then trusts what it observes. `docs/backends.md` shows the table.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from rightcall.constrain.grammars import Server
from rightcall.errors import CallerError

ToolChoiceKind = Literal["required", "none", "named"]


class ServerSign(msgspec.Struct, frozen=True, kw_only=True):
    """One way to recognise a server; all conditions that are set must hold.

    `host` is the end of the address. `path` is requested with GET; its answer must have this `header` (name, and start
    of the value), this `key` in its JSON, a model with this `owned_by`, or, in an OpenAPI description, this `route`.
    """

    host: str = ""
    path: str = ""
    header: tuple[str, str] | None = None
    key: str = ""
    owned_by: str = ""
    route: str = ""


class IdRule(msgspec.Struct, frozen=True):
    """The call ids that a server accepts: a regex character class, the shortest and the longest length."""

    chars: str = ""
    shortest: int = 1
    longest: int = 0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a kind of server.

    - `name`, `title`: for programs, and for people.
    - `native`: its API has a field for tools.
    - `choices`: the tool choices that it supports, besides "auto".
    - `parallel`: it supports the request for one call at a time, if its API has a field for that.
    - `grammar`: its name in `Grammar.for_server`; empty if it takes no grammar.
    - `grammar_apis`, `grammar_fields`: a grammar goes into these fields of a request to one of these APIs.
    - `reasoning`: the fields that contain reasoning.
    - `ids`: the call ids that it accepts.
    - `max_tokens`: the field that limits the answer.
    - `signs`: how it is recognised.
    - `note`: other peculiarities.
    """

    name: str
    title: str
    native: bool = True
    choices: tuple[ToolChoiceKind, ...] = ("required", "none", "named")
    parallel: bool = True
    grammar: Server | Literal[""] = ""
    grammar_apis: tuple[str, ...] = ("chat", "completions")
    grammar_fields: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    ids: IdRule = IdRule()
    max_tokens: str = "max_tokens"
    signs: tuple[ServerSign, ...] = ()
    note: str = ""


_MODELS = "/v1/models"
PROPS = "/props"
PROFILES: dict[str, Profile] = {
    "openai": Profile(
        name="openai",
        title="OpenAI",
        grammar="openai",
        grammar_apis=("chat",),
        grammar_fields=("tools",),
        reasoning=("summary",),
        ids=IdRule("A-Za-z0-9_-", 1, 40),
        max_tokens="max_completion_tokens",
        signs=(ServerSign(host="api.openai.com"), ServerSign(path=_MODELS, header=("openai-version", ""))),
        note="strict tools are its grammar; reasoning is not shown in Chat",
    ),
    "anthropic": Profile(
        name="anthropic",
        title="Anthropic",
        grammar="anthropic",
        grammar_apis=("messages",),
        grammar_fields=("tools",),
        reasoning=("thinking",),
        ids=IdRule("A-Za-z0-9_-", 1, 64),
        signs=(
            ServerSign(host="api.anthropic.com"),
            ServerSign(path=_MODELS, header=("anthropic-organization-id", "")),
        ),
        note="strict tools are its grammar; demands max_tokens, and signed thinking back",
    ),
    "mistral": Profile(
        name="mistral",
        title="Mistral",
        reasoning=("content",),
        ids=IdRule("A-Za-z0-9", 9, 9),
        signs=(ServerSign(host="api.mistral.ai"),),
        note="demands ids of nine letters or digits",
    ),
    "gemini": Profile(
        name="gemini",
        title="Gemini",
        parallel=False,
        reasoning=("thought",),
        signs=(ServerSign(host="generativelanguage.googleapis.com"),),
        note="wants the signatures of its thoughts back with its calls",
    ),
    "llama.cpp": Profile(
        name="llama.cpp",
        title="llama.cpp",
        choices=("required", "none"),
        grammar="llama.cpp",
        grammar_fields=("grammar",),
        reasoning=("reasoning_content",),
        signs=(
            ServerSign(path=_MODELS, header=("server", "llama.cpp")),
            ServerSign(path=_MODELS, owned_by="llamacpp"),
            ServerSign(path=PROPS, key="default_generation_settings"),
        ),
        note="native tools need --jinja; a grammar and tools exclude each other",
    ),
    "vllm": Profile(
        name="vllm",
        title="vLLM",
        grammar="vllm",
        grammar_fields=("structured_outputs",),
        reasoning=("reasoning", "reasoning_content"),
        signs=(ServerSign(path=_MODELS, owned_by="vllm"),),
        note='auto needs --enable-auto-tool-choice and --tool-call-parser; an empty "tools" is refused',
    ),
    "sglang": Profile(
        name="sglang",
        title="SGLang",
        grammar="sglang",
        grammar_fields=("response_format",),
        reasoning=("reasoning_content",),
        signs=(ServerSign(path=_MODELS, owned_by="sglang"), ServerSign(path="/get_model_info", key="model_path")),
        note="native tools need --tool-call-parser",
    ),
    "ollama": Profile(
        name="ollama",
        title="Ollama",
        choices=(),
        parallel=False,
        grammar="ollama",
        grammar_apis=("ollama",),
        grammar_fields=("format",),
        reasoning=("thinking", "reasoning"),
        signs=(ServerSign(path="/api/version", key="version"), ServerSign(path=_MODELS, owned_by="library")),
        note="tool_choice is ignored; constrains to a JSON Schema only; cuts a long prompt in silence (num_ctx)",
    ),
    "lmstudio": Profile(
        name="lmstudio",
        title="LM Studio",
        choices=("required", "none"),
        grammar_fields=("response_format",),
        reasoning=("reasoning_content", "reasoning"),
        signs=(ServerSign(path=_MODELS, owned_by="organization_owner"), ServerSign(path="/api/v0/models", key="data")),
        note="a named tool_choice is refused; constrains to a JSON Schema only",
    ),
    "litellm": Profile(
        name="litellm",
        title="LiteLLM's proxy",
        reasoning=("reasoning_content",),
        signs=(ServerSign(path="/health/readiness", key="db"),),
        note="it supports what its upstream server supports",
    ),
    "transformers": Profile(
        name="transformers",
        title="transformers serve",
        choices=(),
        parallel=False,
        reasoning=("reasoning_content",),
        signs=(ServerSign(path="/openapi.json", route="/load_model"),),
        note="tool_choice and response_format are ignored; calls of most models stay in the text",
    ),
}
UNKNOWN = Profile(name="", title="unknown")

# APIs whose definition includes tools, on any server.
BY_API: dict[str, str] = {"messages": "anthropic", "responses": "openai", "ollama": "ollama", "gemini": "gemini"}


def find_profile(name: str) -> Profile:
    """Return the profile with this name. Raises `CallerError` if there is none."""
    if name in PROFILES:
        return PROFILES[name]
    raise CallerError(f"no profile {name!r}; there are {', '.join(PROFILES)}")


def without_template_tools(profile: Profile, properties: object) -> Profile:
    """Return the profile without native tools if `properties`, the answer of llama.cpp's `/props`, reports a chat
    template that does not show them; otherwise the profile unchanged."""
    caps = properties.get("chat_template_caps") if isinstance(properties, dict) else None
    if not isinstance(caps, dict) or caps.get("supports_tools") is not False:
        return profile
    return without_native_tools(profile)


def without_native_tools(profile: Profile) -> Profile:
    """Return a copy of the profile for a model whose chat template shows no tools: `native` is False and the title says
    so."""
    title = f"{profile.title}, and a chat template that shows no tools"
    return msgspec.structs.replace(profile, native=False, title=title)


def identify_by_host(host: str) -> Profile | None:
    """Return the profile whose host name is `host` or a parent domain of it; None if there is none."""
    for profile in PROFILES.values():
        if any(sign.host and (host == sign.host or host.endswith("." + sign.host)) for sign in profile.signs):
            return profile
    return None


def identifying_paths() -> list[str]:
    """Return the paths to request with GET from an unknown server, in order and each once."""
    return list(dict.fromkeys(sign.path for profile in PROFILES.values() for sign in profile.signs if sign.path))


def identify_by_answer(path: str, headers: dict[str, str], body: object) -> tuple[Profile, str] | None:
    """Return the profile that a server's answer to a GET of `path` identifies, and the evidence as a phrase; None if it
    fits no profile."""
    for profile in PROFILES.values():
        for sign in profile.signs:
            if sign.path == path and (shown := _match_sign(sign, headers, body)):
                return profile, f"GET {path} {shown}"
    return None


def _model_owners(models: object) -> list[object]:
    """Return the `owned_by` of each entry of `models`, the list in a server's model list; [] if it is not a list."""
    return [each.get("owned_by") for each in models if isinstance(each, dict)] if isinstance(models, list) else []


def _match_header(name: str, begins: str, headers: dict[str, str]) -> str:
    """Return the header as a phrase if it is there and its value begins with `begins`; else ""."""
    value = headers.get(name)
    return f"has the header {name}: {value[:60]}" if value is not None and value.startswith(begins) else ""


def _match_sign(sign: ServerSign, headers: dict[str, str], body: object) -> str:
    """Return how a server's answer shows the `sign`, as a phrase such as "has the route /x"; "" if it does not. The
    path must have been compared before."""
    if sign.header is not None:
        return _match_header(*sign.header, headers)
    if not isinstance(body, dict) or "error" in body:
        return ""
    if sign.owned_by:
        return f"says owned_by {sign.owned_by}" if sign.owned_by in _model_owners(body.get("data")) else ""
    if sign.route:
        routes = body.get("paths")
        return f"has the route {sign.route}" if isinstance(routes, dict) and sign.route in routes else ""
    return f"answers with {sign.key}" if body.get(sign.key) is not None else ""
