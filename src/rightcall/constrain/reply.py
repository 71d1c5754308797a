"""The grammar of a whole reply: free text, a reasoning section, calls and the markers around them, in any format.

    auto      text, and calls wherever their opener appears
    required  at least one call; text before it only if asked for
    none      text in which no call can begin

Text in front of a call must not open anything that would quote the call (`before_call`): a quoted call is not a call.
"""

from __future__ import annotations

import msgspec

from rightcall.constrain.algebra import (
    EMPTY,
    NEVER,
    Alt,
    Free,
    Lexeme,
    Lit,
    Node,
    Ref,
    Seq,
    Token,
    Upto,
    alt,
    chars,
    inverse,
    maybe,
    repeat,
    seq,
)
from rightcall.constrain.before_call import FENCES, OPENING, RESULTS
from rightcall.constrain.builder import BLANKS, SPACE, Builder, first, pieces, split_marker, stop_sequence, text_of
from rightcall.constrain.call_bodies import CALL_GRAMMARS
from rightcall.constrain.json_text import JSON_CHAR, ArgumentsShape
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Channels, Format, Pair, marker_alternatives


class ReplyFrame(msgspec.Struct, frozen=True):
    """The parts of a reply with calls, for engines that take them one by one: the text before the first call, one node
    per tool, the text between two calls and after the last one. `joined` is False if the arguments of the only tool are
    the whole reply."""

    before: Node = EMPTY
    calls: tuple[Node, ...] = ()
    joint: Node = EMPTY
    after: Node = EMPTY
    joined: bool = True


class ReplyConstraints:
    """The options that concern the whole reply."""

    def __init__(self, choice: str, parallel: bool, reasoning: str, text: bool) -> None:
        self.choice = choice  # auto, required or none
        self.parallel, self.reasoning, self.text = parallel, reasoning, text

    @property
    def only_calls(self) -> bool:
        """Whether a reply consists of nothing but calls."""
        return self.choice == "required" and not self.text and self.reasoning == "none"


