"""`Toolset`: the declared tools of a request, their parameters, scopes, and the names that each provider accepts."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec

from rightcall.api_names import api_name
from rightcall.schema.definition import Mended
from rightcall.schema.limits import CURE, MAX_TOOLSET_PATTERNS, Refusal, Refused
from rightcall.schema.places import Kind, kinds, properties
from rightcall.schema.relax import SchemaRelaxation, relaxed
from rightcall.tools.collect import FoundTool, ToolLike, collect, to_tool
from rightcall.types import Json, Problem, Tool


class Param(msgspec.Struct, frozen=True):
    """`default` is `msgspec.UNSET` if there is none; `schema` is the whole property, `{}` for one that says nothing."""

    name: str
    schema: Json
    description: str = ""
    required: bool = False
    default: Any = msgspec.UNSET
    examples: tuple[Any, ...] = ()


def params(tool: Tool) -> tuple[Param, ...]:
    """Required ones first, then by name. What the schema does not call required is optional."""
    listed = tool.parameters.get("required")
    required = set(listed) if isinstance(listed, list) else set()
    found = [_param(key, schema, key in required) for key, schema in properties(tool.parameters).items()]
    return tuple(sorted(found, key=lambda param: (not param.required, param.name)))


def _param(name: str, given: Any, required: bool) -> Param:
    schema = given if isinstance(given, dict) else {}
    text = schema.get("description")
    default = schema.get("default", msgspec.UNSET)
    return Param(name, schema, text if isinstance(text, str) else "", required, default, examples(schema))


def examples(schema: Json) -> tuple[Any, ...]:
    """A list of examples wins over a single one."""
    if isinstance(schema.get("examples"), list):
        return tuple(schema["examples"])
    return (schema["example"],) if "example" in schema else ()


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


__all__ = ["Clash", "Mended", "Refusal", "SchemaRelaxation", "ToolLike", "Tools", "Toolset", "to_tool"]


class Clash(msgspec.Struct, frozen=True):
    """Two sources had a tool of this name; `same` when the two say the same of it."""

    name: str
    kept: str
    dropped: str
    same: bool


_MOST_NEAR = 2_000  # names that are looked through for a similar one


def _pairs(text: str) -> set[str]:
    return {text[i : i + 2] for i in range(len(text) - 1)}


class Toolset:
    """The tools of one conversation. Immutable, and safe to share between threads; iterates in the order of
    declaration.

    - `sources`: functions, classes, `Tool` values, definitions of any provider, listings of MCP servers, toolsets, or
      lists of these, mixed.
    - `replace`: where a name comes twice the last one stays, not the first; `clashes` says so either way.

    Raises `BadTools`, with the place, for a definition that cannot be used. `mended` lists what was taken for what it
    means, and `refused` what `lenient` and `of` left out.
    """

    __slots__ = (
        "_all",
        "_allowed",
        "_by_name",
        "_checked",
        "_kinds",
        "_near",
        "_patterns",
        "_sources",
        "_wire",
        "clashes",
        "mended",
        "refused",
    )

    clashes: tuple[Clash, ...]
    mended: tuple[Mended, ...]
    refused: tuple[Refusal, ...]
    _allowed: frozenset[str] | None

    def __init__(self, *sources: Tools, replace: bool = False) -> None:
        self._fill(_labelled(sources), replace, _nothing)

    @classmethod
    def lenient(cls, *sources: Tools, replace: bool = False) -> Toolset:
        """The tools of `sources` that can be used; `refused` tells which cannot, and why. `replace` as in `Toolset`."""
        made = cls.__new__(cls)
        made._fill(_labelled(sources), replace, _everything)
        return made

    @classmethod
    def merge(cls, sources: Mapping[str, Tools], *, replace: bool = False, lenient: bool = False) -> Toolset:
        """Tools of sources that have names, such as servers; the names stand in `clashes` and `refused`.

        - `sources`: by name, each as `Toolset` takes one.
        - `replace`: as in `Toolset`.
        - `lenient`: leave out what cannot be used instead of raising `BadTools`.
        """
        made = cls.__new__(cls)
        made._fill(sources, replace, _everything if lenient else _nothing)
        return made

    @staticmethod
    def of(tools: Tools | None, *, choice: object = None) -> Toolset | None:
        """What every function makes of the `tools` it is given: a toolset as it is, anything else turned into one; None
        stays None, and names are not checked then.

        - `tools`: definitions that cannot be used are left out and stand in `refused`; functions, classes and `Tool`
          values that cannot raise `BadTools`.
        - `choice`: the request's tool choice; where it is "none", in any provider's spelling, nothing may be called.
        """
        if tools is not None and not isinstance(tools, Toolset):
            made = Toolset.__new__(Toolset)
            made._fill(_labelled((tools,)), False, _data)
            tools = made
        if choice is not None and is_none(choice):
            return (tools or Toolset()).scoped(())
        return tools

    def _fill(self, sources: Mapping[str, Tools], replace: bool, leaves_out: Callable[[Refused], bool]) -> None:
        by_name: dict[str, Tool] = {}
        origins: dict[str, str] = {}
        clashes: list[Clash] = []
        refused: list[Refusal] = []
        mended: dict[str, tuple[Mended, ...]] = {}
        patterns: dict[str, int] = {}
        spent = 0
        for label, source in sources.items():
            if isinstance(source, Toolset):
                refused += source.refused
            for tool, origin, notes, cost in _found(source, label):
                if not isinstance(tool, Refused) and spent + cost > MAX_TOOLSET_PATTERNS:
                    tool = _too_many_patterns(tool)
                if isinstance(tool, Refused):
                    if not leaves_out(tool):
                        raise tool
                    refused.append(Refusal(origin, tool.tool, tool.path, str(tool)))
                    continue
                old = by_name.get(tool.name)
                if old is not None:
                    kept, dropped = (origin, origins[tool.name]) if replace else (origins[tool.name], origin)
                    clashes.append(Clash(tool.name, kept, dropped, _alike(old, tool)))
                if old is None or replace:
                    by_name[tool.name], origins[tool.name], mended[tool.name] = tool, origin, notes
                    patterns[tool.name] = cost
                    spent += cost
        self.mended = tuple(note for notes in mended.values() for note in notes)
        self._by_name, self._all, self._allowed = by_name, by_name, None
        self._patterns = patterns
        self._near: list[tuple[set[str], str]] = []
        self._sources, self.clashes, self.refused = origins, tuple(clashes), tuple(refused)
        self._kinds: dict[str, dict[str, Kind]] = {}
        self._checked: dict[str, tuple[Json, tuple[SchemaRelaxation, ...]]] = {}
        self._wire: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self._by_name)})"

    def get(self, name: str) -> Tool | None:
        """The tool of this `name`, or None."""
        return self._by_name.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that may be called, sorted."""
        return tuple(sorted(self._by_name))

    def source(self, name: str) -> str:
        """Where the tool of this `name` came from, in words; "" for a tool that is not declared."""
        return self._sources.get(name, "") if name in self._by_name else ""

    def scoped(self, names: Iterable[str]) -> Toolset:
        """The same tools, but only these `names` may be called. A scope of a scope never allows more."""
        made = object.__new__(Toolset)
        for slot in self.__slots__:
            setattr(made, slot, getattr(self, slot))
        allowed = frozenset([names] if isinstance(names, str) else names)
        made._allowed = allowed if self._allowed is None else allowed & self._allowed
        made._by_name = {name: tool for name, tool in self._by_name.items() if name in allowed}
        return made

    def sorted(self) -> Toolset:
        """The same tools, by name: whatever the order they were declared in, what is made of them is the same."""
        made = object.__new__(Toolset)
        for slot in self.__slots__:
            setattr(made, slot, getattr(self, slot))
        made._by_name = {name: self._by_name[name] for name in self.names}
        return made

    def registered(self, *sources: Tools) -> Toolset:
        """The same tools, and those of `sources`; where a name is taken, the new tool takes the place of the old. A
        scope stays."""
        whole = object.__new__(Toolset)
        for slot in self.__slots__:
            setattr(whole, slot, getattr(self, slot))
        whole._allowed, whole._by_name = None, self._all
        made = Toolset(whole, *sources, replace=True)
        return made if self._allowed is None else made.scoped(self._allowed)

    def authorise(self, name: str) -> Literal["not_authorised", "unknown_tool"] | None:
        """The code of what forbids to call this `name`, or None. What is outside the scope is not authorised, whether
        it exists or not: a scope tells nothing of what is behind it."""
        if self._allowed is not None and name not in self._allowed:
            return "not_authorised"
        return None if name in self._by_name else "unknown_tool"

    def left_out(self, name: str) -> Refusal | None:
        """Why a definition of this `name` is not among the tools, if one was given and cannot be used."""
        return None if name in self._all else next((each for each in self.refused if each.tool == name), None)

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What was left out and what was taken for what it means, as notes, which block nothing."""
        out = [Problem("tool_left_out", each.message, each.path, blocking=False) for each in self.refused]
        for each in self.mended:
            said = f"tool {each.tool!r}: {each.path}: {each.before} was taken for {each.after}"
            out.append(Problem("tool_mended", said, each.path, blocking=False))
        return tuple(out)

    def kinds(self, name: str) -> dict[str, Kind]:
        """How each declared argument of the tool `name` is to be read; empty for a tool that is not declared."""
        tool = self._by_name.get(name)
        if tool is None:
            return {}
        found = self._kinds.get(name)
        if found is None:
            found = self._kinds[name] = kinds(tool)
        return found

    def nearest(self, name: str) -> list[str]:
        """Declared names, the most similar to `name` first, at most three. Of very many tools the first are asked."""
        # Close matching costs too much for a thousand tools: only those that share the most pairs of letters are asked.
        import difflib

        if not self._near:
            self._near.extend((_pairs(other.lower()), other) for other in islice(self._all, _MOST_NEAR))
        wanted = _pairs(name[:64].lower())
        known = [(len(wanted & pairs), other) for pairs, other in self._near if other in self._by_name]
        shared = sorted(known, reverse=True)[:12]
        return difflib.get_close_matches(name[:64], [other for count, other in shared if count], 3, 0.5)

    def schema(self, name: str) -> Json | None:
        """The schema to check calls of the tool of this `name` with: its parameters as plain 2020-12, without patterns
        that a linear engine cannot run. None for a tool that is not declared."""
        tool = self._by_name.get(name)
        return None if tool is None else self._check(tool)[0]

    @property
    def relaxed(self) -> tuple[SchemaRelaxation, ...]:
        """What of the declared schemas is not checked, and why."""
        return tuple(relaxation for tool in self for relaxation in self._check(tool)[1])

    def relaxations_of(self, name: str) -> tuple[SchemaRelaxation, ...]:
        """What of the schema of the tool of this `name` is not checked, and why. Empty for one that is not declared."""
        tool = self._by_name.get(name)
        return () if tool is None else self._check(tool)[1]

    def _check(self, tool: Tool) -> tuple[Json, tuple[SchemaRelaxation, ...]]:
        found = self._checked.get(tool.name)
        if found is None:
            found = self._checked[tool.name] = relaxed(tool.name, tool.parameters)
        return found

    def definitions(self, api: str = "chat", *, extensions: bool = False) -> list[Json]:
        """What to send as `tools` with a request.

        - `api`: `chat`, `responses`, `messages`, `gemini` or `ollama`, or `mcp` for a listing.
        - `extensions`: adds what the API has no field for, under keys that begin with `x-`, which hosted servers
          refuse.
        """
        from rightcall.tools.provider_forms import to_provider

        return to_provider(self, api, extensions=extensions)

    def wire_names(self, api: str) -> dict[str, str]:
        """From each name to the one that goes out through this `api`, or `mcp`; a scope does not change it."""
        forth = self._names(api)[0]
        return {name: forth[name] for name in self._by_name}

    def from_wire_name(self, api: str, wire: str) -> str | None:
        """The name that the `wire` name of this `api` stands for, or None."""
        name = self._names(api)[1].get(wire)
        return name if name in self._by_name else None

    def _names(self, api: str) -> tuple[dict[str, str], dict[str, str]]:
        api = check_provider(api)
        found = self._wire.get(api)
        if found is None:
            forth = wire_names(self._all, api)
            found = self._wire[api] = forth, {wire: name for name, wire in forth.items()}
        return found


Tools = Toolset | ToolLike | Iterable[ToolLike | Toolset | Iterable[ToolLike]]


# -- what is left out, and what raises ---------------------------------------------------------------------------------


def _nothing(refused: Refused) -> bool:
    return False


def _everything(refused: Refused) -> bool:
    return True


def _too_many_patterns(tool: Tool) -> Refused:
    most = f"{MAX_TOOLSET_PATTERNS / 1e6:g} MB"
    refused = Refused("", f"with its patterns those of all tools compile to more than {most}", CURE, tool=tool.name)
    refused.given = True
    return refused


def _data(refused: Refused) -> bool:
    return refused.given


def without_code(tools: Toolset) -> Toolset:
    """The same tools without what runs them: enough to read replies by, and fit for any other process."""
    made = object.__new__(Toolset)
    for slot in Toolset.__slots__:
        setattr(made, slot, getattr(tools, slot))
    made._all = {name: msgspec.structs.replace(tool, run=None) for name, tool in tools._all.items()}
    made._by_name = {name: made._all[name] for name in tools._by_name}
    return made


def is_none(choice: object) -> bool:
    """Does this tool choice forbid every call? `"none"`, `{"type": "none"}`, `{"mode": "NONE"}`."""
    if isinstance(choice, Mapping):
        config = choice.get("functionCallingConfig", choice.get("function_calling_config"))
        said = config if isinstance(config, Mapping) else choice
        choice = said.get("type", said.get("mode"))
    return isinstance(choice, str) and choice.lower() == "none"


def _labelled(sources: Sequence[Tools]) -> dict[str, Tools]:
    return {"": sources[0]} if len(sources) == 1 else {f"/{at}": source for at, source in enumerate(sources)}


def _found(source: Tools, label: str) -> Iterator[FoundTool]:
    if isinstance(source, Toolset):
        mended: dict[str, list[Mended]] = {}
        for note in source.mended:
            mended.setdefault(note.tool, []).append(note)
        for tool in source:
            origin = f"{label}: {source.source(tool.name)}".removeprefix(": ")
            yield FoundTool(tool, origin, tuple(mended.get(tool.name, ())), source._patterns.get(tool.name, 0))
    elif label and not label.startswith("/"):
        yield from (found._replace(source=f"{label}: {found.source}") for found in collect(source))
    else:
        yield from collect(source, label)


def _alike(one: Tool, other: Tool) -> bool:
    return all(getattr(one, field) == getattr(other, field) for field in Tool.__struct_fields__ if field != "run")
