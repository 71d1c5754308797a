"""Write the prompt text that lists the tools and explains the response protocol, with an example."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Literal, get_args

import msgspec

from rightcall.contracts import listing as words
from rightcall.contracts.ledger import Ledger
from rightcall.contracts.listing import list_tools
from rightcall.contracts.protocol import tool_schema
from rightcall.contracts.typescript import Declarations, Harmless, TextType, summary
from rightcall.errors import CallerError, CannotCarry
from rightcall.formats import find
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format
from rightcall.parsing.rendering import render
from rightcall.schema.places import properties
from rightcall.schema.validation import fits_schema
from rightcall.schema.walk import LISTS, MAPS, ONE, Refs, refs_of
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Call, Json, Tool

_DEEPEST = 6
_MOST = 400  # characters of JSON: an example that is longer shows less
_TEXTS = {
    "date": "2025-01-31",
    "time": "12:30:00Z",
    "date-time": "2025-01-31T12:30:00Z",
    "email": "ada@example.org",
    "uri": "https://example.org",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "hostname": "example.org",
}


def example_arguments(tool: Tool) -> Json | None:
    """Return arguments that pass `check`: the required ones, or the first where none is required. None if none are
    found."""
    refs = refs_of(tool.parameters)
    declared = properties(tool.parameters, refs)
    required = [key for key in tool.parameters.get("required", ()) if key in declared]
    for keys in (required or list(declared)[:1], required, list(declared)):
        if len(keys) > _MOST:
            continue
        maker = _ExampleMaker(refs)
        made = {key: maker.value(declared[key], key, 0) for key in keys}
        if len(repr(made)) <= _MOST and fits_schema(tool, made):
            return made
    return None


class _ExampleMaker:
    """Makes example values for schemas, from their examples, constants, defaults and types."""

    def __init__(self, refs: Refs) -> None:
        self.refs = refs
        self.left = _MOST  # values: with more of them the example is too long in any case

    def value(self, schema: Any, key: str, depth: int) -> Any:
        """Return an example value for a schema. `key`, the name of the argument, is the default text."""
        self.left -= 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self.left < 0:
            return key
        if stated := _first_of(schema, ("examples", "enum")):
            return stated[0]
        for word in ("const", "example", "default"):
            if schema.get(word) is not None:
                return schema[word]
        if isinstance(schema.get("$ref"), str):
            return self.value(self.refs.get(schema["$ref"]), key, depth + 1)
        if parts := _first_of(schema, ("anyOf", "oneOf", "allOf")):
            return self.value(parts[0], key, depth + 1)
        return self.typed(schema, key, depth)

    def typed(self, schema: Json, key: str, depth: int) -> Any:
        """Return an example value of the declared type; the first of several types is used."""
        said = schema.get("type")
        name = said[0] if isinstance(said, list) and said else said
        if name == "string" or name is None:
            return _text(schema, key)
        if name in ("integer", "number"):
            return _number(schema)
        if name == "array":
            return [self.value(schema.get("items", {}), key, depth + 1)] * (int(min(schema.get("minItems", 1), 5)) or 1)
        if name == "object":
            return self.members(schema, depth)
        return True if name == "boolean" else None

    def members(self, schema: Json, depth: int) -> Json:
        """Return an example object with the required members, or with the first one where none is required."""
        declared = schema.get("properties") or {}
        names = (schema.get("required") or list(declared)[:1])[:_MOST]
        return {name: self.value(declared.get(name), name, depth + 1) for name in names}


def _first_of(schema: Json, words: tuple[str, ...]) -> list[Any]:
    """Return the first of these keywords that holds a non-empty list."""
    lists = [schema[word] for word in words if isinstance(schema.get(word), list)]
    return next(filter(None, lists), [])


def _text(schema: Json, key: str) -> str:
    """Return an example string that matches format, `maxLength` and `minLength`."""
    text = _TEXTS.get(str(schema.get("format")), key)
    longest, shortest = schema.get("maxLength", len(text)), min(schema.get("minLength", 0), 100)
    return text[: int(longest)].ljust(int(shortest), "x")  # a length may be 2.0


def _number(schema: Json) -> Any:
    """Return an example number that matches the minimum or the maximum."""
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    if isinstance(low, (int, float)) and not isinstance(low, bool):
        return low + 1 if "exclusiveMinimum" in schema else low
    high = schema.get("maximum", 1)
    return schema.get("multipleOf", min(1, high))


Mode = Literal["text", "native"]
Level = Literal["full", "compact", "named"]
LEVELS: tuple[Level, ...] = get_args(Level)

PROTOCOL = "contract"  # the format that `contract` speaks when none is named
DONE = "##DONE##"
LEDGER = "ledger"
_LOOK_AT = 32  # tools that an example is sought among
_PROSE = {"description", "title", "examples", "example", "$comment"}


class ContractStats(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a contract, and which tools are listed how.

    `costs` are the tokens of each tool as it is listed; `fits` is False if not even the shortest text is within the
    budget."""

    characters: int
    tokens: int
    full: tuple[str, ...]
    compact: tuple[str, ...]
    named: tuple[str, ...]
    costs: dict[str, int]
    types: int
    budget: int | None
    fits: bool


