"""The values of tagged arguments: bare text up to its end, read as the schema says unless the tag does."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from json.encoder import encode_basestring as quoted
from string import punctuation
from typing import Any, NamedTuple

import msgspec

from rightcall.formats.spec import Marker, Params, marker_alternatives
from rightcall.parsing.argument_values import parse_by_kind, text_sink
from rightcall.parsing.bodies.tags import Tags
from rightcall.parsing.buffer import Broken, Capture, Cut, Steps
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
from rightcall.parsing.values.notation import easy_without
from rightcall.schema.places import Places, allows_nesting, allows_type_of
from rightcall.schema.places import kind as kind_of


def _first(marker: Marker) -> str:
    """Return the first alternative of a marker."""
    return marker_alternatives(marker)[0]


def _around(marker: str) -> tuple[int, int]:
    """Return how many characters a marker has before and after its key, without white space at its edges."""
    before, _, after = marker.partition("{key}")
    return len(before.lstrip()), len(after.rstrip())


# An element: its tag, the text in it, the elements in it.
_Node = tuple[str, list[str], list["_Node"]]
_NO_PLACES = Places({})


class NestedTags:
    """Reads a value that is written in tags of its own, as MiniMax M3 writes lists and objects."""

    def __init__(self, body: Params) -> None:
        self.item = body.item
        tags = {"open": _first(body.param), "close": _first(body.value_close)}
        self.tag = Probe(alt(*map(template, tags.values())))
        self.scan = Scan([(action, template(tag)) for action, tag in tags.items()])
        # Where in a tag its name is.
        self.names = {action: _around(tag) for action, tag in tags.items()}

    def read(self, builder: CallBuilder, key: str) -> Steps[tuple[str, Any]]:
        """Take the value of the argument `key` behind its opening tag, with its closing tag, and return its JSON and
        its value; nothing is given to the call. Raises `Broken` for a closing tag of another name, for text beside
        elements in one tag or too much depth, `Cut`, with all text taken, if the text ends first. Text of another type
        than declared is a string."""
        root: _Node = key, [], []
        stack = [root]
        while stack:
            found = (self.scan.ended if builder.ended else self.scan.search)(builder.buf, builder.pos)
            end = found.start() if found else len(builder.buf)
            if end > builder.pos:
                stack[-1][1].append(builder.buf[builder.pos : end])
                builder.advance(end - builder.pos)
            if found is None or found.lastindex is None:
                if builder.ended:
                    raise Cut
                yield
                continue
            action = self.scan.actions[found.lastindex]
            before, after = self.names[action]
            name = builder.buf[builder.pos + before : found.end() - after]
            builder.take_match(found)
            if action == "open":
                if len(stack) > builder.limits.depth:
                    raise Broken("too_deep", f"the arguments are nested deeper than {builder.limits.depth} levels")
                node: _Node = name, [], []
                stack[-1][2].append(node)
                stack.append(node)
            elif name == stack[-1][0]:
                stack.pop()
            else:
                raise Broken("unclosed_argument", f"the tag {stack[-1][0]!r} is not closed", f"/{key}")
        places = self._places(builder)
        return self._value(root, places.at([key]), places, builder.limits.depth)

    def may_begin(self, builder: CallBuilder, key: str) -> bool:
        """Return whether the schema of the argument `key` accepts a list or an object, so that tags in its value are
        structure, not text. True also if no type is declared, for an undeclared argument and for an unknown tool."""
        places = self._places(builder)
        return allows_nesting(places.at([key]), places.refs)

    def _places(self, builder: CallBuilder) -> Places:
        """Return the `Places` of the parameters of the current call's tool, empty for an unknown tool, without a call
        and without declared tools."""
        tool = builder.tools.get(builder.call.name) if builder.tools is not None and builder.call is not None else None
        return Places(tool.parameters) if tool else _NO_PLACES

    def _value(self, node: _Node, schema: Any, places: Places, depth: int) -> tuple[str, Any]:
        """Return JSON and value of an element. Without elements in it, it is its text by the schema's type (a string,
        without a problem, if it is none of that type; blank: an empty list or object if that is the type), with `depth`
        as the limit for JSON. Elements are a list if the schema accepts one and all are named `item` or it accepts no
        object; else an object. Raises `Broken` if it, or an element in it, has both text and elements."""
        tag, pieces, children = node
        text = "".join(pieces)
        is_blank = not text.strip()
        if children and not is_blank:
            raise Broken("unexpected_text", f"text stands between the tags of {tag!r}; put each text into a tag")
        wanted = schema.get("type") if isinstance(schema, dict) and is_blank else None
        if not children and wanted not in ("array", "object"):
            return parse_by_kind(text, kind_of(schema, places.refs), depth)[:2]
        is_list = wanted == "array"
        if children and allows_type_of(schema, [], places.refs):
            is_list = all(name == self.item for name, _, _ in children) or not allows_type_of(schema, {}, places.refs)
        return (self._list if is_list else self._object)(children, schema, places, depth)

    def _list(self, children: list[_Node], schema: Any, places: Places, depth: int) -> tuple[str, Any]:
        """Return JSON and value of a list whose items are these elements, whatever their tags, as in SGLang's
        minimax_m3.py. `schema`: that of the list; `places`, `depth`, and `Broken`: as in `_value`."""
        made = [self._value(child, places.inner(schema, at), places, depth) for at, child in enumerate(children)]
        return "[" + ", ".join([json for json, _ in made]) + "]", [value for _, value in made]

    def _object(self, children: list[_Node], schema: Any, places: Places, depth: int) -> tuple[str, Any]:
        """Return JSON and value of an object whose members are these elements, with their tags as keys; several of one
        tag are one member, a list, at the place of the first (lablup/mlxcel#770). `schema`: that of the object;
        `places`, `depth`, and `Broken`: as in `_value`."""
        named: dict[str, list[_Node]] = {}
        for child in children:
            named.setdefault(child[0], []).append(child)
        pieces: list[str] = []
        values: dict[str, Any] = {}
        for tag, nodes in named.items():
            inner = places.inner(schema, tag)
            made = self._value(nodes[0], inner, places, depth) if len(nodes) == 1 else None
            json, values[tag] = made or self._list(nodes, inner, places, depth)
            pieces.append(f"{quoted(tag)}: {json}")
        return "{" + ", ".join(pieces) + "}", values


_SPACES, _RUN = f"[ \\t\\r]{{0,{MAX_BLANKS}}}+", f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}+"
_LINES = Pat(f"{_SPACES}\\n{_RUN}", f"{_SPACES}(?:\\n{_RUN})?+")  # blanks with a line break


class Doubt(NamedTuple):
    """Why the value may hold more than it was meant to."""

    code: str
    message: str


_LONGEST_TAG = 80
_LINE_BREAK = frozenset("\r\n")
_BREAK = alt(literal("\r\n"), literal("\n"))
_MAY_BREAK = alt(_BREAK, Pat("", ""))
_BREAK_PROBE = Probe(_BREAK)


class Value(msgspec.Struct):
    """One value being taken, and the format's own tags in it so far.

    - `given`: the arguments before it.
    - `is_live`: each piece of it is emitted as it arrives.
    - `has_edge`: the marker that ended it came with a line break of its own.
    - `has_close`: it contains a value's close; `has_outer_close`: a close of more than a value, of nothing that was
      opened in it; `has_opener`: the opener of an argument or of a call; `has_quote`: what opens quotes.
    - `depth`: how many calls were opened in it and not closed.
    - `argument`: an argument opened in it, which is one of the tool's or of a call that was opened in it.
    - `repeated`: an argument opened in it that was given before.
    - `message`: where another message begins in it.
    """

    key: str
    given: dict[str, Any]
    is_live: bool
    pieces: list[str] = []
    has_edge: bool = False
    has_close: bool = False
    has_outer_close: bool = False
    has_opener: bool = False
    has_quote: bool = False
    depth: int = 0
    argument: str = ""
    repeated: str = ""
    message: Capture | None = None

    def has_argument(self, key: str) -> bool:
        """Return whether `key` is this argument or one that was given before it."""
        return key == self.key or key in self.given


class ValueEnd:
    """Finds the end of one argument's value. `line`: the line break of its own that its opener came with. `inline`: it
    came with none, and neither did those of an argument before it."""

    __slots__ = (
        *("chain", "easy", "end_of_call", "ends_in_tag", "has_line", "is_named", "is_special", "param", "scan"),
        "tags",
    )

    def __init__(self, tags: Tags, param: Holes, key: str, line: str, quote: str, inline: bool) -> None:
        self.tags, self.param, self.is_named, self.has_line = tags, param, bool(key), bool(line)
        entries = [("close", pat) for pat in self._closes(key, line, quote, inline)]
        entries += (
            self._inside(line) if not quote else [("quote", literal(tags.body.quote[0]))] if tags.body.quote else []
        )
        self.scan = Scan(entries)
        heads = "".join(sorted({pat.head for _, pat in entries}))
        self.is_special = re.compile(f"[{re.escape(heads)}]").search
        self.easy = easy_without(heads)
        self.chain = Probe(self._chain())
        self.end_of_call = self._end_of_call()
        self.ends_in_tag = self._remainder_of_close()

    def _remainder_of_close(self) -> Callable[[str], re.Match[str] | None]:
        """Return a search function for what may be left of a damaged closing tag at the end of a value, before white
        space: one of `<>/|`, a `<` with other text behind it in its line and no further `<` or `>`, the first four
        characters of a closing tag in the last line, or its name if that has at least eight characters."""
        closes = [text.partition("{")[0].strip() for text in marker_alternatives(self.tags.body.value_close)]
        begins = [re.escape(close[:4]) + r"[^\n]*+" for close in closes if close]
        names = [re.escape(name) for close in closes if len(name := close.strip("<>/|")) >= _LEAST_NAME]
        return re.compile(rf"(?:[<>/|]|<[^<>\n]*+|{'|'.join([*begins, *names]) or '(?!)'})\s*\Z").search

    def _closes(self, key: str, line: str, quote: str, inline: bool) -> list[Pat]:
        """Return the patterns of what closes this value: its closing tags but an empty one, with `key` in the hole for
        it unless `key` is "", behind the closing `quote`. Each also has a pattern with a line break before it, if the
        format writes one before a closing tag, the opener had one (`line`, "" for none) or the first closing tag has
        it, and not `inline`."""
        body = self.tags.body
        own = marker_alternatives(body.value_close)
        texts = [text.replace("{key}", key) if key else text for text in own if text]
        cores = [seq(literal(quote), template(text)) if quote else template(text) for text in texts]
        # A line break before the close is the close's own where the opener had one, or where the format writes it so.
        with_break = any(text.startswith("\n") for text in texts) and (line or own[0].startswith("\n")) and not inline
        return [seq(literal(each), core) for each in _breaks(line) for core in cores] + cores if with_break else cores

    def _inside(self, line: str) -> list[tuple[str, Pat]]:
        """Return the format's other tags that may be in a value, each with what it means there: "next" (an argument's
        opening tag that may end the value: a special token, or, where the closing tag may be missing, one behind a line
        break), "param" (one that does not), "open" (the beginning of one), "shut" (a closing marker of a body, call or
        section), "call" or "message". The line break before a "next" or "shut" may belong to the pattern."""
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
        """Return the pattern of what must follow a closing tag for it to end the value: an argument's opening tag (also
        damaged; its key is a group), a closing marker, an opener of a call or section, or the end of the turn or the
        text.

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
        """Return the probe for what ends a value without its closing tag: the closing markers of body, call and
        section, as far as the format has them, each after at most one line break, and then the end of the turn or text
        (ollama#17914). One marker alone may be a part of the value: with fewer than two of these three the probe never
        matches."""
        closing = self.tags.closing
        groups = [alt(*closes) for closes in (closing.body, closing.call, closing.section) if closes]
        if len(groups) < 2:
            return Probe.never()
        first, *outer = groups
        markers = [part for closes in outer for part in (_MAY_BREAK, closes)]
        return Probe(seq(first, *markers, blanks(), alt(*self.tags.turns, END)))

    def find(self, builder: CallBuilder, start: int, key: str, given: dict[str, Any]) -> re.Match[str] | None:
        """Return the match of the closing tag that ends the value of argument `key` at index `start` of a text that is
        over. Return None if there is none, another tag of the format is before it, or what follows does not show that
        it ends the value; the end of the text does not show it here. `given`: the arguments so far. Nothing is
        taken."""
        found = self.scan.ended(builder.buf, start)
        if found is None or not found.lastindex or self.scan.actions[found.lastindex] != "close":
            return None
        follows = self.chain.whole(builder.buf, found.end())
        return found if self._is_close(builder, follows, key, given) else None

    def take(self, builder: CallBuilder, value: Value) -> Steps[Doubt | None]:
        """Take a value into `value` up to and with its closing tag, or up to what shows that this tag is missing.
        Return why it may hold too much, or None if its end is certain. Raises `Cut` if the text ends in it, `Broken` if
        another call begins behind a closing tag in it; if another message began before, gives the text back from there
        on and raises `Broken` in both cases."""
        try:
            return (yield from self._take(builder, value))
        except (Cut, Broken):
            if value.message is None:
                raise
            builder.give_back(value.message)
            value.message = None
            message = f"the argument {value.key!r} is not closed, and another message begins; send the call again"
            raise Broken("ambiguous_end", message, f"/{value.key}") from None
        finally:
            if value.message is not None:
                builder.drop(value.message)

    def _take(self, builder: CallBuilder, value: Value) -> Steps[Doubt | None]:
        """Take a value and return its doubt, as `take` does, but raise `Cut` or `Broken` also if another message has
        begun in the value: only a capture is begun there (`value.message`), which the caller ends."""
        scan, sink = self.scan, None
        while True:
            found = (scan.ended if builder.ended else scan.search)(builder.buf, builder.pos)
            end = found.start() if found else len(builder.buf)
            if end > builder.pos:
                self._add(builder, builder.buf[builder.pos : end], value)
            if found is None or found.lastindex is None:
                if builder.ended:
                    raise Cut
                sink = sink or text_sink(builder, self, value.pieces, give=value.is_live)
                builder.listen(*sink)
                yield
                continue
            action, size = scan.actions[found.lastindex], found.end() - end
            if action == "close":
                if self._is_close(builder, (yield from builder.test(self.chain, size)), value.key, value.given):
                    value.has_edge = break_at(builder) > 0
                    builder.advance(size)
                    return self._doubt(value)
                value.has_close = True
            elif action == "next" and (yield from self._end_at_next_argument(builder, value)):
                return self._doubt_of_next(value)
            elif action == "shut" and (yield from self._end_at_call_end(builder, value)):
                return None
            elif action != "shut" or builder.buf[builder.pos] not in _LINE_BREAK:
                if action == "open" and (yield from builder.test(self.param.probe)):
                    action = "param"
                self._record_tag(builder, action, value)
            # Not structure: its first character is the value's, and the search goes on behind it.
            self._add(builder, builder.buf[builder.pos], value)

    def plain(self, text: str) -> tuple[str, int] | None:
        """Return the part of a piece before what may be a marker at its end, and the size of that part: all of the
        piece if no marker begins there. Return None if a whole marker is in it, so that the reader must parse it."""
        found = self.scan.search(text, 0) if self.is_special(text) else None
        if found is None:
            return text, len(text)
        return (text[: found.start()], found.start()) if found.lastindex is None else None

    def _add(self, builder: CallBuilder, text: str, value: Value) -> None:
        """Take `text`, the next piece of a value, and emit it if the value is live."""
        builder.advance(len(text))
        value.pieces.append(text)
        if value.is_live:
            builder.give(quoted(text)[1:-1])

    def _is_close(self, builder: CallBuilder, follows: re.Match[str] | None, key: str, given: dict[str, Any]) -> bool:
        """Return whether a closing tag ends the value of `key`; `follows` is the match of `chain` behind it, or None,
        which gives False. If another argument follows, it must not be `key` or in `given`, the arguments so far, and
        must be declared (by declared tools) if its opening tag is damaged; this is not checked if closing tags hold the
        key of their argument."""
        if not follows or not follows.lastindex or self.is_named:
            # Where the close has the argument's own name, the call reports a repeated one.
            return bool(follows)
        group = follows.lastindex
        if (is_damaged := group > len(self.tags.params)) and follows[group - 1] is not None:
            group -= 1  # the last group is the tag before the value
        other = self.tags.plain(follows[group])
        return other != key and other not in given and not (is_damaged and builder.kind(other) is None)

    def _end_at_next_argument(self, builder: CallBuilder, value: Value) -> Steps[bool]:
        """End the value, with a note, and return True if the next argument begins here and only the closing tag is
        missing (ollama#14656, exo#1344); a line break before its opening tag is taken, the tag is not. Return False,
        with nothing changed, if not: that argument must be declared, or all opening tags special tokens, and it must
        not be this one or given before."""
        found = yield from builder.test(self.param.probe, break_at(builder))
        key = self.tags.plain(self.param.fill(found)["key"]) if found else ""
        is_known = self.tags.is_special or builder.kind(key) is not None
        if not key or value.has_argument(key) or not is_known:
            return False
        self._end_unclosed(builder, value, f"the argument before {key!r} was not closed")
        return True

    def _end_at_call_end(self, builder: CallBuilder, value: Value) -> Steps[bool]:
        """End the value, with a note, and return True if what is here certainly ends the call in place of the closing
        tag (`end_of_call`); it is not taken, but for a line break. Return False, with nothing changed, if not, if the
        value holds other tags or may end in a remainder of its closing tag, or if it ends in a line break and its
        opener had none."""
        found = yield from builder.test(self.end_of_call, break_at(builder))
        if not found:
            return False
        is_edge_unsure = not self.has_line and "".join(value.pieces).endswith("\n")
        if is_edge_unsure or self._doubt_of_next(value) is not None:
            return False
        self._end_unclosed(builder, value, f"the argument {value.key!r} was not closed before the end of the call")
        return True

    def _end_unclosed(self, builder: CallBuilder, value: Value, message: str) -> None:
        """End a value whose closing tag is missing, with the note `unclosed_argument` and this `message`, which does
        not reject the call. A line break here, if there is one, was that of the tag and is taken; `has_edge` is set in
        any case."""
        builder.advance(break_at(builder))
        value.has_edge = True
        assert builder.call is not None
        builder.problem("unclosed_argument", message, blocking=False, call=builder.call.index)

    def _record_tag(self, builder: CallBuilder, action: str, value: Value) -> None:
        """Record in `value` that a tag of the format is here and does not end it; nothing is taken. `action`: as in
        `_inside`, or "quote".

        "shut" lowers `depth`; at 0 it sets `has_outer_close`. "call" increases `depth`; after `has_close` or
        `has_outer_close` it raises `Broken`. The first "message" begins a capture. "call", "open", "param" and
        "next" set `has_opener`. The key of "param" and "next" becomes `repeated` if it was given, and `argument` if
        it is declared, no tools are declared or a call is open in the value."""
        if action == "shut":
            value.has_outer_close = value.has_outer_close or not value.depth
            value.depth = max(0, value.depth - 1)
        elif action == "quote":
            value.has_quote = True
        elif action == "message":
            value.message = builder.capture() if value.message is None else value.message
        elif action == "call":
            if value.has_close or value.has_outer_close:
                raise Broken("ambiguous_end", *swallowed(value.key, "another call"))
            value.has_opener, value.depth = True, value.depth + 1
        else:
            value.has_opener = True
            at = self.param.probe.whole(builder.buf, builder.pos + break_at(builder)) if action != "open" else None
            key = self.tags.plain(self.param.fill(at)["key"]) if at else ""
            if key and value.has_argument(key):
                value.repeated = key
            # Behind the opener of a call that nothing closed, the argument is that call's, whatever tool it is of.
            if key and (builder.tools is None or value.depth or builder.kind(key) is not None):
                value.argument = key

    def _doubt(self, value: Value) -> Doubt | None:
        """Return the `Doubt` about a value that its closing tag ended: `duplicate_argument` if it holds an argument
        that was given before and a close of a value; `ambiguous_end` if it holds an `argument`, the opening quotes of a
        value, an opener and a close, a close before an opener of a call or section, or a second closing tag at its end;
        else None."""
        if value.repeated and value.has_close:
            return Doubt("duplicate_argument", f"the argument {value.repeated!r} is given twice; send it once")
        is_closed, text = value.has_close or value.has_outer_close, "".join(value.pieces)
        if value.argument or value.has_quote or (value.has_opener and is_closed):
            other = f"the argument {value.argument!r}" if value.argument else "another argument or call"
            return Doubt("ambiguous_end", swallowed(value.key, other)[0])
        if is_closed and self.tags.reopens(text):
            return Doubt("ambiguous_end", swallowed(value.key, "another call")[0])
        if value.has_close and self.tags.ends_in_close(text, value.key):
            message = f"the argument {value.key!r} ends with two closing tags, so that its end is not certain"
            return Doubt("ambiguous_end", f"{message}; close it once")
        return None

    def _doubt_of_next(self, value: Value) -> Doubt | None:
        """Return the `Doubt` `ambiguous_end` if a value without its closing tag contains tags of the format, or its
        last 80 characters may end in the remainder of its closing tag (`ends_in_tag`), else None."""
        has_tags = value.has_close or value.has_outer_close or value.has_opener
        if has_tags or self.ends_in_tag("".join(value.pieces)[-_LONGEST_TAG:]):
            message = f"the argument {value.key!r} is not closed as it should be; send the call again"
            return Doubt("ambiguous_end", message)
        return None


