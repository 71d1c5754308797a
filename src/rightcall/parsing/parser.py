"""Parse text into events and a reply: `Parser` for streams, `parse` for whole texts, `select` for one call.

    parser = Parser("hermes", tools=tools)
    for event in parser.events(stream): ...
    parser.reply

`parse` feeds the whole text and closes the parser: there is only one implementation.
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

_MAX_UNFOLDED = 64  # events


class Parser:
    """Parse one reply as it arrives. `feed` returns the events that the text so far makes certain, `close` the
    remaining ones; `reply` is then the same as that of `parse` for the whole text.

    A parser belongs to one stream; formats and toolsets may be shared. The options are those of `parse`: `format`,
    `tools`, `reasoning`, `repair`, `rescue`, `reasoning_calls`, `choice`, `ids`, `spans` and `limits`. And two:

    - `live`: string arguments are emitted while they arrive, as a preview; `CallEnd` has the call that counts.
    - `hold`: text that may turn out to be reasoning or a call waits, so that no `Recast` takes anything back.

    Raises `UnknownFormat`, `BadTools` and `CallerError` for invalid options, never because of what a model wrote.
    """

    __slots__ = ("_closed", "_fold", "_hold", "_reading", "_source", "_token_map", "_unfolded")

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
        self._source: list[str] = []
        self._token_map: TokenMap | None = None
        self._fold = Fold()
        self._unfolded: list[Event] = []  # events that are not part of the reply yet
        self._closed = False
        self._hold = Hold() if hold else None

    def feed(self, text: str, special: bool | None = None) -> list[Event]:
        """Parse a piece of text and return the events that it makes certain. Raises `CallerError` after `close`,
        and for anything but a str.

        - `text`: the next piece, of any size.
        - `special`: for callers who decode token by token. True: the text is exactly one special token; False: it is
          plain text; None: unknown. A marker that came as a special token counts everywhere, in code too, and the same
          letters in plain text never do. Markers that are tags and no special tokens of their format are recognized as
          always.
        """
        direct, source = self._reading.direct, self._source
        if direct is not None and special is None and self._hold is None and type(text) is str:
            events = direct(text)
            if events is not None:
                source.append(text)
                return events  # deltas of arguments, which are not part of the reply
        if self._closed:
            raise CallerError("this parser is closed; a new reply needs a new Parser")
        if not isinstance(text, str):
            raise _no_text(text)
        if not text:
            return []
        if special is not None or self._token_map is not None:
            self._record_kind(text, special)
        self._source.append(text)
        events = self._reading.read(text)
        if events:
            self._unfolded += events
            if len(self._unfolded) > _MAX_UNFOLDED:
                self._add_up()
        return events if self._hold is None else self._hold.pass_on(events, closed=False)

    def _add_up(self) -> None:
        """Add the events that are not part of the reply yet to it, and forget them."""
        self._fold.add(self._unfolded)
        self._unfolded.clear()

    def _record_kind(self, text: str, special: bool | None) -> None:
        """Record for the machine whether this piece, which is not in `_source` yet, is a special token (None: unknown).
        The first call creates the map; text before that piece is of unknown kind."""
        if self._token_map is None:
            self._token_map = TokenMap(sum(map(len, self._source)))
            self._reading.set_token_map(self._token_map)
        self._token_map.append(len(text), special)

    def close(self, finish: str | None = None) -> list[Event]:
        """End the stream and return the events that only the end decides. Closing twice does nothing and returns [].

        `finish` is the finish reason of the provider. `length`, `content_filter`, `error` or a provider's word for one
        of them (`max_tokens`, `SAFETY`) means that the reply was truncated: then nothing is rescued, and no call is
        taken out of reasoning.
        """
        if self._closed:
            return []
        self._closed = True
        conclude(self._reading, "".join(self._source), finish)
        events = self._reading.take()
        self._unfolded += events
        return events if self._hold is None else self._hold.pass_on(events, closed=True)

    @overload
    def events(self, chunks: Iterable[str]) -> Iterator[Event]: ...
    @overload
    def events(self, chunks: AsyncIterable[str]) -> AsyncIterator[Event]: ...
    def events(self, chunks: Iterable[str] | AsyncIterable[str]) -> Iterator[Event] | AsyncIterator[Event]:
        """Return all events of a stream: feed every piece of `chunks`, then close. Use `async for` with an async
        stream."""
        return all_events(self, chunks)

    @property
    def reply(self) -> Reply:
        """Return what was parsed so far, also what `hold` keeps back; whole once the parser is closed."""
        self._add_up()
        return _reply(self._fold, self._reading)


# Words on one line with the punctuation of prose. Every marker, bare call and near miss of a built-in format needs
# another character. Headers that lost their special tokens do not, but all of them contain "assistant".
_PLAIN_SENTENCE = re.compile(r"\w++(?:[.,;!?\u2026]?+ \w++|['\u2019-]\w++)*+[.!?\u2026]*+").fullmatch
_MAX_SENTENCE = 1_000  # characters; parsing a longer text costs less than this search


def is_plain_sentence(text: str) -> bool:
    """Return whether "auto" certainly parses this whole reply as one text without problems: words on one line with
    punctuation, without "assistant", at most 1,000 characters. False if in doubt, for the empty text, and if formats
    are registered."""
    if len(text) > _MAX_SENTENCE or "assistant" in text or _PLAIN_SENTENCE(text) is None:
        return False
    return len(known_formats().formats) == len(FORMATS)


def format_of(parser: Parser) -> str:
    """Return the name of the format that the parser uses; "auto" while it is not known."""
    return _machine(parser._reading).format_name


def _machine(reading: Machine | AutoMachine) -> Machine:
    """Return the machine itself, or the one inside an `AutoMachine`."""
    return reading.machine if isinstance(reading, AutoMachine) else reading


def _reply(fold: Fold, reading: Machine | AutoMachine) -> Reply:
    """Return the reply that the events in `fold` make, with the machine's format and, if the options ask for them, its
    spans (else None)."""
    machine = _machine(reading)
    return fold.reply(
        machine.format_name, tuple(machine.output.spans.to_list()) if machine.builder.options.spans else None
    )


def _start(format: str | Format, options: ReadOptions, ids: Ids | None) -> Machine | AutoMachine:
    """Return a new machine for a format, an `AutoMachine` for "auto". Without `ids` those of the calls are unique in
    this reply only. With reasoning "off" the format's reasoning markers are text. Raises `UnknownFormat` for a name or
    alias of no format."""
    if format == "auto":
        return AutoMachine(options, ids or Ids())
    return Machine(compile_format(find(format), reasoning=options.reasoning != "off"), options, ids or Ids())


def _no_text(given: object) -> CallerError:
    """Return, not raise, the error for an input that is not text, with what to pass instead."""
    if given is None:
        cure = 'an answer without text is "" (`message.content or ""`)'
    elif isinstance(given, (bytes, bytearray)):
        cure = "decode bytes first: data.decode()"
    else:
        cure = "give a provider's answer to rightcall.read, its chunks to rightcall.Stream"
    return CallerError(f"a model's text is a str, not {type(given).__name__}; {cure}")


def _feed_pairs(reading: Machine | AutoMachine, pairs: Iterable[tuple[str, bool | None]]) -> str:
    """Feed pairs of text and whether it is a special token to a machine, but no empty text, and return the whole text.
    Text before the first piece of known kind is of unknown kind; without such a piece no token map is set. Raises
    `CallerError` for an input that cannot hold pairs, and at the first item that is no tuple of two; the items before
    it are fed then."""
    if isinstance(pairs, (bytes, bytearray, Mapping)) or not isinstance(pairs, Iterable):
        raise _no_text(pairs)
    token_map: TokenMap | None = None  # from the first piece of known kind on
    pieces: list[str] = []
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2:
            raise CallerError(f"parse takes a text, or pairs (text, special), not {pair!r:.80}")
        text, special = pair
        if text:
            if token_map is None and special is not None:
                token_map = TokenMap(sum(map(len, pieces)))
                reading.set_token_map(token_map)
            if token_map is not None:
                token_map.append(len(text), special)
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
    """Parse a model's whole text and return the reply. Never raises because of what the text is.

    - `text`: what the model wrote; or pairs of text and whether it came as a special token, as `Parser.feed` takes
      them.
    - `tools`: what may be called: functions, definitions of any provider, a `Toolset`, or a list of these. None: names
      and arguments are not checked.
    - `format`: a name or alias of `rightcall.formats`, or a `Format`. "auto" detects it.
    - `reasoning`: "auto" reads thinking sections as reasoning; "open": the prompt has opened one; "off" leaves
      them in the text.
    - `repair`: "safe" makes unambiguous changes, and guesses only for tools declared `read_only`; "lenient" guesses for
      all; "off" changes nothing. A dict sets it by tool, `{"delete_file": "off", "*": "safe"}`.
    - `rescue`: whether calls outside the format count. "safe" accepts them only where the text can hardly be anything
      else; "off" never does. Text that resembles a call and is not accepted gets a note.
    - `reasoning_calls`: "safe" takes calls out of reasoning where the model put its answer there; "never" leaves them.
    - `choice`: the tool choice of the request, in any notation of a provider. If it names one tool, bare arguments are
      its arguments; if it is "none", no call is runnable.
    - `finish`: the finish reason of the provider; see `Parser.close`.
    - `ids`: the ids of the conversation, so that none is repeated; without it they are unique in this reply.
    - `spans`: fill `Reply.spans`.
    - `limits`: how much is parsed; None for the defaults.

    Raises `CallerError` for an input that is not text and for an invalid option, `UnknownFormat`, and `BadTools` for
    invalid tools of your own.
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

    - `text`: what the model wrote. - `tools`, `format`, `repair`: as in `parse`.

    Raises `NoToolCallFound` if there is no call, or only ones that are rejected for a missing name; if no call is
    runnable, what is wrong with the first other one: `UnknownTool` or `MalformedArguments`; and what `parse` raises.
    """
    reply = parse(text, tools=tools, format=format, repair=repair)  # type: ignore[arg-type]
    if reply.calls:
        return reply.calls[0]
    for call in reply.attempts:
        wrong = check(call, tools)[0]
        if call.name.strip() or wrong.code != "invalid_name":
            raise as_error(wrong, call.name)
    raise NoToolCallFound
