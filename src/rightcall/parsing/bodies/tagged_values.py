"""The values of tagged arguments: bare text up to its end, read as the schema says unless the tag does."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from json.encoder import encode_basestring as quoted
from string import punctuation
from typing import Any, Literal, NamedTuple

import msgspec

from rightcall.formats.spec import Marker, Params, marker_alternatives
from rightcall.parsing.argument_values import parse_by_kind
from rightcall.parsing.bodies.tags import Tags
from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Broken, Capture, Cut, Sink, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import (
    END,
    MAX_BLANKS,
    Holes,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    literal,
    longest_first,
    seq,
    template,
)
from rightcall.schema.places import allows_nesting, resolve
from rightcall.schema.places import kind as kind_of
from rightcall.types import Arguments, Event


def _first(marker: Marker) -> str:
    return marker_alternatives(marker)[0]


def _around(marker: str) -> tuple[int, int]:
    before, _, after = marker.partition("{key}")
    return len(before.lstrip()), len(after.rstrip())


_MOST_REFS = 32
_SIMPLE = {"string": "plain", "integer": "json", "number": "json", "boolean": "json"}


# An element: its tag, the text in it, the elements in it.
_Node = tuple[str, list[str], list["_Node"]]


def _followed(schema: Any, root: Any) -> Any:
    left = _MOST_REFS
    while left and isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        schema, left = resolve(schema["$ref"], root), left - 1
    return schema


def _said(schema: Any, word: str) -> Any:
    return schema.get(word) if isinstance(schema, dict) else None


def _options(schema: dict[str, Any], root: Any) -> list[Any]:
    """What the schema lets through: itself, or those that it names."""
    options = [each for word in ("anyOf", "oneOf") if isinstance(schema.get(word), list) for each in schema[word]]
    return [_followed(option, root) for option in options] or [schema]


def _is_of(schema: Any, wanted: str) -> bool:
    said = _said(schema, "type")
    return bool(said == wanted or (isinstance(said, list) and wanted in said))


class NestedTags:
    def __init__(self, body: Params) -> None:
        self.item = body.item
        opens, closes = _first(body.param), _first(body.value_close)
        self.tag = Probe(alt(template(opens), template(closes)))
        self.scan = Scan([("open", template(opens)), ("close", template(closes))])
        # An element with nothing but text in it, all there: one match instead of two searches.
        before, after = opens.strip().split("{key}")
        begins, ends = closes.strip().split("{key}")
        odd = re.escape(before[0])
        opening = re.escape(before) + r'([^<>"\s/]{1,64}+)' + re.escape(after)
        self.leaf = re.compile(f"{opening}([^{odd}]*+){re.escape(begins)}\\1{re.escape(ends)}").match
        # Where in a tag its name stands.
        self.names = {"open": _around(opens), "close": _around(closes)}

    def read(self, p: CallBuilder, key: str) -> Steps[tuple[str, Any]]:
        """The value of an argument, as JSON text and as a value. `pos` is behind its opening tag."""
        root: _Node = key, [], []
        stack = [root]
        while not self._grow(p, stack):
            yield
        return self._argument(p, root, p.call.name if p.call else "")

    def at_once(self, p: CallBuilder, key: str) -> tuple[str, Any] | None:
        """As `read`, if the value is all there; else `pos` is anywhere in it."""
        root: _Node = key, [], []
        return self._argument(p, root, p.call.name if p.call else "") if self._grow(p, [root]) else None

    def may_begin(self, p: CallBuilder, key: str) -> bool:
        """May the value of this argument be written in tags, though it may be a text as well?"""
        schema, root = self._schema(p, key, p.call.name if p.call else "")
        return allows_nesting(schema, root)

    def _argument(self, p: CallBuilder, root: _Node, name: str) -> tuple[str, Any]:
        return self._value(root, *self._schema(p, root[0], name), p.limits.depth)

    def _schema(self, p: CallBuilder, key: str, name: str) -> tuple[Any, Any]:
        """The schema of an argument, and of all of them."""
        tool = p.tools.get(name) if p.tools is not None else None
        parameters = tool.parameters if tool else {}
        properties = parameters.get("properties")
        return properties.get(key) if isinstance(properties, dict) else None, parameters

    def _grow(self, p: CallBuilder, stack: list[_Node]) -> bool:
        """Takes the elements that are there. False where more text is needed."""
        while stack:
            leaf = self.leaf(p.buf, p.pos)
            if leaf is not None and len(stack) <= p.limits.depth:
                tag, text = leaf.groups()
                stack[-1][2].append((tag, [text], []))
                p.take_match(leaf)
                continue
            found = (self.scan.ended if p.ended else self.scan.search)(p.buf, p.pos)
            end = found.start() if found else len(p.buf)
            if end > p.pos:
                stack[-1][1].append(p.buf[p.pos : end])
                p.advance(end - p.pos)
            if found is None or found.lastindex is None:
                if p.ended:
                    raise Cut
                return False
            self._take_tag(p, stack, self.scan.actions[found.lastindex], found.end())
        return True

    def _take_tag(self, p: CallBuilder, stack: list[_Node], action: str, end: int) -> None:
        before, after = self.names[action]
        name = p.buf[p.pos + before : end - after]
        p.advance(end - p.pos)
        if action == "open":
            node: _Node = name, [], []
            if len(stack) > p.limits.depth:
                raise Broken("too_deep", f"the arguments are nested deeper than {p.limits.depth} levels")
            stack[-1][2].append(node)
            stack.append(node)
        elif name == stack[-1][0]:
            stack.pop()
        else:
            raise Broken("unclosed_argument", f"the tag {stack[-1][0]!r} is not closed", f"/{stack[0][0]}")

    def _value(self, node: _Node, schema: Any, root: Any, depth: int) -> tuple[str, Any]:
        _, text, children = node
        if not children and len(text) == 1 and type(schema) is dict and len(schema) == 1:
            wanted = schema.get("type")
            kind = _SIMPLE.get(wanted) if type(wanted) is str else None
            if kind is not None:
                return (quoted(text[0]), text[0]) if kind == "plain" else parse_by_kind(text[0], kind, depth)[:2]
        return self._nested(node, self._fitting(_followed(schema, root), children, root), root, depth)

    def _nested(self, node: _Node, schema: Any, root: Any, depth: int) -> tuple[str, Any]:
        _, text, children = node
        wanted = _said(schema, "type")
        blank = not "".join(text).strip()
        if children and not blank:
            raise Broken("unexpected_text", f"text stands between the tags of {node[0]!r}; put each text into a tag")
        if (wanted == "array" and blank) or (wanted is None and self._is_list(children)):
            return self._list(children, _said(schema, "items"), root, depth)
        if (wanted == "object" and blank) or children:
            return self._object(children, _said(schema, "properties"), root, depth)
        json, value, _ = parse_by_kind("".join(text), kind_of(schema, root), depth)
        return json, value

    def _list(self, children: list[_Node], items: Any, root: Any, depth: int) -> tuple[str, Any]:
        made = [self._value(child, items, root, depth) for child in children]
        return "[" + ", ".join([json for json, _ in made]) + "]", [value for _, value in made]

    def _object(self, children: list[_Node], properties: Any, root: Any, depth: int) -> tuple[str, Any]:
        """Elements by their tags; those of one tag are a list."""
        named: dict[str, list[_Node]] = {}
        for child in children:
            if child[0] in named:
                named[child[0]].append(child)
            else:
                named[child[0]] = [child]
        pieces: list[str] = []
        values: dict[str, Any] = {}
        declared = properties if isinstance(properties, dict) else {}
        for tag, nodes in named.items():
            schema = declared.get(tag)
            if len(nodes) == 1:
                json, values[tag] = self._value(nodes[0], schema, root, depth)
            else:
                json, values[tag] = self._list(nodes, _said(_followed(schema, root), "items"), root, depth)
            pieces.append(f"{quoted(tag)}: {json}")
        return "{" + ", ".join(pieces) + "}", values

    def _fitting(self, schema: Any, children: list[_Node], root: Any) -> Any:
        """Of several types that the schema lets through, the one that elements such as these are written for."""
        if not children or not isinstance(schema, dict):
            return schema
        if type(schema.get("type")) is str and "anyOf" not in schema and "oneOf" not in schema:
            return schema
        options = _options(schema, root)
        order = ("array", "object") if self._is_list(children) else ("object", "array")
        fitting = ({**option, "type": wanted} for wanted in order for option in options if _is_of(option, wanted))
        return next(fitting, schema)

    def _is_list(self, children: list[_Node]) -> bool:
        return bool(children) and all(tag == self.item for tag, _, _ in children)


_SPACES, _RUN = f"[ \\t\\r]{{0,{MAX_BLANKS}}}+", f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}+"
_LINES = Pat(f"{_SPACES}\\n{_RUN}", f"{_SPACES}(?:\\n{_RUN})?+")  # blanks with a line break
Found = re.Match[str] | Literal[False]


class Doubt(NamedTuple):
    """Why the value may hold more than it was meant to."""

    code: str
    message: str


class _Seen(msgspec.Struct):
    """The format's own tags in the value so far."""

    closed: bool = False  # a value's close
    opened: bool = False  # the opener of an argument or of a call
    shut: bool = False  # a close of more than a value, of nothing that was opened here
    depth: int = 0  # how many calls were opened and not closed
    quoted: bool = False  # what opens quotes
    argument: str = ""  # the opener of this argument, which is one of the tool's or of a call that was opened here
    repeated: str = ""  # or one that was given before
    message: Capture | None = None  # what begins another message


