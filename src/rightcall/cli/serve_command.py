"""`rightcall serve`: the proxy, from its settings to its end."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Annotated, Any

import typer

from rightcall.cli.inputs import AsJson, own_formats, say, usage_errors
from rightcall.cli.layout import console, row
from rightcall.cli.safe import brief, json_line, json_text, visible
from rightcall.cli.setting_options import with_settings
from rightcall.errors import CallerError, RightcallError
from rightcall.request_gate import is_loopback
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.serve.settings_source import CONFIG_VARIABLE, SettingsSource, changed_at_start_only, source_of

_MODELS_SHOWN = 5


@with_settings
def serve(
    flags: dict[str, Any],
    *,
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="A TOML file with settings.", envvar=CONFIG_VARIABLE)
    ] = "",
    check: Annotated[bool, typer.Option("--check", help="Check the settings, try each server, and exit.")] = False,
    json: AsJson = False,
) -> None:
    """Stand between any client and any model server, and let only right tool calls through.

    Give clients the address that is shown instead of the server's: nothing else changes. Chat Completions, Responses,
    Messages, Ollama and Gemini are spoken on both sides, whichever the client and the server speak.

    Every option is also a variable (--max-retries: RIGHTCALL_SERVE_MAX_RETRIES) and a key of the file (max_retries);
    an option wins over a variable, which wins over the file. SIGHUP reads them again. With --check, exit code 1
    means that a server cannot be asked.
    """
    with usage_errors():
        own_formats()
        source = source_of(flags, config)
        settings = source.read()
        if check:
            _check(settings, json)
            return
        _run(_serve(source, settings, json))


def _run(serving: Coroutine[Any, Any, None]) -> None:
    """On the fastest loop that is installed."""
    with asyncio.Runner(loop_factory=_fast_loop()) as runner, suppress(asyncio.CancelledError):
        runner.run(serving)


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:  # there is none for this system, and all works without it
        return None
    return new_event_loop


def _spare_the_collector() -> None:
    """What was loaded until now stays: the collector need not look at it again, and seldom at what comes and goes with
    a request. That is a fifth of the time of a request with tools."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


# -- serving -----------------------------------------------------------------------------------------------------------


async def _serve(source: SettingsSource, settings: ProxySettings, as_json: bool) -> None:
    from rightcall.serve.proxy import Proxy

    stop, again = asyncio.Event(), asyncio.Event()
    _on_signals(stop, again)
    async with Proxy(settings) as proxy:
        _spare_the_collector()
        _tell(settings, proxy.address, as_json)
        while not stop.is_set():
            await _either(stop, again)
            if again.is_set() and not stop.is_set():
                again.clear()
                settings = await _reloaded(proxy, source, settings)
        say(f"stopping; streams have {settings.stop_seconds:g} s to end (Ctrl-C again: at once)")
    say("stopped")


def _on_signals(stop: asyncio.Event, again: asyncio.Event) -> None:
    """The first Ctrl-C asks for an end, the second insists on it."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def end() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, end)
        loop.add_signal_handler(signal.SIGHUP, again.set)
    except (NotImplementedError, AttributeError):  # Windows: Ctrl-C ends at once, and nothing is read again
        return


async def _either(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


async def _reloaded(proxy: Any, source: SettingsSource, before: ProxySettings) -> ProxySettings:
    """The settings as they are now. Those that cannot be used change nothing."""
    try:
        settings = source.read()
        await proxy.reload(settings)
    except (CallerError, OSError) as error:
        say(f"the settings are as they were: {error}")
        return before
    fixed = changed_at_start_only(before, settings)
    say("the settings were read again" + (f"; at the next start: {', '.join(fixed)}" if fixed else ""))
    return settings


# -- what is shown -----------------------------------------------------------------------------------------------------


def _tell(settings: ProxySettings, address: str, as_json: bool) -> None:
    """Where it is and how clients are pointed at it: on standard error, or for programs on standard output."""
    if as_json:
        typer.echo(json_line({"address": address, "upstreams": [_upstream(each) for each in settings.upstream]}))
        return
    out = console(stderr=True)
    row(out, "listening", f"{address}  (Ctrl-C stops it)", "bold")
    for each in settings.upstream:
        row(out, "before", brief(f"{each.url}  as {each.api}{_models(each.models)}", 200))
    row(out, "tools", f"mode {settings.mode}, repair {settings.repair}, guard {settings.guard}, "
        f"{settings.max_retries} retries")  # fmt: skip
    row(out, "key", _key(settings))
    for client, line in client_lines(reachable(address)).items():
        row(out, client, line, "cyan")


def _models(globs: tuple[str, ...]) -> str:
    return f", for {', '.join(globs)}" if globs else ""


def _upstream(each: Any) -> dict[str, Any]:
    return {"name": each.name, "url": each.url, "api": each.api, "models": list(each.models)}


def _key(settings: ProxySettings) -> str:
    if settings.key is not None:
        return f"the value of {settings.key_env}; clients send it as their API key"
    if is_loopback(settings.host):
        return "none is asked for: every program on this machine may use it (--key-env asks for one)"
    return "none is asked for: WHOEVER REACHES THIS MACHINE may use it (--no-key)"


def reachable(address: str) -> str:
    """The address for clients of this machine, where it listens on all."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def client_lines(address: str) -> dict[str, str]:
    """What points clients at the proxy."""
    return {
        "OpenAI": f"OPENAI_BASE_URL={address}/v1",
        "Anthropic": f"ANTHROPIC_BASE_URL={address}",
        "Gemini": f"GOOGLE_GEMINI_BASE_URL={address}",
        "Ollama": f"OLLAMA_HOST={address}",
    }


# -- checking ----------------------------------------------------------------------------------------------------------


def _check(settings: ProxySettings, as_json: bool) -> None:
    from rightcall.serve.upstream_check import check_upstreams

    try:
        found = asyncio.run(check_upstreams(settings))
    except RightcallError as error:
        say(str(error))
        raise typer.Exit(1) from None
    if as_json:
        fields = [{name: getattr(each, name) for name in each.__struct_fields__} for each in found]
        typer.echo(json_text({"settings": "ok", "upstreams": fields}))
    else:
        _show(found)
    if any(each.fault for each in found):
        raise typer.Exit(1)


def _show(found: list[Any]) -> None:
    out = console()
    for each in found:
        row(out, "upstream", brief(f"{each.name}  {each.url}  as {each.api}", 200), "bold")
        if each.fault:
            row(out, "fault", visible(each.fault, one_line=True), "red")
            continue
        row(out, "kind", visible(f"{each.kind}: {each.told_by}", one_line=True))
        more = f" and {len(each.models) - _MODELS_SHOWN} more" if len(each.models) > _MODELS_SHOWN else ""
        row(out, "models", brief(", ".join(each.models[:_MODELS_SHOWN]) + more or "it lists none", 400))
        row(out, "mode", visible(f"{each.mode}: {'; '.join(each.why)}", one_line=True), "green")
