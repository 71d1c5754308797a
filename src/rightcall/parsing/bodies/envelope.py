"""Read JSON envelopes:  {"name": "f", "arguments": {"x": 1}}  alone, in a list, or several in a row.

Keys come in any order. `CallStart` needs a name and the arguments' key, or the envelope's end. Members beside name and
arguments belong to the call (`OpenCall.beside`), and what follows it may reject it: a call is finished when both are
known. Behind an opener every object is a call, however odd. Where no marker precedes the envelope, one key that belongs
to no call decides that it is JSON of the model's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.formats.spec import Envelope, Format
from rightcall.parsing.bodies.body_reader import Around, BodyReader, WholeBlock
from rightcall.parsing.bodies.trailing_text import LOST_MEMBER, find_unexpected
from rightcall.parsing.buffer import Broken, Cut, LostJsonEnd, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder, OpenCall, Whole
from rightcall.parsing.markers import FINAL, Pat, Probe, alt, blanks, literal, lookahead, seq, templates
from rightcall.repairs.envelope_repair import EnvelopeKeys, ExtraMember, LooseCall, member_role, read_loose_envelopes
from rightcall.repairs.schema_repair import fold_name
from rightcall.repairs.tool_meant import find_missing_name, header_name_problem, hoist_name, name_in_id
from rightcall.strict_json import Undecodable, is_deep, is_same_json, scan_unique
from rightcall.tools.toolset import Toolset
from rightcall.types import Repair

_B = r"[ \t\r\n]*+"
_KEY = Pat(r'"[^"\\\x00-\x1f]{1,128}+"', r'(?:"[^"\\\x00-\x1f]{0,128}+"?+)?+')
_OBJECT = seq(literal(":"), blanks(), literal("{"))
Match = Callable[[str, int], "re.Match[str] | None"]


class EnvelopePatterns:
    """The patterns of envelopes that are written as usual, and of their ends."""

    def __init__(self, body: Envelope, closes: list[Pat]) -> None:
        usual = _usual(body)
        self.usual = Probe(usual)
        outer = _any_of(body.outer)
        opens = rf'\{{{_B}"(?:{outer})"{_B}:{_B}(?P<list>\[{_B})' if outer else rf"(?P<list>\[{_B})?"
        self.first: Match = re.compile(_B + opens + usual.whole).match
        # What may close the list, and the object around it, after a call that the tolerant reader parsed.
        self.tail: Match = re.compile(rf"{_B}\]?" + (rf"{_B}\}}?" if outer else "")).match
        # Blanks after the marker belong to it; a bracket after them is surplus.
        close = "(?:" + "|".join(pat.whole for pat in closes) + rf"){_B}(?![}}\])])" if closes else ""
        # The end of an object, behind an id where the format has one; a second group where another object follows.
        ids = _any_of(body.ids) if body.names else ""
        end = (rf'{_B}(?:,{_B}"(?:{ids})"{_B}:{_B}"[^"\\\x00-\x1f]*+"{_B})?' if ids else _B) + rf"(\}}){_B}"
        self.ends_item: Match = re.compile(rf"{end}(?:(,)|\]){_B}").match
        self.ends_alone: Match = re.compile(end).match
        self.ends_block: Match = re.compile(rf"{end}(?:(?=(\{{))|{close})").match if closes else self.ends_alone
        after_list = rf"{_B}\}}{_B}" if outer else _B
        self.list_ends: tuple[Match, Match] = re.compile(after_list).match, re.compile(after_list + close).match
        # Another call behind a comma or a semicolon (ai-dynamo/dynamo#9536), which do not belong there: an object that
        # begins with a name or an id, or, where the key is the name, one that holds an object.
        key = [alt(*_quoted(body.names + body.ids))] if body.names else [_KEY, blanks(), _OBJECT]
        self.another = Probe(seq(Pat("[,;]", ""), blanks(), lookahead(seq(literal("{"), blanks(), *key))))


def _usual(body: Envelope) -> Pat:
    """Return the pattern of an envelope that is written as usual (an id if any, name, arguments), from its `{` up to
    its arguments, which are not matched. The groups are `object` (the bracket), `name`, `id`, and `name_key`, `id_key`
    and `args_key` for the keys; without an id, its two groups are None or "". Where the key is the name, the arguments
    must begin with `{`, and all groups but `object` and `name` are ""."""
    opens = Pat(r"(?P<object>\{)", "")
    colon, comma = ([blanks(), literal(sign), blanks()] for sign in ":,")
    if body.names:
        members = [_key("name_key", body.names), *colon, _string("name"), *comma, _key("args_key", body.args), *colon]
        before = Pat("(?P<id_key>)(?P<id>)", "")
        if body.ids:
            id = seq(_key("id_key", body.ids), *colon, _string("id"), *comma)
            before = Pat(f"(?:{id.whole})?", id.part.replace("?P<id_key>", "?:").replace("?P<id>", "?:"))
        pat = seq(opens, blanks(), before, *members, lookahead(Pat(r"[^ \t\r\n]", "")))
    else:
        # Where the key is the name, an id or a type is none: its value is no object.
        others = Pat("(?P<id_key>)(?P<id>)(?P<name_key>)(?P<args_key>)", "")
        pat = seq(opens, others, blanks(), _string("name"), *colon, lookahead(literal("{")))
    return pat._replace(sure=FINAL)


def _string(group: str) -> Pat:
    """Return the pattern of a JSON string of at most 256 characters, without escapes, that is not blank; its content is
    the group of this name."""
    return Pat(rf'"(?P<{group}>(?!\s*+")[^"\\\x00-\x1f]{{1,256}}+)"', r'(?:"[^"\\\x00-\x1f]{0,256}+)?+')


def _key(group: str, keys: tuple[str, ...]) -> Pat:
    """Return the pattern of one of these keys in quotes; the key is the group of this name."""
    return Pat(f'"(?P<{group}>{_any_of(keys)})"', alt(*_quoted(keys)).part)


def _quoted(keys: tuple[str, ...]) -> list[Pat]:
    """Return the patterns of these keys in quotes."""
    return [literal(f'"{key}"') for key in keys]


def _any_of(keys: tuple[str, ...]) -> str:
    """Return the source of a regular expression for any of these keys, without quotes or a group."""
    return "|".join(map(re.escape, keys))


class OddMember(LostJsonEnd):
    """Something unexpected is between the members of an envelope, and no bracket but its own is open."""


ARGUMENTS: Any = object()  # represents a value that is not known before the end of the call


class Parts(msgspec.Struct):
    """What was read of an envelope.

    - `inner`: how many `"function": {` are open.
    - `seen`: the value of each key; `ARGUMENTS` for the arguments.
    - `members`: those beside name and arguments. The first `before_args` of them precede the arguments.
    - `again`: the members whose key was there before.
    """

    name: str | None = None
    id: str = ""
    has_args: bool = False
    inner: int = 0
    json: str = ""
    value: Any = Undecodable
    seen: dict[str, Any] = {}
    members: list[tuple[str, Any]] = []
    before_args: int = 0
    again: list[ExtraMember] = []

    def add_again(self, key: str, value: Any) -> None:
        """Record in `again` the member `key`, which `seen` must contain: with the role "again" if `value` is the same
        JSON value as the first one, else "clash"."""
        is_same = is_same_json(self.seen[key], value)
        self.again.append(ExtraMember(key, value, "again" if is_same else "clash"))


_CLOSER = re.compile(rf"{_B}[}}\])]").match
_COMMENTED = re.compile(r"/\*|//|#").search
_WORDS = seq(alt(literal("null"), literal("true"), literal("false")), lookahead(Pat(r"[,\] \t\r\n]", "")))
_ENTRY = alt(Pat(r"[{\]\[\"0-9\ufeff-]", ""), _WORDS)  # the beginning of an entry of a list of calls, a wrong one too
_BEGINS = Probe(alt(literal("{"), seq(literal("["), blanks(), _ENTRY)))
_MEMBERS = ',"'  # the first characters of a member that follows the end of its object
_VALUES = '"[-0123456789tfn'  # the first characters of a JSON value that is no object
_EXTRA_IN_LIST = Probe(seq(blanks(), Pat(r"\}{1,3}+", r"\}{0,3}"), blanks(), lookahead(Pat(r"[,\]]", ""))))


class EnvelopeReader(BodyReader):
    begins = _BEGINS

    def __init__(self, body: Envelope, format: Format, around: Around) -> None:
        self.names, self.args, self.ids = frozenset(body.names), frozenset(body.args), frozenset(body.ids)
        self.outer, self.content = frozenset(body.outer), body.content
        self.keys = EnvelopeKeys(body.names, body.args, body.ids)
        self._patterns = EnvelopePatterns(body, templates(format.call[1]))

    def quick(self, builder: CallBuilder, start: int, bare: bool) -> WholeBlock | None:
        """Return the calls of the block that begins at index `start` of `buf`, the index behind it (unless `bare`,
        behind its closing marker), and whether it is certainly over. Return None if not all of it has arrived, it is
        not written as usual (arguments must be an object, valid and not too deep, and no second id or id of another
        tool may follow), or a surplus bracket or a lost member follows. Nothing is taken or emitted."""
        buf, patterns = builder.buf, self._patterns
        usual = patterns.first(buf, start)
        if usual is None:
            return None
        listed = usual[1] is not None
        ends = patterns.ends_item if listed else patterns.ends_alone if bare else patterns.ends_block
        found: list[Whole] = []
        while usual is not None:
            begin = usual.end()
            try:
                value, end = scan_unique(buf, begin)
            except (StopIteration, ValueError, RecursionError):
                return None
            close = ends(buf, end)
            if close is None or type(value) is not dict or is_deep(value, buf, begin, end, builder.limits.depth):
                return None
            id, name = usual.group("id", "name")
            over = close.start(1)
            behind = buf[end:over] if over > end else ""
            if '"' in behind and (id or name_in_id(behind.split('"')[-2], builder.tools) not in ("", name)):
                return None  # a second id, or one that names another tool
            found.append((usual.start("object"), over + 1, name, buf[begin:end], value, id or ""))
            if close.lastindex == 1:
                break
            usual = patterns.usual.whole(buf, close.end())
        else:
            return None
        last = patterns.list_ends[not bare](buf, close.end()) if listed else close
        if last is None:
            return None
        if not bare and builder.compiled.call_ends.close is not None:
            return found, last.end(), True
        if builder.compiled.call_ends.extra_brackets is not None and _CLOSER(buf, last.end()):
            return None  # a surplus bracket
        is_more = LOST_MEMBER.at(buf, last.end(), builder.ended)
        return None if is_more else (found, last.end(), is_more is False)

    def is_over(self, builder: CallBuilder, end: int) -> bool:
        """Return whether it is certain that no lost member of the call follows index `end`, where `quick` stopped;
        False also if more text is needed to tell."""
        return LOST_MEMBER.at(builder.buf, end, builder.ended) is False

    def read_loose_calls(self, builder: CallBuilder, text: str, closed: bool) -> list[LooseCall]:
        """Parse the envelopes in `text` with the tolerant reader and return their calls; empty if that fails, or if the
        first has another name than the current call."""
        found = read_loose_envelopes(text, self.keys, tools=builder.tools, depth=builder.limits.depth, closed=closed)
        return [] if builder.call is not None and found and found[0].name != builder.call.name else found

    def tail(self, text: str, end: int) -> int:
        """Return the index behind the bracket that closes the list and, in a format with `outer` keys, the one that
        closes the object around it, after a call that ends at `end`. Both may be missing; blanks before them are
        skipped anyway."""
        return self._patterns.tail(text, end).end()  # type: ignore[union-attr]

    def read(self, builder: CallBuilder, *, bare: bool) -> Steps[None]:
        """Parse and finish the calls of a block: a list (vLLM's tests/tool_parsers/test_xlam_tool_parser.py has one
        between `<tool_call>` tags), an object with the calls in it if the format has `outer` keys, else one envelope,
        or several in a row in a format with a closing marker if not `bare`. Raises `NotACall` if none of these is here,
        also at the end of the text, if `bare` and the first is no call, and beyond the limit of calls; `Broken` if the
        end of a malformed call is not found; `Cut` if the text ends in it."""
        char = builder.char() or (yield from builder.peek())
        if char == "[":
            if not (yield from builder.test(_BEGINS)) and not (
                builder.ended and _BEGINS.is_begun(builder.buf, builder.pos)
            ):
                raise NotACall
            builder.advance()
            yield from self._read_list(builder, bare)
        elif char != "{":
            raise NotACall
        elif self.outer:
            try:
                yield from self._read_outer(builder)
            except LostJsonEnd:
                raise NotACall from None
        else:
            # Where a marker will close them, several envelopes may follow one another, as Ollama's template of Qwen 2.5
            # writes them: <tool_call>\n{{ range .ToolCalls }}{"name": ...}\n{{ end }}</tool_call>
            closed = builder.compiled.call_ends.close is not None and not bare
            while char == "{":
                parts = yield from self._read_call(builder, bare)
                if parts is not None:
                    odd = yield from find_unexpected(builder, closed=closed, another=self._patterns.another)
                    builder.finish(parts.value, empty=not parts.has_args, unexpected=odd)
                char = (builder.char() or (yield from builder.peek())) if closed else ""

    def _read_call(self, builder: CallBuilder, bare: bool, *, listed: bool = False) -> Steps[Parts | None]:
        """Parse one call from its `{` to its `}`, and surplus brackets behind it, begin it, and return its parts; the
        caller finishes it, because what follows may reject it. Return None if it was malformed: then it is already
        repaired or rejected. `listed`: it is in a list. Raises `NotACall` if `bare` and it is no call, or beyond the
        limit of calls; `Broken` as `_reject_malformed`; `Cut` if the text ends: then a call whose name is known has
        begun (if `bare` and before its arguments, only of a declared tool)."""
        builder.begin_text()
        while (usual := self._patterns.usual.at(builder.buf, builder.pos, builder.ended)) is None:
            yield
        parts = Parts(usual["name"], usual["id"] or "", True) if usual else Parts()
        try:
            if usual:
                builder.take_match(usual)
                builder.begin(usual["name"], parts.id)
                parts.value = yield from builder.read_arguments()
            if usual and (builder.char() or (yield from builder.peek())) == "}":
                builder.advance()
            else:
                yield from self._read_members(builder, parts, bare, usual or None)
        except LostJsonEnd as lost:
            if bare and builder.call is None:
                raise NotACall from None
            yield from self._reject_malformed(builder, parts, lost)
            return None
        except Cut:
            if builder.call is None and parts.name is not None and (not bare or builder.is_declared(parts.name)):
                builder.text.arguments = builder.at
                builder.begin(parts.name, parts.id)
            raise
        call = builder.call or self._begin_late(builder, parts, bare, listed)
        if parts.members or parts.again:
            self._add_members(builder, call, parts)
        builder.end_text()
        repairs = call.repairs
        yield from builder.take_extra_closers(_EXTRA_IN_LIST if listed else None)
        if call.repairs is not repairs:
            # The surplus bracket may be the one that ended the arguments too early, so that an id may be one of them.
            ids = [member for member in parts.members[parts.before_args :] if member[0] in self.ids]
            call.add_beside(*[ExtraMember(key, value, "id") for key, value in ids])
        return parts

    def _read_members(self, builder: CallBuilder, parts: Parts, bare: bool, usual: re.Match[str] | None) -> Steps[None]:
        """Take the members of an envelope up to and with its closing bracket into `parts`; with `usual`, the match of
        its beginning, only those behind the arguments. A comma before the bracket is accepted. The call begins when
        name and arguments' key are known; if they are not, it has not begun on return. Raises `OddMember` or
        `LostJsonEnd` for invalid JSON outside the arguments or without an end, `NotACall` for a foreign key if `bare`
        and beyond the limit of calls, `Cut` if the text ends."""
        is_comma_due = usual is not None
        if usual is None:
            builder.advance()
        else:
            name = usual["name"]
            parts.seen = {usual["name_key"] or name: name, usual["args_key"] or name: ARGUMENTS}
            if usual["id_key"]:
                parts.seen[usual["id_key"]] = parts.id
        while True:
            char = builder.char() or (yield from builder.peek())
            if not char:
                raise Cut
            if char == "}":
                builder.advance()
                if not parts.inner:
                    return
                parts.inner -= 1
                is_comma_due = True
            elif not is_comma_due:
                is_comma_due = yield from self._read_member(builder, parts, bare)
            elif char == ",":
                builder.advance()
                is_comma_due = False
            else:
                raise OddMember

    def _read_member(self, builder: CallBuilder, parts: Parts, bare: bool) -> Steps[bool]:
        """Take a key and its value into `parts`, as the name, the arguments or another member, and return True. Return
        False if the value is a `function` object, of which only the bracket is taken: its members are those of the
        envelope. Where the key is the name, the first key is it (also `function`, and if the text ends before its
        value), unless it is an id or `type` with a string. Raises `OddMember` if no key with a colon is here, else as
        `_read_members`."""
        key = yield from builder.take_json_string()
        if key is None:
            raise OddMember
        if (colon := (yield from builder.peek())) != ":":
            raise OddMember if colon else Cut
        builder.advance()
        char = yield from builder.peek()
        is_named = parts.name is not None
        if not char:
            parts.name = parts.name if self.names or is_named else key
            raise Cut
        # Models imitate OpenAI's API: {"type": "function", "function": {"name": ...}} (agentscope-ai/QwenPaw#1961).
        if key == "function" and char == "{" and (self.names or is_named):
            builder.advance()
            parts.inner += 1
            return False
        # Granite 3.0 and Phi 4 mini write the name itself there, {"function": "f"} (ibo-agentic/versiondrift-agent).
        if not is_named and self.names and char == '"' and (key in self.names or key == "function"):
            yield from self._read_name(builder, parts, key)
        elif not is_named and not self.names and (char != '"' or not self._is_of_call(key)):
            parts.name = key
            yield from self._read_arguments(builder, parts, key)
        elif key in self.args and not parts.has_args:
            yield from self._read_arguments(builder, parts, key)
        else:
            yield from self._read_other(builder, parts, key, bare)
        return True

    def _is_of_call(self, key: str) -> bool:
        """Return whether this is a usual key of a call beside its name and its arguments: an id or the type."""
        return key in self.ids or key == "type"

    def _read_name(self, builder: CallBuilder, parts: Parts, key: str) -> Steps[None]:
        """Take the value of `key` as the name of the call; a blank name counts as none (None). If the key was there
        before, it is also added to `again`. If the arguments are known, the call begins and gets their JSON. Raises
        `OddMember` if it is no valid string or longer than 1,024 characters, `Cut` if the text ends in it, `NotACall`
        if the call exceeds the limit of calls."""
        name = yield from builder.take_json_string()
        if name is None:
            raise OddMember
        if key in parts.seen:
            parts.add_again(key, name)
        parts.seen[key] = name
        parts.name = name if name.strip() else None  # a blank name is none
        if parts.has_args and parts.name is not None:
            builder.begin(parts.name, parts.id).parts.append(parts.json)
            parts.value = Undecodable

    def _read_arguments(self, builder: CallBuilder, parts: Parts, key: str) -> Steps[None]:
        """Take the value of `key` as the arguments and set `has_args`. If the name is known, begin the call and give it
        their JSON; else keep that in `parts`. Their value is in `parts` in both cases, `Undecodable` if they are
        invalid but have an end. Raises `LostJsonEnd` if their end cannot be found, `Cut` if the text ends, `NotACall`
        if the call exceeds the limit of calls."""
        parts.has_args, parts.before_args = True, len(parts.members)
        parts.seen[key] = ARGUMENTS
        if parts.name is None:
            parts.json, parts.value = yield from builder.take_json()
        else:
            builder.begin(parts.name, parts.id)
            parts.value = yield from builder.read_arguments()

    def _read_other(self, builder: CallBuilder, parts: Parts, key: str, bare: bool) -> Steps[None]:
        """Take the value of `key`, which is neither the name nor the arguments, into `parts`: as a further member (also
        a second value of the arguments), or in `again` if repeated. The first string of an id before the call begins is
        also the id. Raises `NotACall` if `bare`, no call has begun, and a call has no such key: no id, no type, no
        argument of the tool, no key of the name with null, a number or a boolean. Raises `OddMember` or `LostJsonEnd`
        for an invalid value, `Cut` if the text ends."""
        # With no marker before it, an envelope with a key that no call has is JSON of the model's own.
        is_foreign = (
            bare and builder.call is None and not self._is_of_call(key) and not self._is_argument(builder, parts, key)
        )
        if is_foreign and key not in self.names:
            raise NotACall
        if isinstance(value := (yield from builder.take_json())[1], Undecodable):
            raise OddMember
        if is_foreign and not self._is_no_name(key, value):
            raise NotACall
        if key in self.ids and isinstance(value, str) and builder.call is None and not parts.id:
            parts.id = value
        if parts.seen.get(key, ARGUMENTS) is not ARGUMENTS:
            parts.add_again(key, value)
            return
        parts.seen.setdefault(key, value)
        parts.members.append((key, value))

    def _is_no_name(self, key: str, value: Any) -> bool:
        """Return whether `key` is a key of the name and its value null, a number or a boolean, and so neither a name
        nor an argument."""
        return key in self.names and not isinstance(value, (str, dict, list))

    def _is_argument(self, builder: CallBuilder, parts: Parts, key: str) -> bool:
        """Return whether the tool, or any tool if the name is not known yet, declares the argument `key`; False without
        tools."""
        tools = builder.tools
        if tools is None:
            return False
        names = [parts.name] if parts.name is not None else [tool.name for tool in tools]
        return any(key in tools.kinds(name) for name in names)

    def _begin_late(self, builder: CallBuilder, parts: Parts, bare: bool, listed: bool) -> OpenCall:
        """Begin and return a call whose envelope ended before name and arguments were both known; it gets the
        arguments' JSON, if any. Unless repairs are off, `_find_name` may supply a missing name (if `bare`, only with a
        filled object of arguments and a key of the name); else it is "". Raises `NotACall` beyond the limit of calls,
        and if `bare` without arguments or name, unless it names a declared tool, or is in a list (`listed`) and has a
        filled object of arguments and a key of the name."""
        name, repairs = parts.name or "", tuple[Repair, ...]()
        has_args = parts.has_args and isinstance(parts.value, dict) and bool(parts.value)
        lacks_name = has_args and any(key in self.names for key in parts.seen)
        if not name and builder.policy("") != "off" and (not bare or lacks_name):
            name, repairs = self._find_name(parts, builder.tools)
        is_whole = parts.has_args and (bool(name) or (listed and lacks_name))
        if bare and not (is_whole or builder.is_declared(parts.name or "")):
            raise NotACall
        call = builder.begin(name, parts.id, repairs)
        parts.value = Undecodable
        if parts.has_args:
            call.parts.append(parts.json)
        return call

    def _find_name(self, parts: Parts, tools: Toolset | None) -> tuple[str, tuple[Repair, ...]]:
        """Return the name of a call that has none, and the receipts: found under another key or among the arguments
        (vllm#32146), or the only tool that accepts the arguments (NousResearch/hermes-agent#103752); without arguments,
        the other members count as these. Return "" and no receipt if none is certain. A name that was found is removed
        from the members or the argument JSON in `parts`."""
        members = {key: value for key, value in parts.members if not self._is_no_name(key, value)}
        hoisted = hoist_name(members, tools)
        if hoisted is not None:
            name, rest = hoisted
            parts.members = [member for member in parts.members if member[0] in rest or member[0] not in members]
            return name, (Repair("hoisted_name", "schema", "", "", name),)
        if not parts.has_args:
            name, _, repairs = find_missing_name(members, "", tools)
            return name, repairs
        name, parts.json, repairs = find_missing_name(parts.value, parts.json, tools)
        return name, repairs

    def _add_members(self, builder: CallBuilder, call: OpenCall, parts: Parts) -> None:
        """Add the members beside name and arguments to the call, each with its role, without those that have no meaning
        or repeat the name under another spelling of its key. A further id (not `parts.id`) that names another tool
        rejects the call with a problem."""
        call.add_beside(*parts.again)
        for key, value in parts.members:
            if value == call.name and fold_name(key) in self.names:
                continue  # the name, under another spelling of its key
            role = member_role(key, value, self.keys, builder.tools, name=parts.name or "", has_args=parts.has_args)
            if role == "stranger" and parts.name is None and self._is_no_name(key, value):
                role = "known"
            if role is not None:
                call.add_beside(ExtraMember(key, value, role))
            if key in self.ids and isinstance(value, str) and value != parts.id:
                other = name_in_id(value, builder.tools)
                if other and (two := header_name_problem(other, call.name, builder.tools, builder.policy(call.name))):
                    builder.problem(*two, call=call.index)

    def _reject_malformed(self, builder: CallBuilder, parts: Parts, lost: LostJsonEnd) -> Steps[None]:
        """Finish a call that is not valid JSON: take it up to its closing bracket, then repair it with the tolerant
        reader or emit it as rejected (`invalid_json`; without a name if it has not begun), so that its siblings are
        parsed. Raises `Broken` if `lost`, the error that ended parsing, is no `OddMember`, if the bracket is not found,
        or if a call that cannot be repaired has a comment; `Cut` if the text ends; `NotACall` if it exceeds the limit
        of calls."""
        broken = Broken("invalid_json", "the call is not valid JSON; send it again as valid JSON")
        if not isinstance(lost, OddMember):
            raise broken
        try:
            yield from builder.skip_brackets(["}"] * (1 + parts.inner))
        except LostJsonEnd:
            raise broken from None
        if builder.reparse(closed=False):
            return
        if builder.text.is_open and _COMMENTED(builder.text_so_far()):
            raise broken  # a bracket in a comment closes nothing
        builder.fail(broken.code, broken.message)

    def _read_list(self, builder: CallBuilder, bare: bool) -> Steps[None]:
        """Parse and finish the calls of a list, behind its `[`, each when what follows it is known. Missing commas, a
        missing `]` and, unless `bare`, no entries are accepted. An entry of another type becomes a rejected call; a
        lost member behind a call rejects it and ends the list, what cannot follow the list rejects the last call
        (except in an outer object). Raises `NotACall` if `bare` and the first entry is no call, and beyond the limit of
        calls; `Broken` if an entry has no end or is no JSON; `Cut` if the text ends."""
        first = builder.index
        parts: Parts | None = None  # of a call that is not finished
        while True:
            char = builder.char() or (yield from builder.peek())
            is_over = char == "]" and (builder.index > first or not bare)
            if is_over:
                builder.output.drop_blanks()
                builder.advance()
            if parts is not None:
                odd = ""
                if is_over and not self.outer:
                    odd = yield from find_unexpected(
                        builder, closed=builder.compiled.call_ends.close is not None and not bare
                    )
                elif not is_over and char in _MEMBERS and (yield from builder.test(LOST_MEMBER)):
                    odd, is_over = ",", True
                builder.finish(parts.value, empty=not parts.has_args, unexpected=odd)
                parts = None
            if is_over:
                return
            if char == "," and builder.index > first:
                builder.advance()
            elif char == "{":  # also without a comma before it (unslothai/unsloth#5704)
                parts = yield from self._read_call(builder, bare and builder.index == first, listed=True)
            elif not char:
                raise Cut
            elif bare and builder.index == first:
                raise NotACall
            elif builder.index > first and char not in _VALUES:
                return  # nothing closes the list (Arthur-Ficial/apfel#187)
            else:
                yield from self._reject_entry(builder)

    def _reject_entry(self, builder: CallBuilder) -> Steps[None]:
        """Take an entry of a list of calls that is no object, and emit it as a call without a name, rejected with the
        problem `call_not_object`. Raises `Broken` if it is no JSON value or has no end, `Cut` if the text ends in it,
        `NotACall` if it exceeds the limit of calls."""
        builder.begin_text()
        try:
            yield from builder.take_json()
        except LostJsonEnd:
            message = "the list of calls is not valid JSON; send it again as valid JSON"
            raise Broken("invalid_json", message) from None
        message = "an entry of the list of calls is no object; send an object with a name and arguments"
        builder.fail("call_not_object", message)

    def _read_outer(self, builder: CallBuilder) -> Steps[None]:
        """Parse an object that holds calls, `{"tool_calls": [...]}` or one call in place of the list, which are
        finished, or text for the user, which is emitted. Other members behind these are dropped with the note
        `unknown_key`; a missing `}` is accepted, also at the end of the text. Raises `NotACall` if the object begins
        with neither, and beyond the limit of calls; `LostJsonEnd` for a value of text or another member without an end;
        `Broken` as `_read_list` and `_read_call`; `Cut` if the text ends in a value."""
        builder.advance()
        has_any = False
        while (yield from builder.peek()) == '"':
            key = yield from builder.take_json_string()
            if (yield from builder.peek()) != ":":
                break
            builder.advance()
            char = yield from builder.peek()
            if key in self.outer and char == "[":
                builder.advance()
                yield from self._read_list(builder, False)
            elif key in self.outer and char == "{":  # one call in place of a list (the tests of FANATFANATA/DanyAPI)
                if (parts := (yield from self._read_call(builder, False))) is not None:
                    builder.finish(parts.value, empty=not parts.has_args)
            elif key == self.content and char == '"':
                text, value = yield from builder.take_json()
                if isinstance(value, str):
                    builder.output.emit_json_text(value, builder.at - len(text), builder.at)
            elif has_any and char:
                yield from builder.take_json()
                builder.problem(
                    "unknown_key", f"{(key or '')[:80]!r} is next to the calls and was ignored", blocking=False
                )
            else:
                break
            has_any = True
            if (yield from builder.peek()) == ",":
                builder.advance()
        if not has_any:
            raise NotACall
        if (yield from builder.peek()) == "}":
            builder.advance()