class Contract(msgspec.Struct, frozen=True):
    """The result of `contract`.

    - `text`: goes into the prompt.
    - `stats`: its `characters` and `tokens`, the tools that are listed in `full`, in one line (`compact`) and by name
      only (`named`), what each `costs`, and whether the text `fits` the `budget`.
    - `tools`: the tools that may then be called, `tool_schema` and the ledger included.
    """

    text: str
    stats: ContractStats
    tools: Toolset


class ContractOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `contract`."""

    mode: Mode = "text"
    format: str | Format = PROTOCOL
    require_action: bool = False
    examples: str = ""
    compact: bool | Iterable[str] = False
    budget: int | None = None
    count: Callable[[str], int] | None = None
    schemas: bool | None = None
    ledger: Ledger | None = None
    done: str = DONE


def write_contract(tools: Tools, options: ContractOptions) -> Contract:
    """Write the contract for these tools: choose how each tool is listed, shorten to the budget, and count."""
    if options.mode not in ("text", "native"):
        raise CallerError(f"no mode {options.mode!r}; write 'text', or 'native' for an API with a tool channel")
    given = (Toolset.of(tools) or Toolset([])).sorted()  # the same tools are the same prompt, and one cache prefix
    levels = _initial_levels(given, options.compact)
    if options.ledger is not None:
        given = Toolset([*[tool for tool in given if tool.name != LEDGER], options.ledger.tool()])
        levels = {**levels, LEDGER: "full"}
    prompt = _Prompt(tools=given, options=options)
    size = options.count or estimate
    if options.budget is not None and prompt.schemas:
        levels = _shorten_to_budget(prompt, levels, options.budget, size)
    text = prompt.text(levels)
    return Contract(text, _stats(prompt, levels, text, size), prompt.callable_tools(levels))


def estimate(text: str) -> int:
    """Estimate the tokens of a text: one for four bytes of UTF-8."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def _initial_levels(tools: Toolset, compact: bool | Iterable[str]) -> dict[str, Level]:
    """Return how each tool is listed before shortening. Raises `CallerError` for an unknown name in `compact`."""
    named = {compact} if isinstance(compact, str) else set() if isinstance(compact, bool) else set(compact)
    unknown = sorted(name for name in named if name not in tools)
    if unknown:
        raise CallerError(
            f"compact names {unknown[0]!r}, which is no tool here; the tools are {', '.join(tools.names)}"
        )
    return {tool.name: "compact" if tool.compact or compact is True or tool.name in named else "full" for tool in tools}


def names_by_level(levels: dict[str, Level]) -> dict[Level, dict[str, None]]:
    """Return the names of the tools of each level, in the order of declaration."""
    return {level: dict.fromkeys(name for name in levels if levels[name] == level) for level in LEVELS}


