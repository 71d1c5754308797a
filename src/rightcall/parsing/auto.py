"""The format is not known: text is passed on until an opener tells which it is, and the rest is read in that format.

An opener counts when what follows it can only be a call, and where it is not only shown. A reply that begins like a
bare call is held until it is whole, because then it may be nothing but calls.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import Literal

import msgspec

from rightcall.formats.registered import KnownFormats
from rightcall.formats.spec import Format, Special, alternatives
from rightcall.ids import Ids
from rightcall.parsing.buffer import Sink, TokenMap
from rightcall.parsing.call_builder import MINTED, name_at
from rightcall.parsing.compile import CompiledFormat, compile_format
from rightcall.parsing.known_openers import Candidate, Found, Opener, ends_of, known_openers
from rightcall.parsing.machine import MOST_OPENERS, SHOWN_ENDS, InReasoning, InText, Machine
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.rescue import Piece, fold, quiet
from rightcall.parsing.shown import INNERMOST
from rightcall.types import Event

_BARE = re.compile(r"\s*(?:```|[\[{]|[^\W\d][\w.\-]*(?:\(|\[ARGS\]))").match
_BARE_START = re.compile(r"\s*(?:`{0,3}|[^\W\d][\w.\-]{0,255}+(?:\[[A-Z]{0,4})?)\Z").match
_KEYS = "name|tool|tool_name|tool_calls?|function|type|id|arguments|parameters|args"
_NO_CALL = re.compile(rf'\s*\{{\s*"(?!(?:{_KEYS})")[^"]*"\s*:').match
_PREFIX = 600


@lru_cache(256)
def _ending_with(known: KnownFormats, name: str, others: frozenset[str]) -> Format:
    """The format of that name. The tokens that end a turn may be those of the others that begin alike."""
    format = known.formats[name]
    ends = [end for other in sorted(others) for end in ends_of(known.formats[other]) if isinstance(end, Special)]
    markers = (*format.call, *(format.section or ()), *(format.reasoning or ()))
    own = "".join(text for marker in markers for text in alternatives(marker))
    more = tuple(end for end in dict.fromkeys(ends) if end not in ends_of(format) and end not in own)
    return msgspec.structs.replace(format, ends=format.ends + more) if more else format


def _likeliest(candidates: list[Candidate], text: str) -> CompiledFormat:
    """The first format of which a text may be a malformed body; the first of all if there is none."""
    held = [each.compiled for each in candidates if _may_hold(each.compiled, text)]
    begun = [each.compiled for each in candidates if each.compiled.bodies.begin.at(text, 0, True)]
    return next(iter(held + begun), candidates[0].compiled)


def _may_hold(found: CompiledFormat, text: str) -> bool:
    """Does a text begin with a word where a body of this format begins with its name? More text does not change it."""
    return any(reader.tells is not None and reader.begins.at(text, 0, True) for reader in found.bodies.readers)


class AutoMachine:
    """As `Machine`, for a reply whose format is not known: `machine` reads it in the one that was found so far."""

    def __init__(self, options: ReadOptions, ids: Ids) -> None:
        self._options, self._ids = options, ids
        self._openers = known_openers()
        self.machine = Machine(compile_format(self._openers.plain, reasoning=options.reasoning != "off"), options, ids)
        self._found = False
        self.is_bare = False  # whichever of the formats that begin alike it is, it may call without a marker
        self._among: frozenset[str] = frozenset()  # the formats that marked what was read so far; empty: all
        self._mentions = False  # what opens a thought was only shown
        self._firsts = self._openers.first  # what the text may begin with here, and nowhere else
        self._held = ""  # text being looked at; while the whole reply may be held, only its beginning
        self._at = 0  # how much of it was passed on
        self._is_whole = False  # it is all the text there is
        self._chunks: list[str] = []
        # Inside a thought that the prompt opened a bare call is thought.
        self._maybe_bare = bool(options.tools) and options.rescue != "off" and options.reasoning != "open"
        self._events: list[Event] = []
        self.direct: Sink | None = None  # as that of the machine, once the format was found

    def take(self) -> list[Event]:
        if not self._events:
            return self.machine.take()
        events, self._events = [*self._events, *self.machine.take()], []
        return events

    def feed(self, text: str) -> None:
        if self._found:
            self.machine.feed(text)
            self.direct = self.machine.direct
            return
        if self._maybe_bare:
            self._chunks.append(text)
            self._held = (self._held + text)[:_PREFIX] if len(self._held) < _PREFIX else self._held
            if self._still_bare():
                return
            self._held = "".join(self._chunks)
        else:
            self._held, self._at = self._held[self._at :] + text, 0
        self._go_on(ended=False)

    def feed_all(self, text: str) -> None:
        """As `feed`, with all the text there is: it is read when the machine is closed, its end known."""
        self._held, self._chunks = text[:_PREFIX], [text]
        self._is_whole = True
        if not self._still_bare():
            self._held = text

    @property
    def held(self) -> str:
        """All the text there is, while it may be nothing but calls."""
        return "".join(self._chunks) if self._maybe_bare and not self._found else ""

    def close(self, *, cut: bool = False) -> None:
        if not self._found:
            if self._maybe_bare:
                self._held = "".join(self._chunks)
            self._maybe_bare = False
            self._go_on(ended=True)
        self.machine.close(cut=cut)

    def _begin(self, ended: bool) -> bool:
        """Where a reply begins, or the text of it behind a thought, its first header may tell the format. False where
        nothing more can be told for now."""
        chosen = self._first(ended)
        if chosen is False:
            return False
        self._firsts = []
        if chosen is not None:
            self._switch(chosen)
        return chosen is None

    def _first(self, ended: bool) -> CompiledFormat | Literal[False] | None:
        """The format whose first header stands here; False where more text is needed to tell."""
        builder, first = self.machine.builder, self._firsts
        start = builder.base + len(builder.buf)
        if builder.token_map is not None and builder.token_map.of(start, start + len(self._held) - self._at) is False:
            first = [each for each in first if not each.compiled.openers.has_tokens]
        chosen = self._pick(first, ended)
        return None if isinstance(chosen, CompiledFormat) and not self._may_begin(chosen) else chosen

    def _may_begin(self, chosen: CompiledFormat) -> bool:
        """A header that is a word on a line of its own counts for declared tools: `Result` may be a heading."""
        channels = chosen.format.channels
        if channels is None or channels.message.strip():
            return True
        word = self._held[self._at :].lstrip().partition("\n")[0]
        return word in channels.kinds or self._is_declared(word)

    def _still_bare(self) -> bool:
        """Could the reply still be nothing but bare calls? Then it is held."""
        if self._maybe_bare:
            text = self._held
            is_no_call = _NO_CALL(text) is not None and not self._options.choice
            self._maybe_bare = bool(_BARE(text) or _BARE_START(text)) and not is_no_call
        return self._maybe_bare

    def _give(self, end: int) -> None:
        """Passes held text up to there on, as text."""
        text, self._at = self._held[self._at : end], end
        if text:
            self.machine.feed(text)

    def _go_on(self, *, ended: bool) -> None:
        """Passes text on up to the first opener that counts."""
        while self._at < len(self._held) and not self._found:
            if self._firsts and not self._begin(ended):
                return
            found = self._openers.search(self._held, self._at, ended=ended)
            if found is None:
                self._give(len(self._held))
                return
            self._give(found.start)
            if found.is_begun:
                return
            if found.opener is None:
                self._pass_thought(found.end)
            elif not self._take_opener(found.opener, found, ended):
                return

    def _pass_thought(self, end: int) -> None:
        """Passes the usual end of a thought on. If nothing was said so far, the reply's first header may follow."""
        self._give(end)
        builder, state = self.machine.builder, self.machine.state
        is_over = isinstance(state, InText) and not state.late and builder.pos == len(builder.buf)
        if is_over and self.machine.output.is_silent:
            self._firsts = self._openers.headers

    def _take_opener(self, opener: Opener, found: Found, ended: bool) -> bool:
        """False where nothing more can be told for now."""
        is_shown = self._is_shown(opener, found, ended)
        if is_shown is not False:
            return bool(is_shown)
        chosen = self._choose(opener, ended)
        if isinstance(chosen, CompiledFormat) and self._is_thought(opener):
            self._think_in(chosen, opener)
            chosen = None
        if isinstance(chosen, CompiledFormat) and self._is_shared(opener):
            self._lean(chosen, opener, found)
        elif isinstance(chosen, CompiledFormat):
            self._switch(chosen, self._names(opener))
        elif chosen is None and not self._is_odd(opener, found, ended):
            self._give(self._at + 1)
        else:
            return False
        return True

    def _is_shown(self, opener: Opener, found: Found, ended: bool) -> bool | None:
        """Is the marker only shown? Then it is text, and so is all that it opens. None where more text is needed to
        tell."""
        self.machine.flush_partial_marker()
        openers, shown, builder = self._openers, self.machine.output.shown, self.machine.builder
        if builder.token_map is not None:
            start = len(builder.buf)  # all of it was passed on
            if opener.is_token and builder.is_plain_text(start, start + found.end - found.start):
                self._give(self._at + 1)
                return True
            if builder.is_token(start, start + found.end - found.start):
                return False
        if not shown.shows(opener.level, special=opener.is_special):
            return False
        if opener.pat.whole in openers.thought_closes and self._may_be_late():
            behind = SHOWN_ENDS.at(self._held, found.end, ended)
            if not behind:
                return behind
        self._mentions = self._mentions or opener.pat.whole in openers.thought_opens
        self._give(found.end)
        shown.join_lines()
        shown.enter(opener.level, opener.closes)
        return True

    def _may_be_late(self) -> bool:
        """May the prompt have opened a thought, in which quotation marks and code may be left open?"""
        state = self.machine.state
        return isinstance(state, InText) and state.late and not self._mentions

    def _is_shared(self, opener: Opener) -> bool:
        """Does the marker leave open which of several formats it is?"""
        return opener.level == INNERMOST and len(self._among or opener.names) > 1

    def _is_thought(self, opener: Opener) -> bool:
        """Is the marker only thought of? A special token ends a thought."""
        if not isinstance(self.machine.state, InReasoning) or opener.is_special:
            return False
        return opener.pat.whole not in self._openers.marks

    def _is_odd(self, opener: Opener, found: Found, ended: bool) -> bool:
        """An opener that no call of its format follows is never silent: where a body or the name of a declared tool
        follows, the format is taken for found; else a note says so. True where the text was dealt with, or more of it
        is needed."""
        choices = self._choices(opener)
        if not opener.opens_call or self._is_thought(opener) or not choices:
            return False
        behind = self._held[found.end : found.end + _PREFIX].lstrip()
        name = name_at(behind)
        is_arriving = not behind or (name is not None and name.end() == len(behind))
        opens = self._opens_call(opener, behind, name[0] if name else "", ended)
        if (is_arriving or opens is None) and not ended:
            return True
        if opens:
            if not ended and any(each.compiled.bodies.begin.at(behind, 0, False) is None for each in choices):
                return True
            self._switch(_likeliest(choices, behind), self._names(opener))
            return True
        builder = self.machine.builder
        builder.note("opener_without_call", f"{found.text[:60]!r} opens a call, and none follows")
        if builder.notes["opener_without_call"] >= MOST_OPENERS:
            self._stop_looking()
        return self._found

    def _stop_looking(self) -> None:
        """There were more openers without a call than may be: no later one is looked at."""
        builder = self.machine.builder
        much = f"more than {MOST_OPENERS} openers that hold no call"
        builder.problem("too_large", f"the reply has {much}; the rest was not looked at")
        builder.full = self._found = True
        self._give(len(self._held))
        self._held, self._at = "", 0

    def _opens_call(self, opener: Opener, behind: str, name: str, ended: bool) -> bool | None:
        """What follows an opener, as far as it goes: is it the beginning of a call, if a broken one? None where more
        text is needed to tell."""
        if opener.is_special or self._is_declared(name):
            return True
        if opener.body.whole(behind, 0):
            return True
        found = opener.body.at(behind, 0, ended)
        return None if found is None else bool(found)

    def _is_declared(self, name: str) -> bool:
        return self._options.tools is not None and name in self._options.tools

    def _choose(self, opener: Opener, ended: bool) -> CompiledFormat | Literal[False] | None:
        """The format that this opener begins; False where more text is needed to tell."""
        if not opener.may_follow(self._held, self._at, ended):
            return None
        return self._pick(self._choices(opener), ended)

    def _choices(self, opener: Opener) -> list[Candidate]:
        """The formats that this opener may begin, the one that is read in already before others."""
        if not self._among:
            return opener.candidates
        now = self.machine.compiled.format.name
        within = [each for each in opener.candidates if each.format.name in self._among]
        return sorted(within, key=lambda each: each.format.name != now)

    def _names(self, opener: Opener) -> frozenset[str]:
        """Their names."""
        return opener.names & self._among if self._among else opener.names

    def _pick(self, choices: list[Candidate], ended: bool) -> CompiledFormat | Literal[False] | None:
        waiting = False
        for each in choices:
            at = each.probe.at(self._held, self._at, ended)
            if at:
                return False if waiting else each.compiled
            waiting = waiting or at is None
        return False if waiting else None

    def _lean(self, chosen: CompiledFormat, opener: Opener, found: Found) -> None:
        """Several formats may mark reasoning and content alike: the text is read in one of them, and the opener of a
        call tells which of them it is."""
        if not self._among:
            self._read_in(chosen, "", opener.names)
            self._among = opener.names
        self._give(found.end)

    def _think_in(self, chosen: CompiledFormat, opener: Opener) -> None:
        """An opener that is only thought of opens no call, and tells which of the formats it is all the same."""
        if self._among and chosen.format.name != self.machine.compiled.format.name:
            self._read_in(chosen, "", self._names(opener))

    def _switch(self, chosen: CompiledFormat, others: frozenset[str] = frozenset()) -> None:
        """From here on the text is read in that format."""
        rest, self._held, self._at = self._held[self._at :], "", 0
        formats, self._found = self._openers.known.formats, True
        choices = chain([chosen], (compile_format(formats[name]) for name in others))
        self.is_bare = not others or all(each.bare_calls.can_begin_reply for each in choices)
        if self._among and chosen.format.name == self.machine.compiled.format.name:
            self.machine.feed(rest)
        else:
            self._read_in(chosen, rest, others)

    def _read_in(self, chosen: CompiledFormat, rest: str, others: frozenset[str]) -> None:
        """From here on that format reads, and knows how a turn ends in the others that begin alike."""
        before = self.machine
        self._events += before.take()
        is_read = self._options.reasoning != "off"
        found = compile_format(_ending_with(self._openers.known, chosen.format.name, others), reasoning=is_read)
        in_tags = before.had_reasoning and before.compiled.think_tag is None
        # Its own first state is where the text so far has come to.
        self.machine = Machine(found.with_think_tags if in_tags else found, self._options, self._ids)
        (self.machine.feed_all if self._is_whole and self._found else self.machine.feed)(
            _take_over(self.machine, before) + rest
        )


def _take_over(machine: Machine, before: Machine) -> str:
    """A machine goes on where another stopped. Gives the text that the other had not taken yet."""
    builder, other = machine.builder, before.builder
    before.stop()
    builder.base = other.at
    machine.max_end = before.max_end
    builder.index, builder.output, machine.output = other.index, other.output, other.output
    builder.token_map = other.token_map
    machine.reasoning_start, machine.is_over = before.reasoning_start, before.is_over
    if isinstance(before.state, InReasoning):
        # Where nothing was read yet, the reply's first header may still say what it begins with.
        machine.state = before.state if builder.base or machine.compiled.channels is None else machine.state
    elif isinstance(before.state, InText) and not before.state.late:
        machine.state = InText()
    return other.buf[other.pos :]


def read_auto(text: str, options: ReadOptions, told: TokenMap | None = None) -> Piece:
    """A piece of text in whatever format it is."""
    reading = AutoMachine(quiet(options), Ids.numbered(MINTED))
    reading.machine.builder.token_map = told
    reading.feed(text)
    reading.close()
    return Piece(fold(reading.take(), reading.machine.compiled.format.name), reading.machine.output.spans)
