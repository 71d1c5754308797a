"""mode="auto": how tools are best offered to this server and model, found out once and shown in every answer.

A kind of server that is known says it, and llama.cpp also whether its model's chat template shows tools. Otherwise a
tool without arguments is asked for, by the server's own means, then held to a grammar, then as text, and the first way
that brings the call is taken. A way that later fails to bring a call that was forced, or that the server refuses, is
given up for the next one, once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from rightcall.api_names import Api
from rightcall.backends.profiles import (
    BY_API,
    PROPS,
    UNKNOWN,
    Profile,
    find_profile,
    identify_by_answer,
    identify_by_host,
    identifying_paths,
    without_template_tools,
)
from rightcall.backends.request import Answer, Request
from rightcall.backends.request_plan import ModeChoice, can_constrain
from rightcall.backends.retry import about_schemas, about_tools
from rightcall.errors import (
    BackendError,
    DecodeError,
    ProviderError,
    RateLimited,
    StatusError,
    TransportError,
    Unauthorised,
    Unsupported,
)
from rightcall.types import Tool

Get = Callable[..., Awaitable[tuple[dict[str, str], Any]]]
Probe = Callable[[Request, ModeChoice], Awaitable[Answer]]

PROBE = Tool(
    name="tool_probe",
    description="Shows that tools can be called. Takes no arguments.",
    parameters={"type": "object", "properties": {}},
)
PROBE_PROMPT = f"Call the tool {PROBE.name} now."
_PROBING = Request(
    messages=[{"role": "user", "content": PROBE_PROMPT}],
    tools=[PROBE],
    choice="required",
    temperature=0.0,
    max_tokens=512,
)
_PATIENCE = 5.0  # seconds for each question that tells what kind of server it is
_WAYS = ("native", "grammar", "text")  # in the order they are tried


class ModeSelector:
    """What is known of one server: its profile, and the way that works for each model."""

    def __init__(self, api: Api, root: str, profile: Profile | None) -> None:
        self._api, self._root = api, root
        self._known: tuple[Profile | None, str] | None = (profile, "you said so") if profile else self._obvious()
        self._chosen: dict[str, ModeChoice] = {}
        self._demoted: set[str] = set()

    def _obvious(self) -> tuple[Profile, str] | None:
        """What the address or the API alone gives away."""
        host = urlsplit(self._root).hostname or ""
        found = identify_by_host(host)
        if found is not None:
            return found, f"the address is {host}"
        if self._api in BY_API:
            return find_profile(BY_API[self._api]), f"api={self._api!r} has tools of its own"
        return None

    async def recognise(self, get: Get) -> tuple[Profile | None, str]:
        """The server's profile and what gave it away; asked once."""
        if self._known is None:
            self._known = await self._recognised(get)
        return self._known

    async def _as_far_as_it_goes(self, profile: Profile | None, get: Get) -> Profile | None:
        """llama.cpp drops tools without a word if the model's chat template shows none; it says so if asked."""
        if profile is None or profile.name != "llama.cpp" or not profile.native:
            return profile
        try:
            _, body = await get(PROPS, within=_PATIENCE)
        except BackendError:
            return profile
        return without_template_tools(profile, body)

    async def _recognised(self, get: Get) -> tuple[Profile | None, str]:
        heard = False
        for path in identifying_paths():
            try:
                headers, body = await get(path, within=_PATIENCE)
            except TransportError:
                if heard:
                    continue  # it does answer, and takes long to describe itself
                raise
            except StatusError as error:
                heard = True
                if isinstance(error, Unauthorised | RateLimited):
                    raise
                continue
            except BackendError:
                continue
            heard = True
            found = identify_by_answer(path, headers, body)
            if found is not None:
                return found
        return None, "the server is of no kind that is known"

    async def choose(self, request: Request, default: str, model: str, probe: Probe, get: Get) -> ModeChoice:
        """The way for this request. Raises a `BackendError` if the server cannot be reached."""
        mode = request.mode or default
        if not request.tools:
            return ModeChoice("native", self._profile, ("the request has no tools",))
        if mode == "grammar":
            return ModeChoice(mode, (await self.recognise(get))[0] or UNKNOWN, ("you said so",))
        if mode != "auto":
            return ModeChoice(mode, self._profile, ("you said so",))
        if model not in self._chosen:
            self._chosen[model] = await self._decide(model, probe, get)
        return self._chosen[model]

    @property
    def _profile(self) -> Profile:
        return (self._known[0] if self._known else None) or UNKNOWN

    def _order(self, profile: Profile) -> list[str]:
        native = [] if self._api == "completions" or not profile.native else ["native"]
        return [*native, *(["grammar"] if can_constrain(profile, self._api) else []), "text"]

    async def _decide(self, model: str, probe: Probe, get: Get) -> ModeChoice:
        try:
            profile, why = await self.recognise(get)
            profile = await self._as_far_as_it_goes(profile, get)
        except TransportError:  # what follows is tried more than once, and says why it fails
            profile, why = None, "the server did not say of what kind it is"
        order = self._order(profile or UNKNOWN)
        if profile is not None or len(order) == 1:
            named = profile.title if profile is not None else "no other way"
            return ModeChoice(order[0], profile or UNKNOWN, (f"{named}: {why}",), is_auto=True)
        return await self._probed(model, probe, order, why)

    async def _probed(self, model: str, probe: Probe, order: list[str], why: str) -> ModeChoice:
        evidence = [why]
        for mode in order:
            came, seen = await self._try(model, probe, mode)
            evidence.append(f"{mode}: {seen}")
            if came:
                return ModeChoice(mode, UNKNOWN, tuple(evidence), is_auto=True)
        return ModeChoice(order[-1], UNKNOWN, (*evidence, "no way worked; text asks least of a server"), is_auto=True)

    async def _try(self, model: str, probe: Probe, mode: str) -> tuple[bool, str]:
        request = msgspec.structs.replace(_PROBING, model=model)
        try:
            answer = await probe(request, ModeChoice(mode))
        except (TransportError, Unauthorised, RateLimited):
            raise
        except (StatusError, DecodeError, ProviderError, Unsupported) as error:
            return False, f"refused: {error!s:.200}"
        if any(call.name == PROBE.name and call.complete for call in answer.attempts):
            return True, "the probe tool was called"
        return False, f"the probe tool was not called (the server stopped with {answer.finish or 'no reason'})"

    # -- second thoughts -----------------------------------------------------------------------------------------------

    def judge(self, request: Request, model: str, choice: ModeChoice, answer: Answer) -> ModeChoice | None:
        """Another way, if a forced call did not come by this one."""
        if not request.is_forced or answer.attempts:
            return None
        if answer.finish == "length" and not answer.content:
            return None  # it was still thinking
        return self._next(model, choice, "a forced call did not come")

    def refused(self, model: str, choice: ModeChoice, error: BackendError) -> ModeChoice | None:
        """Another way, if the server does not take this one."""
        if isinstance(error, Unsupported):
            return self._next(model, choice, str(error), again=True)  # it was not even tried
        if choice.mode == "text" or not about_tools(error):
            return None
        if about_schemas(error):  # of the tools of this request; others it may take
            return self._later(choice, f"refused: {error!s:.200}")
        return self._next(model, choice, f"refused: {error!s:.200}")

    def _next(self, model: str, choice: ModeChoice, why: str, *, again: bool = False) -> ModeChoice | None:
        now = self._chosen.get(model)
        if choice.is_auto and now is not None and _WAYS.index(now.mode) > _WAYS.index(choice.mode):
            return now  # which another request has found out meanwhile
        found = self._later(choice, why)
        if found is None or (model in self._demoted and not again):
            return None
        self._demoted.add(model)
        self._chosen[model] = found
        return found

    def _later(self, choice: ModeChoice, why: str) -> ModeChoice | None:
        """The next way, if there is one."""
        later = [mode for mode in self._order(choice.profile) if _WAYS.index(mode) > _WAYS.index(choice.mode)]
        if not choice.is_auto or not later:
            return None
        evidence = (*choice.evidence, f"{later[0]} instead of {choice.mode}: {why}")
        return ModeChoice(later[0], choice.profile, evidence, is_auto=True)
