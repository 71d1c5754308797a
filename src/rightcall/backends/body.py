"""A request written in a server's dialect: one function per API, and nothing that a server did not ask for.

Fields that are at their default are left out: servers refuse what they do not know, and an empty `tools` too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.backends.chat_history import HistoryTurn
from rightcall.backends.history_bodies import (
    anthropic_messages,
    chat_messages,
    gemini_contents,
    history_turns,
    ollama_messages,
    responses_items,
)
from rightcall.backends.naming import PROVIDERS, Naming
from rightcall.backends.plain_prompt import as_prompt, frame_of, text_format
from rightcall.backends.profiles import Profile
from rightcall.backends.request import Request
from rightcall.backends.sampling import merged, said
from rightcall.formats.spec import Format
from rightcall.providers import anthropic, gemini, ollama, openai_chat, openai_responses
from rightcall.tools.provider_forms import to_provider
from rightcall.tools.toolset import Toolset
from rightcall.types import Json

TOOL_FIELDS = ("tools", "tool_choice", "toolConfig", "parallel_tool_calls")
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
        if self.is_narrowed:
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
    def is_narrowed(self) -> bool:
        """Is the named tool the only one that is offered, since the server takes no name?"""
        return self.is_named and "named" not in self.profile.choices

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
    local = plan.profile.name != "openai"
    body = merged(_WRITERS[plan.api](plan), said(plan.api, plan.request.sampling, local=local))
    return {**body, **plan.fields, **plan.request.extra}


def tool_fields(plan: RequestPlan) -> Json:
    """Of the body, what is said of tools."""
    body = _WRITERS[plan.api](plan)
    return {name: body[name] for name in TOOL_FIELDS if name in body}


def _chat(plan: RequestPlan) -> Json:
    messages = chat_messages([plan.naming.message(each) for each in plan.messages], plan.profile.ids)
    body = {"model": plan.model, "messages": messages, **_tools(plan, openai_chat.tool_choice), "stream": plan.stream}
    if plan.stream:
        body["stream_options"] = {"include_usage": True}
    return {**body, **_sampling(plan, plan.profile.max_tokens)}


def _tools(plan: RequestPlan, say: Callable[[str], Any]) -> Json:
    tools = plan.offered
    if tools is None:
        return {}
    fields: Json = {"tools": to_provider(tools, PROVIDERS[plan.api])}
    word = None if plan.choice == "auto" else say(plan.choice)
    if word is not None:
        fields["tool_choice"] = word
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
    body = {
        "model": plan.model,
        "input": responses_items(_turns(plan)),
        **_tools(plan, openai_responses.tool_choice),
        "stream": plan.stream,
    }
    return {**body, **_sampling(plan, "max_output_tokens", stop="", seed="")}


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def _anthropic(plan: RequestPlan) -> Json:
    spoken = _turns(plan)
    system = "\n\n".join([turn.text for turn in spoken if turn.role == "system"])
    body: Json = {"model": plan.model, "max_tokens": ANTHROPIC_MAX_TOKENS, "messages": anthropic_messages(spoken)}
    if system:
        body["system"] = system
    tools = _tools(plan, anthropic.tool_choice)
    return {**body, **tools, "stream": plan.stream, **_sampling(plan, "max_tokens", stop="stop_sequences", seed="")}


# -- Ollama ------------------------------------------------------------------------------------------------------------


def _ollama(plan: RequestPlan) -> Json:
    body: Json = {
        "model": plan.model,
        "messages": ollama_messages(_turns(plan)),
        **_tools(plan, ollama.tool_choice),
        "stream": plan.stream,
    }
    options = _sampling(plan, "num_predict")
    return {**body, "options": options} if options else body


# -- Gemini ------------------------------------------------------------------------------------------------------------


def _gemini(plan: RequestPlan) -> Json:
    """The model and whether to stream stand in the address."""
    spoken = _turns(plan)
    system = "\n\n".join([turn.text for turn in spoken if turn.role == "system"])
    body: Json = {"contents": gemini_contents(spoken)}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    tools = _tools(plan, gemini.tool_choice)
    if "tool_choice" in tools:
        tools["toolConfig"] = tools.pop("tool_choice")
    config = _sampling(plan, "maxOutputTokens", stop="stopSequences")
    return {**body, **tools, **({"generationConfig": config} if config else {})}


# -- completions -------------------------------------------------------------------------------------------------------


def _completions(plan: RequestPlan) -> Json:
    frame = frame_of(text_format(plan.format))
    body = {"model": plan.model, "prompt": as_prompt(plan.messages, frame), "stream": plan.stream}
    if plan.stream:
        body["stream_options"] = {"include_usage": True}
    return {**body, **_sampling(plan, "max_tokens"), "stop": [*plan.request.stop, frame.stop]}


def _turns(plan: RequestPlan) -> list[HistoryTurn]:
    return history_turns([plan.naming.message(each) for each in plan.messages], plan.profile.ids)


_WRITERS: dict[Api, Callable[[RequestPlan], Json]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _anthropic,
    "ollama": _ollama,
    "completions": _completions,
    "gemini": _gemini,
}
