"""Which upstreams are asked for a model, in which order, and under which name: by its name, by globs, by aliases.

    route = routed(settings, "claude-sonnet-5")
    route.upstreams        the first is asked; the others take over where it cannot be reached
    route.model            the name that they know the model by

Pure: the same settings and name give the same route. A model's own table wins over the first glob that matches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec

from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.proxy_settings import ModelSettings, ProxySettings, UpstreamSettings

_LONGEST = 256  # characters of a name that is looked up: hubs have shorter ones


class ModelRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The way for one model: the name to ask for, whom to ask in this order, and what else holds for it."""

    model: str
    upstreams: tuple[UpstreamSettings, ...]
    settings: ModelSettings = ModelSettings()


def routed(settings: ProxySettings, model: str, listed: Mapping[str, Collection[str]] | None = None) -> ModelRoute:
    """The way for this model. `listed` are the models that each upstream, by its name, said it has: among upstreams
    that are open to all models, those that have it come first. Raises `RefusedRequest` if nobody may be asked."""
    own = model_settings(settings, model)
    name = own.alias or model
    found = _named(settings, own.upstream) or _open_to(settings.upstream, (model, name), listed or {}, name)
    if not found:
        raise RefusedRequest(_unknown(settings, model), status=400, code="model_not_found")
    return ModelRoute(model=name, upstreams=found, settings=own)


def model_settings(settings: ProxySettings, model: str) -> ModelSettings:
    """What holds for this model: its table, and for what that leaves out the table of the name that it stands for."""
    own = _table(settings.models, model)
    if own is None or not own.alias or own.alias == model:
        return own or ModelSettings()
    meant = _table(settings.models, own.alias)
    return own if meant is None else _over(own, meant)


def _over(first: ModelSettings, second: ModelSettings) -> ModelSettings:
    fields = [name for name in ModelSettings.__struct_fields__ if name != "alias"]
    return ModelSettings(alias=first.alias, **{name: getattr(first, name) or getattr(second, name) for name in fields})


def _table(models: Mapping[str, ModelSettings], model: str) -> ModelSettings | None:
    if model in models:
        return models[model]
    return next((table for glob, table in models.items() if matches(model, (glob,))), None)


def matches(model: str, globs: Iterable[str]) -> bool:
    """Is this name one of these names and globs?"""
    return len(model) <= _LONGEST and any(fnmatchcase(model, glob) for glob in globs)


def _named(settings: ProxySettings, names: Iterable[str]) -> tuple[UpstreamSettings, ...]:
    by_name = {each.name: each for each in settings.upstream}
    return tuple([by_name[name] for name in names])


def _open_to(
    upstreams: Iterable[UpstreamSettings], names: tuple[str, str], listed: Mapping[str, Collection[str]], name: str
) -> tuple[UpstreamSettings, ...]:
    """Those that are meant for the model, then those that have it, then those that are open to every model."""
    upstreams = list(upstreams)
    meant = [each for each in upstreams if each.models and any(matches(name, each.models) for name in names)]
    others = [each for each in upstreams if not each.models]
    others.sort(key=lambda each: name not in listed.get(each.name, ()))
    return (*meant, *others)


def _unknown(settings: ProxySettings, model: str) -> str:
    globs = [glob for each in settings.upstream for glob in each.models]
    return f"no upstream is meant for the model {model[:80]!r}; there are {', '.join(globs[:20])}"