def _stats(prompt: _Prompt, levels: dict[str, Level], text: str, size: Callable[[str], int]) -> ContractStats:
    """Measure a contract: size, tools per level, tokens per tool, and whether it fits the budget."""
    tokens = size(text)
    budget = prompt.options.budget
    names = names_by_level(levels)
    return ContractStats(
        characters=len(text),
        tokens=tokens,
        full=tuple(names["full"]),
        compact=tuple(names["compact"]),
        named=tuple(names["named"]),
        costs={name: size(prompt.tool_text(name, level)) for name, level in levels.items()},
        types=len(prompt.types(levels)),
        budget=budget,
        fits=budget is None or tokens <= budget,
    )


def _shorten_to_budget(
    prompt: _Prompt, levels: dict[str, Level], budget: int, size: Callable[[str], int]
) -> dict[str, Level]:
    """Shorten as few tools as possible, the longest first, so that the text fits the budget.

    Tools are first shortened to one line, then to the name only. If nothing fits, the shortest text is chosen."""
    tried = [levels]
    for shorter in ("compact", "named"):
        if size(prompt.text(levels)) <= budget:
            return levels
        levels = _shorten_fewest(prompt, levels, shorter, lambda text: size(text) <= budget, size)
        tried.append(levels)
    return min(tried, key=lambda each: (size(prompt.text(each)) > budget, size(prompt.text(each))))


def _shorten_fewest(
    prompt: _Prompt, levels: dict[str, Level], shorter: Level, fits: Callable[[str], bool], size: Callable[[str], int]
) -> dict[str, Level]:
    """Lower the fewest tools to the level `shorter`, the longest first, by bisection; all of them if none is enough."""
    cost = {name: size(prompt.tool_text(name, level)) for name, level in levels.items()}
    order = sorted(cost, key=lambda name: -cost[name])
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        enough = fits(prompt.text(_with(levels, order[:middle], shorter)))
        low, high = (low, middle) if enough else (middle + 1, high)
    return _with(levels, order[:low], shorter)


def _with(levels: dict[str, Level], names: Iterable[str], level: Level) -> dict[str, Level]:
    return {**levels, **dict.fromkeys(names, level)}


