"""Options that belong together are one value: each field of a struct is an option of the command.

class Endpoint(msgspec.Struct):
    timeout: Annotated[float, typer.Option(...)] = 60.0

@grouped
def chat(*, endpoint: Endpoint, system: Annotated[str, typer.Option(...)] = "") -> None: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter
from typing import Any, get_type_hints

import msgspec


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: a flat list of options, in the order in which they are written."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if _is_group(hint)}

    @wraps(command)
    def flat(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{field: options.pop(field) for field in group.__struct_fields__})
        command(**options)

    parameters = [each for known in inspect.signature(command).parameters.values() for each in _flat(known, hints)]
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _flat(known: Parameter, hints: dict[str, Any]) -> Iterator[Parameter]:
    hint = hints[known.name]
    if not _is_group(hint):
        yield known.replace(annotation=hint)
        return
    told = get_type_hints(hint, include_extras=True)
    for field in msgspec.structs.fields(hint):
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=told[field.name])
