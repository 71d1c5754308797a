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
from rightcall.contracts.typescript import Declarations, MarkerEscaper, TextType, first_sentence
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
_MOST = 400  # characters of JSON: fewer arguments are shown if an example is longer
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
    """Return example arguments that match the tool's schema; None if none of the attempts does, or if they are too
    long. Tried in this order: the required arguments (the first declared one if none is required), the required ones
    alone, which may be {}, and all declared ones."""
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
        """Return an example value for a schema: from its examples, enum, constant or default, else by its type. The
        text `key`, the argument's name, is returned for a schema that is no object, deeper than `_DEEPEST` levels, or
        beyond the limit of values."""
        self.left -= 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self.left < 0:
            return key
        if listed := _first_list(schema, ("examples", "enum")):
            return listed[0]
        for word in ("const", "example", "default"):
            if schema.get(word) is not None:
                return schema[word]
        if isinstance(schema.get("$ref"), str):
            return self.value(self.refs.get(schema["$ref"]), key, depth + 1)
        if parts := _first_list(schema, ("anyOf", "oneOf", "allOf")):
            return self.value(parts[0], key, depth + 1)
        return self.value_of_type(schema, key, depth)

    def value_of_type(self, schema: Json, key: str, depth: int) -> Any:
        """Return an example value of the schema's `type`, the first if it lists several. If it has none, return a
        string; for null or an unknown type, None. `key` is the argument's name, `depth` the nesting."""
        said = schema.get("type")
        name = said[0] if isinstance(said, list) and said else said
        if name == "string" or name is None:
            return _example_string(schema, key)
        if name in ("integer", "number"):
            return _example_number(schema)
        if name == "array":
            return [self.value(schema.get("items", {}), key, depth + 1)] * (int(min(schema.get("minItems", 1), 5)) or 1)
        if name == "object":
            return self.object_value(schema, depth)
        return True if name == "boolean" else None

    def object_value(self, schema: Json, depth: int) -> Json:
        """Return an example object for a schema of an object, with the required members, or with the first declared one
        where none is required; {} if none is declared. `depth`: its nesting."""
        declared = schema.get("properties") or {}
        names = (schema.get("required") or list(declared)[:1])[:_MOST]
        return {name: self.value(declared.get(name), name, depth + 1) for name in names}


def _first_list(schema: Json, words: tuple[str, ...]) -> list[Any]:
    """Return the first non-empty list that the schema has under one of these keywords; [] if there is none."""
    lists = [schema[word] for word in words if isinstance(schema.get(word), list)]
    return next(filter(None, lists), [])


def _example_string(schema: Json, key: str) -> str:
    """Return an example string for a schema: one of its `format` if that is known, else `key`, the argument's name; cut
    to `maxLength`, and filled with "x" up to `minLength` (at most 100)."""
    text = _TEXTS.get(str(schema.get("format")), key)
    longest, shortest = schema.get("maxLength", len(text)), min(schema.get("minLength", 0), 100)
    return text[: int(longest)].ljust(int(shortest), "x")  # a length may be 2.0


def _example_number(schema: Json) -> Any:
    """Return an example number for a schema: its minimum, or one more than an exclusive minimum; else `multipleOf`,
    else 1 or a lower maximum."""
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
_LOOK_AT = 32  # tools that are tried for an example
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
    """Write the contract for these tools: choose the level of each tool (listed in "full", "compact" in one line, or
    only "named"), lower levels until the text fits the budget, and measure it. Raises `CallerError` for invalid
    options."""
    if options.mode not in ("text", "native"):
        raise CallerError(f"no mode {options.mode!r}; write 'text', or 'native' for an API with a tool channel")
    given = (Toolset.of(tools) or Toolset([])).sorted()  # the same tools are the same prompt, and one cache prefix
    levels = _initial_levels(given, options.compact)
    if options.ledger is not None:
        given = Toolset([*[tool for tool in given if tool.name != LEDGER], options.ledger.tool()])
        levels = {**levels, LEDGER: "full"}
    prompt = _Prompt(tools=given, options=options)
    size = options.count or estimate_tokens
    if options.budget is not None and prompt.schemas:
        levels = _shorten_to_budget(prompt, levels, options.budget, size)
    text = prompt.text(levels)
    return Contract(text, _measure_contract(prompt, levels, text, size), prompt.runnable_tools(levels))


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: one for four bytes of UTF-8."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def _initial_levels(tools: Toolset, compact: bool | Iterable[str]) -> dict[str, Level]:
    """Return the level of each tool by name, "full" or "compact", before any shortening: "compact" if `compact` is True
    or has its name, or if the tool is marked so. Raises `CallerError` if `compact` names an unknown tool."""
    named = {compact} if isinstance(compact, str) else set() if isinstance(compact, bool) else set(compact)
    unknown = sorted(name for name in named if name not in tools)
    if unknown:
        raise CallerError(f"compact names the unknown tool {unknown[0]!r}; the tools are {', '.join(tools.names)}")
    return {tool.name: "compact" if tool.compact or compact is True or tool.name in named else "full" for tool in tools}


