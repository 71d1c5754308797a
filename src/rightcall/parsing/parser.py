"""`Parser` and `parse`: text in, events and a reply out.

    parser = Parser("hermes", tools=tools)
    for event in parser.events(stream): ...
    parser.reply

Parsing a whole text is feeding it and closing: there is no second implementation to disagree with.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Literal, overload

from rightcall.errors import CallerError, NoToolCallFound
from rightcall.formats import FORMATS, find, known_formats
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.auto import AutoMachine
from rightcall.parsing.buffer import TokenMap
from rightcall.parsing.compile import compile_format
from rightcall.parsing.ending import conclude
from rightcall.parsing.events import Fold, Hold, all_events
from rightcall.parsing.machine import Machine
from rightcall.parsing.options import Limits, Policy, ReadOptions, ReasoningCalls, Rescue, read_options
from rightcall.tools.checks import check
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Call, Event, Reply, as_error

_MOST_GIVEN = 64  # events


class Parser:
    """Reads one reply as it arrives. `feed` gives the events that the text so far has made certain, `close` the rest;
    `reply` is then the one that `parse` makes of the whole text.

    A parser belongs to one stream; formats and toolsets may be shared. The options are those of `parse`: `format`,
    `tools`, `reasoning`, `repair`, `rescue`, `reasoning_calls`, `choice`, `ids`, `spans` and `limits`. And two:

    - `live`: string arguments go out while they arrive, as a preview; `CallEnd` has the call that counts.
    - `hold`: text that may turn out to be reasoning or a call waits, so that nothing is ever taken back by a `Recast`.

    Raises `UnknownFormat` and `CallerError` for options that cannot be; never because of what a model wrote.
    """

    __slots__ = ("_closed", "_fold", "_given", "_hold", "_read", "_reading", "_source", "_take_events", "_told")

    def __init__(
        self,
        format: str | Format = "auto",
        *,
        tools: Toolset | Iterable[ToolLike] | None = None,
        reasoning: Literal["auto", "open", "off"] = "auto",
        repair: Policy | Mapping[str, Policy] = "safe",
        rescue: Rescue = "safe",
        reasoning_calls: ReasoningCalls = "safe",
        choice: str | Mapping[str, Any] | None = None,
        ids: Ids | None = None,
        spans: bool = False,
        live: bool = False,
        hold: bool = False,
        limits: Limits | None = None,
    ) -> None:
        options = read_options(tools, reasoning, repair, rescue, reasoning_calls, choice, spans, live, limits)
        self._reading = _start(format, options, ids)
        self._read, self._take_events = self._reading.feed, self._reading.take
        self._source: list[str] = []
        self._told: TokenMap | None = None
        self._fold = Fold()
        self._given: list[Event] = []  # events that were not added up yet
        self._closed = False
        self._hold = Hold() if hold else None

    def feed(self, text: str, special: bool | None = None) -> list[Event]:
        """The events that this piece of text made certain. Raises `CallerError` once the parser is closed.

        - `text`: the next piece, of any size.
        - `special`: for those who decode token by token. True: the text is exactly one special token; False: it is
          plain text; None: that is not known. A marker that came as a special token counts wherever it stands, in code
          too, and the same letters in plain text never do. Markers that are tags and no special tokens of their format
          are told from shown ones as always.
        """
        direct, source = self._reading.direct, self._source
        if direct is not None and special is None and self._hold is None and type(text) is str:
            events = direct(text)
            if events is not None:
                source.append(text)
                return events  # nothing but arguments, which the reply has no use for
        if self._closed:
            raise CallerError("this parser is closed; a new reply needs a new Parser")
        if not isinstance(text, str):
            raise _no_text(text)
        if not text:
            return []
        if special is not None or self._told is not None:
            self._tell(text, special)
        self._source.append(text)
        self._read(text)
        events = self._take_events()
        if events:
            self._given += events
            if len(self._given) > _MOST_GIVEN:
                self._add_up()
        return events if self._hold is None else self._hold.pass_on(events, closed=False)

    def _add_up(self) -> None:
        self._fold.add(self._given)
        self._given.clear()

    def _tell(self, text: str, special: bool | None) -> None:
        if self._told is None:
            self._told = TokenMap(sum(map(len, self._source)))
            machine = _machine(self._reading)
            machine.builder.token_map = self._told
            machine.direct = self._reading.direct = None  # each piece is recorded from here on
        self._told.add(len(text), special)

    def close(self, finish: str | None = None) -> list[Event]:
        """The stream ended: the events that only the end could decide. Closing twice does nothing.

        `finish` is how the provider says that the answer ended: `length`, `content_filter`, `error` or its own word for
        one of them (`max_tokens`, `SAFETY`) means that it was cut off, and then nothing is rescued and nothing taken
        out of reasoning.
        """
        if self._closed:
            return []
        self._closed = True
        conclude(self._reading, "".join(self._source), finish)
        events = self._take_events()
        self._given += events
        return events if self._hold is None else self._hold.pass_on(events, closed=True)

    @overload
    def events(self, chunks: Iterable[str]) -> Iterator[Event]: ...
    @overload
    def events(self, chunks: AsyncIterable[str]) -> AsyncIterator[Event]: ...
    def events(self, chunks: Iterable[str] | AsyncIterable[str]) -> Iterator[Event] | AsyncIterator[Event]:
        """All the events of a stream: feeds every piece of `chunks`, then closes. Over an async stream with `async
        for`."""
        return all_events(self, chunks)

    @property
    def reply(self) -> Reply:
        """What has been read so far; whole once the parser is closed."""
        self._add_up()
        return _reply(self._fold, self._reading)


# Words on one line with the punctuation of prose. Every marker, bare call and near miss of a built-in format needs
# another character. Headers that lost their special tokens do not, but all of them contain "assistant".
_PLAIN_SENTENCE = re.compile(r"\w++(?:[.,;!?\u2026]?+ \w++|['\u2019-]\w++)*+[.!?\u2026]*+").fullmatch
_MAX_SENTENCE = 1_000  # characters; parsing a longer text costs less than this search


def is_plain_sentence(text: str) -> bool:
    """Does "auto" certainly parse this whole reply as one text without problems? False if formats are registered."""
    if len(text) > _MAX_SENTENCE or "assistant" in text or _PLAIN_SENTENCE(text) is None:
        return False
    return len(known_formats().formats) == len(FORMATS)


def format_of(parser: Parser) -> str:
    """The name of the format that its text is read in, as far as that is known."""
    return _machine(parser._reading).format_name


def _machine(reading: Machine | AutoMachine) -> Machine:
    return reading.machine if isinstance(reading, AutoMachine) else reading


def _reply(fold: Fold, reading: Machine | AutoMachine) -> Reply:
    machine = _machine(reading)
    return fold.reply(machine.format_name, tuple(machine.output.spans) if machine.builder.options.spans else None)


def _start(format: str | Format, options: ReadOptions, ids: Ids | None) -> Machine | AutoMachine:
    if format == "auto":
        return AutoMachine(options, ids or Ids())
    return Machine(compile_format(find(format), reasoning=options.reasoning != "off"), options, ids or Ids())


def _no_text(given: object) -> CallerError:
    """What to pass instead of what is no text."""
    if given is None:
        cure = 'an answer without text is "" (`message.content or ""`)'
    elif isinstance(given, (bytes, bytearray)):
        cure = "decode bytes first: data.decode()"
    else:
        cure = "give a provider's answer to rightcall.read, its chunks to rightcall.Stream"
    return CallerError(f"a model's text is a str, not {type(given).__name__}; {cure}")


def _feed_pairs(reading: Machine | AutoMachine, pairs: Iterable[tuple[str, bool | None]]) -> str:
    """Reads text of which it is known what came as special tokens. Gives the whole text."""
    if isinstance(pairs, (bytes, bytearray, Mapping)) or not isinstance(pairs, Iterable):
        raise _no_text(pairs)
    told: TokenMap | None = None  # while nothing was said of any piece, as in a text
    pieces: list[str] = []
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2:
            raise CallerError(f"parse takes a text, or pairs (text, special), not {pair!r:.80}")
        text, special = pair
        if text:
            if told is None and special is not None:
                told = _machine(reading).builder.token_map = TokenMap(sum(map(len, pieces)))
            if told is not None:
                told.add(len(text), special)
            reading.feed(text)
            pieces.append(text)
    return "".join(pieces)


def parse(
    text: str | Iterable[tuple[str, bool | None]],
    *,
    tools: Toolset | Iterable[ToolLike] | None = None,
    format: str | Format = "auto",
    reasoning: Literal["auto", "open", "off"] = "auto",
    repair: Policy | Mapping[str, Policy] = "safe",
    rescue: Rescue = "safe",
    reasoning_calls: ReasoningCalls = "safe",
    choice: str | Mapping[str, Any] | None = None,
    finish: str | None = None,
    ids: Ids | None = None,
    spans: bool = False,
    limits: Limits | None = None,
) -> Reply:
    """The reply that a model's whole text holds. Never raises because of what the text is.

    - `text`: what the model wrote; or pairs of text and whether it came as a special token, as `Parser.feed` takes
      them.
    - `tools`: what may be called: functions, definitions of any provider, a `Toolset`, or a list of these. None: names
      and arguments are not checked.
    - `format`: a name or alias of `rightcall.formats`, or a `Format`. "auto" finds out which it is.
    - `reasoning`: "auto" reads thinking sections as reasoning; "open": the prompt has begun one already; "off" leaves
      them in the text.
    - `repair`: "safe" makes the changes that leave no doubt, and guesses only for tools declared `read_only`; "lenient"
      guesses for all; "off" changes nothing. A dict says it by tool, `{"delete_file": "off", "*": "safe"}`.
    - `rescue`: whether calls that are not written in the format count. "safe" accepts them only where the text can
      hardly be anything else; "off" never does. Text that resembles a call and is not accepted gets a note.
    - `reasoning_calls`: "safe" takes calls out of reasoning where the model put its answer there; "never" leaves them.
    - `choice`: the request's tool choice, in any provider's spelling. Where it names one tool, bare arguments are that
      tool's; where it is "none", nothing may be called.
    - `finish`: how the provider says that the answer ended; see `Parser.close`.
    - `ids`: the ids of the conversation, so that none comes twice; without it they are unique in this reply.
    - `spans`: fill `Reply.spans`.
    - `limits`: how much is read; None for the usual.

    Raises `CallerError` for what is no text, `UnknownFormat`, and `BadTools` for tools of your own that cannot be used.
    """
    options = read_options(tools, reasoning, repair, rescue, reasoning_calls, choice, spans, False, limits, False)
    reading = _start(format, options, ids)
    source = text if isinstance(text, str) else _feed_pairs(reading, text)
    if source is text and text:
        reading.feed_all(source)
    conclude(reading, source, finish)
    fold = Fold()
    fold.add(reading.take())
    return _reply(fold, reading)


def select(
    text: str, tools: Toolset | Iterable[ToolLike] | None, *, format: str | Format = "auto", repair: str = "safe"
) -> Call:
    """Return the first runnable call of a text, for callers who want one call or an exception. A block that names no
    tool is not a call.

    - `text`: what the model wrote.
    - `tools`, `format`, `repair`: as in `parse`.

    Raises `NoToolCallFound`, or if there are calls and none is runnable, what is wrong with the first: `UnknownTool` or
    `MalformedArguments`.
    """
    reply = parse(text, tools=tools, format=format, repair=repair)  # type: ignore[arg-type]
    if reply.calls:
        return reply.calls[0]
    for call in reply.attempts:
        wrong = check(call, tools)[0]
        if call.name.strip() or wrong.code != "invalid_name":
            raise as_error(wrong, call.name)
    raise NoToolCallFound