# A value that ends in a tag character or in a tag without its last character may end in what is left of its close.
_ENDS_IN_TAG = re.compile(r"(?:[<>/|]|<[^<>\n]*+)\s*\Z").search
_LONGEST_TAG = 80
_LINE_BREAKS = ("\n", "\r\n")
_LINE_BREAK = frozenset("\r\n")
_MAY_BREAK = alt(*[literal(each) for each in _LINE_BREAKS], Pat("", ""))


class Value(msgspec.Struct, frozen=True):
    """One value being taken. With `give` each piece of it goes out as it comes."""

    key: str
    given: dict[str, Any]
    pieces: list[str]
    give: bool
    edges: list[bool]  # whether the close that ended it came with a line break of its own


class ValueEnd:
    """Finds the end of one argument's value. `line`: the line break of its own that its opener came with. `inline`: it
    came with none, and neither did those of an argument before it."""

    __slots__ = ("_is_plain", "chain", "end_of_call", "has_line", "is_named", "is_special", "param", "scan", "tags")

    def __init__(self, tags: Tags, param: Holes, key: str, line: str, quote: str, inline: bool) -> None:
        self.tags, self.param, self.is_named, self.has_line = tags, param, bool(key), bool(line)
        entries = [("close", pat) for pat in self._closes(key, line, quote, inline)]
        entries += (
            self._inside(line) if not quote else [("quote", literal(tags.body.quote[0]))] if tags.body.quote else []
        )
        self.scan = Scan(entries)
        heads = "".join({re.escape(pat.head) for _, pat in entries})
        self.is_special = re.compile(f"[{heads}]").search
        self._is_plain = re.compile(rf'[^"\\\x00-\x1f{heads}]{{1,{MAX_PIECE}}}+').fullmatch
        self.chain = Probe(self._chain())
        self.end_of_call = self._end_of_call()

    def _closes(self, key: str, line: str, quote: str, inline: bool) -> list[Pat]:
        body = self.tags.body
        own = marker_alternatives(body.value_close)
        texts = [text.replace("{key}", key) if key else text for text in own if text]
        cores = [seq(literal(quote), template(text)) if quote else template(text) for text in texts]
        # A line break before the close is the close's own where the opener had one, or where the format writes it so.
        with_break = any(text.startswith("\n") for text in texts) and (line or own[0].startswith("\n")) and not inline
        return [seq(literal(each), core) for each in _breaks(line) for core in cores] + cores if with_break else cores

    def _inside(self, line: str) -> list[tuple[str, Pat]]:
        tags = self.tags
        missing = tags.whole_params if tags.is_special or "" in marker_alternatives(tags.body.value_close) else []
        return [
            *(("next", seq(literal(each), pat)) for each in _breaks(line) for pat in missing if pat.head),
            *(
                ("shut", seq(literal(each), pat))
                for each in _breaks(line)
                for pat in tags.closing.after_arguments
                if pat.head
            ),
            *(("next" if tags.is_special else "param", pat) for pat in tags.whole_params if pat.head),
            *(("open", pat) for pat in tags.param_starts),
            *(("call", pat) for pat in tags.opening.whole),
            *(("shut", pat) for pat in tags.closing.all),
            *(("message", pat) for pat in tags.headers),
        ]

    def _chain(self) -> Pat:
        """What may follow a value: another argument, or the end of the body and of the call.

        The body's close is enough where nothing or a line break precedes it; behind blanks alone it is one only before
        more structure, so that a value which holds it is never cut off there.
        """
        tags = self.tags
        over = alt(*tags.closing.call, *tags.closing.section, *tags.opening.all, *tags.turns)
        ends = [seq(close, blanks(), over) for close in tags.closing.body]
        params = [*tags.param_pats(group="key"), *tags.damaged_params()]
        whole = seq(blanks(), alt(*params, *ends, over, END))
        return alt(whole, *tags.closing.body, *[seq(_LINES, close) for close in tags.closing.body])

    def _end_of_call(self) -> Probe:
        """What ends a value without a closing tag: all that closes the call, in lines that follow each other, and then
        the end of the turn (ollama#17914). One marker alone, or any other text, may be a part of the value."""
        closing = self.tags.closing
        groups = [alt(*closes) for closes in (closing.body, closing.call, closing.section) if closes]
        if len(groups) < 2:
            return Probe.never()
        first, *outer = groups
        markers = [part for closes in outer for part in (_MAY_BREAK, closes)]
        return Probe(seq(first, *markers, blanks(), alt(*self.tags.turns, END)))

    def at_once(self, p: CallBuilder, key: str, given: dict[str, Any]) -> tuple[str, bool] | None:
        """Takes a value and the marker that closes it, if all of that is here and as usual; else takes nothing. Its
        text, and whether the marker came with a line break of its own."""
        buf, scan = p.buf, self.scan
        found = (scan.ended if p.ended else scan.search)(buf, p.pos)
        if found is None or found.lastindex is None or scan.actions[found.lastindex] != "close":
            return None
        follows = self.chain.at(buf, found.end(), p.ended)
        if not follows or not self._is_close(p, follows, key, given):
            return None
        start, end = found.span()
        text = buf[p.pos : start]
        p.advance(end - p.pos)
        return text, buf.startswith(_LINE_BREAKS, start)

    def take(self, p: CallBuilder, value: Value) -> Steps[Doubt | None]:
        """Takes a value and the marker that closes it."""
        seen = _Seen()
        return self._in_message(p, value, seen) if self.tags.headers else self._take(p, value, seen)

    def _in_message(self, p: CallBuilder, value: Value, seen: _Seen) -> Steps[Doubt | None]:
        """A value that is not closed ends where another message begins: what stands in that is not the call's."""
        try:
            doubt = yield from self._take(p, value, seen)
        except (Cut, Broken):
            if seen.message is None:
                raise
            p.give_back(seen.message)
            message = f"the argument {value.key!r} is not closed, and another message begins; send the call again"
            raise Broken("ambiguous_end", message, f"/{value.key}") from None
        if seen.message is not None:
            p.drop(seen.message)
        return doubt

    def _take(self, p: CallBuilder, value: Value, seen: _Seen) -> Steps[Doubt | None]:
        scan = self.scan
        sink: Sink | None = None

        def record(text: str) -> None:
            value.pieces.append(text)
            if value.give:
                p.give(quoted(text)[1:-1], is_emitted=True)

        while True:
            found = (scan.ended if p.ended else scan.search)(p.buf, p.pos)
            end = found.start() if found else len(p.buf)
            if end > p.pos:
                self._add(p, p.buf[p.pos : end], value)
                p.advance(end - p.pos)
            if found is None or found.lastindex is None:
                if p.ended:
                    raise Cut
                sink = sink or self._sink(p, live=value.give and p.options.live)
                p.listen(sink, record)
                yield
                continue
            action = scan.actions[found.lastindex]
            if action == "close":
                size = found.end() - end
                follows = self.chain.at(p.buf, end + size, p.ended)
                if follows is None:
                    follows = yield from self._behind(self.chain, p, size)
                if self._is_close(p, follows, value.key, value.given):
                    value.edges.append(break_at(p) > 0)
                    p.advance(size)
                    return self._doubt(seen, value)
                seen.closed = True
            elif action == "next":
                if (yield from self._is_next(p, value)):
                    return self._doubt_of_next(value, seen)
                self._see(p, action, value, seen)
            elif action == "shut" and (yield from self._is_over(p, value, seen)):
                return None
            elif action != "shut" or p.buf[p.pos] not in _LINE_BREAK:
                if action == "open":
                    action = yield from self._opened(p)
                self._see(p, action, value, seen)
            # Not structure: its first character is the value's, and the search goes on behind it.
            self._add(p, p.buf[p.pos], value)
            p.advance()

    def _sink(self, p: CallBuilder, *, live: bool) -> Sink:
        """Consume what arrives inside a value, up to what may be a marker."""
        is_plain, is_special, search = self._is_plain, self.is_special, self.scan.search
        consumed, index = p.consumed, p.call.index if p.call is not None else 0

        def sink(piece: str) -> list[Event] | None:
            if len(consumed) >= MAX_PIECES:
                return None
            if not p.buf and is_plain(piece):
                consumed.append(piece)
                return [Arguments(index, piece)] if live else []
            if len(piece) > MAX_PIECE:
                return None
            text = p.buf + piece
            size = len(text)
            if is_special(text) and (found := search(text, 0)):
                if found.lastindex is not None:
                    return None
                size = found.start()
            p.consume(text, size)
            return [Arguments(index, quoted(text[:size])[1:-1])] if live and size else []

        return sink

    def _add(self, p: CallBuilder, text: str, value: Value) -> None:
        value.pieces.append(text)
        if value.give:
            p.give(quoted(text)[1:-1])

    def _behind(self, probe: Probe, p: CallBuilder, size: int) -> Steps[Found]:
        """Does this follow what stands here, of that size?"""
        while True:
            found = probe.at(p.buf, p.pos + size, p.ended)
            if found is not None:
                return found
            yield

    def _is_close(self, p: CallBuilder, follows: Found, key: str, given: dict[str, Any]) -> bool:
        """Is a close before this really one? A repeated key is no argument that could follow, nor is an undeclared one
        whose opening tag is damaged."""
        if not follows or not follows.lastindex or self.is_named:
            # Where the close has the argument's own name, a repeated one is for the call to tell.
            return bool(follows)
        group = follows.lastindex
        if (is_damaged := group > len(self.tags.params)) and follows[group - 1] is not None:
            group -= 1  # the last group is the tag before the value
        other = self.tags.plain(follows[group])
        return other != key and other not in given and not (is_damaged and p.kind(other) is None)

    def _is_repeated(self, key: str, value: Value) -> bool:
        return key in value.given or key == value.key

    def _is_next(self, p: CallBuilder, value: Value) -> Steps[bool]:
        """The next argument's opener where a close was due: forgiven if its key is not yet given, and declared
        or told by a special token."""
        while True:
            line = break_at(p)
            found = self.param.probe.at(p.buf, p.pos + line, p.ended)
            if found is not None:
                break
            yield
        if not found:
            return False
        key = self.tags.plain(self.param.fill(found)["key"])
        is_known = self.tags.is_special or p.kind(key) is not None
        if self._is_repeated(key, value) or not is_known or p.call is None:
            return False
        p.advance(line)
        value.edges.append(True)  # the line break before the tag is lost with it
        _note_unclosed(p, f"the argument before {key!r} was not closed")
        return True

    def _is_over(self, p: CallBuilder, value: Value, seen: _Seen) -> Steps[bool]:
        """Does the end of the call certainly replace the closing tag of the value?"""
        while True:
            line = break_at(p)
            found = self.end_of_call.at(p.buf, p.pos + line, p.ended)
            if found is not None:
                break
            yield
        is_edge_unsure = not self.has_line and value.pieces[-1:] != [] and value.pieces[-1].endswith("\n")
        if not found or p.call is None or is_edge_unsure or self._doubt_of_next(value, seen) is not None:
            return False
        p.advance(line)
        value.edges.append(True)  # the line break before the tag is lost with it
        _note_unclosed(p, f"the argument {value.key!r} was not closed before the end of the call")
        return True

    def _opened(self, p: CallBuilder) -> Steps[str]:
        """The beginning of an argument's opener: is the rest of it here too? However the text is cut."""
        while True:
            found = self.param.probe.at(p.buf, p.pos, p.ended)
            if found is not None:
                return "param" if found else "open"
            yield

    def _see(self, p: CallBuilder, action: str, value: Value, seen: _Seen) -> None:
        """A tag of the format's own that does not end the value."""
        if action == "shut":
            seen.shut = seen.shut or not seen.depth
            seen.depth = max(0, seen.depth - 1)
        elif action == "quote":
            seen.quoted = True
        elif action == "message":
            seen.message = p.capture() if seen.message is None else seen.message
        elif action == "call":
            if seen.closed or seen.shut:
                raise Broken("ambiguous_end", *swallowed(value.key, "another call"))
            seen.opened, seen.depth = True, seen.depth + 1
        else:
            seen.opened = True
            at = self.param.probe.whole(p.buf, p.pos + break_at(p)) if action != "open" else None
            key = self.tags.plain(self.param.fill(at)["key"]) if at else ""
            if key and self._is_repeated(key, value):
                seen.repeated = key
            # Behind the opener of a call that nothing closed, the argument is that call's, whatever tool it is of.
            if key and (p.tools is None or seen.depth or p.kind(key) is not None):
                seen.argument = key

    def _doubt(self, seen: _Seen, value: Value) -> Doubt | None:
        if seen.repeated and seen.closed:
            return Doubt("duplicate_argument", f"the argument {seen.repeated!r} is given twice; send it once")
        if seen.argument or seen.quoted or (seen.opened and (seen.closed or seen.shut)):
            other = f"the argument {seen.argument!r}" if seen.argument else "another argument or call"
            return Doubt("ambiguous_end", swallowed(value.key, other)[0])
        if (seen.closed or seen.shut) and self.tags.reopens("".join(value.pieces)):
            return Doubt("ambiguous_end", swallowed(value.key, "another call")[0])
        if seen.closed and self.tags.ends_in_close("".join(value.pieces), value.key):
            message = f"the argument {value.key!r} ends with two closing tags, so that its end is not certain"
            return Doubt("ambiguous_end", f"{message}; close it once")
        return None

    def _doubt_of_next(self, value: Value, seen: _Seen) -> Doubt | None:
        """A value that the next argument ended: does what may be left of its close stand in it?"""
        if seen.closed or seen.shut or seen.opened or _ENDS_IN_TAG("".join(value.pieces)[-_LONGEST_TAG:]):
            message = f"the argument {value.key!r} is not closed as it should be; send the call again"
            return Doubt("ambiguous_end", message)
        return None


