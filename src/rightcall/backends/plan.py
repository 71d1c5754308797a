"""A request and the way chosen for it become a plan: which messages, which tools, which format to read."""

from __future__ import annotations

import msgspec

from rightcall.api_names import Api
from rightcall.backends.body import RequestPlan
from rightcall.backends.naming import Naming
from rightcall.backends.plain_prompt import as_text, text_format
from rightcall.backends.profiles import UNKNOWN, Profile
from rightcall.backends.request import Request
from rightcall.errors import GrammarCompileError, Unsupported
from rightcall.formats.spec import Format
from rightcall.tools.toolset import Toolset
from rightcall.types import Json


class Choice(msgspec.Struct, frozen=True):
    """How tools are offered: the `mode`, the `profile` of the server, the `evidence` for it in words, and whether it
    was found out (`is_auto`) and so may be thought over."""

    mode: str
    profile: Profile = UNKNOWN
    evidence: tuple[str, ...] = ()
    is_auto: bool = False


def narrower(choice: Choice) -> Choice:
    """The same, for a server that does not keep to the tool that is named: it is offered no other."""
    left = tuple([each for each in choice.profile.choices if each != "named"])
    return msgspec.structs.replace(choice, profile=msgspec.structs.replace(choice.profile, choices=left))


def make_plan(request: Request, choice: Choice, api: Api, model: str, *, stream: bool) -> RequestPlan:
    """Raises `Unsupported` where the mode cannot work with this API."""
    tools, mode = request.toolset, choice.mode
    if mode == "native" and api == "completions" and tools and request.choice != "none":
        raise Unsupported("api='completions' has no tools of its own; use mode='text' or 'grammar', or api='chat'")
    format: str | Format = text_format(request.format)
    fields = grammar_fields(request, tools, format, choice.profile, api) if mode == "grammar" and tools else {}
    if api != "completions" and (mode == "native" or "tools" in fields):  # or a grammar of the server's own tools
        naming, messages, format = Naming(tools, api), list(request.messages), request.format
    else:
        naming = Naming(None, api)  # names stand in the text as they are
        messages = as_text(request, text_format(request.format))
    return RequestPlan(
        request=request,
        api=api,
        mode=mode,
        model=model,
        stream=stream,
        profile=choice.profile,
        naming=naming,
        messages=messages,
        format=format,
        fields=fields,
        evidence=choice.evidence,
    )


def can_constrain(profile: Profile, api: Api) -> bool:
    """Is there a grammar for this server?"""
    return bool(profile.grammar) and api in profile.grammar_apis


def grammar_fields(request: Request, tools: Toolset, format: str | Format, profile: Profile, api: Api) -> Json:
    """The fields of a body that hold a server to these tools. Which ones they are is the grammar's knowledge."""
    server = profile.grammar
    if not server or not can_constrain(profile, api):
        kind = f"{profile.title} takes" if profile.name else "a server of a kind that is not known takes"
        raise Unsupported(f"mode='grammar': {kind} no grammar with api={api!r}; use mode='native' or 'text'")
    from rightcall.constrain.grammars import grammar

    try:
        made = grammar(tools, format=format, choice=request.choice, parallel=request.parallel)
        fields: Json = made.for_server(server)
    except GrammarCompileError as error:
        raise Unsupported(f"mode='grammar': {error}; use mode='native' or 'text'") from None
    return fields
