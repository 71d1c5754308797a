"""JSON envelopes:  {"name": "f", "arguments": {"x": 1}}  alone, in a list, or several in a row.

Keys come in any order. `CallStart` needs a name and the arguments' key, or the envelope's end. What stands beside name
and arguments goes with the call (`OpenCall.beside`), and so does what stands behind it: a call is settled when both are
known. Behind an opener every object is a call, however odd. Where no marker stood before the envelope, one key that
belongs to no call decides that it is the model's own JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rightcall.formats.spec import Envelope, Format
from rightcall.parsing.bodies.body_reader import Around, BodyReader, WholeBlock
from rightcall.parsing.bodies.trailing_text import goes_on, is_member_lost, what_stands_behind
from rightcall.parsing.buffer import Broken, Cut, LostJsonEnd, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder, Whole
from rightcall.parsing.markers import Pat, Probe, alt, blanks, literal, lookahead, seq, templates
from rightcall.repairs.envelope_repair import ExtraMember, Keys, LooseCall, Role, read_loose_envelopes, role_of
from rightcall.repairs.schema_repair import fold
from rightcall.repairs.tool_meant import find_name, hoist_name, name_in_id, two_names
from rightcall.strict_json import Undecodable, is_deep, is_same_json, scan_unique
from rightcall.tools.toolset import Toolset
from rightcall.types import Repair

_B = r"[ \t\r\n]*+"
_KEY = Pat(r'"[^"\\\x00-\x1f]{1,128}+"', r'(?:"[^"\\\x00-\x1f]{0,128}+"?+)?+')
_OBJECT = seq(literal(":"), blanks(), literal("{"))
Match = Callable[[str, int], "re.Match[str] | None"]


class EnvelopePatterns:
    """The patterns of envelopes that have arrived completely and are written as usual, and of their ends."""

    def __init__(self, body: Envelope, closes: list[Pat]) -> None:
        usual = _usual(body)
        self.usual: Match = re.compile(usual).match
        outer = _any_of(body.outer)
        opens = rf'\{{{_B}"(?:{outer})"{_B}:{_B}(?P<list>\[{_B})' if outer else rf"(?P<list>\[{_B})?"
        self.first: Match = re.compile(_B + opens + usual).match
        # What may close the list, and the object around it, behind a call that was read loosely.
        self.tail: Match = re.compile(rf"{_B}\]?" + (rf"{_B}\}}?" if outer else "")).match
        # Blanks behind the marker are its own; a bracket behind them is one too many.
        close = "(?:" + "|".join(pat.whole for pat in closes) + rf"){_B}(?![}}\])])" if closes else ""
        # The end of an object; a second group where another follows.
        end = rf"{_B}{_id_behind(body)}(\}}){_B}"
        self.ends_item: Match = re.compile(rf"{end}(?:(,)|\]){_B}").match
        self.ends_alone: Match = re.compile(end).match
        self.ends_block: Match = re.compile(rf"{end}(?:(?=(\{{))|{close})").match if closes else self.ends_alone
        # What another call of the block begins with, behind a comma that does not belong there.
        self.another = _another(body)
        behind_list = rf"{_B}\}}{_B}" if outer else _B
        self.list_ends: tuple[Match, Match] = re.compile(behind_list).match, re.compile(behind_list + close).match


def _another(body: Envelope) -> Probe:
    """A comma or a semicolon, and then an object that begins with a name or an id; where the key is the name, with one
    that holds an object."""
    key = [alt(*[literal(f'"{key}"') for key in (*body.names, *body.ids)])] if body.names else [_KEY, blanks(), _OBJECT]
    return Probe(seq(Pat("[,;]", ""), blanks(), lookahead(seq(literal("{"), blanks(), *key))))


def _usual(body: Envelope) -> str:
    """From the bracket to the arguments."""
    text = r'"(?P<{}>(?!\s*+")[^"\\\x00-\x1f]{{1,256}}+)"'.format
    if not body.names:
        # Where the key is the name, an id or a type is none: its value is no object.
        keys = rf"(?P<id_key>)(?P<id>)(?P<name_key>){text('name')}(?P<args_key>)"
        return rf"(?P<object>\{{){_B}{keys}{_B}:{_B}(?=\{{)"
    ids = _any_of(body.ids)
    before = rf'(?:"(?P<id_key>{ids})"{_B}:{_B}{text("id")}{_B},{_B})?' if ids else "(?P<id_key>)(?P<id>)"
    first = rf'"(?P<name_key>{_any_of(body.names)})"{_B}:{_B}{text("name")}'
    then = rf'{_B},{_B}"(?P<args_key>{_any_of(body.args)})"'
    return rf"(?P<object>\{{){_B}{before}{first}{then}{_B}:{_B}(?=[^ \t\r\n])"


def _id_behind(body: Envelope) -> str:
    ids = _any_of(body.ids) if body.names else ""
    return rf'(?:,{_B}"(?:{ids})"{_B}:{_B}"[^"\\\x00-\x1f]*+"{_B})?' if ids else ""


def _any_of(keys: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, keys))


class OddMember(LostJsonEnd):
    """Something odd stands between the members of an envelope, and no bracket but its own is open."""


ARGUMENTS: Any = object()  # stands for a value that is not known before the call is settled


class Parts:
    """What of an envelope has been read."""

    __slots__ = ("again", "doubtful", "has_args", "id", "inner", "json", "members", "name", "seen", "value")

    def __init__(self) -> None:
        self.name: str | None = None
        self.id = ""
        self.inner = 0  # how many `"function": {` are open
        self.has_args = False
        self.doubtful = False  # it has a key that no call has
        self.json = ""
        self.value: Any = Undecodable
        self.seen: dict[str, Any] = {}
        self.members: list[tuple[str, Any]] = []  # beside name and arguments
        self.again: list[ExtraMember] = []  # those whose key was there before

    def take_usual(self, usual: re.Match[str]) -> None:
        """The usual beginning: an id, the name, the arguments' key."""
        self.name, self.id, self.has_args = usual["name"], usual["id"] or "", True
        self.seen = {usual["name_key"] or usual["name"]: usual["name"], usual["args_key"] or usual["name"]: ARGUMENTS}
        if usual["id_key"]:
            self.seen[usual["id_key"]] = self.id

    def ids_behind(self, ids: frozenset[str]) -> tuple[ExtraMember, ...]:
        """Ids that stand behind the arguments."""
        seen = list(self.seen)
        args = next((index for index, key in enumerate(seen) if self.seen[key] is ARGUMENTS), len(seen))
        return tuple(
            [ExtraMember(key, value, "id") for key, value in self.members if key in ids and key in seen[args:]]
        )

    def note_again(self, key: str, value: Any) -> None:
        same = is_same_json(self.seen[key], value)
        self.again.append(ExtraMember(key, value, "again" if same else "clash"))


