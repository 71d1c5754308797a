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
from rightcall.schema.definition import SchemaFix
from rightcall.schema.limits import CURE, MAX_TOOLSET_PATTERNS, Refusal, Refused
from rightcall.schema.places import Kind, kinds, properties
from rightcall.schema.relax import SchemaRelaxation, relax_schema
from rightcall.tools.collect import FoundTool, ToolLike, collect_tools, to_tool
from rightcall.types import Json, Problem, Tool


class Param(msgspec.Struct, frozen=True):
    """One parameter of a tool. `default` is `msgspec.UNSET` if there is none; `schema` is the whole property, `{}` if
    it has no schema."""

    name: str
    schema: Json
    description: str = ""
    required: bool = False
    default: Any = msgspec.UNSET
    examples: tuple[Any, ...] = ()


def list_parameters(tool: Tool) -> tuple[Param, ...]:
    """Return the top-level parameters of a tool as `Param` values: required ones first, then by name."""
    listed = tool.parameters.get("required")
    required = set(listed) if isinstance(listed, list) else set()
    found = [_read_parameter(key, schema, key in required) for key, schema in properties(tool.parameters).items()]
    return tuple(sorted(found, key=lambda param: (not param.required, param.name)))


def _read_parameter(name: str, given: Any, required: bool) -> Param:
    """Return the parameter `name` as a `Param`, from the schema of its property, `given`; a schema that is no object
    counts as `{}`."""
    schema = given if isinstance(given, dict) else {}
    text = schema.get("description")
    default = schema.get("default", msgspec.UNSET)
    return Param(name, schema, text if isinstance(text, str) else "", required, default, examples(schema))


def examples(schema: Json) -> tuple[Any, ...]:
    """Return the example values in a schema, or (): those of a list under `examples`, else the one under `example`."""
    if isinstance(schema.get("examples"), list):
        return tuple(schema["examples"])
    return (schema["example"],) if "example" in schema else ()


Provider = Literal["chat", "responses", "messages", "gemini", "ollama", "mcp"]


class NameRule(NamedTuple):
    """The names that a provider accepts: first character and others as regex character classes, and the longest
    length."""

    first: str  # characters that a name may begin with, as a regex character class
    rest: str
    longest: int


_WORD = "A-Za-z0-9_"
NAME_RULES: dict[str, NameRule] = {
    "chat": NameRule(_WORD + "-", _WORD + "-", 64),
    "responses": NameRule(_WORD + "-", _WORD + "-", 64),
    "messages": NameRule(_WORD + "-", _WORD + "-", 64),
    "gemini": NameRule("A-Za-z_", _WORD + ".-", 64),
    "ollama": NameRule(_WORD, _WORD + ".-", 128),
    "mcp": NameRule(_WORD + ".-", _WORD + ".-", 128),
}
_HASHES = 4  # number of hashed spellings of a name that are recognised


def check_provider(provider: str) -> str:
    """Return the canonical name of a form of tool definitions: an API, given by its name or that of its SDK, or `mcp`.
    Raises `CallerError` for another."""
    return api_name(provider, NAME_RULES, what="form of tools")


def wire_names(names: Iterable[str], provider: str) -> dict[str, str]:
    """Map each name to one that the provider accepts: itself if it is valid, else one with valid characters, with a
    hash if it was cut or is taken. The results are unique and do not depend on the order of the names. Raises
    `CallerError` for an unknown provider."""
    rule = NAME_RULES[check_provider(provider)]
    all_names = list(names)
    found = {name: name for name in all_names if _is_valid_name(name, rule)}
    changed = {name: _fit_name(name, rule) for name in all_names if name not in found}
    count = Counter(changed.values())
    found |= {name: new for name, new in changed.items() if count[new] == 1 and new not in found}
    used = set(found.values())
    for name in sorted(changed.keys() - found.keys()):
        found[name] = next(new for new in _hashed_names(name, rule) if new not in used)
        used.add(found[name])
    return {name: found[name] for name in all_names}