def names_by_level(levels: dict[str, Level]) -> dict[Level, dict[str, None]]:
    """Return for each level ("full", "compact", "named") the names of the tools that have it, as the keys of a dict, in
    the order of `levels`."""
    return {level: dict.fromkeys(name for name in levels if levels[name] == level) for level in LEVELS}


def _measure_contract(
    prompt: _Prompt, levels: dict[str, Level], text: str, size: Callable[[str], int]
) -> ContractStats:
    """Return the statistics of a contract whose text is `text`: its characters and tokens (counted by `size`), the
    tools of each level, the tokens of each tool, the number of shared types, and whether it fits the budget."""
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
        types=len(prompt.shared_types(levels)),
        budget=budget,
        fits=budget is None or tokens <= budget,
    )


def _shorten_to_budget(
    prompt: _Prompt, levels: dict[str, Level], budget: int, size: Callable[[str], int]
) -> dict[str, Level]:
    """Return levels with which the prompt's text fits the budget (tokens, counted by `size`), lowering as few tools as
    possible, the longest first; unchanged levels if they fit.

    Tools are first lowered to one line, then to the name only. If nothing fits, the levels with the shortest text are
    returned.
    """
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
    """Return the levels with the longest tools lowered to `shorter`, as few as make the prompt's text pass `fits`; with
    all lowered if that is not enough. At least one tool is lowered: call this only if the text does not fit. `size`
    counts tokens. Found by bisection."""
    cost = {name: size(prompt.tool_text(name, level)) for name, level in levels.items()}
    order = sorted(cost, key=lambda name: -cost[name])
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        enough = fits(prompt.text(_set_levels(levels, order[:middle], shorter)))
        low, high = (low, middle) if enough else (middle + 1, high)
    return _set_levels(levels, order[:low], shorter)


def _set_levels(levels: dict[str, Level], names: Iterable[str], level: Level) -> dict[str, Level]:
    """Return a copy of `levels` in which these tools have this level."""
    return {**levels, **dict.fromkeys(names, level)}


