"""Mode "auto": detect once how tools are best offered to a server and model, and report the evidence in every answer.

A recognised kind of server decides it; llama.cpp also reports whether its model's chat template shows tools. Otherwise
a tool without arguments is probed natively, then with a grammar, then as text, and the first mode that yields the call
is chosen. A mode that later fails on a forced call, or that the server rejects, is replaced by the next one, once.
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
from rightcall.backends.retry import is_about_schemas, is_about_tools
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
_PATIENCE = 5.0  # seconds for each request that identifies the server
_MODE_ORDER = ("native", "grammar", "text")  # in the order they are tried


class ModeSelector:
    """Selects how tools are offered to one server. It caches the server's profile, and the selected mode of each
    model."""

    def __init__(self, api: Api, root: str, profile: Profile | None) -> None:
        self._api, self._root = api, root
        self._known: tuple[Profile | None, str] | None = (
            (profile, "set explicitly") if profile else self._recognise_by_address()
        )
        self._chosen: dict[str, ModeChoice] = {}
        self._demoted: set[str] = set()

    def _recognise_by_address(self) -> tuple[Profile, str] | None:
        """Return the profile that the host name or the API alone implies, with the reason as a phrase; None if neither
        does. No request is sent."""
        host = urlsplit(self._root).hostname or ""
        found = identify_by_host(host)
        if found is not None:
            return found, f"the address is {host}"
        if self._api in BY_API:
            return find_profile(BY_API[self._api]), f"api={self._api!r} has tools of its own"
        return None

    async def recognise(self, get: Get) -> tuple[Profile | None, str]:
        """Return the server's profile (None: unknown) and how it was recognised, as a phrase. The server is queried at
        most once. Raises a `BackendError` if it must be asked and cannot be reached, or rejects the key."""
        if self._known is None:
            self._known = await self._probe_server(get)
        return self._known

    async def _check_template_tools(self, profile: Profile | None, get: Get) -> Profile | None:
        """Return the profile, without native tools if llama.cpp reports a chat template that does not show them. The
        profile of any other server, or of one that does not report it, is returned unchanged."""
        if profile is None or profile.name != "llama.cpp" or not profile.native:
            return profile
        try:
            _, body = await get(PROPS, within=_PATIENCE)
        except BackendError:
            return profile
        return without_template_tools(profile, body)

    async def _probe_server(self, get: Get) -> tuple[Profile | None, str]:
        """Send the identifying requests of all profiles until an answer matches; return that profile and the evidence,
        or (None, "unknown server type") if none does. Raises the first `TransportError` if the server has not answered
        before, and `Unauthorised` or `RateLimited` at once."""
        has_answered = False
        for path in identifying_paths():
            try:
                headers, body = await get(path, within=_PATIENCE)
            except TransportError:
                if has_answered:
                    continue  # the server answers, but this description takes too long
                raise
            except StatusError as error:
                has_answered = True
                if isinstance(error, Unauthorised | RateLimited):
                    raise
                continue
            except BackendError:
                continue
            has_answered = True
            found = identify_by_answer(path, headers, body)
            if found is not None:
                return found
        return None, "unknown server type"

    async def choose(self, request: Request, default: str, model: str, probe: Probe, get: Get) -> ModeChoice:
        """Return the mode for this request: its own, else `default`. Mode "auto" is decided once per `model`, by the
        profile or by sending probes, and cached; a request without tools is "native". `get` and `probe` send the
        requests. Raises a `BackendError` if the server must be asked and cannot be reached."""
        mode = request.mode or default
        if not request.tools:
            return ModeChoice("native", self._profile_or_unknown, ("the request has no tools",))
        if mode == "grammar":
            return ModeChoice(mode, (await self.recognise(get))[0] or UNKNOWN, ("set explicitly",))
        if mode != "auto":
            return ModeChoice(mode, self._profile_or_unknown, ("set explicitly",))
        if model not in self._chosen:
            self._chosen[model] = await self._decide(model, probe, get)
        return self._chosen[model]

    @property
    def _profile_or_unknown(self) -> Profile:
        """Return the profile if it was recognised already, otherwise `UNKNOWN`."""
        return (self._known[0] if self._known else None) or UNKNOWN

    def _possible_modes(self, profile: Profile) -> list[str]:
        """Return the modes that a server with this profile supports through this API, best first; "text" is always the
        last one."""
        native = [] if self._api == "completions" or not profile.native else ["native"]
        return [*native, *(["grammar"] if can_constrain(profile, self._api) else []), "text"]

    async def _decide(self, model: str, probe: Probe, get: Get) -> ModeChoice:
        """Choose the mode of a model: the best one that the server's profile supports, or by probes if the server is
        unknown or cannot be recognised. Raises a `BackendError` if it rejects the key or the probes cannot be sent."""
        try:
            profile, why = await self.recognise(get)
            profile = await self._check_template_tools(profile, get)
        except TransportError:  # the request itself is retried and reports its failure
            profile, why = None, "the server type could not be detected"
        order = self._possible_modes(profile or UNKNOWN)
        if profile is not None or len(order) == 1:
            named = profile.title if profile is not None else "only possible mode"
            return ModeChoice(order[0], profile or UNKNOWN, (f"{named}: {why}",), is_auto=True)
        return await self._decide_by_probes(model, probe, order, why)

    async def _decide_by_probes(self, model: str, probe: Probe, order: list[str], why: str) -> ModeChoice:
        """Probe the modes of `order` one after the other and return the first that yields the call; the last one if
        none does. Each result is added to the evidence, which begins with `why`."""
        evidence = [why]
        for mode in order:
            was_called, finding = await self._probe_mode(model, probe, mode)
            evidence.append(f"{mode}: {finding}")
            if was_called:
                return ModeChoice(mode, UNKNOWN, tuple(evidence), is_auto=True)
        return ModeChoice(order[-1], UNKNOWN, (*evidence, "no mode worked; text needs the least support"), is_auto=True)

    async def _probe_mode(self, model: str, probe: Probe, mode: str) -> tuple[bool, str]:
        """Ask the model in one mode to call a harmless tool. Return whether it was called, and the finding as a
        sentence; a server that rejects the request is a finding too. Raises `TransportError`, `Unauthorised` or
        `RateLimited`."""
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

    def fallback_after_answer(
        self, request: Request, model: str, choice: ModeChoice, answer: Answer
    ) -> ModeChoice | None:
        """Return the next mode if the request demanded a call and the answer has none, not even a rejected one; None if
        it has one, demanded none, reached its token limit before any text, or no mode is left."""
        if not request.is_forced or answer.attempts:
            return None
        if answer.finish == "length" and not answer.content:
            return None  # the limit was reached while reasoning
        return self._demote(model, choice, "a forced call did not come")

    def fallback_after_error(self, model: str, choice: ModeChoice, error: BackendError) -> ModeChoice | None:
        """Return the mode to try next if the `error` shows that the server does not support the mode of `choice`; None
        if the error has another cause, no mode is left, or the model's mode was replaced before."""
        if isinstance(error, Unsupported):
            return self._demote(model, choice, str(error), repeatable=True)  # it was rejected before it was sent
        if choice.mode == "text" or not is_about_tools(error):
            return None
        if is_about_schemas(error):  # the schemas of this request; other tools may work
            return self._later_mode(choice, f"refused: {error!s:.200}")
        return self._demote(model, choice, f"refused: {error!s:.200}")

    def _demote(self, model: str, choice: ModeChoice, why: str, *, repeatable: bool = False) -> ModeChoice | None:
        """Replace the cached mode of a model by the one after `choice`, and return it; `why` becomes evidence. Return
        None if no mode is left or it was replaced once before (unless `repeatable`). If another request has replaced it
        meanwhile, return that mode."""
        now = self._chosen.get(model)
        if choice.is_auto and now is not None and _MODE_ORDER.index(now.mode) > _MODE_ORDER.index(choice.mode):
            return now  # another request has changed the mode meanwhile
        fallback = self._later_mode(choice, why)
        if fallback is None or (model in self._demoted and not repeatable):
            return None
        self._demoted.add(model)
        self._chosen[model] = fallback
        return fallback

    def _later_mode(self, choice: ModeChoice, why: str) -> ModeChoice | None:
        """Return the choice of the next possible mode after that of `choice`, with the reason `why` appended to its
        evidence; None if there is no later mode, or if the caller fixed the mode."""
        later = [
            mode
            for mode in self._possible_modes(choice.profile)
            if _MODE_ORDER.index(mode) > _MODE_ORDER.index(choice.mode)
        ]
        if not choice.is_auto or not later:
            return None
        evidence = (*choice.evidence, f"{later[0]} instead of {choice.mode}: {why}")
        return ModeChoice(later[0], choice.profile, evidence, is_auto=True)