def is_wire_name_of(wire: str, name: str) -> bool:
    """Return True if some provider's rules turn the tool name `name` into `wire` (of names with a hash, only the first
    four are tried). A definition can so give back a tool's own name, but not present one tool as another."""
    return any(
        wire in (_fit_name(name, rule), *itertools.islice(_hashed_names(name, rule), _HASHES))
        for rule in NAME_RULES.values()
        if not _is_valid_name(name, rule)
    )


def _is_valid_name(name: str, rule: NameRule) -> bool:
    """Return True if a provider with this rule accepts the name as it is."""
    return len(name) <= rule.longest and re.fullmatch(f"[{rule.first}][{rule.rest}]*", name) is not None


def _fit_name(name: str, rule: NameRule) -> str:
    """Return a name that a provider with this rule accepts: the characters that it forbids are replaced, and a hash is
    added if the name was too long or nothing of it remains. It may be equal for two names."""
    new = _replace_characters(name, rule)
    return new if len(new) <= rule.longest and new.strip("_") else next(_hashed_names(name, rule))


def _replace_characters(name: str, rule: NameRule) -> str:
    """Return the name with characters that `rule` forbids replaced by `_`, and `_` before an invalid first one. It may
    be too long."""
    new = re.sub(f"[^{rule.rest}]", "_", name)
    return new if re.match(f"[{rule.first}]", new) else "_" + new


def _hashed_names(name: str, rule: NameRule) -> Iterator[str]:
    """Yield replacements of the name that `rule` accepts and that end in a hash of it; a different one each time,
    without end."""
    import hashlib

    base = _replace_characters(name, rule)[: rule.longest - 9]
    base = base if base.strip("_") else "tool"
    for round in itertools.count():
        text = f"{name}#{round}" if round else name
        yield f"{base}_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


__all__ = ["Clash", "SchemaFix", "Refusal", "SchemaRelaxation", "ToolLike", "Tools", "Toolset", "to_tool"]


class Clash(msgspec.Struct, frozen=True):
    """Two sources declare a tool of this name; `same` if both declarations are equal."""

    name: str
    kept: str
    dropped: str
    same: bool


_MOST_NEAR = 2_000  # names that are compared to find a similar one


def _letter_pairs(text: str) -> set[str]:
    """Return the pairs of adjacent characters in a text."""
    return {text[i : i + 2] for i in range(len(text) - 1)}