class _Prompt:
    """The prompt for one set of tools and options: its sections, and the text of each tool at each level."""

    def __init__(self, *, tools: Toolset, options: ContractOptions) -> None:
        self.tools, self.options = tools, options
        named = options.format if isinstance(options.format, str) else options.format.name
        self.wire = None if named == PROTOCOL else find(options.format)
        self.schemas = options.mode == "text" if options.schemas is None else options.schemas
        self.escaper = MarkerEscaper() if self.wire is None else MarkerEscaper.of(self.wire)
        self.lookup = tool_schema(tools, self.declaration)
        self.declared = Declarations(Toolset(tools, self.lookup), self.escaper)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def text(self, levels: dict[str, Level]) -> str:
        """Return the whole prompt, with each tool listed at its level: the title, how to answer, the ledger, examples
        and the tools."""
        sections = [
            words.TITLE,
            words.MODE.format(mode=self.options.mode),
            *(self.protocol_sections if self.options.mode == "text" or self.schemas else ()),
            *self.ledger_sections(),
            *([words.ACTION] if self.options.require_action else ()),
            *([f"{words.EXAMPLES}\n\n{self.options.examples.strip()}"] if self.options.examples.strip() else ()),
            *(self.tool_sections(levels) if self.schemas else self.name_sections()),
        ]
        if self.options.mode == "native":
            sections.insert(2, words.NATIVE.replace("{example}", self.native_example()))
        return "\n" + "\n\n".join([section.strip("\n") for section in sections]) + "\n"

    def runnable_tools(self, levels: dict[str, Level]) -> Toolset:
        """Return the tools that the model may call: the given ones, and `tool_schema` if any of them is not listed in
        full."""
        return Toolset(self.tools, self.lookup) if self.has_shortened(levels) else self.tools

    def has_shortened(self, levels: dict[str, Level]) -> bool:
        """Return whether the prompt describes tools and any of them has another level than "full"."""
        return self.schemas and any(level != "full" for level in levels.values())

    def shared_types(self, levels: dict[str, Level]) -> list[str]:
        """Return one TypeScript line per type that several tools share, for tools not listed by name only. [] if the
        prompt does not describe tools or uses the listing of a model family, which contains its own types."""
        if self.wire is not None or not self.schemas:
            return []
        return self.declared.alias_lines([tool for tool in self.tools if levels[tool.name] != "named"])

    # -- how to answer -------------------------------------------------------------------------------------------------

    @cached_property
    def protocol_sections(self) -> list[str]:
        """Return the sections of the prompt that explain how to answer: the rules, and examples of calls in the
        format."""
        if self.wire is not None:
            return [words.WIRE, *self.family_examples(self.wire)]
        rules = words.PROTOCOL.replace("DONE_MARK", self.escaper.escape_line(self.options.done))
        calls = self.example_calls()
        worked = [words.EXAMPLE.replace("{example}", self.write_call(calls[0], ""))] if calls else []
        return [rules, *worked, self.heredoc_example()]

    def native_example(self) -> str:
        """Return an example of a call written as text, which the prompt shows for an API whose tool channel fails; ""
        if the format cannot write it."""
        return words.CALL if self.wire is None else self.render_calls(self.wire, [_PLACEHOLDER], None)

    def ledger_sections(self) -> list[str]:
        """Return a list with the section of the prompt that explains the ledger; [] without a ledger."""
        if self.options.ledger is None:
            return []
        return [words.LEDGER if self.wire is None else words.LEDGER_PLAIN]

    def example_calls(self) -> list[Call]:
        """Return example calls of up to two tools, of the first 32 only; fewer if no generated arguments fit a tool's
        schema."""
        able = (tool for tool in islice(self.tools, _LOOK_AT) if _PLAIN_NAME(tool.name) and tool.name != LEDGER)
        made = ((tool, example_arguments(tool)) for tool in able)
        return list(islice((Call(tool.name, args, "", "call12345") for tool, args in made if args is not None), 2))

    def write_call(self, call: Call, heredoc: str) -> str:
        """Return a call in our own protocol, as it is written in the prompt. The argument named `heredoc` gets a text
        of several lines as its value; "" for none."""
        text = TextType(self.escaper)
        values = {key: text.literal(value) for key, value in call.arguments.items() if key != heredoc}
        if heredoc:
            values[heredoc] = words.LINES
        inside = ", ".join([f"{text.name(key)}: {value}" for key, value in values.items()])
        arguments = f"{{ {inside} }}" if inside else "{}"
        return f"<tool_call>\n{call.name}({arguments})\n</tool_call>"

    def heredoc_example(self) -> str:
        """Return the section with an example of a heredoc (a value of several lines), in a call of a tool with a long
        text argument, or else of an invented tool."""
        for tool in islice(self.tools, _LOOK_AT):
            key = next(
                (key for key, kind in self.tools.kinds(tool.name).items() if kind == "plain" and key in _LONG), ""
            )
            made = example_arguments(tool) if key and _PLAIN_NAME(tool.name) and tool.name != LEDGER else None
            if made is not None:
                return words.HEREDOC.replace("{example}", self.write_call(Call(tool.name, made, ""), key))
        return words.HEREDOC_ANY.replace("{example}", self.write_call(_CREATE, "content"))

    def family_examples(self, wire: Format) -> list[str]:
        """Return the sections with an example of one call in the format `wire`, and of two calls if the format can
        write several in one reply. Empty if it can write none."""
        calls = self.example_calls()
        one = self.render_calls(wire, calls[:1], self.tools) or self.render_calls(wire, [_PLACEHOLDER], None)
        joined = wire.section is not None or BODIES[type(wire.bodies[0])].wrap(wire.bodies[0]) is not None
        two = self.render_calls(wire, calls, self.tools) if joined and len(calls) == 2 else ""
        found = [words.WIRE_ONE.replace("{example}", one)] if one else []
        return [*found, words.WIRE_TWO.replace("{example}", two)] if two else found

    def render_calls(self, wire: Format, calls: Sequence[Call], tools: Toolset | None) -> str:
        """Return the calls as text in the format `wire`; "" if there are none or the format cannot write them. `tools`
        are those that the calls are of, or None."""
        try:
            return render(calls, format=wire, tools=tools) if calls else ""
        except CannotCarry:
            return ""

    # -- the tools -----------------------------------------------------------------------------------------------------

    def name_sections(self) -> list[str]:
        """Return the section that lists the names of the tools, as a list with one text; empty without tools."""
        lines = [f"- `{self.escaper.escape_line(tool.name)}`" for tool in self.tools]
        return [words.NAMES + "\n\n" + "\n".join(lines)] if lines else []

    def tool_sections(self, levels: dict[str, Level]) -> list[str]:
        """Return the sections of the prompt that list the tools, each at its level in `levels`: shared types, then the
        tools in full, in one line, and by name only; empty sections are left out. If any tool is not in full, the
        lookup tool is added to those in full."""
        by_level = {
            level: [tool for tool in self.tools if tool.name in names]
            for level, names in names_by_level(levels).items()
        }
        if self.has_shortened(levels):
            by_level["full"].append(self.lookup)
        found = [f"{words.TYPES}\n\n" + "\n".join(types)] if (types := self.shared_types(levels)) else []
        found += self.full_and_compact_sections(by_level["full"], by_level["compact"])
        named = [self.name_line(tool) for tool in by_level["named"]]
        if named:
            found.append(words.NAMED.format(lookup=self.lookup.name) + "\n\n" + "\n".join(named))
        return found

    def full_and_compact_sections(self, full: list[Tool], compact: list[Tool]) -> list[str]:
        """Return the sections for the tools listed in full and for those listed in one line; a section without tools is
        left out."""
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
        return Declarations([brief_tool(tool) for tool in self.tools], self.escaper)

    def brief_tools(self, tools: Iterable[Tool]) -> list[Tool]:
        """Return these tools without prose, as `brief_tool` makes them; tools whose shortened definition cannot be used
        are left out."""
        return [brief for tool in tools if (brief := self.brief_declarations.tools.get(tool.name)) is not None]

    def name_line(self, tool: Tool) -> str:
        """Return the line of the prompt for a tool that is listed by name only, with the first sentence of its
        description."""
        said = self.escaper.escape_line(first_sentence(tool))
        return f"- `{self.escaper.escape_line(tool.name)}`" + (f" — {said}" if said else "")

    def tool_text(self, name: str, level: Level) -> str:
        """Return the text that lists the tool `name` at this level; its line with the name only if the prompt does not
        describe tools."""
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
        """Return the full declaration of one tool, with the shared types that it uses: the text that the tool
        `tool_schema` answers with."""
        if self.wire is not None:
            return list_tools([tool], self.wire)
        made = Declarations([tool], self.escaper)
        return "\n".join([*made.alias_lines(), made.full(tool)]).rstrip("\n")


