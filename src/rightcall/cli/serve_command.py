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

from rightcall.cli.inputs import AsJson, print_message, register_own_formats, usage_errors
from rightcall.cli.layout import console, format_json, json_line, row
from rightcall.errors import CallerError, RightcallError
from rightcall.request_gate import is_loopback
from rightcall.safe_text import brief, visible
from rightcall.serve.proxy_settings import SETTINGS, ProxySettings, Setting
from rightcall.serve.settings_source import CONFIG_VARIABLE, SettingsSource, changed_at_start_only, source_of


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each setting. Its first parameter gets a dict of all settings by name.

    A setting that is not given is None there, a flag False.

    @with_settings
    def serve(flags: dict[str, Any], *, config: Annotated[str, typer.Option(...)] = "") -> None: ...
    """
    hints = get_type_hints(command, include_extras=True)
    _, *own = inspect.signature(command).parameters.values()

    @wraps(command)
    def flat(**options: Any) -> None:
        flags = {name: options.pop(name) for name in SETTINGS}
        command(flags, **options)

    parameters = [_make_option(each) for each in SETTINGS.values()]
    parameters += [each.replace(annotation=hints[each.name], kind=Parameter.KEYWORD_ONLY) for each in own]
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _make_option(setting: Setting) -> Parameter:
    """Return the command's parameter for a setting. Its default is None, or False for a flag, since a variable or the
    file may set it."""
    option: Any = typer.Option(
        setting.flag, metavar=setting.metavar or None, help=_help_text(setting), rich_help_panel=setting.group
    )
    kind: Any = str | None
    if isinstance(setting.default, tuple):
        kind = list[str] | None
    elif isinstance(setting.default, bool):
        kind = bool
    annotation = Annotated[kind, option]
    default = False if kind is bool else None
    return Parameter(setting.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _help_text(setting: Setting) -> str:
    """Return the help text of a setting, with its default unless it is a flag, a list or empty."""
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
        register_own_formats()
        source = source_of(flags, config)
        settings = source.read()
        if check:
            _check_upstreams(settings, json)
            return
        _run_event_loop(_serve(source, settings, json))


def _run_event_loop(serving: Coroutine[Any, Any, None]) -> None:
    """Run the proxy to its end, on uvloop's event loop if it is installed. A cancellation ends it silently."""
    with asyncio.Runner(loop_factory=_find_fast_loop()) as runner, suppress(asyncio.CancelledError):
        runner.run(serving)


def _find_fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop's event loop; None if it is not installed."""
    try:
        from uvloop import new_event_loop
    except ImportError:  # not available on every system, and not required
        return None
    return new_event_loop


def _tune_garbage_collection() -> None:
    """Exempt all objects made so far from garbage collection, and let it run less often, for the whole process.

    This saves a fifth of the time of a request with tools."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


# -- serving -----------------------------------------------------------------------------------------------------------


async def _serve(source: SettingsSource, settings: ProxySettings, as_json: bool) -> None:
    """Start the proxy, print its address (`as_json`: as JSON on standard output), and run it until Ctrl-C or SIGTERM
    stops it. SIGHUP reloads the settings."""
    from rightcall.serve.proxy import Proxy

    stop, again = asyncio.Event(), asyncio.Event()
    _handle_signals(stop, again)
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


def _handle_signals(stop: asyncio.Event, again: asyncio.Event) -> None:
    """Install signal handlers: the first Ctrl-C or SIGTERM sets `stop`, a second one cancels this task, and each SIGHUP
    sets `again`. Nothing happens on systems without such handlers."""
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
    except (
        NotImplementedError,
        AttributeError,
    ):  # Windows: Ctrl-C ends the process at once, and settings are not reloaded
        return


async def _wait_for_any(*events: asyncio.Event) -> None:
    """Wait until one of these events is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


async def _reload(proxy: Any, source: SettingsSource, before: ProxySettings) -> ProxySettings:
    """Read the settings again, apply them to the proxy and return them. If they are invalid, report that and return
    `before`; the proxy then keeps those."""
    try:
        settings = source.read()
        await proxy.reload(settings)
    except (CallerError, OSError) as error:
        print_message(f"the settings were not changed: {error}")
        return before
    fixed = changed_at_start_only(before, settings)
    print_message("the settings were reloaded" + (f"; at the next start: {', '.join(fixed)}" if fixed else ""))
    return settings


# -- display -----------------------------------------------------------------------------------------------------------


def _print_address(settings: ProxySettings, address: str, as_json: bool) -> None:
    """Print the address and how to configure clients: on standard error, or as JSON on standard output."""
    if as_json:
        typer.echo(json_line({"address": address, "upstreams": [_upstream(each) for each in settings.upstream]}))
        return
    out = console(stderr=True)
    row(out, "listening", f"{address}  (Ctrl-C stops it)", "bold")
    for each in settings.upstream:
        row(out, "upstream", brief(f"{each.url}  as {each.api}{_models(each.models)}", 200))
    row(out, "tools", f"mode {settings.mode}, repair {settings.repair}, guard {settings.guard}, "
        f"{settings.max_retries} retries")  # fmt: skip
    row(out, "key", _describe_key(settings))
    for client, line in client_lines(client_address(address)).items():
        row(out, client, line, "cyan")


def _models(globs: tuple[str, ...]) -> str:
    """Return the patterns of an upstream's models as a clause for its line; "" for none."""
    return f", for {', '.join(globs)}" if globs else ""


def _upstream(each: Any) -> dict[str, Any]:
    """Return an upstream as JSON data: name, URL, API and patterns of models."""
    return {"name": each.name, "url": each.url, "api": each.api, "models": list(each.models)}


def _describe_key(settings: ProxySettings) -> str:
    """Return a text for the line "key" of the display: which key clients send, or who may connect without one. The key
    itself is not in it."""
    if settings.key is not None:
        return f"the value of {settings.key_env}; clients send it as their API key"
    if is_loopback(settings.host):
        return "not required: every program on this machine may connect (--key-env requires one)"
    return "not required: EVERYONE WHO CAN REACH THIS MACHINE may connect (--no-key)"


def client_address(address: str) -> str:
    """Return the address of the proxy for clients on this machine: loopback in place of an address for all interfaces,
    otherwise unchanged."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def client_lines(address: str) -> dict[str, str]:
    """Return a dict from each client library to the line `VARIABLE=address` that points it to the proxy."""
    return {
        "OpenAI": f"OPENAI_BASE_URL={address}/v1",
        "Anthropic": f"ANTHROPIC_BASE_URL={address}",
        "Gemini": f"GOOGLE_GEMINI_BASE_URL={address}",
        "Ollama": f"OLLAMA_HOST={address}",
    }


# -- checking ----------------------------------------------------------------------------------------------------------


def _check_upstreams(settings: ProxySettings, as_json: bool) -> None:
    """Check each upstream and print the results. Exits with code 1 if one has a fault."""
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
        _print_upstreams(found)
    if any(each.fault for each in found):
        raise typer.Exit(1)


def _print_upstreams(found: list[Any]) -> None:
    """Print each upstream: its address, its type, its models and the mode, or its fault."""
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
