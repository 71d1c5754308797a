"""`rightcall serve --check`: is each upstream there, what kind of server is it, what models has it, how are tools best
offered to it, and why."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from rightcall.backends.auto_mode import PROBE, PROBE_PROMPT
from rightcall.backends.request import Request
from rightcall.errors import BackendError, CallerError, RightcallError
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from rightcall.serve.upstream_link import UpstreamLink
from rightcall.serve.upstream_routes import matches, model_settings


class CheckedUpstream(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about one upstream. `fault` says why it cannot be asked; empty if it can."""

    name: str
    url: str
    api: str
    kind: str = ""
    told_by: str = ""
    models: tuple[str, ...] = ()
    model: str = ""
    mode: str = ""
    why: tuple[str, ...] = ()
    fault: str = ""


async def check_upstreams(settings: ProxySettings) -> list[CheckedUpstream]:
    """Tries all upstreams, at the same time. A server of a kind that is not known is asked for one call of a tool that
    does nothing."""
    return await asyncio.gather(*[_checked(each, settings) for each in settings.upstream])


async def _checked(upstream: UpstreamSettings, settings: ProxySettings) -> CheckedUpstream:
    found = CheckedUpstream(name=upstream.name, url=upstream.url, api=upstream.api)
    try:
        link = UpstreamLink(upstream, settings)
        await link.connect()
    except (CallerError, OSError) as error:  # OSError: a file of certificates
        return msgspec.structs.replace(found, fault=str(error))
    try:
        return await _asked(link, upstream, settings, found)
    except RightcallError as error:
        return msgspec.structs.replace(found, fault=str(error))
    finally:
        await link.close()


async def _asked(
    link: UpstreamLink, upstream: UpstreamSettings, settings: ProxySettings, found: CheckedUpstream
) -> CheckedUpstream:
    backend = link.backend
    profile, told_by = await backend.profile()
    models: list[str] = []
    with suppress(BackendError):  # a server without a list may still answer; what follows says if it does
        models = await backend.models()
    if upstream.models:
        models = [each for each in models if matches(each, upstream.models)]
    model = models[0] if models else next((each for each in upstream.models if not set(each) & set("*?[")), "")
    mode = model_settings(settings, model).mode or settings.mode
    asking = Request(messages=[{"role": "user", "content": PROBE_PROMPT}], tools=[PROBE], model=model, mode=mode)
    choice = await backend.way(asking)
    return msgspec.structs.replace(
        found,
        kind=profile.title if profile is not None else "of no known kind",
        told_by=told_by,
        models=tuple(models),
        model=model,
        mode=choice.mode,
        why=choice.evidence,
    )