class Replies:
    """Builds the rules of a reply: `build` defines them in `book` and sets `frame`, `triggers` and `lazy` as in
    `Grammar`."""

    def __init__(self, format: Format, book: Builder, options: ReplyConstraints) -> None:
        self.format, self.book, self.options = format, book, options
        self.body = format.bodies[0]
        self.kind = BODIES[type(self.body)]
        self.wrap = self.kind.wrap(self.body)
        self.outer, self.content = self.kind.outer(self.body), self.kind.content_key(self.body)
        self.opens = None if "{name}" in first(format.call[0]) else self._marker_nodes(format.call[0])
        self.closes = self._marker_nodes(format.call[1])
        self.triggers: tuple[str, ...] = ()
        self.lazy = ""
        self.frame = ReplyFrame()

    # -- one call ------------------------------------------------------------------------------------------------------

    def call(self, tool: ArgumentsShape) -> list[Node]:
        """Return the nodes of a call of this tool with the markers that surround each call; without those if the calls
        are the items of a list."""
        inside = tool.body or CALL_GRAMMARS[type(self.body)](self.body, tool, self.book)
        if self.wrap is not None and not self.outer:
            return inside
        if self.outer:
            return inside
        return [*self._call_opener(tool.name), *inside, *self.closes]

    def _call_opener(self, name: str) -> list[Node]:
        """Return the nodes of the marker that opens a call of the tool `name`."""
        return self._marker_nodes(self.format.call[0], name=name) if self.opens is None else self.opens

    def _marker_nodes(self, marker: str | tuple[str, ...], **holes: str) -> list[Node]:
        """Return the nodes of a marker, of its first spelling if it has several, with its placeholders filled from
        `holes`. Its white space on either side becomes a gap: optional, or as rendered in an `exact` grammar."""
        found = split_marker(first(marker))
        before = [self.book.gap(found.before)] if found.before else []
        after = [self.book.gap(found.after)] if found.after else []
        return [*before, *pieces(found.core, **holes), *after] if found.core else [*before, *after]

    def nodes_around_calls(self) -> tuple[list[Node], list[Node]]:
        """Return the nodes before the first call and those after the last one: the section's markers, and the brackets
        of a list of calls with the markers or the JSON object around it. Both lists may be empty."""
        before: list[Node] = self._marker_nodes(self.format.section[0]) if self.format.section else []
        after: list[Node] = self._marker_nodes(self.format.section[1]) if self.format.section else []
        if self.outer:
            wrap = self.wrap or ("[", ", ", "]")
            gap = self.book.gap
            return [Lit("{"), gap(), Lit(f'"{self.outer[0]}":'), gap(" "), *self._list_bracket(wrap[0])], [
                *self._list_bracket(wrap[2], True),
                gap(),
                Lit("}"),
            ]
        if self.wrap is not None:
            before += [*self._marker_nodes(self.format.call[0]), *self._list_bracket(self.wrap[0])]
            after = [*self._list_bracket(self.wrap[2], True), *self._marker_nodes(self.format.call[1]), *after]
        return before, after

    def _list_bracket(self, text: str, closing: bool = False) -> list[Node]:
        """Return the nodes of the text that opens a list of calls, or with `closing` of the one that closes it; none
        for an empty text. White space on its inner side is optional, or as rendered in an `exact` grammar."""
        core = text.strip(BLANKS)
        if not core:
            return [Lit(text)] if text else []
        gap = self.book.gap(text.removesuffix(core) if closing else text.removeprefix(core))
        return [gap, Lit(core)] if closing else [Lit(core), gap]

    def separator_of_calls(self) -> Node:
        """Return the node between two calls: the format's separator, with optional white space after it. A separator of
        white space alone is optional, except for calls on lines of their own. In an `exact` grammar nothing is
        optional."""
        text = self.wrap[1] if self.wrap is not None else self.format.between
        core = text.strip(BLANKS)
        if not core:
            # Python calls on lines of their own need the line break.
            return Lit(text) if self.kind.lines else self.book.gap(text)
        return seq(Lit(core), self.book.gap(text.partition(core)[2]))

    # -- all calls -----------------------------------------------------------------------------------------------------

    def build(self, tools: list[ArgumentsShape]) -> str:
        """Define in `book` all rules of replies with calls of these tools, set `frame`, `triggers` and `lazy`, and
        return the name of the start rule."""
        if self.format.channels is not None:
            return Messages(self, self.format.channels).build(tools)
        if self._arguments_only(tools):
            arguments = tools[0].write_json(self.book)
            self.frame = ReplyFrame(calls=(arguments,), joined=False)
            return self.define_reply(arguments)
        return self._define_calls(tools)

    def _define_calls(self, tools: list[ArgumentsShape]) -> str:
        """Define the rules of calls with the markers around them, and of the reply that has them; set `frame`, and
        `triggers` and `lazy` if calls have an opener. Return the name of the start rule."""
        before, after = self.nodes_around_calls()
        calls = [(tool, self.call(tool)) for tool in tools]
        opener = self._opener(before, calls)
        if not self.options.parallel:
            calls = [(tool, [*before, *call, *after]) for tool, call in calls]
            before, after = [], []
        joint = self.separator_of_calls() if self.options.parallel else EMPTY
        self.frame = ReplyFrame(seq(*before), tuple(seq(*call) for _, call in calls), joint, seq(*after))
        self._define_call(opener if not before else (), calls)
        block = seq(*before, self._one_or_more_calls(), *after) if self.options.parallel else Ref("call")
        if opener:
            self.triggers = (text_of(opener),)
            self.book.rules["calls"] = block
            self.lazy = "calls"
        if self.options.only_calls:
            return self.start_without_text(block)
        return self.define_reply(self._reply_node(block, opener, bool(before)))

    def start_without_text(self, block: Node) -> str:
        """Return the name of the rule for a reply that consists of the node `block` alone: the rule that it refers to,
        or else `reply`, which is defined as this node."""
        if isinstance(block, Ref):
            return block.name
        self.book.rules["reply"] = block
        return "reply"

    def _arguments_only(self, tools: list[ArgumentsShape]) -> bool:
        """Return whether a reply consists of the arguments alone: the choice names the only tool, and the format has a
        body that is named by the request."""
        named = any(BODIES[type(body)].is_named_outside(body) for body in self.format.bodies[1:])
        return named and self.options.choice == "required" and len(tools) == 1 and self.named_choice

    named_choice = False

    def define_reply(self, node: Node) -> str:
        """Define the rule `reply` as this node, and return its name."""
        self.book.rules["reply"] = node
        return "reply"

    def _opener(self, before: list[Node], calls: list[tuple[ArgumentsShape, list[Node]]]) -> tuple[Lit | Token, ...]:
        """Return the literals and tokens with which every call, or the section around the calls, begins, up to the
        first placeholder; empty if there are none. `before` and `calls` are not used."""
        if self.outer:
            return ()
        marker = first(self.format.section[0]) if self.format.section else first(self.format.call[0])
        marker = marker if marker.strip(BLANKS) else first((*self.kind.opening(self.body), "")[0])
        head = split_marker(marker).core
        found = pieces(head, name=NEVER, key=NEVER, type=NEVER)
        out = []
        for piece in found:
            if not isinstance(piece, (Lit, Token)):
                break
            out.append(piece)
        return stop_sequence(out)

    def _define_call(self, opener: tuple[Lit | Token, ...], calls: list[tuple[ArgumentsShape, list[Node]]]) -> None:
        """Define the rule `call` with one alternative per tool: the opener and a reference to `call_0`, `call_1` and so
        on, the part after the opener, which is also used after text that ends with the opener. `calls` has each tool
        and its nodes."""
        rules = self.book.rules
        names = []
        for at, (_, call) in enumerate(calls):
            rules[f"call_{at}"] = seq(*_remove_opener(call, opener))
            names.append(f"call_{at}")
        gap = (
            [self.book.gap(split_marker(first(self.format.call[0])).before)]
            if opener and split_marker(first(self.format.call[0])).before
            else []
        )
        made = [seq(*gap, *opener, Ref(name)) for name in names]
        rules["call"] = Alt(tuple(made)) if len(made) != 1 else made[0]

    def _one_or_more_calls(self) -> Node:
        """Return the node of one call or more, with separators, up to the number `bounds.calls` (None: no limit)."""
        most = self.book.bounds.calls
        return seq(
            Ref("call"), repeat(seq(self.separator_of_calls(), Ref("call")), 0, None if most is None else most - 1)
        )

    def _reply_node(self, block: Node, opener: tuple[Lit | Token, ...], lead: bool) -> Node:
        """Return the node of a whole reply, as the choice allows: reasoning, then text and the `block` of calls, or
        only one of them. `opener` is what calls begin with, empty if nothing; `lead` is True if something precedes the
        first call in the block. Rules that the node refers to are added to `book`."""
        choice = self.options.choice
        thinking = self.thinking()
        if self.outer:
            text = seq(
                Lit("{"),
                self.book.gap(),
                Lit(f'"{self.content}":'),
                self.book.gap(" "),
                self._string(),
                self.book.gap(),
                Lit("}"),
            )
            return {"auto": alt(block, text), "required": block, "none": text}[choice]
        if choice == "none":
            return seq(thinking, repeat(self.delimited_text(), 0, 4), self.text())
        if not opener:
            return seq(thinking, block if choice == "required" else alt(block, self._no_bracket()))
        if choice == "required" and not self.options.text:
            return seq(thinking, block)
        rest = self._after_opener(block, opener, lead)
        upto = seq(Upto(opener, 0, self.book.bounds.text, self._forbidden_before_call(opener), True), rest)
        wrapped = self.delimited_text()
        if choice == "required":
            return seq(thinking, repeat(wrapped, 0, 1), upto)
        most = self.book.bounds.calls if self.options.parallel else 1
        return seq(thinking, repeat(alt(wrapped, upto), 0, most), self.text())

    def _after_opener(self, block: Node, opener: tuple[Lit | Token, ...], lead: bool) -> Node:
        """Return the node of the block of calls without its opener, for text that ends with the opener. Unless `lead`,
        the opener is that of the first call, and the rule `called` is defined for the call without it."""
        rules = self.book.rules
        if lead:
            return seq(*_remove_opener(list(block.items) if hasattr(block, "items") else [block], opener))
        names = [name for name in rules if name.startswith("call_")]
        rules["called"] = alt(*map(Ref, names))
        if not self.options.parallel:
            return Ref("called")
        most = self.book.bounds.calls
        return seq(
            Ref("called"), repeat(seq(self.separator_of_calls(), Ref("call")), 0, None if most is None else most - 1)
        )

    def _string(self) -> Node:
        """Return a reference to the rule for any JSON string."""
        return self.book.define_rule(
            "string", lambda: Lexeme(seq(Lit('"'), repeat(JSON_CHAR, 0, self.book.bounds.string), Lit('"')))
        )

    # -- text and reasoning --------------------------------------------------------------------------------------------

    def thinking(self) -> Node:
        """Return the node of the reasoning section at the beginning of a reply, optional for "auto", without its
        opening marker for "open"; empty if the options exclude it or the format has none."""
        if self.options.reasoning == "none" or self.format.reasoning is None:
            return EMPTY
        section = self._section(self.format.reasoning, opened=self.options.reasoning == "open")
        if self.options.choice == "required" and not self.options.text:
            # Elsewhere free text may follow, which takes the white space.
            section = seq(section, self.book.gap(split_marker(first(self.format.reasoning[1])).after))
        return maybe(section) if self.options.reasoning == "auto" else section

    def _section(self, pair: Pair, opened: bool = False) -> Node:
        """Return the node of text between two markers, both included. With `opened`, the first marker is already
        written and left out."""
        begin, end = split_marker(first(pair[0])), split_marker(first(pair[1]))
        opens = (
            []
            if opened
            else [*pieces(begin.core), *([self.book.gap(begin.after)] if begin.after and self.book.exact else [])]
        )
        close = Upto(stop_sequence(pieces(end.core)), 0, self.book.bounds.text)
        return seq(*opens, close)

    def delimited_text(self) -> Node:
        """Return the node for one text between any of the format's pairs of text markers, both included; `NEVER` if it
        has none."""
        pairs = [pair for pair in self.format.content if first(pair[1]).strip(BLANKS)]
        return alt(*map(self._delimited_by, pairs)) if pairs else NEVER

    def _delimited_by(self, pair: Pair) -> Node:
        """Return the node for text between these markers, both included. Without an opening marker, the text begins at
        once, and contains no opener of a call and no other section marker."""
        if not first(pair[0]).strip(BLANKS):  # it begins with the reply, or behind the reasoning
            close = stop_sequence(pieces(split_marker(first(pair[1])).core))
            return Upto(close, 0, self.book.bounds.text, self.openers() + self._section_markers())
        # One terminal with the white space before it, which is otherwise taken for text.
        opener = Lexeme(Seq((maybe(SPACE), *pieces(split_marker(first(pair[0])).core))))
        return Seq((opener, self._section(pair, opened=True)))

    def text(self) -> Node:
        """Return free text up to the end of the reply, in which no call begins and no section marker occurs."""
        return Free(self.openers() + self._section_markers(), self.book.bounds.text)

    def _no_bracket(self) -> Node:
        """Return the node of text, or none, that begins neither with `[` or `{` nor with white space, for calls without
        an opener."""
        return maybe(seq(inverse(chars("[{" + BLANKS)), self.text()))

    def openers(self) -> tuple[str, ...]:
        """Return all texts at which the parser begins a call, cut before their first placeholder, each once. Those of
        one or two characters and the empty ones are left out."""
        format = self.format
        markers = [
            *marker_alternatives(format.section[0] if format.section else ""),
            *marker_alternatives(format.call[0]),
        ]
        for body in format.bodies:
            markers += [text for tag in BODIES[type(body)].opening(body) for text in marker_alternatives(tag)]
        heads = [str(marker).strip(BLANKS).partition("{name}")[0].partition("{id}")[0] for marker in markers]
        return tuple(dict.fromkeys(head for head in heads if head.strip(BLANKS) and len(head) > 2))

    def _section_markers(self) -> tuple[str, ...]:
        """Return the opening and closing markers of reasoning and of delimited text, without white space around them,
        each once. Pairs without an opening marker, and markers of one or two characters, are left out."""
        pairs = [*([self.format.reasoning] if self.format.reasoning else []), *self.format.content]
        pairs = [pair for pair in pairs if first(pair[0]).strip(BLANKS)]
        found = [split_marker(text).core for pair in pairs for marker in pair for text in marker_alternatives(marker)]
        return tuple(dict.fromkeys(str(text) for text in found if len(text) > 2))

    def _forbidden_before_call(self, opener: tuple[Lit | Token, ...]) -> tuple[str, ...]:
        """Return the texts that must not occur in text before a call that begins with `opener`: openers of other calls,
        section markers, code fences and markers of tool results. Those that contain the opener are left out, and
        openers that are part of it."""
        text = text_of(opener)
        others = [other for other in self.openers() if text not in other and other not in text]
        sections = [section for section in self._section_markers() if text not in section]
        fences = [fence for fence in FENCES if fence not in text]
        return (*others, *sections, *fences, *RESULTS)