def is_no_name(key: str, value: Any, names: frozenset[str]) -> bool:
    """Null, a number or a word where the name should be: neither a name nor an argument."""
    return key in names and not isinstance(value, (str, dict, list))


def find_name_of(parts: Parts, names: frozenset[str], tools: Toolset | None) -> tuple[str, tuple[Repair, ...]]:
    """The name of a call that has none of its own: it stands under another key, among the arguments, or only one tool
    fits."""
    members = {key: value for key, value in parts.members if not is_no_name(key, value, names)}
    hoisted = hoist_name(members, tools)
    if hoisted is not None:
        name, rest = hoisted
        parts.members = [member for member in parts.members if member[0] in rest or member[0] not in members]
        return name, (Repair("hoisted_name", "schema", "", "", name),)
    if not parts.has_args:
        name, _, repairs = find_name(members, "", tools)
        return name, repairs
    name, parts.json, repairs = find_name(parts.value, parts.json, tools)
    return name, repairs


def refuse_item(p: CallBuilder) -> Steps[None]:
    """Something in a list of calls that is none: it is kept and refused, and its siblings live."""
    p.begin_text()
    try:
        yield from p.take_json()
    except LostJsonEnd:
        raise Broken("invalid_json", "the list of calls is not valid JSON; send it again as valid JSON") from None
    p.fail("call_not_object", "an entry of the list of calls is no object; send an object with a name and arguments")


def take_comma(p: CallBuilder) -> Steps[None]:
    """What must stand behind a member."""
    char = yield from p.peek()
    if char == ",":
        p.advance()
    elif not char:
        raise Cut
    elif char != "}":
        raise OddMember


def take_colon(p: CallBuilder) -> Steps[None]:
    char = yield from p.peek()
    if not char:
        raise Cut
    if char != ":":
        raise OddMember
    p.advance()


