"""The settings of the proxy as options of a command: one for each, made of the table that the settings are.

@with_settings
def serve(flags: dict[str, Any], *, config: Annotated[str, typer.Option(...)] = "") -> None: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, get_type_hints

import typer

from rightcall.serve.proxy_settings import SETTINGS, Setting


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it. Its first parameter is given the settings by name, None for what was not said."""
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
    """An option without a default: what was not said may be said elsewhere. Values are text, checked where all are."""
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
    default = setting.default
    if isinstance(default, bool | tuple) or default == "":
        return setting.help
    shown = f"{default:,}" if isinstance(default, int) and default >= 100_000 else f"{default}".removesuffix(".0")
    return f"{setting.help} [default: {shown}]"
