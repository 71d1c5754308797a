"""A request written in a server's dialect: one function per API, and nothing that a server did not ask for.

Fields that are at their default are left out: servers refuse what they do not know, and an empty `tools` too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.apis import anthropic, ollama, openai_chat, openai_responses
from rightcall.apis.chat_shape import OPAQUE
from rightcall.apis.outgoing import output_text
from rightcall.apis.sdk_view import obj, text
from rightcall.backends.chat_history import HistoryTurn, turns
from rightcall.backends.naming import PROVIDERS, Naming
from rightcall.backends.plain_prompt import as_prompt, frame_of, text_format
from rightcall.backends.profiles import IdRule, Profile
from rightcall.backends.request import Request
from rightcall.declare.provider_forms import to_provider
from rightcall.declare.toolset import Toolset
from rightcall.formats.spec import Format
from rightcall.types import Json

ANTHROPIC_MAX_TOKENS = 4096  # the API demands a number


class RequestPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A request made ready: the messages to send, the tools to offer by the server's own means, and how to read."""

    request: Request
    api: Api
    mode: str
    model: str
    stream: bool
    profile: Profile
    naming: Naming
    messages: list[Json]
    format: str | Format
    fields: Json = {}  # of a grammar
    evidence: tuple[str, ...] = ()

    @property
    def offered(self) -> Toolset | None:
        """The tools that go into the body."""
        tools, choice = self.naming.tools, self.request.choice
        if self.mode != "native" or not tools:
            return None
        if choice == "none" and "none" not in self.profile.choices:
            return None
        if self.is_named and "named" not in self.profile.choices:
            return tools.scoped([self.naming.out(choice)])  # the only one there is
        return tools

    @property
    def allowed(self) -> Toolset | None:
        """The tools that the answer may call, under the names that the server has for them."""
        tools = self.naming.tools or self.request.toolset
        if tools is None or self.request.choice in ("auto", "required"):
            return tools
        return tools.scoped([self.naming.out(self.request.choice)] if self.is_named else ())

    @property
    def is_named(self) -> bool:
        return self.request.choice not in ("auto", "required", "none")

    @property
    def choice(self) -> str:
        """What to say of it to the server; "auto" is not said."""
        choice = self.request.choice
        if not self.is_named:
            return choice if choice in self.profile.choices else "auto"
        if "named" in self.profile.choices:
            return self.naming.out(choice)
        return "required" if "required" in self.profile.choices else "auto"


def write(plan: RequestPlan) -> Json:
    """The body to send."""
    body = _WRITERS[plan.api](plan)
    return {**body, **plan.fields, **plan.request.extra}


def _chat(plan: RequestPlan) -> Json:
    messages = [_chat_message(each, plan) for each in plan.messages]
    body = {"model": plan.model, "messages": messages, **_tools(plan, openai_chat.tool_choice), "stream": plan.stream}
    if plan.stream:
        body["stream_options"] = {"include_usage": True}
    return {**body, **_sampling(plan, plan.profile.max_tokens)}


def _chat_message(message: Json, plan: RequestPlan) -> Json:
    """As it is, but for what is ours, names and ids that the server takes, and null, which some templates cannot."""
    out = {key: value for key, value in plan.naming.message(message).items() if key != OPAQUE}
    if out.get("content", "") is None:
        out["content"] = ""
    if out.pop("is_error", False) is True and isinstance(out.get("content"), str):
        out["content"] = output_text(out["content"], is_error=True)
    if isinstance(out.get("tool_call_id"), str):
        out["tool_call_id"] = wire_id(out["tool_call_id"], plan.profile.ids)
    if isinstance(out.get("tool_calls"), list):
        out["tool_calls"] = [_with_id(each, plan.profile.ids) for each in out["tool_calls"]]
    return out


def _with_id(entry: Any, rule: IdRule) -> Any:
    return {**entry, "id": wire_id(entry["id"], rule)} if isinstance(entry, dict) and entry.get("id") else entry


def wire_id(id: str, rule: IdRule) -> str:
    """The id, or one that stands for it, where the server does not take it. The same id gives the same."""
    longest = rule.longest or len(id)
    if not rule.chars or re.fullmatch(f"[{rule.chars}]{{{rule.shortest},{longest}}}", id):
        return id
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[: rule.longest] if rule.longest < 20 else f"call_{digest[:24]}"


def _tools(plan: RequestPlan, say: Callable[[str], Any]) -> Json:
    tools = plan.offered
    if tools is None:
        return {}
    fields: Json = {"tools": to_provider(tools, PROVIDERS[plan.api])}
    said = None if plan.choice == "auto" else say(plan.choice)
    if said is not None:
        fields["tool_choice"] = said
    return fields if plan.request.parallel or not plan.profile.parallel else _one_at_a_time(fields, plan)


def _one_at_a_time(fields: Json, plan: RequestPlan) -> Json:
    """One call in an answer, in the API's word for it; Ollama's own has none."""
    if plan.api in ("chat", "responses"):
        return {**fields, "parallel_tool_calls": False}
    if plan.api == "messages" and plan.choice != "none":
        choice = fields.get("tool_choice") or anthropic.tool_choice("auto")
        return {**fields, "tool_choice": {**choice, "disable_parallel_tool_use": True}}
    return fields


def _sampling(plan: RequestPlan, max_tokens: str, *, stop: str = "stop", seed: str = "seed") -> Json:
    request = plan.request
    fields = {
        "temperature": request.temperature,
        max_tokens: request.max_tokens,
        seed: request.seed,
        stop: list(request.stop) or None,
    }
    return {key: value for key, value in fields.items() if key and value is not None}


# -- Responses ---------------------------------------------------------------------------------------------------------


