"""Import the names of a public module on first use, so that importing the module itself is cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Mapping
from importlib import import_module
from typing import Any


def load_lazily(module: str, homes: Mapping[str, str], modules: Container[str] = ()) -> Callable[[str], Any]:
    """Return a function to assign to `__getattr__` of a module: it imports a name on first use and stores it in the
    module, or raises `AttributeError`. `homes` maps each name to the module that defines it; `modules` are the names
    of its submodules."""

    def find(name: str) -> Any:
        """Import and return the value of a name, and store it in the module. Raises `AttributeError` for an unknown
        name."""
        if name in modules:
            return import_module(f"{module}.{name}")
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return find
