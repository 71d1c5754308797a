"""Names that a provider takes, and the way back.

    files.read   ->  files_read            through chat, which takes no dots
    files.read   ->  files_read_5d1c0b7e   if files_read is a tool as well

A name the provider takes is never changed. The others depend on nothing but the set of names, and no two tools of a set
get the same one.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from rightcall.api_names import api_name

Provider = Literal["chat", "responses", "messages", "gemini", "ollama", "mcp"]


class NameRule(NamedTuple):
    first: str  # what a name may begin with, as the inside of a regex class
    rest: str
    longest: int


_WORD = "A-Za-z0-9_"
RULES: dict[str, NameRule] = {
    "chat": NameRule(_WORD + "-", _WORD + "-", 64),
    "responses": NameRule(_WORD + "-", _WORD + "-", 64),
    "messages": NameRule(_WORD + "-", _WORD + "-", 64),
    "gemini": NameRule("A-Za-z_", _WORD + ".-", 64),
    "ollama": NameRule(_WORD, _WORD + ".-", 128),
    "mcp": NameRule(_WORD + ".-", _WORD + ".-", 128),
}
_HASHES = 4  # how many spellings of one name are recognised on the way back


def check_provider(provider: str) -> str:
    """The word for whoever takes the tools: an API, or `mcp`."""
    return api_name(provider, RULES, what="form of tools")


def wire_names(names: Iterable[str], provider: str) -> dict[str, str]:
    """From each name to what the provider calls it."""
    rule = RULES[check_provider(provider)]
    all_names = list(names)
    found = {name: name for name in all_names if _taken_as_is(name, rule)}
    changed = {name: _folded(name, rule) for name in all_names if name not in found}
    count = Counter(changed.values())
    found |= {name: new for name, new in changed.items() if count[new] == 1 and new not in found}
    used = set(found.values())
    for name in sorted(changed.keys() - found.keys()):
        found[name] = next(new for new in _hashed(name, rule) if new not in used)
        used.add(found[name])
    return {name: found[name] for name in all_names}


def stands_for(wire: str, name: str) -> bool:
    """Could `wire` be what some provider's rules made of this name? A listing cannot pass one tool off as another."""
    return any(
        wire in (_folded(name, rule), *itertools.islice(_hashed(name, rule), _HASHES))
        for rule in RULES.values()
        if not _taken_as_is(name, rule)
    )


def _taken_as_is(name: str, rule: NameRule) -> bool:
    return len(name) <= rule.longest and re.fullmatch(f"[{rule.first}][{rule.rest}]*", name) is not None


def _folded(name: str, rule: NameRule) -> str:
    """Without a mark where that says enough; with one where the name was cut or nothing of it is left."""
    new = _replaced(name, rule)
    return new if len(new) <= rule.longest and new.strip("_") else next(_hashed(name, rule))


def _replaced(name: str, rule: NameRule) -> str:
    new = re.sub(f"[^{rule.rest}]", "_", name)
    return new if re.match(f"[{rule.first}]", new) else "_" + new


def _hashed(name: str, rule: NameRule) -> Iterator[str]:
    import hashlib

    base = _replaced(name, rule)[: rule.longest - 9]
    base = base if base.strip("_") else "tool"
    for round in itertools.count():
        text = f"{name}#{round}" if round else name
        yield f"{base}_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