def _remove_opener(nodes: list[Node], opener: tuple[Lit | Token, ...]) -> list[Node]:
    """Return these nodes without the opener that they begin with, and without white space before it. An opener that
    they do not begin with is an error of the caller (AssertionError)."""
    rest = list(nodes)
    while opener and (not isinstance(rest[0], (Lit, Token)) or not rest[0].text.strip(BLANKS)):
        rest = rest[1:]  # white space before the opener
    for piece in opener:
        head = rest[0]
        if isinstance(piece, Token):
            assert head == piece, (head, piece)
            rest = rest[1:]
        else:
            assert isinstance(head, Lit) and head.text.lstrip(BLANKS).startswith(piece.text.lstrip(BLANKS)), (
                head,
                piece,
            )
            left = head.text.partition(piece.text)[2]
            rest = [Lit(left), *rest[1:]] if left else rest[1:]
    return rest


def build_without_calls(replies: Replies) -> str:
    """Define the rule `reply` for a reply without calls, and return its name. The choice must be "none"."""
    channels = replies.format.channels
    if channels is not None:
        return replies.define_reply(Messages(replies, channels).reply(EMPTY, EMPTY))
    return replies.define_reply(replies._reply_node(EMPTY, (), False))


_ALLOWED = (":", "\uff1a", ">")  # most texts hold a colon, and headers begin with the last