def break_at(builder: CallBuilder) -> int:
    """Return the length of the line break at the current place, 1 or (carriage return and line feed) 2; 0 if none is
    here."""
    char = builder.buf[builder.pos : builder.pos + 1]
    return 1 if char == "\n" else 2 if char == "\r" and builder.buf.startswith("\r\n", builder.pos) else 0


def _breaks(line: str) -> list[str]:
    """Return the line breaks that a closing tag may have before it, where the opening tag had the line break `line`."""
    return ["\r\n", "\n"] if line == "\r\n" else ["\n"]


def swallowed(key: str, other: str) -> tuple[str, str]:
    """Return the message that argument `key` seems to contain `other`, an argument or a call, and the path of the
    argument."""
    cure = "close each argument and each call, and write no tags of this format into a value"
    return f"the argument {key!r} holds what looks like {other}, so that its end is not certain; {cure}", f"/{key}"


_TEXTUAL = frozenset(("plain", "string", "nullable"))
_MANY = 64  # ends of values that are kept: keys come from the model


class TaggedValues:
    """Reads the value of one argument at a time, behind its opening tag and up to its end."""

    def __init__(self, body: Params, tags: Tags, param: Holes) -> None:
        self._tags, self._param, self._quotes = tags, param, body.quote
        self._quote = Probe(literal(body.quote[0])) if body.quote else Probe.never()
        self._opens_line = any(text.endswith("\n") for text in marker_alternatives(body.param))
        self._is_inline = self._opens_line and not marker_alternatives(body.param)[0].endswith("\n")
        self._nested = NestedTags(body) if body.item else None
        self._keyed = "{key}" in "".join(marker_alternatives(body.value_close))
        self._ends: dict[tuple[str, str, str, bool], ValueEnd] = {}

    def read(self, builder: CallBuilder, key: str, tag_kind: str | None, values: dict[str, Any]) -> Steps[Any]:
        """Take the value of argument `key` with its closing tag, if it has one, give its JSON, behind `{` or `, ` and
        its key, to the call and return the value. `tag_kind`: the type that its tag says, or None; `values`: the
        arguments so far. A doubtful end or refused JSON rejects the call with a problem, not a wrong type. Raises
        `Broken` if the end cannot be told at all or nested tags are invalid, `Cut` if the text ends."""
        prefix = (", " if values else "{") + quoted(key) + ": "
        kind = resolve_kind(tag_kind, builder.kind_by_any_name(key))
        if self._nested is not None and (yield from self._is_nested(builder, self._nested, key, kind)):
            json, value = yield from self._nested.read(builder, key)
            builder.give(prefix + json)
            return value
        line = quote = ""
        if self._opens_line and (found := (yield from builder.test(_BREAK_PROBE))):
            builder.take_match(found)
            line = found.group()
        if self._quotes and (found := (yield from builder.test(self._quote))):
            builder.take_match(found)
            quote = self._quotes[1]
        return (yield from self._read_text(builder, key, values, prefix, kind, line, quote))

    def find(
        self, builder: CallBuilder, start: int, key: str, kind: str, values: dict[str, Any], inline: bool
    ) -> tuple[str, Any, int, bool] | None:
        """Return JSON and value of argument `key`, a value of this `kind` at index `start` of a text that is over, the
        index behind its closing tag, and whether arguments are written without line breaks (`inline`: those before it
        are). Return None if it is in quotes, too deep, refused JSON, of another type, or holds a tag, or
        `ValueEnd.find` finds no end. Nothing is taken. `values`: the arguments so far."""
        buf, size = builder.buf, 0
        if self._opens_line:
            size = 2 if buf.startswith("\r\n", start) else int(buf.startswith("\n", start))
        line, start = buf[start : start + size], start + size
        if self._quotes and buf.startswith(self._quotes[0], start):
            return None
        end = self._end_of(key, line, "", inline).find(builder, start, key, values)
        if end is None:
            return None
        text, has_edge = buf[start : end.start()], buf[end.start()] in _LINE_BREAK
        inline = inline or (self._opens_line and not (line or has_edge) and text != "")
        if self._is_inline and not has_edge:
            text = line + text
        try:
            json, value, wrong = parse_by_kind(text, kind, builder.limits.depth)
        except RecursionError:
            return None
        return None if wrong is not None else (json, value, end.end(), inline)

    def _is_nested(self, builder: CallBuilder, nested: NestedTags, key: str, kind: str) -> Steps[bool]:
        """Return whether the value that begins here is written in tags of its own, by its first tag; nothing is taken.
        A value of the declared `kind` "plain" never is; one of another kind of text only if its schema also allows a
        list or an object."""
        if kind in _TEXTUAL and (kind == "plain" or not nested.may_begin(builder, key)):
            return False
        return bool((yield from builder.test(nested.tag)))

    def _read_text(
        self, builder: CallBuilder, key: str, values: dict[str, Any], prefix: str, kind: str, line: str, quote: str
    ) -> Steps[Any]:
        """Take a value that is bare text, with its closing tag, give its JSON behind `prefix` to the call and return it
        as a value of the declared `kind`; text of kind "plain" is given as it arrives, unless its opener's line break
        may be its own. `line`, `quote`: that line break and the closing quote, or "". Without line breaks around it
        sets the call's `inline`. A doubtful end, or refused JSON (which sets `checked`), rejects the call; a wrong type
        does not. Raises `Broken` and `Cut` as `ValueEnd.take` does."""
        taken = Value(key, values, kind == "plain" and not (line and self._is_inline))
        if taken.is_live:
            builder.give(prefix + '"')
        assert builder.call is not None
        doubt = yield from self._end_of(key, line, quote, builder.call.inline).take(builder, taken)
        text = "".join(taken.pieces)
        if self._opens_line and not line and text and not taken.has_edge:
            builder.call.inline = True
        if line and self._is_inline and not taken.has_edge:
            text = line + text  # a line break at one edge alone is the value's own
        value: Any = text
        if taken.is_live:
            builder.give('"')
        else:
            json, value, wrong = parse_by_kind(
                text, "string" if quote and kind == "any" else kind, builder.limits.depth
            )
            builder.give(prefix + json)
            # The check of the whole call reports a wrong type; it may also repair it. What its tag calls JSON and is
            # none stays a string, as in SGLang's deepseekv32_detector.py.
            if wrong is not None and wrong[0] != "wrong_type":
                builder.problem(wrong[0], f"{key}: {wrong[1]}", "/" + key, call=builder.call.index)
                builder.call.checked = True
        if doubt is not None:
            builder.problem(doubt.code, doubt.message, "/" + key, call=builder.call.index)
        return value

    def _end_of(self, key: str, line: str, quote: str, inline: bool) -> ValueEnd:
        """Return the `ValueEnd` for the value of argument `key`, from a cache if possible; nothing is searched here.
        `line`, `quote`, `inline`: as in `ValueEnd`."""
        which = (key if self._keyed else "", line, quote, inline and self._opens_line and not line)
        found = self._ends.get(which)
        if found is None:
            if len(self._ends) > _MANY:
                self._ends.clear()
            found = self._ends[which] = ValueEnd(self._tags, self._param, *which)
        return found