class _Prompt:
    """The prompt for one set of tools and options: its sections, and the text of each tool at each level."""

    def __init__(self, *, tools: Toolset, options: ContractOptions) -> None:
        self.tools, self.options = tools, options
        named = options.format if isinstance(options.format, str) else options.format.name
        self.wire = None if named == PROTOCOL else find(options.format)
        self.schemas = options.mode == "text" if options.schemas is None else options.schemas
        self.harmless = Harmless() if self.wire is None else Harmless.of(self.wire)
        self.lookup = tool_schema(tools, self.declaration)
        self.declared = Declarations(Toolset(tools, self.lookup), self.harmless)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def text(self, levels: dict[str, Level]) -> str:
        """Return the whole prompt, with tools listed at these levels."""
        sections = [
            words.TITLE,
            words.MODE.format(mode=self.options.mode),
            *(self.protocol if self.options.mode == "text" or self.schemas else ()),
            *(self.ledger_help()),
            *([words.ACTION] if self.options.require_action else ()),
            *([f"{words.EXAMPLES}\n\n{self.options.examples.strip()}"] if self.options.examples.strip() else ()),
            *(self.tool_sections(levels) if self.schemas else self.names()),
        ]
        if self.options.mode == "native":
            sections.insert(2, words.NATIVE.replace("{example}", self.text_fallback()))
        return "\n" + "\n\n".join([section.strip("\n") for section in sections]) + "\n"

    def callable_tools(self, levels: dict[str, Level]) -> Toolset:
        return Toolset(self.tools, self.lookup) if self.shortened(levels) else self.tools

    def shortened(self, levels: dict[str, Level]) -> bool:
        return self.schemas and any(level != "full" for level in levels.values())

    def types(self, levels: dict[str, Level]) -> list[str]:
        """Return the lines of the shared types that are shown; none for a listing in JSON, which holds its own."""
        if self.wire is not None or not self.schemas:
            return []
        return self.declared.aliases([tool for tool in self.tools if levels[tool.name] != "named"])

    # -- how to answer -------------------------------------------------------------------------------------------------

    @cached_property
    def protocol(self) -> list[str]:
        """Return the sections that explain how to answer: the rules, and worked examples in the format."""
        if self.wire is not None:
            return [words.WIRE, *self.wire_examples(self.wire)]
        rules = words.PROTOCOL.replace("DONE_MARK", self.harmless.line(self.options.done))
        calls = self.calls()
        worked = [words.EXAMPLE.replace("{example}", self.write_call(calls[0], ""))] if calls else []
        return [rules, *worked, self.heredoc_example()]

    def text_fallback(self) -> str:
        """Return an example of a call written as text, for an API whose tool channel is taken away."""
        return words.CALL if self.wire is None else self.rendered(self.wire, [_PLACEHOLDER], None)

    def ledger_help(self) -> list[str]:
        if self.options.ledger is None:
            return []
        return [words.LEDGER if self.wire is None else words.LEDGER_PLAIN]

    def calls(self) -> list[Call]:
        """Return example calls of up to two tools."""
        able = (tool for tool in islice(self.tools, _LOOK_AT) if _PLAIN_NAME(tool.name) and tool.name != LEDGER)
        made = ((tool, example_arguments(tool)) for tool in able)
        return list(islice((Call(tool.name, args, "", "call12345") for tool, args in made if args is not None), 2))

    def write_call(self, call: Call, heredoc: str) -> str:
        """Write a call in our own protocol; the argument named `heredoc` as a text of several lines."""
        text = TextType(self.harmless)
        values = {key: text.literal(value) for key, value in call.arguments.items() if key != heredoc}
        if heredoc:
            values[heredoc] = words.LINES
        inside = ", ".join([f"{text.name(key)}: {value}" for key, value in values.items()])
        arguments = f"{{ {inside} }}" if inside else "{}"
        return f"<tool_call>\n{call.name}({arguments})\n</tool_call>"

    def heredoc_example(self) -> str:
        """Return an example of a heredoc, with a tool that takes a long text if there is one."""
        for tool in islice(self.tools, _LOOK_AT):
            key = next(
                (key for key, kind in self.tools.kinds(tool.name).items() if kind == "plain" and key in _LONG), ""
            )
            made = example_arguments(tool) if key and _PLAIN_NAME(tool.name) and tool.name != LEDGER else None
            if made is not None:
                return words.HEREDOC.replace("{example}", self.write_call(Call(tool.name, made, ""), key))
        return words.HEREDOC_ANY.replace("{example}", self.write_call(_CREATE, "content"))

    def wire_examples(self, wire: Format) -> list[str]:
        """Return examples of one call, and of two calls where the format can write several, in the chosen format."""
        calls = self.calls()
        one = self.rendered(wire, calls[:1], self.tools) or self.rendered(wire, [_PLACEHOLDER], None)
        joined = wire.section is not None or BODIES[type(wire.bodies[0])].wrap(wire.bodies[0]) is not None
        two = self.rendered(wire, calls, self.tools) if joined and len(calls) == 2 else ""
        found = [words.WIRE_ONE.replace("{example}", one)] if one else []
        return [*found, words.WIRE_TWO.replace("{example}", two)] if two else found

    def rendered(self, wire: Format, calls: Sequence[Call], tools: Toolset | None) -> str:
        """Render calls in a format; "" if the format cannot write them."""
        try:
            return render(calls, format=wire, tools=tools) if calls else ""
        except CannotCarry:
            return ""

    # -- the tools -----------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        lines = [f"- `{self.harmless.line(tool.name)}`" for tool in self.tools]
        return [words.NAMES + "\n\n" + "\n".join(lines)] if lines else []

    def tool_sections(self, levels: dict[str, Level]) -> list[str]:
        """Return the sections that list the tools: shared types, full, in one line, and by name only."""
        by_level = {
            level: [tool for tool in self.tools if tool.name in names]
            for level, names in names_by_level(levels).items()
        }
        if self.shortened(levels):
            by_level["full"].append(self.lookup)
        found = [f"{words.TYPES}\n\n" + "\n".join(types)] if (types := self.types(levels)) else []
        found += self.full_and_compact_sections(by_level["full"], by_level["compact"])
        named = [self.name_line(tool) for tool in by_level["named"]]
        if named:
            found.append(words.NAMED.format(lookup=self.lookup.name) + "\n\n" + "\n".join(named))
        return found

    def full_and_compact_sections(self, full: list[Tool], compact: list[Tool]) -> list[str]:
        """Return the sections of the tools that are listed in full and of those in one line."""
        other = words.COMPACT.format(lookup=self.lookup.name)
        if self.wire is None:
            found = [f"{words.TOOLS}\n\n" + "".join([self.declared.full(tool) for tool in full])] if full else []
            lines = [self.declared.compact(tool) for tool in compact]
            return [*found, f"{other}\n\n" + "\n".join(lines)] if lines else found
        found = [f"{words.TOOLS}\n\n{list_tools(full, self.wire, self.declared)}"] if full else []
        brief = self.brief_tools(compact)
        return [*found, f"{other}\n\n{list_tools(brief, self.wire, self.brief_declarations)}"] if brief else found

    @cached_property
    def brief_declarations(self) -> Declarations:
        """The declarations of all tools without prose."""
        return Declarations([brief_tool(tool) for tool in self.tools], self.harmless)

    def brief_tools(self, tools: Iterable[Tool]) -> list[Tool]:
        return [brief for tool in tools if (brief := self.brief_declarations.tools.get(tool.name)) is not None]

    def name_line(self, tool: Tool) -> str:
        """Return the line of a tool that is listed by name only."""
        said = self.harmless.line(summary(tool))
        return f"- `{self.harmless.line(tool.name)}`" + (f" — {said}" if said else "")

    def tool_text(self, name: str, level: Level) -> str:
        """Return the text that lists one tool at this level."""
        tool = self.tools.get(name)
        assert tool is not None
        if level == "named" or not self.schemas:
            return self.name_line(tool)
        if self.wire is not None and level == "full":
            return list_tools([tool], self.wire, self.declared)
        if self.wire is not None:
            return list_tools(self.brief_tools([tool]), self.wire, self.brief_declarations)
        return self.declared.full(tool) if level == "full" else self.declared.compact(tool)

    def declaration(self, tool: Tool) -> str:
        """Return the full declaration of one tool, as `tool_schema` answers it."""
        if self.wire is not None:
            return list_tools([tool], self.wire)
        made = Declarations([tool], self.harmless)
        return "\n".join([*made.aliases(), made.full(tool)]).rstrip("\n")


_PLAIN_NAME = re.compile(r"[A-Za-z_$][\w$.-]*", re.ASCII).fullmatch
_LONG = frozenset("content contents text body code source script patch diff new_text message query".split())
_CREATE = Call("create", {"path": "notes/today.md"}, "")
_PLACEHOLDER = Call("tool_name", {"argument": "value"}, "", "call12345")


def brief_tool(tool: Tool) -> Tool:
    """Return the tool with its description cut to one sentence and its schema without prose."""
    return msgspec.structs.replace(tool, description=summary(tool), parameters=_without_prose(tool.parameters))


def _without_prose(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {word: _inside_without_prose(word, value) for word, value in schema.items() if word not in _PROSE}


def _inside_without_prose(word: str, value: Any) -> Any:
    """Return the value of a schema keyword with all prose in inner schemas removed."""
    if word in LISTS and isinstance(value, list):
        value = [_without_prose(item) for item in value]
    elif word in MAPS and isinstance(value, dict):
        value = {key: _without_prose(item) for key, item in value.items()}
    return _without_prose(value) if word in ONE else value