def _note_unclosed(p: CallBuilder, message: str) -> None:
    if p.call is not None:
        p.problem("unclosed_argument", message, blocking=False, call=p.call.index)


def break_at(p: CallBuilder) -> int:
    """How long the line break is that stands here; 0 where none does."""
    char = p.buf[p.pos : p.pos + 1]
    return 1 if char == "\n" else 2 if char == "\r" and p.buf.startswith("\r\n", p.pos) else 0


def _breaks(line: str) -> list[str]:
    """The line breaks that a close may have of its own, where the opener had this one."""
    return ["\r\n", "\n"] if line == "\r\n" else ["\n"]


def swallowed(key: str, other: str) -> tuple[str, str]:
    """What is said of an argument that holds another one or a call, and where it stands."""
    cure = "close each argument and each call, and write no tags of this format into a value"
    return f"the argument {key!r} holds what looks like {other}, so that its end is not certain; {cure}", f"/{key}"


_TEXTUAL = frozenset(("plain", "string", "nullable"))
_MANY = 64  # ends of values that are kept: keys come from the model


class TaggedValues:
    """Reads the value of one argument at a time, behind its opening tag and up to its end."""

    def __init__(self, body: Params, tags: Tags, param: Holes) -> None:
        self._tags, self._param, self._quotes = tags, param, body.quote
        self._opens_line = any(text.endswith("\n") for text in marker_alternatives(body.param))
        self._is_inline = self._opens_line and not marker_alternatives(body.param)[0].endswith("\n")
        self._nested = NestedTags(body) if body.item else None
        self._keyed = "{key}" in "".join(marker_alternatives(body.value_close))
        self._ends: dict[tuple[str, str, str, bool], ValueEnd] = {}

    def at_once(self, p: CallBuilder, key: str, said: str | None, values: dict[str, Any]) -> tuple[Any] | None:
        """As `read`, if the value is all there and as usual; else nothing is taken."""
        declared = (p.call.kinds.get(key) if p.call is not None else None) or p.kind_by_another_name(key)
        kind = declared or "any" if said is None else self._kind(declared, said)
        start, nested = p.pos, self._nested
        tag = nested.tag.at(p.buf, start, p.ended) if nested is not None and kind != "plain" else False
        if tag is not False:
            made = nested.at_once(p, key) if tag and nested is not None and kind not in _TEXTUAL else None
        else:
            made = self._text_at_once(p, key, kind, values)
        if made is None:
            p.advance(start - p.pos)
            return None
        p.give((", " if values else "{") + quoted(key) + ": " + made[0])
        return made[1:]

    def _text_at_once(self, p: CallBuilder, key: str, kind: str, values: dict[str, Any]) -> tuple[str, Any] | None:
        """JSON and value of bare text that is all there."""
        start, line = p.pos, ""
        if self._quotes and self._may_be_quoted(p):
            return None
        if self._opens_line:
            if p.buf[start : start + 2] in ("", "\r") and not p.ended:
                return None
            p.advance(break_at(p))
            line = p.buf[start : p.pos]
        found = self._end_of(p, key, line, "").at_once(p, key, values)
        if found is None:
            return None
        text = self._whole_text(p, found[0], line, found[1]) if self._opens_line else found[0]
        return (quoted(text), text) if kind == "plain" else self._typed(p, key, text, kind)

    def read(self, p: CallBuilder, key: str, said: str | None, values: dict[str, Any]) -> Steps[Any]:
        """Read the value that begins here; `said` is the type that its tag says, `values` what the call has so far."""
        prefix = (", " if values else "{") + quoted(key) + ": "
        kind = self._kind(p.kind(key) or p.kind_by_another_name(key), said)
        if self._nested is not None and (yield from self._is_nested(p, self._nested, key, kind)):
            json, value = yield from self._nested.read(p, key)
            p.give(prefix + json)
            return value
        line = (yield from _line_break(p)) if self._opens_line else ""
        quote = (yield from self._quote(p)) if self._quotes else ""
        taken = Value(key, values, [], kind == "plain" and not (line and self._is_inline), [])
        return (yield from self._text(p, taken, prefix, kind, line, quote))

    def _is_nested(self, p: CallBuilder, nested: NestedTags, key: str, kind: str) -> Steps[bool]:
        """Is the value written in tags? One that may be a text only where its schema lets it be more."""
        if kind in _TEXTUAL and (kind == "plain" or not nested.may_begin(p, key)):
            return False
        found = nested.tag.at(p.buf, p.pos, p.ended)
        return bool(found) or (found is None and bool((yield from p.test(nested.tag))))

    def _text(self, p: CallBuilder, taken: Value, prefix: str, kind: str, line: str, quote: str) -> Steps[Any]:
        """A value that is bare text. What is declared as plain text goes out as it comes."""
        key = taken.key
        if taken.give:
            p.give(prefix + '"')
        doubt = yield from self._end_of(p, key, line, quote).take(p, taken)
        value: Any = self._whole_text(p, "".join(taken.pieces), line, True in taken.edges)
        if taken.give:
            p.give('"')
        else:
            json, value = self._typed(p, key, value, "string" if quote and kind == "any" else kind)
            p.give(prefix + json)
        if doubt is not None and p.call is not None:
            p.problem(doubt.code, doubt.message, "/" + key, call=p.call.index)
        return value

    def _whole_text(self, p: CallBuilder, text: str, line: str, has_edge: bool) -> str:
        """The text between the tags, of which the opening one came with this line break, the other with one or not."""
        if self._opens_line and not line and text and p.call is not None and not has_edge:
            p.call.inline = True
        # A line break at one edge alone is the value's own.
        return line + text if line and self._is_inline and not has_edge else text

    def _typed(self, p: CallBuilder, key: str, text: str, kind: str) -> tuple[str, Any]:
        json, value, wrong = parse_by_kind(text, kind, p.limits.depth)
        # A wrong type is for the check of the whole call to tell, which may also mend it.
        if wrong is not None and wrong[0] != "wrong_type" and p.call is not None:
            p.problem(wrong[0], f"{key}: {wrong[1]}", "/" + key, call=p.call.index)
            p.call.checked = True
        return json, value

    @staticmethod
    def _kind(declared: str | None, said: str | None) -> str:
        """A type in the text wins; where it says string and so does the schema, the schema says more."""
        return declared or "any" if said is None or (said == "string" and declared == "plain") else said

    def _quote(self, p: CallBuilder) -> Steps[str]:
        """What closes the quotes around the value, if it is quoted."""
        assert self._quotes is not None
        opens, closes = self._quotes
        while self._may_be_quoted(p):
            if p.buf.startswith(opens, p.pos):
                p.advance(len(opens))
                return closes
            if p.ended:
                break
            yield
        return ""

    def _may_be_quoted(self, p: CallBuilder) -> bool:
        assert self._quotes is not None
        opens = self._quotes[0]
        return opens.startswith(p.buf[p.pos : p.pos + len(opens)])

    def _end_of(self, p: CallBuilder, key: str, line: str, quote: str) -> ValueEnd:
        """Where the value of an argument ends."""
        is_inline = self._opens_line and not line and p.call is not None and p.call.inline
        which = (key if self._keyed else "", line, quote, is_inline)
        found = self._ends.get(which)
        if found is None:
            if len(self._ends) > _MANY:
                self._ends.clear()
            found = self._ends[which] = ValueEnd(self._tags, self._param, *which)
        return found


