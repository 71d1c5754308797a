"""`rightcall serve`: run the proxy between clients and model servers. Each setting of the proxy is an option."""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, get_type_hints

import typer

from rightcall.cli.inputs import AsJson, own_formats, print_message, usage_errors
from rightcall.cli.layout import console, format_json, json_line, row
from rightcall.errors import CallerError, RightcallError
from rightcall.request_gate import is_loopback
from rightcall.safe_text import brief, visible
from rightcall.serve.proxy_settings import SETTINGS, ProxySettings, Setting
from rightcall.serve.settings_source import CONFIG_VARIABLE, SettingsSource, changed_at_start_only, source_of


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each setting to a command. Its first parameter gets the settings by name, None if not given.

    @with_settings
    def serve(flags: dict[str, Any], *, config: Annotated[str, typer.Option(...)] = "") -> None: ...
    """
    hints = get_type_hints(command, include_extras=True)
    _, *own = inspect.signature(command).parameters.values()

    @wraps(command)
    def flat(**options: Any) -> None:
        flags = {name: options.pop(name) for name in SETTINGS}
        command(flags, **options)

    parameters = [_parameter(each) for each in SETTINGS.values()]
    parameters += [each.replace(annotation=hints[each.name], kind=Parameter.KEYWORD_ONLY) for each in own]
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _parameter(setting: Setting) -> Parameter:
    """Make an option without a default: a variable or the file may set it. Values are text, validated later."""
    option: Any = typer.Option(
        setting.flag, metavar=setting.metavar or None, help=_help(setting), rich_help_panel=setting.group
    )
    kind: Any = str | None
    if isinstance(setting.default, tuple):
        kind = list[str] | None
    elif isinstance(setting.default, bool):
        kind = bool
    annotation = Annotated[kind, option]
    default = False if kind is bool else None
    return Parameter(setting.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _help(setting: Setting) -> str:
    """Return the help text of a setting with its default."""
    default = setting.default
    if isinstance(default, bool | tuple) or default == "":
        return setting.help
    shown = f"{default:,}" if isinstance(default, int) and default >= 100_000 else f"{default}".removesuffix(".0")
    return f"{setting.help} [default: {shown}]"


_MODELS_SHOWN = 5


@with_settings
def serve_command(
    flags: dict[str, Any],
    *,
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="A TOML file with settings.", envvar=CONFIG_VARIABLE)
    ] = "",
    check: Annotated[bool, typer.Option("--check", help="Check the settings, try each server, and exit.")] = False,
    json: AsJson = False,
) -> None:
    """Run a proxy between any client and any model server that lets only valid tool calls through.

    Clients use the address that is shown instead of the server's; nothing else changes. The proxy translates between
    Chat Completions, Responses, Messages, Ollama and Gemini if the client and the server use different APIs.

    Every option is also a variable (--max-retries: RIGHTCALL_SERVE_MAX_RETRIES) and a key of the file (max_retries).
    Options override variables, and variables override the file. SIGHUP reloads them. With --check, exit code 1 means
    that a server cannot be reached.
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
    """Run on the fastest event loop that is installed."""
    with asyncio.Runner(loop_factory=_fast_loop()) as runner, suppress(asyncio.CancelledError):
        runner.run(serving)


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop's event loop; None where it is not installed."""
    try:
        from uvloop import new_event_loop
    except ImportError:  # there is none for this system, and all works without it
        return None
    return new_event_loop


def _tune_garbage_collection() -> None:
    """Exempt all objects made so far from garbage collection, and collect less often.

    This saves a fifth of the time of a request with tools."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


# -- serving -----------------------------------------------------------------------------------------------------------


async def _serve(source: SettingsSource, settings: ProxySettings, as_json: bool) -> None:
    """Run the proxy until a signal stops it; SIGHUP reads the settings again."""
    from rightcall.serve.proxy import Proxy

    stop, again = asyncio.Event(), asyncio.Event()
    _on_signals(stop, again)
    async with Proxy(settings) as proxy:
        _tune_garbage_collection()
        _print_address(settings, proxy.address, as_json)
        while not stop.is_set():
            await _wait_for_any(stop, again)
            if again.is_set() and not stop.is_set():
                again.clear()
                settings = await _reload(proxy, source, settings)
        print_message(f"stopping; streams have {settings.stop_seconds:g} s to end (Ctrl-C again: at once)")
    print_message("stopped")


def _on_signals(stop: asyncio.Event, again: asyncio.Event) -> None:
    """Set `stop` at the first Ctrl-C; the second one ends the process at once."""
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


async def _wait_for_any(*events: asyncio.Event) -> None:
    """Wait for the first of these events."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


async def _reload(proxy: Any, source: SettingsSource, before: ProxySettings) -> ProxySettings:
    """Read the settings again and apply them. Invalid settings change nothing."""
    try:
        settings = source.read()
        await proxy.reload(settings)
    except (CallerError, OSError) as error:
        print_message(f"the settings are as they were: {error}")
        return before
    fixed = changed_at_start_only(before, settings)
    print_message("the settings were read again" + (f"; at the next start: {', '.join(fixed)}" if fixed else ""))
    return settings


# -- what is shown -----------------------------------------------------------------------------------------------------


def _print_address(settings: ProxySettings, address: str, as_json: bool) -> None:
    """Print the address and how to configure clients: on standard error, or as JSON on standard output."""
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
    for client, line in client_lines(client_address(address)).items():
        row(out, client, line, "cyan")


def _models(globs: tuple[str, ...]) -> str:
    return f", for {', '.join(globs)}" if globs else ""


def _upstream(each: Any) -> dict[str, Any]:
    return {"name": each.name, "url": each.url, "api": each.api, "models": list(each.models)}


def _key(settings: ProxySettings) -> str:
    """Describe who may use the proxy."""
    if settings.key is not None:
        return f"the value of {settings.key_env}; clients send it as their API key"
    if is_loopback(settings.host):
        return "none is asked for: every program on this machine may use it (--key-env asks for one)"
    return "none is asked for: WHOEVER REACHES THIS MACHINE may use it (--no-key)"


def client_address(address: str) -> str:
    """Return the address for clients on this machine, where the server listens on all interfaces."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def client_lines(address: str) -> dict[str, str]:
    """Return the lines that configure clients to use the proxy."""
    return {
        "OpenAI": f"OPENAI_BASE_URL={address}/v1",
        "Anthropic": f"ANTHROPIC_BASE_URL={address}",
        "Gemini": f"GOOGLE_GEMINI_BASE_URL={address}",
        "Ollama": f"OLLAMA_HOST={address}",
    }


# -- checking ----------------------------------------------------------------------------------------------------------


def _check(settings: ProxySettings, as_json: bool) -> None:
    """Check the settings and the upstreams, and print what was found. Exits with code 1 for a fault."""
    from rightcall.serve.upstream_check import check_upstreams

    try:
        found = asyncio.run(check_upstreams(settings))
    except RightcallError as error:
        print_message(str(error))
        raise typer.Exit(1) from None
    if as_json:
        fields = [{name: getattr(each, name) for name in each.__struct_fields__} for each in found]
        typer.echo(format_json({"settings": "ok", "upstreams": fields}))
    else:
        _show(found)
    if any(each.fault for each in found):
        raise typer.Exit(1)


def _show(found: list[Any]) -> None:
    """Print each upstream: its address, its type, its models and the mode."""
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
