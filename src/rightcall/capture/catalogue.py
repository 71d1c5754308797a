"""The domains that come with rightcall, and those of users.

find("shopping")            by name
find("my/domain.toml")      a file
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from rightcall.capture.domain import LARGEST, BadDomain, Domain, read_domain
from rightcall.errors import CallerError
from rightcall.tools.toolset import Toolset

_FOLDER = Path(__file__).with_name("domains")
DEFAULT = ("repo_docs", "shopping", "calendar", "support")


def names() -> list[str]:
    """The names of the domains that come with rightcall."""
    return sorted(file.stem for file in _FOLDER.glob("*.toml"))


@cache
def built_in(name: str) -> Domain:
    return read_domain((_FOLDER / f"{name}.toml").read_text("utf-8"), f"{name}.toml")


def find(name: str, real: Toolset | None = None) -> Domain:
    """A domain by its name, or out of a TOML file; with `real`, over these tools. Raises `CallerError`."""
    if name in names():
        return built_in(name) if real is None else from_file(_FOLDER / f"{name}.toml", real)
    if name.endswith(".toml"):
        return from_file(Path(name), real)
    near = difflib.get_close_matches(name, names(), 1, 0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names())}, or give a .toml file"
    raise CallerError(f"unsupported dataset domain {name!r:.80}; {hint}")


def from_file(path: Path, real: Toolset | None = None) -> Domain:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1).decode("utf-8")
    except OSError as error:
        raise BadDomain(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadDomain(f"{path}: not UTF-8 text") from error
    return read_domain(text, str(path), real=real)


def find_domains(wanted: Iterable[str], *, tools: Toolset | None = None) -> list[Domain]:
    """Each domain once, in the order asked for. Raises `CallerError`, also for two domains that share a name, and for
    scenarios that need a tool which is not there.

    - `wanted`: names of built-in domains, or paths of TOML files.
    - `tools`: real tools in the place of the stubs.
    """
    found: dict[str, Domain] = {}
    for name in dict.fromkeys(wanted):
        domain = find(name, tools)
        if domain.name in found:
            raise CallerError(f"two domains are called {domain.name!r}, the second in {name}; rename one of them")
        found[domain.name] = domain
    return list(found.values())
