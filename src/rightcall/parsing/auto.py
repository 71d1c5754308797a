"""Find the format of a reply: pass text on until an opener tells the format, then parse the remainder in it.

An opener counts if what follows it can only be a call, and if it is not only shown. A reply that begins like a bare
call is held until it is complete, because it may be nothing but calls.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import Literal

import msgspec

from rightcall.formats.registered import KnownFormats
from rightcall.formats.spec import Format, Special, marker_alternatives
from rightcall.ids import Ids
from rightcall.parsing.buffer import Sink, TokenMap
from rightcall.parsing.call_builder import MINTED, name_at
from rightcall.parsing.compile import CompiledFormat, compile_format, ends_of
from rightcall.parsing.known_openers import Candidate, FoundOpener, Opener, known_openers
from rightcall.parsing.machine import MOST_OPENERS, SHOWN_ENDS, InReasoning, InText, Machine
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.rescue import Piece, fold, quiet
from rightcall.parsing.shown import INNERMOST
from rightcall.types import Event

_BARE_CALL = re.compile(r"\s*(?:```|[\[{]|[^\W\d][\w.\-]*(?:\(|\[ARGS\]))").match
_PARTIAL_BARE_CALL = re.compile(r"\s*(?:`{0,3}|[^\W\d][\w.\-]{0,255}+(?:\[[A-Z]{0,4})?)\Z").match
_KEYS = "name|tool|tool_name|tool_calls?|function|type|id|arguments|parameters|args"
_OTHER_OBJECT = re.compile(rf'\s*\{{\s*"(?!(?:{_KEYS})")[^"]*"\s*:').match
_MAX_BEGINNING = 600


@lru_cache(256)
def _with_ends_of(known: KnownFormats, name: str, others: frozenset[str]) -> Format:
    """Return the format `name`, in which the special tokens that end a turn or message in the formats `others` also end
    one, unless they are in its opening and closing markers of calls, sections or reasoning. The format itself if there
    are none to add."""
    format = known.formats[name]
    ends = [end for other in sorted(others) for end in ends_of(known.formats[other]) if isinstance(end, Special)]
    markers = (*format.call, *(format.section or ()), *(format.reasoning or ()))
    own = "".join(text for marker in markers for text in marker_alternatives(marker))
    more = tuple(end for end in dict.fromkeys(ends) if end not in ends_of(format) and end not in own)
    return msgspec.structs.replace(format, ends=format.ends + more) if more else format


def _likeliest_format(candidates: list[Candidate], text: str) -> CompiledFormat:
    """Return the format of one of the candidates of an opener, by `text`, which follows the opener: the first in which
    it begins a body whose reader can tell it from prose (`BodyReader.tells`), else the first in which it may begin a
    malformed body, else that of the first candidate."""
    named = [
        each.compiled
        for each in candidates
        if any(reader.tells is not None and reader.begins.at(text, 0, True) for reader in each.compiled.bodies.readers)
    ]
    begun = [each.compiled for each in candidates if each.compiled.bodies.begin.at(text, 0, True)]
    return next(iter(named + begun), candidates[0].compiled)


class AutoMachine:
    """A `Machine` for a reply whose format is not known. `machine` parses it in the format found so far."""

    def __init__(self, options: ReadOptions, ids: Ids) -> None:
        self._options = options
        self._openers = known_openers()
        self.machine = Machine(compile_format(self._openers.plain, reasoning=options.reasoning != "off"), options, ids)
        self._found = False
        self.is_bare = False  # every possible format has calls without markers
        self._formats: frozenset[str] = frozenset()  # the formats whose markers were read; empty: any
        self._has_shown_thought = False  # the opener of a thought was shown as text
        self._firsts = self._openers.first  # formats that may begin at this place
        self._held = ""  # text that is not passed on yet; while the whole reply is held, only its beginning
        self._at = 0  # how much of it is passed on
        self._is_text_complete = False  # the whole text is known
        self._chunks: list[str] = []
        # In a thought that the prompt opened, a bare call is part of the thought.
        self._may_be_bare = bool(options.tools) and options.rescue != "off" and options.reasoning != "open"
        self._events: list[Event] = []
        self.direct: Sink | None = None  # that of the machine, once the format is found

    def take(self) -> list[Event]:
        """Return the events that may go out, first those of earlier machines, and forget them; each is returned
        once."""
        if not self._events:
            return self.machine.take()
        events, self._events = [*self._events, *self.machine.take()], []
        return events

    def set_token_map(self, token_map: TokenMap | None) -> None:
        """Set which text is special tokens, or None for unknown. It also ends direct access to the sink, so that each
        piece is recorded first."""
        self.machine.set_token_map(token_map)
        self.direct = None

    def read(self, text: str) -> list[Event]:
        """Parse the next piece of text, or hold it, and return the events that may go out now."""
        self.feed(text)
        return self.take()

    def feed(self, text: str) -> None:
        """Parse the next piece of text; `take` returns its events. All of a reply that may still be nothing but bare
        calls is held. After that, until the format is found, only an opener that is not decided yet is held, or the
        beginning of an opener or of a first header. `direct` is None up to the piece that shows the format, then
        that of the machine."""
        if self._found:
            self.machine.feed(text)
            self.direct = self.machine.direct
            return
        if self._may_be_bare:
            self._chunks.append(text)
            self._held = (self._held + text)[:_MAX_BEGINNING] if len(self._held) < _MAX_BEGINNING else self._held
            if self._can_still_be_bare():
                return
            self._held = "".join(self._chunks)
        else:
            self._held, self._at = self._held[self._at :] + text, 0
        self._advance(ended=False)

    def feed_all(self, text: str) -> None:
        """Set the whole text of the reply without parsing it: `close` parses it with its end known. It also decides
        whether the reply may be nothing but bare calls; while it may, `_held` is only its first 600 characters."""
        self._held, self._chunks = text[:_MAX_BEGINNING], [text]
        self._is_text_complete = True
        if not self._can_still_be_bare():
            self._held = text

    @property
    def undecided_text(self) -> str:
        """Return the whole text so far while it may be nothing but bare calls; "" once it may not, also if the format
        is not found yet, or the reply is closed."""
        return "".join(self._chunks) if self._may_be_bare and not self._found else ""

    def close(self, *, cut: bool = False) -> None:
        """Parse what is held, if the format is not found, and close the machine, also if none was found. After that the
        reply counts as no bare call. `cut`: the reply was truncated."""
        if not self._found:
            if self._may_be_bare:
                self._held = "".join(self._chunks)
            self._may_be_bare = False
            self._advance(ended=True)
        self.machine.close(cut=cut)

    def _find_first_header(self, ended: bool) -> bool:
        """Test whether the held text begins with what only the beginning of a reply identifies (`_firsts`), such as a
        header without its start, and if so take its format. Return False then, or if more text is needed; True if
        openers must be searched for: it does not, or the header is a word on its own line that is neither a kind of
        message nor a declared tool. Once decided, `_firsts` is empty. In text that is known to have no tokens, formats
        whose openers are tokens do not count. `ended`: no more text comes."""
        builder, first = self.machine.builder, self._firsts
        start = len(builder.buf)  # all of it was passed on
        if builder.is_plain_text(start, start + len(self._held) - self._at):
            first = [each for each in first if not each.compiled.openers.has_tokens]
        chosen = self._first_match(first, ended)
        if chosen is False:
            return False
        self._firsts = []
        if chosen is None:
            return True
        channels = chosen.format.channels
        if channels is not None and not channels.message.strip():
            # A header that is a word on a line of its own counts only for declared tools: `Result` may be a heading.
            word = self._held[self._at :].lstrip().partition("\n")[0]
            if word not in channels.kinds and not self.machine.builder.is_declared(word):
                return True
        self._take_format(chosen)
        return False

    def _can_still_be_bare(self) -> bool:
        """Return whether the reply may still be nothing but bare calls, by the beginning of the held text; while it
        may, all of it is held. An object whose first key is none of a call rules that out, unless the request names a
        tool. Once False it stays False."""
        if self._may_be_bare:
            text = self._held
            is_no_call = _OTHER_OBJECT(text) is not None and not self._options.choice
            self._may_be_bare = bool(_BARE_CALL(text) or _PARTIAL_BARE_CALL(text)) and not is_no_call
        return self._may_be_bare

    def _pass_on(self, end: int) -> None:
        """Feed the held text up to this index to the current machine, which emits it as text or reasoning."""
        text, self._at = self._held[self._at : end], end
        if text:
            self.machine.feed(text)

    def _advance(self, *, ended: bool) -> None:
        """Pass held text on up to the first opener that counts and tells the format, and parse the remainder in it.
        Text before it, openers that are text, and `</think>` are passed on too. An opener that needs more text to be
        decided stays held, as does a partial one at the end unless `ended`."""
        while self._at < len(self._held) and not self._found:
            if self._firsts and not self._find_first_header(ended):
                return
            found = self._openers.search(self._held, self._at, ended=ended)
            if found is None:
                self._pass_on(len(self._held))
                return
            self._pass_on(found.start)
            if found.is_begun:
                return
            if found.opener is None:
                self._pass_thought(found.end)
            elif not self._take_opener(found.opener, found, ended):
                return

    def _pass_thought(self, end: int) -> None:
        """Feed the held text up to index `end`, which ends with `</think>`, to the machine. If that is outside of
        reasoning then, has taken all of it, and the reply has neither text nor a call yet, its first header may follow,
        so `_firsts` is set."""
        self._pass_on(end)
        builder, state = self.machine.builder, self.machine.state
        is_over = isinstance(state, InText) and not state.late and builder.pos == len(builder.buf)
        if is_over and self.machine.output.is_silent:
            self._firsts = self._openers.headers

    def _take_opener(self, opener: Opener, found: FoundOpener, ended: bool) -> bool:
        """Handle `opener`, which begins at the current place of the held text (`found`). If it is only shown, in a
        thought (special tokens and distinctive marks excepted), or no call follows (for openers of calls and sections a
        note reports that), it is text, of which at least one character is passed on. Otherwise its format is taken, or,
        for a mark of several formats, these become the only possible ones. Return True to search on; False if more text
        is needed or `_report_unmatched` took the text. `ended`: no more text comes."""
        is_shown = self._take_shown(opener, found, ended)
        if is_shown is not False:
            return bool(is_shown)
        choices, now = opener.candidates, self.machine.compiled.format.name
        if self._formats:
            within = [each for each in choices if each.format.name in self._formats]
            choices = sorted(within, key=lambda each: each.format.name != now)  # the current one first
        names = opener.names & self._formats if self._formats else opener.names
        chosen = self._first_match(choices, ended) if opener.may_follow(self._held, self._at, ended) else None
        if chosen is False:
            return False
        # A marker in a thought is only part of it, except a special token, which ends the thought.
        is_thought = isinstance(self.machine.state, InReasoning) and not opener.is_special
        if is_thought and opener.pat.whole not in self._openers.marks:
            # It opens no call, but decides between the possible formats.
            if chosen is not None and self._formats and chosen.format.name != now:
                self._start_machine(chosen, "", names)
            self._pass_on(self._at + 1)
        elif chosen is None:
            if opener.opens_call and choices and self._report_unmatched(opener, found, choices, names, ended):
                return False
            self._pass_on(self._at + 1)
        elif opener.level == INNERMOST and len(self._formats or opener.names) > 1:
            # Several formats mark reasoning or content alike. The opener of a call will decide between them.
            if not self._formats:
                self._start_machine(chosen, "", opener.names)
                self._formats = opener.names
            self._pass_on(found.end)
        else:
            self._take_format(chosen, names)
        return True

    def _take_shown(self, opener: Opener, found: FoundOpener, ended: bool) -> bool | None:
        """Pass an opener, at the place `found`, on as text and return True if it is only shown, or (only its first
        character) is known to be plain text. Return False if it counts, as a known special token does, None if more
        text is needed; nothing is passed on then. Before that the machine parses all text that it has, also a partial
        marker at its end. `ended`: no more text comes."""
        self.machine.flush_partial_marker()
        openers, shown, builder = self._openers, self.machine.output.shown, self.machine.builder
        if builder.token_map is not None:
            start = len(builder.buf)  # all of it is passed on
            if opener.is_token and builder.is_plain_text(start, start + found.end - found.start):
                self._pass_on(self._at + 1)
                return True
            if builder.is_token(start, start + found.end - found.start):
                return False
        if not shown.shows(opener.level, special=opener.is_special):
            return False
        state = self.machine.state
        is_late = isinstance(state, InText) and state.late and not self._has_shown_thought
        if opener.pat.whole in openers.thought_closes and is_late:
            # The prompt may have opened a thought, in which quotation marks and code may be left open.
            behind = SHOWN_ENDS.at(self._held, found.end, ended)
            if not behind:
                return behind
        self._has_shown_thought = self._has_shown_thought or opener.pat.whole in openers.thought_opens
        self._pass_on(found.end)
        shown.join_lines()
        shown.enter(opener.level, opener.closes)
        return True

    def _report_unmatched(
        self, opener: Opener, found: FoundOpener, choices: list[Candidate], names: frozenset[str], ended: bool
    ) -> bool:
        """Handle an opener that the text behind it shows to open no regular call of its possible formats (`choices`, by
        name `names`). If it is a special token, or a malformed body or a declared tool's name follows, take the
        likeliest format, which reports the call; if a body may still be arriving, only when that is decided. Otherwise
        add the note `opener_without_call`; after 32 of them they are only counted.

        Return False if the caller must pass the opener on as text. Return True if a format was taken, if more text is
        needed, or beyond the limit of such openers: then the remainder is text, after a `too_large` problem.
        """
        behind = self._held[found.end : found.end + _MAX_BEGINNING].lstrip()
        name = name_at(behind)
        is_arriving = not behind or (name is not None and name.end() == len(behind))
        is_certain = opener.is_special or (name is not None and self.machine.builder.is_declared(name[0]))
        opens = True if is_certain or opener.body.whole(behind, 0) else opener.body.at(behind, 0, ended)
        if (is_arriving or opens is None) and not ended:
            return True
        if opens:
            if ended or all(each.compiled.bodies.begin.at(behind, 0, False) is not None for each in choices):
                self._take_format(_likeliest_format(choices, behind), names)
            return True
        builder = self.machine.builder
        builder.note("opener_without_call", f"{found.text[:60]!r} opens a call, and none follows")
        if builder.notes["opener_without_call"] >= MOST_OPENERS:
            much = f"more than {MOST_OPENERS} openers that hold no call"
            builder.problem("too_large", f"the reply has {much}; the rest was not looked at")
            builder.full = self._found = True
            self._pass_on(len(self._held))
            self._held, self._at = "", 0
        return self._found

    def _first_match(self, choices: list[Candidate], ended: bool) -> CompiledFormat | Literal[False] | None:
        """Return the first of these formats whose probe matches at the current place of the held text, None if none
        does, False if more text is needed to decide, also about a format before the one that matches. Nothing is taken.
        `ended`: no more text comes."""
        waiting = False
        for each in choices:
            at = each.probe.at(self._held, self._at, ended)
            if at:
                return False if waiting else each.compiled
            waiting = waiting or at is None
        return False if waiting else None

    def _take_format(self, chosen: CompiledFormat, others: frozenset[str] = frozenset()) -> None:
        """Parse the remaining held text in this format, which is now certain; a new machine continues in the state of
        the current one, unless that has this format already. `others`: the names of the formats with the same opener,
        whose turn ends the new machine also knows. Sets `is_bare`: whether all these formats have calls without
        markers; True without others."""
        rest, self._held, self._at = self._held[self._at :], "", 0
        formats, self._found = self._openers.known.formats, True
        choices = chain([chosen], (compile_format(formats[name]) for name in others))
        self.is_bare = not others or all(each.bare_calls.can_begin_reply for each in choices)
        if self._formats and chosen.format.name == self.machine.compiled.format.name:
            self.machine.feed(rest)
        else:
            self._start_machine(chosen, rest, others)

    def _start_machine(self, chosen: CompiledFormat, rest: str, others: frozenset[str]) -> None:
        """Replace the current machine by one for the format `chosen`, which continues in its state (and knows `<think>`
        if the old one parsed reasoning in it), and feed it the text that the old one had not taken and then `rest`; it
        is only added unparsed if the whole text is known and the format is found. Events of the old machine are kept
        for `take`. `others`: the names of the formats with the same opener; the special tokens that end a turn in them
        also end one here."""
        before = self.machine
        self._events += before.take()
        is_read = self._options.reasoning != "off"
        found = compile_format(_with_ends_of(self._openers.known, chosen.format.name, others), reasoning=is_read)
        in_tags = before.last_reasoning.exists and before.compiled.first.think_tag is None
        # The new machine continues in the state of the old one.
        self.machine = Machine(found.with_think_tags if in_tags else found, self._options, before.builder.ids)
        (self.machine.feed_all if self._is_text_complete and self._found else self.machine.feed)(
            self.machine.continue_from(before) + rest
        )


def read_auto(text: str, options: ReadOptions, token_map: TokenMap | None = None) -> Piece:
    """Parse a piece of a reply in whatever format it is written, with the options for a part of another reply
    (`quiet`). Return its reply and spans; the reply has the name of the format that was found, "auto" if none was.
    `token_map`: which text is special tokens, None for unknown."""
    reading = AutoMachine(quiet(options), Ids.numbered(MINTED))
    reading.set_token_map(token_map)
    reading.feed(text)
    reading.close()
    return Piece(fold(reading.take(), reading.machine.compiled.format.name), reading.machine.output.spans.to_list())
