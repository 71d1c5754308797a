"""Replies made of messages with headers:  <|channel|>commentary to=functions.f<|message|>{...}<|call|>"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.constrain.before_call import OPENING
from rightcall.constrain.grammar_value import ReplyFrame
from rightcall.formats.spec import Channels
from rightcall.shapes.algebra import EMPTY, Alt, Free, Node, Ref, Upto, alt, maybe, repeat, seq
from rightcall.shapes.arguments import ArgumentsShape
from rightcall.shapes.marker_pieces import BLANKS, first, pieces, plain, text_of

if TYPE_CHECKING:
    from rightcall.constrain.reply import Replies

_ALLOWED = (":", "\uff1a", ">")  # most texts hold a colon, and headers begin with the last


class Messages:
    """Replies made of messages, each with a header that says what it is. The first has no start."""

    def __init__(self, replies: Replies, channels: Channels) -> None:
        self.replies, self.channels = replies, channels
        self.book, self.options = replies.book, replies.options
        self.start = pieces(first(channels.start))

    def build(self, tools: list[ArgumentsShape]) -> str:
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
        self._lazy()
        if self.options.only_calls:
            return self.replies.plain_start(calls)
        return self.replies.start_with(self.reply(calls, start))

    def _lazy(self) -> None:
        header = self.channels.messages["call"][0]
        head = str(header).partition("{name}")[0]
        others = [str(opens) for kind, (opens, _) in self.channels.messages.items() if kind != "call"]
        told = head.strip(BLANKS) and not any(head in other for other in others)
        self.replies.triggers = (head,) if told else ()
        self.replies.lazy = "calls" if self.replies.triggers else ""

    def call(self, tool: ArgumentsShape) -> list[Node]:
        opens, closes = self.channels.messages["call"]
        if self.replies.kind.named_by_header:
            inside: list[Node] = [tool.json(self.book)]
        else:
            before, after = self.replies.around()
            inside = [*before, *self.replies.call(tool), *after]
        return [*pieces(opens, name=tool.name), *inside, *pieces(closes)]

    def _message(self, kind: str) -> Node:
        """A whole message of text or reasoning that another one follows."""
        opens, closes = self.channels.messages[kind]  # type: ignore[index]
        if str(closes):
            return seq(*pieces(opens), Upto(plain(pieces(closes)), 0, self.book.bounds.text), *self.start)
        return seq(*pieces(opens), self._until_next())

    def _until_next(self) -> Upto:
        """Text up to the next header, of a message that has no end of its own. Unless the header is a line of its own,
        what the text leaves open would show it."""
        own_line = text_of(plain(self.start)).startswith("\n")
        opening = () if own_line else tuple([each for each in OPENING if each not in _ALLOWED])
        return Upto(plain(self.start), 0, self.book.bounds.text, opening)

    def reply(self, calls: Node, start: Node) -> Node:
        options = self.options
        thinking: Node = EMPTY
        if options.reasoning != "none" and "reasoning" in self.channels.messages:
            thinking = self._opened() if options.reasoning == "open" else self._message("reasoning")
            thinking = repeat(thinking, 0, 4) if options.reasoning == "auto" else thinking
        if options.choice == "required":
            before = repeat(self._message("content"), 0, 4) if options.text else EMPTY
            return seq(thinking, before, calls)
        self.book.rules["messages"] = EMPTY
        self.book.rules["messages"] = self._chain(calls, start)
        return seq(thinking, Ref("messages"))

    def _chain(self, calls: Node, start: Node) -> Node:
        """Messages of text and calls, one after the other. The last text may go without its end."""
        opens, closes = self.channels.messages["content"]
        more = seq(start, Ref("messages"))
        without = tuple(dict.fromkeys([str(first(self.channels.start)).strip(BLANKS), *map(str, self.channels.ends)]))
        last = Free(without, self.book.bounds.text)
        if str(closes):
            text: Node = seq(Upto(plain(pieces(closes)), 0, self.book.bounds.text, without[:1]), maybe(more))
        else:
            text = seq(self._until_next(), Ref("messages"))
        content = seq(*pieces(opens), alt(text, last))
        if self.options.choice == "none":
            return content
        return alt(content, seq(Ref("call"), maybe(more) if self.options.parallel else EMPTY))

    def _opened(self) -> Node:
        closes = self.channels.messages["reasoning"][1]
        return seq(Upto(plain(pieces(closes)), 0, self.book.bounds.text), *self.start)