class Toolset:
    """The tools of one conversation. Immutable, and safe to share between threads; iterates in the order of
    declaration.

    - `sources`: functions, classes, `Tool` values, definitions of any provider, listings of MCP servers, toolsets, or
      lists of these, mixed.
    - `replace`: of two tools with the same name, keep the last one instead of the first; `clashes` reports both.

    Raises `BadTools`, with the place, for a definition that cannot be used. `mended` lists the repaired definitions,
    and `refused` those that `lenient` and `of` left out.
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
    mended: tuple[SchemaFix, ...]
    refused: tuple[Refusal, ...]
    _allowed: frozenset[str] | None

    def __init__(self, *sources: Tools, replace: bool = False) -> None:
        self._fill(_label_sources(sources), replace, _leave_out_nothing)

    @classmethod
    def lenient(cls, *sources: Tools, replace: bool = False) -> Toolset:
        """Return the usable tools of `sources`; `refused` lists the others with reasons. `replace` as in `Toolset`.
        Unusable definitions never raise."""
        made = cls.__new__(cls)
        made._fill(_label_sources(sources), replace, _leave_out_everything)
        return made

    @classmethod
    def merge(cls, sources: Mapping[str, Tools], *, replace: bool = False, lenient: bool = False) -> Toolset:
        """Return the tools of named sources, such as servers; the names appear in `clashes` and `refused`.

        - `sources`: by name, each as `Toolset` takes one.
        - `replace`: as in `Toolset`.
        - `lenient`: leave out unusable definitions instead of raising `BadTools`.
        """
        made = cls.__new__(cls)
        made._fill(sources, replace, _leave_out_everything if lenient else _leave_out_nothing)
        return made

    @staticmethod
    def of(tools: Tools | None, *, choice: object = None) -> Toolset | None:
        """Return `tools` as a toolset: a toolset unchanged, None as None (names are not checked then), anything else
        converted. Every function with a `tools` parameter does this.

        - `tools`: unusable definitions are left out and listed in `refused`; unusable functions, classes and `Tool`
          values raise `BadTools`.
        - `choice`: the request's tool choice; if it is "none", in any provider's spelling, nothing is callable.
        """
        if tools is not None and not isinstance(tools, Toolset):
            made = Toolset.__new__(Toolset)
            made._fill(_label_sources((tools,)), False, _leave_out_data)
            tools = made
        if choice is not None and is_none_choice(choice):
            return (tools or Toolset()).scoped(())
        return tools

    def _fill(self, sources: Mapping[str, Tools], replace: bool, leaves_out: Callable[[Refused], bool]) -> None:
        """Collect the tools of all sources, by label, and set all attributes; of two tools with one name, the first is
        kept, or the last with `replace`. An unusable definition is recorded if `leaves_out(error)` is True, otherwise
        raised as `BadTools`."""
        by_name: dict[str, Tool] = {}
        origins: dict[str, str] = {}
        clashes: list[Clash] = []
        refused: list[Refusal] = []
        mended: dict[str, tuple[SchemaFix, ...]] = {}
        patterns: dict[str, int] = {}
        spent = 0
        for label, source in sources.items():
            if isinstance(source, Toolset):
                refused += source.refused
            for tool, origin, notes, cost in _iterate_tools(source, label):
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
                    clashes.append(Clash(tool.name, kept, dropped, _is_same_tool(old, tool)))
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
        """Return the callable tool with this `name`, or None."""
        return self._by_name.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The callable names, sorted."""
        return tuple(sorted(self._by_name))

    def source(self, name: str) -> str:
        """Return where the tool of this `name` was declared, as a phrase; "" for a name that is undeclared or outside
        the scope."""
        return self._sources.get(name, "") if name in self._by_name else ""

    def scoped(self, names: Iterable[str]) -> Toolset:
        """Return the same tools with only these `names` callable, of which unknown ones are ignored; a string is one
        name. A scope of a scope never allows more."""
        made = object.__new__(Toolset)
        for slot in self.__slots__:
            setattr(made, slot, getattr(self, slot))
        allowed = frozenset([names] if isinstance(names, str) else names)
        made._allowed = allowed if self._allowed is None else allowed & self._allowed
        made._by_name = {name: tool for name, tool in self._by_name.items() if name in allowed}
        return made

    def sorted(self) -> Toolset:
        """Return the same tools, in the same scope, sorted by name, so that output does not depend on the order of
        declaration."""
        made = object.__new__(Toolset)
        for slot in self.__slots__:
            setattr(made, slot, getattr(self, slot))
        made._by_name = {name: self._by_name[name] for name in self.names}
        return made

    def registered(self, *sources: Tools) -> Toolset:
        """Return a new toolset of these tools and those of `sources`; a new tool replaces one of the same name. The
        scope is kept, so a new name outside it is not callable. Raises `BadTools`."""
        whole = object.__new__(Toolset)
        for slot in self.__slots__:
            setattr(whole, slot, getattr(self, slot))
        whole._allowed, whole._by_name = None, self._all
        made = Toolset(whole, *sources, replace=True)
        return made if self._allowed is None else made.scoped(self._allowed)

    def authorise(self, name: str) -> Literal["not_authorised", "unknown_tool"] | None:
        """Return the code of the problem that forbids to call this `name`, or None. A name outside the scope is not
        authorised whether the tool exists or not: a scope reveals nothing about other tools."""
        if self._allowed is not None and name not in self._allowed:
            return "not_authorised"
        return None if name in self._by_name else "unknown_tool"

    def left_out(self, name: str) -> Refusal | None:
        """Return why a definition of this `name` is unusable, if one was declared and left out; None if a tool has this
        name."""
        return None if name in self._all else next((each for each in self.refused if each.tool == name), None)

    @property
    def notes(self) -> tuple[Problem, ...]:
        """The left-out and repaired definitions as problems that block nothing."""
        out = [Problem("tool_left_out", each.message, each.path, blocking=False) for each in self.refused]
        for each in self.mended:
            message = f"tool {each.tool!r}: {each.path}: {each.before} was taken for {each.after}"
            out.append(Problem("tool_mended", message, each.path, blocking=False))
        return tuple(out)

    def kinds(self, name: str) -> dict[str, Kind]:
        """Return how the text of each declared argument of the callable tool `name` is parsed: "plain", "string",
        "nullable", "json" or "any" (see `Kind`); empty for any other name."""
        tool = self._by_name.get(name)
        if tool is None:
            return {}
        found = self._kinds.get(name)
        if found is None:
            found = self._kinds[name] = kinds(tool)
        return found

    def nearest(self, name: str) -> list[str]:
        """Return up to three callable names that are similar to `name`, most similar first. Only the first 2,000 tools
        are compared, and the first 64 characters of `name`."""
        # Close matching is too slow for a thousand tools: only those that share the most letter pairs are compared.
        import difflib

        if not self._near:
            self._near.extend((_letter_pairs(other.lower()), other) for other in islice(self._all, _MOST_NEAR))
        wanted = _letter_pairs(name[:64].lower())
        known = [(len(wanted & pairs), other) for pairs, other in self._near if other in self._by_name]
        shared = sorted(known, reverse=True)[:12]
        return difflib.get_close_matches(name[:64], [other for count, other in shared if count], 3, 0.5)

    def schema(self, name: str) -> Json | None:
        """Return the schema that checks calls of the callable tool of this `name`: its parameters as plain 2020-12,
        without patterns that a linear engine cannot run. None for any other name. Do not change it: it is shared."""
        tool = self._by_name.get(name)
        return None if tool is None else self._relax(tool)[0]

    @property
    def relaxed(self) -> tuple[SchemaRelaxation, ...]:
        """The parts of the declared schemas that are not checked, with reasons."""
        return tuple(relaxation for tool in self for relaxation in self._relax(tool)[1])

    def relaxations_of(self, name: str) -> tuple[SchemaRelaxation, ...]:
        """Return the unchecked parts of the schema of the tool of this `name`, with reasons. Empty for an undeclared
        tool."""
        tool = self._by_name.get(name)
        return () if tool is None else self._relax(tool)[1]

    def _relax(self, tool: Tool) -> tuple[Json, tuple[SchemaRelaxation, ...]]:
        """Return the schema that checks calls of a tool, and the parts of the declared one that it does not check; both
        are computed once."""
        found = self._checked.get(tool.name)
        if found is None:
            found = self._checked[tool.name] = relax_schema(tool.name, tool.parameters)
        return found

    def definitions(self, api: str = "chat", *, extensions: bool = False) -> list[Json]:
        """Return the list to send as `tools` in a request.

        - `api`: `chat`, `responses`, `messages`, `gemini` or `ollama`, or `mcp` for a listing.
        - `extensions`: add fields that the API does not define, under keys that begin with `x-`; hosted servers reject
          them.

        Raises `CallerError` for an unknown API.
        """
        from rightcall.tools.provider_forms import to_provider

        return to_provider(self, api, extensions=extensions)

    def wire_names(self, api: str) -> dict[str, str]:
        """Return the name of each callable tool in this `api`, or `mcp`; a name does not depend on the scope. Raises
        `CallerError` for an unknown API."""
        to_wire = self._wire_name_maps(api)[0]
        return {name: to_wire[name] for name in self._by_name}

    def from_wire_name(self, api: str, wire: str) -> str | None:
        """Return the callable tool's name for the `wire` name of this `api`, or None. Raises `CallerError` for an
        unknown API."""
        name = self._wire_name_maps(api)[1].get(wire)
        return name if name in self._by_name else None

    def _wire_name_maps(self, api: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return two dicts for this `api`: the wire name of each tool, also outside the scope, and the tool of each
        wire name; both are computed once. Raises `CallerError` for an unknown API."""
        api = check_provider(api)
        found = self._wire.get(api)
        if found is None:
            to_wire = wire_names(self._all, api)
            found = self._wire[api] = to_wire, {wire: name for name, wire in to_wire.items()}
        return found


Tools = Toolset | ToolLike | Iterable[ToolLike | Toolset | Iterable[ToolLike]]


# -- errors to leave out or to raise -----------------------------------------------------------------------------------


def _leave_out_nothing(refused: Refused) -> bool:
    """Return False: every unusable definition is raised."""
    return False


def _leave_out_everything(refused: Refused) -> bool:
    """Return True: every unusable definition is recorded."""
    return True


def _too_many_patterns(tool: Tool) -> Refused:
    """Return (not raise) the error for a tool with whose patterns those of all tools exceed the toolset's limit."""
    most = f"{MAX_TOOLSET_PATTERNS / 1e6:g} MB"
    refused = Refused("", f"with it, the patterns of all tools compile to more than {most}", CURE, tool=tool.name)
    refused.given = True
    return refused


def _leave_out_data(refused: Refused) -> bool:
    """Return True for an error in data, such as the tools of a request, and False for one in the caller's own code."""
    return refused.given


def without_code(tools: Toolset) -> Toolset:
    """Return the same tools in the same scope without their functions: enough to parse replies, and safe to send to
    another process."""
    made = object.__new__(Toolset)
    for slot in Toolset.__slots__:
        setattr(made, slot, getattr(tools, slot))
    made._all = {name: msgspec.structs.replace(tool, run=None) for name, tool in tools._all.items()}
    made._by_name = {name: made._all[name] for name in tools._by_name}
    return made


def is_none_choice(choice: object) -> bool:
    """Return True if this tool choice forbids every call: `"none"`, `{"type": "none"}`, `{"mode": "NONE"}`, in any
    case."""
    if isinstance(choice, Mapping):
        config = choice.get("functionCallingConfig", choice.get("function_calling_config"))
        fields = config if isinstance(config, Mapping) else choice
        choice = fields.get("type", fields.get("mode"))
    return isinstance(choice, str) and choice.lower() == "none"


def _label_sources(sources: Sequence[Tools]) -> dict[str, Tools]:
    """Return the given sources of a toolset by label: "" for a single one, else `/0`, `/1` and so on; {} for none."""
    return {"": sources[0]} if len(sources) == 1 else {f"/{at}": source for at, source in enumerate(sources)}


def _iterate_tools(source: Tools, label: str) -> Iterator[FoundTool]:
    """Yield the tools of one source, each with its origin, which begins with `label`; unusable ones as `Refused`. A
    source that is a `Toolset` gives its callable tools."""
    if isinstance(source, Toolset):
        mended: dict[str, list[SchemaFix]] = {}
        for note in source.mended:
            mended.setdefault(note.tool, []).append(note)
        for tool in source:
            origin = f"{label}: {source.source(tool.name)}".removeprefix(": ")
            yield FoundTool(tool, origin, tuple(mended.get(tool.name, ())), source._patterns.get(tool.name, 0))
    elif label and not label.startswith("/"):
        yield from (found._replace(source=f"{label}: {found.source}") for found in collect_tools(source))
    else:
        yield from collect_tools(source, label)


def _is_same_tool(one: Tool, other: Tool) -> bool:
    """Return True if two tools are equal except for their functions."""
    return all(getattr(one, field) == getattr(other, field) for field in Tool.__struct_fields__ if field != "run")