def _line_break(p: CallBuilder) -> Steps[str]:
    """The line break that stands here, taken; "" where none does."""
    while p.buf[p.pos : p.pos + 2] in ("", "\r") and not p.ended:
        yield
    size = break_at(p)
    p.advance(size)
    return p.buf[p.pos - size : p.pos]


class SwallowedArguments:
    """Finds raw values that contain another argument, because its opening tag and the tag before it were damaged.

        owl</paramter>\n<paramete=n>3     owl\n<parameter name="n3     owl</parameter>\nn3     owl\nn">3

    Only a declared argument that the call lacks can be inside a value, and its name counts only next to a remainder of
    a tag, so that values about tags or in HTML are accepted. An opening tag in another spelling counts with any
    declared argument, and so does a closing tag of the value's own kind before a line break or another tag. Without
    declared tools an opening tag that lost one character counts.
    """

    def __init__(self, body: Params, tags: Tags) -> None:
        params = [text.partition("{key}") for text in longest_first(body.param)]
        starts = dict.fromkeys([before.partition("{")[0].rstrip() for before, _, _ in params])
        self._heads = [(head, {head[i : i + 2] for i in range(len(head) - 1)}) for head in starts if len(head) > 4]
        self._tails = tuple({tail for _, _, each in params if (tail := each.partition("{")[0].rstrip())})
        self._is_inline = "\n" not in marker_alternatives(body.value_close)[0]
        signs = set("".join([*starts, *self._tails])) & set(punctuation) - {"_"}
        self._has_sign = re.compile(f"[{re.escape(''.join(sorted(signs)))}]" if signs else "(?!)").search
        self._remove_tags = re.compile(alt(*tags.whole_params, *tags.closers, *tags.closing.all).whole).sub
        close = f"(?:{alt(*tags.closers).whole})"
        self._is_reopened = re.compile(rf"{close}(?:<|[\r\n]++[^\r\n])").search
        self._ends_in_close = re.compile(rf"{close}[\r\n]{{0,4}}+\Z").search
        torn = [rf"(?:{re.escape(head[0])}{_one_missing(head[1:])}|{re.escape(head)})\w" for head, _ in self._heads]
        self._has_torn_tag = re.compile("|".join(torn) or "(?!)").search
        names = [match[0] for head in starts if (match := _TAG_NAME(head)) and len(match[0]) >= _LEAST_NAME]
        self._find_other_tags = re.compile(
            f"(?:{'|'.join(map(re.escape, names))}){_OTHER_KEY}" if names else "(?!)"
        ).finditer

    def find(self, values: dict[str, Any], declared: Collection[str] | None) -> str:
        """Return the name of the first argument whose value seems to contain another one, or ""."""
        missing = [key for key in declared or () if key and key not in values]
        for key, value in values.items():
            if type(value) is str and self._has_sign(value) and self._is_ambiguous(value, missing, declared):
                return key
        return ""

    def _is_ambiguous(self, value: str, missing: list[str], declared: Collection[str] | None) -> bool:
        rest = self._remove_tags("\n", value)  # complete tags are examined where the value ends
        if declared is None:
            return self._has_torn_tag(rest) is not None
        if self._is_reopened(value) is not None or any(tag[1] in declared for tag in self._find_other_tags(value)):
            return True
        return any(
            any(self._is_in_tag(value, *place) for place in _find_all(key, value))
            or any(self._is_behind_head(rest, *place) for place in _find_all(key, rest))
            for key in missing
        )

    def _is_in_tag(self, text: str, start: int, end: int) -> bool:
        """Is the name directly after a closing tag, or before the rest of an opening tag?"""
        before = text[max(0, start - _LONGEST_TAG) : start]
        if self._ends_in_close(before):
            return True
        is_first = before[-1:] in ("", "\n") or (
            self._is_inline and text[end : end + 1] == '"' and bool(_is_text(before))
        )
        return is_first and text.startswith(self._tails, end)

    def _is_behind_head(self, text: str, start: int, end: int) -> bool:
        """Is the name directly after most of an opening tag, of which the first or the last sign is there?"""
        has_tail = text.startswith(self._tails, end)
        for head, pairs in self._heads:
            before = text[max(0, start - len(head)) : start]
            is_tag = before[-1:] not in _BLANK_ENDS and (has_tail or head[0] in before)
            if is_tag and sum(pair in before for pair in pairs) >= _MOST_OF_A_TAG * len(pairs):
                return True
        return False


_MOST_PLACES = 1_024  # occurrences of a name that are examined in one value
_MOST_OF_A_TAG = 0.6  # this share of the pairs of letters remains in a tag that lost two characters
_TAG_NAME = re.compile(r"[^\s=>\"']*+").match  # of an opening tag, with what is before it
_LEAST_NAME = 8  # characters of it that tell it from other text
_OTHER_KEY = r"(?:\W{1,3}(?:name|key))?\W{1,3}([\w.$\-]{1,64}+)"  # `name="rows"`, ` rows`, `='rows'`, `: rows`
_BLANK_ENDS = ("", " ", "\t", "\r", "\n")
_is_text = re.compile(r"(?:\A|[\n>]|</)[^\"'<>=\n]*+\Z").search


def _find_all(key: str, text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in islice(re.finditer(re.escape(key), text), _MOST_PLACES))


def _one_missing(text: str) -> str:
    """Return a pattern of the text without one of its characters."""
    found = ""
    for i in range(len(text) - 2, -1, -1):
        found = f"(?:{re.escape(text[i + 1 :])}|{re.escape(text[i])}{found})"
    return found
