"""Optional dependencies: which packages an extra installs, and the error if one is missing.

    require_extra("http")
    import aiohttp      # installed, or `MissingExtra` was raised with the command that installs it

Every extra of pyproject.toml that a program can miss is listed here, with a module that only this extra installs.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Literal

from rightcall.errors import MissingExtra

Extra = Literal["cli", "http", "local", "masks", "mcp", "otel", "parquet", "pydantic", "ray", "templates", "train"]

_MODULES: dict[Extra, tuple[str, str]] = {
    "cli": ("typer", "the command line needs typer"),
    "http": ("aiohttp", "talking to a server needs aiohttp"),
    "local": ("xllamacpp", "models run here by xllamacpp"),
    "masks": ("llguidance", "masks need llguidance"),
    "mcp": ("mcp", "MCP needs the official SDK"),
    "otel": ("opentelemetry.trace", "spans need opentelemetry"),
    "parquet": ("pyarrow", "Parquet, unlike .jsonl, needs pyarrow"),
    "pydantic": ("pydantic", "an annotation needs pydantic"),
    "ray": ("ray.data", "a cluster of machines needs Ray"),
    "templates": ("jinja2", "chat templates need jinja2"),
    "train": ("torch", "training a small model needs torch"),
}


def is_installed(extra: Extra) -> bool:
    """Return True if the packages of this extra are installed."""
    module = _MODULES[extra][0]
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def require_extra(extra: Extra) -> None:
    """Raise `MissingExtra` if this extra is not installed."""
    if not is_installed(extra):
        raise MissingExtra(extra, install_advice(extra))


def install_advice(extra: Extra) -> str:
    """Return the error message for a missing extra: what needs which package, and the command that installs it."""
    return f"{_MODULES[extra][1]}, which is not installed: pip install 'rightcall[{extra}]'"