class EnvelopeMembers:
    """Reads members into `Parts`. A call begins as soon as its name and the key of its arguments are known."""

    def __init__(self, body: Envelope) -> None:
        self.names, self.args, self.ids = frozenset(body.names), frozenset(body.args), frozenset(body.ids)

    def read(self, p: CallBuilder, parts: Parts, bare: bool, begun: bool) -> Steps[None]:
        """All up to the bracket that ends the envelope; `begun`: some were read before."""
        if begun:
            yield from take_comma(p)
        while True:
            char = yield from p.peek()
            if char == "}":
                p.advance()
                if not parts.inner:
                    return
                parts.inner -= 1
            elif char == '"':
                if (yield from self._member(p, parts, bare)):
                    parts.inner += 1
                    continue
            elif not char:
                raise Cut
            else:
                raise OddMember
            yield from take_comma(p)

    def _member(self, p: CallBuilder, parts: Parts, bare: bool) -> Steps[bool]:
        """A key and its value; True if the value is an object that is read as part of the envelope."""
        key = yield from p.take_json_string()
        if key is None:
            raise OddMember
        yield from take_colon(p)
        char = yield from p.peek()
        if not char:
            parts.name = parts.name if self.names or parts.name else key
            raise Cut
        if key == "function" and char == "{" and (self.names or parts.name is not None):
            p.advance()
            return True
        if parts.name is None and self._is_named_by(key, char):
            yield from (self._name(p, parts, key) if self.names else self._named_arguments(p, parts, key))
        elif key in self.args and not parts.has_args:
            yield from self._arguments(p, parts, key)
        else:
            yield from self._other(p, parts, key, bare)
        return False

    def _is_named_by(self, key: str, char: str) -> bool:
        """Does this member say the name? `char` is what its value begins with."""
        if self.names:
            return char == '"' and (key in self.names or key == "function")
        return char != '"' or not self._is_of_call(key)

    def _is_of_call(self, key: str) -> bool:
        """Does a call have such a key beside its name and its arguments?"""
        return key in self.ids or key == "type"

    def _name(self, p: CallBuilder, parts: Parts, key: str) -> Steps[None]:
        name = yield from p.take_json_string()
        if name is None:
            raise OddMember
        if key in parts.seen:
            parts.note_again(key, name)
        parts.seen[key] = name
        parts.name = name if name.strip() else None  # a blank name is none
        if parts.has_args and parts.name is not None and not parts.doubtful:
            p.begin(parts.name, parts.id).parts.append(parts.json)
            parts.value = Undecodable

    def _named_arguments(self, p: CallBuilder, parts: Parts, name: str) -> Steps[None]:
        """The key is the name."""
        parts.name = name
        return self._arguments(p, parts, name)

    def _arguments(self, p: CallBuilder, parts: Parts, key: str) -> Steps[None]:
        parts.has_args = True
        parts.seen[key] = ARGUMENTS
        if parts.name is None or parts.doubtful:
            parts.json, parts.value = yield from p.take_json()
        else:
            p.begin(parts.name, parts.id)
            parts.value = yield from p.read_arguments()

    def _other(self, p: CallBuilder, parts: Parts, key: str, bare: bool) -> Steps[None]:
        """A member that is neither the name nor the arguments."""
        may_doubt = bare and p.call is None and not self._is_of_call(key)
        if may_doubt and key not in self.names:
            self._doubt(p, parts, key)
        if isinstance(value := (yield from p.take_json())[1], Undecodable):
            raise OddMember
        if may_doubt and key in self.names and not is_no_name(key, value, self.names):
            self._doubt(p, parts, key)
        if key in self.ids and isinstance(value, str) and p.call is None and not parts.id:
            parts.id = value
        if parts.seen.get(key, ARGUMENTS) is not ARGUMENTS:
            parts.note_again(key, value)
            return
        parts.seen.setdefault(key, value)
        parts.members.append((key, value))

    def _doubt(self, p: CallBuilder, parts: Parts, key: str) -> None:
        """A key that no call has, where no marker stands before the envelope: the model's own JSON, unless what else
        it holds can only be a call of a declared tool."""
        tools = p.tools
        if tools is None or (parts.name is not None and parts.name not in tools):
            raise NotACall
        if parts.name is None:
            if not any(key in tools.kinds(tool.name) for tool in tools):
                raise NotACall
        elif key not in tools.kinds(parts.name):
            parts.doubtful = True