_PLAIN_NAME = re.compile(r"[A-Za-z_$][\w$.-]*", re.ASCII).fullmatch
_LONG = frozenset("content contents text body code source script patch diff new_text message query".split())
_CREATE = Call("create", {"path": "notes/today.md"}, "")
_PLACEHOLDER = Call("tool_name", {"argument": "value"}, "", "call12345")


def brief_tool(tool: Tool) -> Tool:
    """Return a copy of the tool whose description is cut to one sentence, and whose schema has no descriptions,
    titles or examples."""
    return msgspec.structs.replace(tool, description=first_sentence(tool), parameters=_remove_prose(tool.parameters))


def _remove_prose(schema: Any) -> Any:
    """Return a copy of a JSON Schema without descriptions, titles, examples and comments, at every level. A schema that
    is no object is returned as it is."""
    if not isinstance(schema, dict):
        return schema
    return {word: _remove_prose_in_keyword(word, value) for word, value in schema.items() if word not in _PROSE}


def _remove_prose_in_keyword(word: str, value: Any) -> Any:
    """Return the value of the schema keyword `word` with descriptions, titles, examples and comments removed from the
    schemas inside it; the value of a keyword without schemas is returned as it is."""
    if word in LISTS and isinstance(value, list):
        value = [_remove_prose(item) for item in value]
    elif word in MAPS and isinstance(value, dict):
        value = {key: _remove_prose(item) for key, item in value.items()}
    return _remove_prose(value) if word in ONE else value