class Messages:
    """Builds replies of messages, each with a header that gives its kind. The first message has no start marker."""

    def __init__(self, replies: Replies, channels: Channels) -> None:
        self.replies, self.channels = replies, channels
        self.book, self.options = replies.book, replies.options
        self.start = pieces(first(channels.start))

    def build(self, tools: list[ArgumentsShape]) -> str:
        """Define all rules of replies with calls of these tools, set the `frame` and trigger of `replies`, and return
        the name of the start rule."""
        book = self.book
        made = [seq(*self.call(tool)) for tool in tools]
        for at, node in enumerate(made):
            book.rules[f"call_{at}"] = node
        refs = [Ref(f"call_{at}") for at in range(len(made))]
        book.rules["call"] = Alt(tuple(refs)) if len(refs) != 1 else refs[0]
        start = seq(*self.start)
        more = book.bounds.calls
        calls = (
            Ref("call")
            if not self.options.parallel
            else seq(Ref("call"), repeat(seq(start, Ref("call")), 0, None if more is None else more - 1))
        )
        book.rules["calls"] = calls
        self.replies.frame = ReplyFrame(calls=tuple(made), joint=start if self.options.parallel else EMPTY)
        self._set_trigger()
        if self.options.only_calls:
            return self.replies.start_without_text(calls)
        return self.replies.define_reply(self.reply(calls, start))

    def _set_trigger(self) -> None:
        """Set `triggers` of `replies` to the header of a call up to the tool's name, and `lazy` to the rule of calls;
        both are empty if another header contains that text."""
        header = self.channels.messages["call"][0]
        head = str(header).partition("{name}")[0]
        others = [str(opens) for kind, (opens, _) in self.channels.messages.items() if kind != "call"]
        is_unique = head.strip(BLANKS) and not any(head in other for other in others)
        self.replies.triggers = (head,) if is_unique else ()
        self.replies.lazy = "calls" if self.replies.triggers else ""

    def call(self, tool: ArgumentsShape) -> list[Node]:
        """Return the nodes of a message with a call of this tool: header, call and end marker."""
        opens, closes = self.channels.messages["call"]
        if self.replies.kind.named_by_header:
            inside: list[Node] = [tool.write_json(self.book)]
        else:
            before, after = self.replies.nodes_around_calls()
            inside = [*before, *self.replies.call(tool), *after]
        return [*pieces(opens, name=tool.name), *inside, *pieces(closes)]

    def _message_node(self, kind: str) -> Node:
        """Return the node of a message of this kind ("content" or "reasoning") with the start marker of the message
        after it."""
        opens, closes = self.channels.messages[kind]  # type: ignore[index]
        if str(closes):
            return seq(*pieces(opens), Upto(stop_sequence(pieces(closes)), 0, self.book.bounds.text), *self.start)
        return seq(*pieces(opens), self._text_and_next_start())

    def _text_and_next_start(self) -> Upto:
        """Return the node of text that ends with the start marker of the next message, for a message without an end
        marker. Unless this marker begins a line, the text contains nothing that may open a quotation or code, since the
        parser would treat the header as quoted."""
        own_line = text_of(stop_sequence(self.start)).startswith("\n")
        opening = () if own_line else tuple([each for each in OPENING if each not in _ALLOWED])
        return Upto(stop_sequence(self.start), 0, self.book.bounds.text, opening)

    def reply(self, calls: Node, start: Node) -> Node:
        """Return the node of a whole reply of messages, as the choice allows: reasoning, then text and calls. Unless a
        call is required, the rule `messages` is defined. `calls` is the node of the calls of a reply that must have
        one, and `start` the start marker of a message."""
        options = self.options
        thinking: Node = EMPTY
        if options.reasoning != "none" and "reasoning" in self.channels.messages:
            thinking = self._end_of_open_reasoning() if options.reasoning == "open" else self._message_node("reasoning")
            thinking = repeat(thinking, 0, 4) if options.reasoning == "auto" else thinking
        if options.choice == "required":
            before = repeat(self._message_node("content"), 0, 4) if options.text else EMPTY
            return seq(thinking, before, calls)
        self.book.rules["messages"] = EMPTY
        self.book.rules["messages"] = self._message_chain(calls, start)
        return seq(thinking, Ref("messages"))

    def _message_chain(self, calls: Node, start: Node) -> Node:
        """Return the node of a message of text or of a call, followed by the start marker `start` and further messages
        or not. The last text may lack its end marker. Calls are left out for the choice "none"; `calls` is not used."""
        opens, closes = self.channels.messages["content"]
        more = seq(start, Ref("messages"))
        without = tuple(dict.fromkeys([str(first(self.channels.start)).strip(BLANKS), *map(str, self.channels.ends)]))
        last = Free(without, self.book.bounds.text)
        if str(closes):
            text: Node = seq(Upto(stop_sequence(pieces(closes)), 0, self.book.bounds.text, without[:1]), maybe(more))
        else:
            text = seq(self._text_and_next_start(), Ref("messages"))
        content = seq(*pieces(opens), alt(text, last))
        if self.options.choice == "none":
            return content
        return alt(content, seq(Ref("call"), maybe(more) if self.options.parallel else EMPTY))

    def _end_of_open_reasoning(self) -> Node:
        """Return the node of the remainder of a reasoning message that the prompt began, with its end marker and the
        start marker of the next message."""
        closes = self.channels.messages["reasoning"][1]
        return seq(Upto(stop_sequence(pieces(closes)), 0, self.book.bounds.text), *self.start)