_CLOSER = re.compile(rf"{_B}[}}\])]").match
_COMMENTED = re.compile(r"/\*|//|#").search
_WORDS = seq(alt(literal("null"), literal("true"), literal("false")), lookahead(Pat(r"[,\] \t\r\n]", "")))
_ITEM = alt(Pat(r"[{\]\[\"0-9\ufeff-]", ""), _WORDS)  # what may stand in a list of calls, the odd things included
_BEGINS = Probe(alt(literal("{"), seq(literal("["), blanks(), _ITEM)))
_MEMBERS = ',"'  # what a member of an object begins with, behind its end
_VALUES = '"[-0123456789tfn'  # what a JSON value begins with that is no object
_EXTRA_IN_LIST = Probe(seq(blanks(), Pat(r"\}{1,3}+", r"\}{0,3}"), blanks(), lookahead(Pat(r"[,\]]", ""))))


class EnvelopeReader(BodyReader):
    begins = _BEGINS

    def __init__(self, body: Envelope, format: Format, around: Around) -> None:
        closes = templates(format.call[1])
        self.body = body
        self.names = frozenset(body.names)
        self.ids = frozenset(body.ids)
        self.outer = frozenset(body.outer)
        self.keys = Keys(body.names, body.args, body.ids)
        self._closes = bool(closes)
        self._patterns = EnvelopePatterns(body, closes)
        self._members = EnvelopeMembers(body)

    def quick(self, p: CallBuilder, start: int, bare: bool) -> WholeBlock | None:
        """The calls of a block and its end, if all of it is there and as usual."""
        buf, patterns = p.buf, self._patterns
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
            if close is None or type(value) is not dict or is_deep(value, buf, begin, end, p.limits.depth):
                return None
            id, name = usual.group("id", "name")
            over = close.start(1)
            behind = buf[end:over] if over > end else ""
            if '"' in behind and (id or name_in_id(behind.split('"')[-2], p.tools) not in ("", name)):
                return None  # a second id, or one that names another tool
            found.append((usual.start("object"), over + 1, name, buf[begin:end], value, id or ""))
            if close.lastindex == 1:
                break
            usual = patterns.usual(buf, close.end())
        else:
            return None
        last = patterns.list_ends[not bare](buf, close.end()) if listed else close
        if last is None:
            return None
        if not bare and self._closes:
            return found, last.end(), True
        if p.compiled.call_ends.extra_brackets is not None and _CLOSER(buf, last.end()):
            return None  # a bracket too many
        is_more = goes_on(buf, last.end(), p.ended)
        return None if is_more else (found, last.end(), is_more is not None)

    def is_over(self, p: CallBuilder, end: int) -> bool:
        return goes_on(p.buf, end, p.ended) is False

    def read_loose_calls(self, p: CallBuilder, text: str, closed: bool) -> list[LooseCall]:
        """The calls of a block that is not valid JSON, read loosely."""
        found = read_loose_envelopes(text, self.keys, tools=p.tools, depth=p.limits.depth, closed=closed)
        begun = p.call
        return [] if begun is not None and found and found[0].name != begun.name else found

    def tail(self, text: str, end: int) -> int:
        return self._patterns.tail(text, end).end()  # type: ignore[union-attr]

    def read(self, p: CallBuilder, *, bare: bool) -> Steps[None]:
        char = p.char() or (yield from p.peek())
        if char == "[":
            if not (yield from p.test(_BEGINS)) and not (p.ended and _BEGINS.is_begun(p.buf, p.pos)):
                raise NotACall
            p.advance()
            yield from self._list(p, bare)
        elif char != "{":
            raise NotACall
        elif self.outer:
            try:
                yield from self._outer(p)
            except LostJsonEnd:
                raise NotACall from None
        else:
            yield from self._run(p, bare)

    def _run(self, p: CallBuilder, bare: bool) -> Steps[None]:
        """One envelope, or several with only white space between them where a marker will close them."""
        closed = p.compiled.call_ends.close is not None and not bare
        while True:
            if (parts := (yield from self._envelope(p, bare))) is not None:
                yield from self._settle(p, parts, bare)
            if not closed or (p.char() or (yield from p.peek())) != "{":
                return

    def _list(self, p: CallBuilder, bare: bool) -> Steps[None]:
        """Calls in a list. The last is settled when it is known what stands behind the list."""
        first = p.index
        parts: Parts | None = None  # of a call that is not settled
        while True:
            char = p.char() or (yield from p.peek())
            if char == "]" and (p.index > first or not bare):
                p.output.drop_blanks()
                p.advance()
                if parts is not None:
                    yield from self._settle(p, parts, bare, listed=True)
                return
            if parts is not None:
                lost = char in _MEMBERS and (yield from is_member_lost(p))
                self._finish(p, parts, "," if lost else "")
                parts = None
                if lost:
                    return
            if char == "," and p.index > first:
                p.advance()
            elif char == "{":
                parts = yield from self._envelope(p, bare and p.index == first, listed=True)
            elif self._is_list_over(char, bare, p.index == first):
                return
            else:
                yield from refuse_item(p)

    def _is_list_over(self, char: str, bare: bool, is_first: bool) -> bool:
        """What stands here is no call: is the list over, though nothing closes it?"""
        if not char:
            raise Cut
        if bare and is_first:
            raise NotACall
        return not is_first and char not in _VALUES

    def _settle(self, p: CallBuilder, parts: Parts, bare: bool, *, listed: bool = False) -> Steps[None]:
        """The call that was read is over. What cannot stand behind it is part of what is wrong with it."""
        odd = ""
        if not self.outer:
            another = None if listed else self._patterns.another
            odd = yield from what_stands_behind(p, closed=self._closes and not bare, another=another)
        self._finish(p, parts, odd)

    def _finish(self, p: CallBuilder, parts: Parts, odd: str = "") -> None:
        if odd:
            assert p.call is not None
            p.problem("trailing_content", f"unexpected {odd!r} after the call", call=p.call.index)
        p.finish(parts.value, empty=not parts.has_args)

    def _outer(self, p: CallBuilder) -> Steps[None]:
        """`{"tool_calls": [...]}`: calls, or text for the user, under a key of their own."""
        p.advance()
        seen = False
        while (yield from p.peek()) == '"' and (yield from self._outer_member(p, seen)):
            seen = True
            if (yield from p.peek()) == ",":
                p.advance()
        if not seen:
            raise NotACall
        if (yield from p.peek()) == "}":
            p.advance()

    def _outer_member(self, p: CallBuilder, seen: bool) -> Steps[bool]:
        key = yield from p.take_json_string()
        if (yield from p.peek()) != ":":
            return False
        p.advance()
        char = yield from p.peek()
        if key in self.outer and char == "[":
            p.advance()
            yield from self._list(p, False)
        elif key in self.outer and char == "{":
            if (parts := (yield from self._envelope(p, False))) is not None:
                self._finish(p, parts)
        elif key == self.body.content and char == '"':
            text, value = yield from p.take_json()
            if isinstance(value, str):
                p.output.emit_json_text(value, p.at - len(text), p.at)
        elif seen and char:
            yield from p.take_json()
            p.problem("unknown_key", f"{(key or '')[:80]!r} stands beside the calls and had no use", blocking=False)
        else:
            return False
        return True

    def _envelope(self, p: CallBuilder, bare: bool, *, listed: bool = False) -> Steps[Parts | None]:
        """One call, from its `{` to its `}`, not settled yet; None where it was mended or refused."""
        p.begin_text()
        parts = Parts()
        usual = self._patterns.usual(p.buf, p.pos)
        p.advance(usual.end() - p.pos if usual else 1)
        try:
            if usual:
                parts.take_usual(usual)
                p.begin(usual["name"], parts.id)
                parts.value = yield from p.read_arguments()
            if usual and p.char() == "}":
                p.advance()
            else:
                yield from self._members.read(p, parts, bare, usual is not None)
        except LostJsonEnd as lost:
            if bare and p.call is None:
                raise NotACall from None
            yield from self._malformed(p, parts, lost)
            return None
        except Cut:
            self._begin_cut(p, parts, bare)
            raise
        if p.call is None:
            self._begin_late(p, parts, bare, listed)
        yield from self._end(p, parts, listed)
        return parts

    def _end(self, p: CallBuilder, parts: Parts, listed: bool) -> Steps[None]:
        """What stands in the envelope beside the call, and brackets too many behind it."""
        assert p.call is not None
        p.call.add_beside(*self._beside(p, parts))
        self._compare_ids(p, parts)
        p.end_text()
        receipts = len(p.call.repairs)
        yield from p.take_extra_closers(_EXTRA_IN_LIST if listed else None)
        if len(p.call.repairs) > receipts:  # what looks like an id may stand behind the bracket that is one too many
            p.call.add_beside(*parts.ids_behind(self.ids))

    def _compare_ids(self, p: CallBuilder, parts: Parts) -> None:
        """An id behind the arguments may name another tool, as one before them may."""
        call = p.call
        ids = [value for key, value in parts.members if key in self.ids and isinstance(value, str)]
        for said in [each for id in ids if id != parts.id and (each := name_in_id(id, p.tools))]:
            if call is not None and (two := two_names(said, call.name, p.tools, p.policy(call.name))):
                p.problem(*two, call=call.index)

    def _malformed(self, p: CallBuilder, parts: Parts, lost: LostJsonEnd) -> Steps[None]:
        """Not valid JSON. Where the envelope's own brackets can still be matched, its siblings live."""
        broken = Broken("invalid_json", "the call is not valid JSON; send it again as valid JSON")
        if not isinstance(lost, OddMember):
            raise broken
        try:
            yield from p.skip_brackets(["}"] * (1 + parts.inner))
        except LostJsonEnd:
            raise broken from None
        if p.reparse(closed=False):
            return
        if p.text.is_open and _COMMENTED(p.text_so_far()):
            raise broken  # a bracket in a comment is none
        p.fail(broken.code, broken.message)

    def _begin_cut(self, p: CallBuilder, parts: Parts, bare: bool) -> None:
        """What is known of a call that was cut off stays known."""
        if p.call is None and parts.name is not None and (not bare or self._is_declared(p, parts)):
            p.begin_arguments()
            p.begin(parts.name, parts.id)

    def _begin_late(self, p: CallBuilder, parts: Parts, bare: bool, listed: bool) -> None:
        """The envelope ended before name and arguments had both been seen: behind an opener still a call, and in a list
        if nothing but the name is missing, so that its siblings live."""
        name, repairs = parts.name or "", tuple[Repair, ...]()
        lacks_name = self._lacks_name(parts)
        if not name and p.policy("") != "off" and (not bare or lacks_name):
            name, repairs = find_name_of(parts, self.names, p.tools)
        is_whole = parts.has_args and (bool(name) or (listed and lacks_name)) and not parts.doubtful
        if bare and not (is_whole or self._is_declared(p, parts)):
            raise NotACall
        call = p.begin(name, parts.id, repairs)
        parts.value = Undecodable
        if parts.has_args:
            call.parts.append(parts.json)

    def _lacks_name(self, parts: Parts) -> bool:
        """Is all of an envelope there but what the name's key should hold?"""
        is_blank = any(key in self.names for key in parts.seen)
        return is_blank and parts.has_args and isinstance(parts.value, dict) and bool(parts.value)

    def _is_declared(self, p: CallBuilder, parts: Parts) -> bool:
        """Does an envelope without a marker before it name a declared tool, and hold nothing that is not a call's?"""
        if p.tools is None or parts.name is None or parts.name not in p.tools:
            return False
        if not parts.doubtful:
            return True
        declared = p.tools.kinds(parts.name).keys()
        return isinstance(parts.value, dict) and bool(parts.value) and parts.value.keys() <= declared

    def _beside(self, p: CallBuilder, parts: Parts) -> tuple[ExtraMember, ...]:
        """What stands beside name and arguments, and what each of it is."""
        if not parts.members and not parts.again:
            return ()
        roles = [(key, value, self._role(p, parts, key, value)) for key, value in parts.members]
        return (*parts.again, *[ExtraMember(key, value, role) for key, value, role in roles if role is not None])

    def _role(self, p: CallBuilder, parts: Parts, key: str, value: Any) -> Role | None:
        if p.call is not None and value == p.call.name and fold(key) in self.names:
            return None  # the name, under a key that is not quite its own
        role = role_of(key, value, self.keys, p.tools, name=parts.name or "", has_args=parts.has_args)
        is_no_tool = role == "stranger" and parts.name is None and is_no_name(key, value, self.names)
        return "known" if is_no_tool else role