def resolve_kind(tag_kind: str | None, declared: str | None) -> str:
    """Return the kind of type of a value: `tag_kind`, what its tag says; without that (None) `declared`, what the
    schema says, or "any" if that is None too. If the tag says "string" and the schema "plain", return "plain"."""
    return declared or "any" if tag_kind is None or (tag_kind == "string" and declared == "plain") else tag_kind


class SwallowedArguments:
    """Finds raw values that contain another argument, because its opening tag and the tag before it were damaged
    (anthropics/claude-code#44826, anthropics/claude-code#84362).

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
        self._long_tails = tuple([tail for tail in self._tails if len(tail) >= _LEAST_NAME])
        self._is_inline = "\n" not in marker_alternatives(body.value_close)[0]
        signs = set("".join([*starts, *self._tails])) & set(punctuation) - {"_"}
        self._has_sign = re.compile(f"[{re.escape(''.join(sorted(signs)))}]" if signs else "(?!)").search
        self._remove_tags = re.compile(alt(*tags.whole_params, *tags.closers, *tags.closing.all).whole).sub
        close = f"(?:{alt(*tags.closers).whole})"
        self._is_reopened = re.compile(rf"{close}(?:<|[\r\n]++[^\r\n])").search
        self._is_reopened_by_word = re.compile(rf"{close}(?:[<|\w]|[\r\n]++[^\r\n])").search
        self._is_reopened_anywhere = re.compile(rf"{close}(?:\S|[\r\n]++[^\r\n])").search
        self._ends_in_close = re.compile(rf"{close}[\r\n]{{0,4}}+\Z").search
        torn = [rf"(?:{re.escape(head[0])}{_one_missing(head[1:])}|{re.escape(head)})\w" for head, _ in self._heads]
        self._has_torn_tag = re.compile("|".join(torn) or "(?!)").search
        names = [match[0] for head in starts if (match := _TAG_NAME(head)) and len(match[0]) >= _LEAST_NAME]
        self._find_other_tags = re.compile(
            f"(?:{'|'.join(map(re.escape, names))}){_OTHER_KEY}" if names else "(?!)"
        ).finditer

    def find(self, values: dict[str, Any], declared: Collection[str] | None) -> str:
        """Return the name of the first argument in `values` whose value seems to contain another one, or "". Only
        strings that hold a punctuation mark of the arguments' opening tags are examined, no lists or objects.
        `declared`: the names that the tool declares; None without declared tools."""
        missing = [key for key in declared or () if key and key not in values]
        for key, value in values.items():
            if type(value) is str and self._has_sign(value) and self._is_ambiguous(value, missing, declared):
                return key
        return ""

    def _is_ambiguous(self, value: str, missing: list[str], declared: Collection[str] | None) -> bool:
        """Return whether a value seems to contain another argument: by a closing tag with more behind it, an opening
        tag of a `declared` argument in another spelling, or the name of a `missing` one next to the remainder of a tag.
        `missing`: the declared arguments that the call lacks; if there are none, only a tag or a line break with text
        counts behind a closing tag. If `declared` is None, only a closing tag with more behind it or an opening tag
        that lacks at most one character counts."""
        rest = self._remove_tags("\n", value)  # complete tags are examined where the value ends
        if declared is None:
            return (self._has_torn_tag(rest) or self._is_reopened_by_word(value)) is not None
        is_reopened = self._is_reopened_anywhere if missing else self._is_reopened
        if is_reopened(value) is not None or any(tag[1] in declared for tag in self._find_other_tags(value)):
            return True
        return any(
            any(self._is_in_tag(value, *place) for place in _find_all(key, value))
            or any(self._is_behind_head(rest, *place) for place in _find_all(key, rest))
            for key in missing
        )

    def _is_in_tag(self, text: str, start: int, end: int) -> bool:
        """Return whether the name of an argument at `text[start:end]` is directly after a closing tag (line breaks may
        be between), or directly before what follows the name in an opening tag. If that is short, the name must be at
        the beginning of the text or of a line. For inline values a short one that begins with `"` also counts if no
        quotation mark, `<`, `>` or `=` is between the name and the beginning of its line or the tag before it."""
        before = text[max(0, start - _LONGEST_TAG) : start]
        if self._ends_in_close(before):
            return True
        is_first = before[-1:] in ("", "\n") or (
            self._is_inline and text[end : end + 1] == '"' and bool(_is_text(before))
        )
        return text.startswith(self._tails if is_first else self._long_tails, end)

    def _is_behind_head(self, text: str, start: int, end: int) -> bool:
        """Return whether the name at `text[start:end]` is directly after most of an opening tag (60% of its pairs of
        adjacent characters, in any order), without a blank between, if that kept its first sign or what follows the
        name is kept. Opening tags with up to four characters before the name are not looked for."""
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
    """Return an iterator over the places (start and end) of `key` in the text, without overlap, at most 1,024."""
    return (found.span() for found in islice(re.finditer(re.escape(key), text), _MOST_PLACES))


def _one_missing(text: str) -> str:
    """Return the source of a regular expression for the text with exactly one of its characters missing; "" for a text
    of one character."""
    found = ""
    for i in range(len(text) - 2, -1, -1):
        found = f"(?:{re.escape(text[i + 1 :])}|{re.escape(text[i])}{found})"
    return found