def _responses(plan: RequestPlan) -> Json:
    written = [item for turn in _turns(plan) for item in _responses_items(turn)]
    body = {"model": plan.model, "input": written, **_tools(plan, openai_responses.tool_choice), "stream": plan.stream}
    return {**body, **_sampling(plan, "max_output_tokens", stop="", seed="")}


def _responses_items(turn: HistoryTurn) -> list[Json]:
    if turn.role == "tool" and turn.call is not None:
        return [openai_responses.tool_result(turn.call, turn.text, is_error=turn.is_error)]
    if turn.role == "assistant":
        # Reasoning that the server did not sign cannot be sent back.
        return openai_responses.assistant_message(
            turn.text, turn.calls, reasoning="", extras=turn.extras.get("responses")
        )
    return [{"role": turn.role, "content": _parts(turn.content, "input_text", _responses_image)}]


def _responses_image(url: str) -> Json:
    return {"type": "input_image", "image_url": url}


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def _anthropic(plan: RequestPlan) -> Json:
    said = _turns(plan)
    system = "\n\n".join([turn.text for turn in said if turn.role == "system"])
    body: Json = {"model": plan.model, "max_tokens": ANTHROPIC_MAX_TOKENS, "messages": list(_anthropic_messages(said))}
    if system:
        body["system"] = system
    tools = _tools(plan, anthropic.tool_choice)
    return {**body, **tools, "stream": plan.stream, **_sampling(plan, "max_tokens", stop="stop_sequences", seed="")}


def _anthropic_messages(said: list[HistoryTurn]) -> Iterator[Json]:
    results: list[Json] = []  # of one turn: they must come in one message
    for turn in said:
        if turn.role == "tool" and turn.call is not None:
            parts = _anthropic_parts(turn.content)
            results += anthropic.tool_result(turn.call, parts, is_error=turn.is_error)["content"]
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if turn.role == "assistant":
            extras = turn.extras.get("messages")
            yield anthropic.assistant_message(turn.text, turn.calls, extras=extras, reasoning_key=None)
        elif turn.role != "system":
            yield {"role": "user", "content": _anthropic_parts(turn.content)}
    if results:
        yield {"role": "user", "content": results}


def _anthropic_parts(content: Any) -> Any:
    return _parts(content, "text", _anthropic_image)


def _anthropic_image(url: str) -> Json:
    media, found, data = url.removeprefix("data:").partition(";base64,")
    if not url.startswith("data:") or not found:
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


# -- Ollama ------------------------------------------------------------------------------------------------------------


def _ollama(plan: RequestPlan) -> Json:
    messages = [_ollama_message(turn) for turn in _turns(plan)]
    body: Json = {"model": plan.model, "messages": messages, **_tools(plan, ollama.tool_choice), "stream": plan.stream}
    options = _sampling(plan, "num_predict")
    return {**body, "options": options} if options else body


def _ollama_message(turn: HistoryTurn) -> Json:
    if turn.role == "tool" and turn.call is not None:
        return ollama.tool_result(turn.call, turn.text, is_error=turn.is_error)
    if turn.role == "assistant":
        return ollama.assistant_message(turn.text, turn.calls, reasoning=turn.reasoning)
    message = {"role": turn.role, "content": turn.text}
    images = [url.partition(";base64,")[2] for url in _image_urls(turn.content) if url.startswith("data:")]
    return {**message, "images": images} if images else message


# -- completions -------------------------------------------------------------------------------------------------------


def _completions(plan: RequestPlan) -> Json:
    frame = frame_of(text_format(plan.format))
    body = {"model": plan.model, "prompt": as_prompt(plan.messages, frame), "stream": plan.stream}
    if plan.stream:
        body["stream_options"] = {"include_usage": True}
    return {**body, **_sampling(plan, "max_tokens"), "stop": [*plan.request.stop, frame.stop]}


# -- pieces ------------------------------------------------------------------------------------------------------------


def _turns(plan: RequestPlan) -> list[HistoryTurn]:
    rule = plan.profile.ids
    found = turns([plan.naming.message(each) for each in plan.messages])
    return [_with_ids(turn, rule) for turn in found] if rule.chars else found


def _with_ids(turn: HistoryTurn, rule: IdRule) -> HistoryTurn:
    calls = tuple([msgspec.structs.replace(call, id=wire_id(call.id, rule)) for call in turn.calls])
    call = turn.call and msgspec.structs.replace(turn.call, id=wire_id(turn.call.id, rule))
    extras = {
        api: {wire_id(id, rule) if id else "": each for id, each in of.items()} for api, of in turn.extras.items()
    }
    return msgspec.structs.replace(turn, calls=calls, call=call, extras=extras)


def _parts(content: Any, kind: str, image: Callable[[str], Json]) -> Any:
    """Text as it is; of parts, text and images in the dialect's words, and others as they came."""
    if not isinstance(content, list):
        return content
    return [_part(each, kind, image) for each in content]


def _part(part: Any, kind: str, image: Callable[[str], Json]) -> Any:
    if isinstance(part, str):
        return {"type": kind, "text": part}
    found = obj(part) or {}
    if found.get("type") == "text":
        return {**found, "type": kind}
    urls = _image_urls([found])
    return image(urls[0]) if urls else part


def _image_urls(content: Any) -> list[str]:
    found = [obj(part.get("image_url")) or {"url": part.get("image_url")} for part in _objects(content)]
    return [text(each.get("url")) for each in found if text(each.get("url"))]


def _objects(content: Any) -> list[Json]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


_WRITERS: dict[Api, Callable[[RequestPlan], Json]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _anthropic,
    "ollama": _ollama,
    "completions": _completions,
}
