"""The format is not known: text is passed on until an opener tells which it is, and the rest is read in that format.

An opener counts when what follows it can only be a call, and when it does not stand in a code fence or behind a quote,
where prose shows an example. A reply that begins like a bare call is held until it is whole, and handed to `rescue`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from rightcall.formats import FORMATS
from rightcall.formats.spec import Envelope, Format, NameThenJson, Special, alternatives
from rightcall.ids import Ids
from rightcall.types import Event, Span
from rightcall.wire.compile import Compiled, compiled, without_reasoning
from rightcall.wire.detect import first_headers
from rightcall.wire.markers import RUN, Pat, Probe, Scan, alt, blanks, literal, look, seq, template, templates
from rightcall.wire.options import ReadOptions
from rightcall.wire.reading import Reading, located
from rightcall.wire.rescue import whole_reply
from rightcall.wire.shown import RUN as RUN_OF_FENCE
from rightcall.wire.shown import Fences

_THINK = ("<think>\n", "\n</think>\n\n")
_BARE = re.compile(r"\s*(?:```|[\[{]|[A-Za-z_][\w.\-]*(?:\(|\[ARGS\]))").match
_BARE_START = re.compile(r"\s*(?:`{0,3}|[A-Za-z_][\w.\-]{0,255}+(?:\[[A-Z]{0,4})?)\Z").match
_KEYS = "name|tool|tool_name|tool_calls?|function|type|id|arguments|parameters|args"
_NO_CALL = re.compile(rf'\s*\{{\s*"(?!(?:{_KEYS})")[^"]*"\s*:').match
_PREFIX = 600
_CAPITALS = re.compile(r"\[[A-Z ]+\]").fullmatch


_LANGUAGE = r"[A-Za-z_]{0,16}+[ \t]{0,8}+"
_FENCE = seq(literal("```"), Pat(_LANGUAGE, _LANGUAGE, sure=RUN), literal("\n"))


class _Detector:
    """The openers of every format, and for each the formats it may begin."""

    def __init__(self) -> None:
        patterns: dict[str, list[tuple[Compiled, Pat]]] = {}
        shapes: dict[str, Pat] = {}
        for format in FORMATS.values():
            if format.call == ("", "") and not format.section and not format.channels and _untagged(format):
                continue
            for pat, whole in _signs(format):
                shapes.setdefault(pat.whole, pat)
                patterns.setdefault(pat.whole, []).append((compiled(format), whole))
        fences = [("fence", literal(run)) for run in ("```", "~~~")]
        self.scan = Scan([*shapes.items(), *fences])
        self.candidates = {key: [(found, Probe(pat)) for found, pat in choices] for key, choices in patterns.items()}
        self.first = [(compiled(FORMATS[name]), probe) for name, probe in first_headers().items()]
        self.marks = {pat.whole for format in FORMATS.values() for pat in _marks(format)}
        ends = tuple(dict.fromkeys(end for f in FORMATS.values() for end in f.ends if isinstance(end, Special)))
        # A body that nothing opens: before a format is found there are no calls, whatever the text holds.
        self.plain = compiled(Format("auto", body=NameThenJson(), reasoning=_THINK, ends=ends))


def _untagged(format: Format) -> bool:
    return all(not getattr(body, "open", "") for body in format.bodies)


def _signs(format: Format) -> list[tuple[Pat, Pat]]:
    """What tells this format: a marker to look for, and the marker with what must follow it."""
    found = compiled(format)
    begins = [_begin(reader.begins) for reader in found.readers]
    closes = [look(pat) for pat in templates(format.call[1])]
    fenced = any(isinstance(body, Envelope) for body in format.bodies)
    fence = [look(seq(_FENCE, blanks(), begin)) for begin in begins] if fenced else []
    signs: list[tuple[Pat, Pat]] = []
    for opener in templates(format.call[0]):
        if opener.head != "`":
            signs.append((opener, seq(opener, blanks(), alt(*begins, *fence, *closes))))
    if "" in alternatives(format.call[0]):
        tags = [tag for body in format.bodies for tag in (getattr(body, "open", ""), getattr(body, "empty", ""))]
        signs += [(pat, pat) for tag in tags for pat in templates(tag) if pat.head]
    if format.section:
        inner = look(alt(*(whole for _, whole in signs)))
        opens = [(pat, seq(pat, blanks(), inner)) for pat in templates(format.section[0])]
        signs = opens if format.call == ("", "") else signs + opens
    if format.channels is not None:
        starts = [*alternatives(format.channels.start), format.channels.channel]
        pats = [template(start) for start in starts if isinstance(start, Special)]
        signs += [(pat, pat) for pat in pats]
    return signs + [(mark, mark) for mark in _marks(format)]


def _is_tag(mark: str) -> bool:
    text = mark.strip()
    return isinstance(mark, Special) or _CAPITALS(text) is not None or (text[:1] == "<" and bool(set(text) & set(":_")))


def _marks(format: Format) -> list[Pat]:
    """Markers of reasoning and content that only a few formats have."""
    pairs = [*format.content, *([format.reasoning] if format.reasoning and format.reasoning[0] != _THINK[0] else [])]
    marks = [m for pair in pairs for side in pair for m in alternatives(side) if _is_tag(m)]
    return [template(mark) for mark in marks if mark.strip()]


def _begin(probe: Probe) -> Pat:
    return look(probe.pat)


@lru_cache(1)
def _detector() -> _Detector:
    return _Detector()


class AutoReading:
    """`feed` and `close` put events into `out`, as `Reading` does."""

    def __init__(self, options: ReadOptions, ids: Ids) -> None:
        self._options, self._ids = options, ids
        self._detector = _detector()
        plain = self._detector.plain
        self._reading = Reading(plain if options.reasoning != "off" else without_reasoning(plain), options, ids)
        self._found = False
        self._fences = Fences()
        self._at_start = True
        self._held = ""  # text being looked at; while the whole reply may be held, only its beginning
        self._at = 0  # how much of it was passed on
        self._is_whole = False  # no more text will come
        self._chunks: list[str] = []
        self._maybe_bare = bool(options.tools is not None and len(options.tools))
        self.out: list[Event] = []

    @property
    def compiled(self) -> Compiled:
        return self._reading.compiled

    @property
    def spans(self) -> list[Span] | None:
        return self._reading.spans

    def whole(self, text: str) -> None:
        self._is_whole = True
        self.feed(text)
        self.close()

    def feed(self, text: str) -> None:
        if self._found:
            self._pass_on(text)
            return
        if self._maybe_bare:
            self._chunks.append(text)
            self._held = (self._held + text)[:_PREFIX] if len(self._held) < _PREFIX else self._held
            if self._still_bare():
                return
            self._held = "".join(self._chunks)
        else:
            self._held, self._at = self._held[self._at :] + text, 0
        self._go_on(ended=self._is_whole)

    def _go_on(self, *, ended: bool) -> None:
        if self._at_start and self._held:
            chosen = self._first(ended)
            if chosen is False:
                return
            self._at_start = False
            if chosen is not None:
                self._switch(chosen)
                return
        self._look(ended=ended)

    def _first(self, ended: bool) -> Compiled | Literal[False] | None:
        """The format whose first header the reply begins with; False where more text is needed to tell."""
        chosen = self._pick(self._detector.first, ended)
        return None if isinstance(chosen, Compiled) and not self._may_begin(chosen) else chosen

    def _may_begin(self, chosen: Compiled) -> bool:
        """A header that is a word on a line of its own counts for declared tools: `Result` may be a heading."""
        channels = chosen.format.channels
        if channels is None or channels.message.strip():
            return True
        word = self._held.lstrip().partition("\n")[0]
        return word in channels.kinds or (self._options.tools is not None and word in self._options.tools)

    def close(self) -> None:
        if not self._found:
            if self._maybe_bare:
                self._held = "".join(self._chunks)
            reply = whole_reply(self._held, self._options) if self._maybe_bare else None
            if reply is not None:
                self._as(compiled(FORMATS[reply.format]))
                self._reading.rescued(reply, located(reply, self._held, [Span(0, len(self._held), "text")]))
                self._held = ""
            self._maybe_bare = False
            self._go_on(ended=True)
        self._reading.close()
        self._take()

    def _still_bare(self) -> bool:
        """Could the reply still be nothing but bare calls? Then it is held."""
        if self._maybe_bare:
            text = self._held
            is_no_call = _NO_CALL(text) is not None and not self._options.choice
            self._maybe_bare = bool(_BARE(text) or _BARE_START(text)) and not is_no_call
        return self._maybe_bare

    def _pass_on(self, text: str) -> None:
        if text:
            self._reading.feed(text)
            self._take()

    def _take(self) -> None:
        self.out += self._reading.out
        self._reading.out = []

    def _give(self, end: int) -> None:
        """Passes held text up to there on, as text."""
        text, self._at = self._held[self._at : end], end
        if text:
            self._fences.take(text)
            self._pass_on(text)

    def _look(self, *, ended: bool) -> None:
        """Passes text on up to the first opener that counts."""
        scan = self._detector.scan
        while self._at < len(self._held) and not self._found:
            found = (scan.ended if ended else scan.search)(self._held, self._at)
            if found is None:
                self._give(len(self._held))
                return
            self._give(found.start())
            if found.lastindex is None:
                return
            action = scan.actions[found.lastindex]
            if action == "fence":
                if not self._give_fence(ended):
                    return
                continue
            shown = self._fences.show()
            inside = self._reading.thinking and action not in self._detector.marks
            chosen = None if shown or inside else self._choose(action, ended)
            if isinstance(chosen, Compiled):
                self._switch(chosen)
            elif chosen is None:
                self._give(self._at + 1)
            else:
                return

    def _give_fence(self, ended: bool) -> bool:
        """Passes a fence on; False where it may still become longer."""
        run = RUN_OF_FENCE(self._held, self._at)
        assert run is not None
        if run.end() == len(self._held) and not ended:
            return False
        self._fences.take_run(run.group())
        self._at = run.end()
        self._pass_on(run.group())
        return True

    def _choose(self, action: str, ended: bool) -> Compiled | Literal[False] | None:
        """The format that this opener begins; False where more text is needed to tell."""
        return self._pick(self._detector.candidates[action], ended)

    def _pick(self, choices: list[tuple[Compiled, Probe]], ended: bool) -> Compiled | Literal[False] | None:
        waiting = False
        for found, probe in choices:
            at = probe.at(self._held, self._at, ended)
            if at:
                return False if waiting else found
            waiting = waiting or at is None
        return False if waiting else None

    def _switch(self, chosen: Compiled) -> None:
        """From here on the text is read in that format."""
        rest, self._held, self._at = self._held[self._at :], "", 0
        before = self._as(chosen)
        if self._is_whole:
            self._reading.whole(before + rest)
            self._take()
        else:
            self._pass_on(before + rest)

    def _as(self, chosen: Compiled) -> str:
        self._found = True
        plain = self._reading
        self._take()
        off = self._options.reasoning == "off"
        self._reading = Reading(without_reasoning(chosen) if off else chosen, self._options, self._ids)
        return self._reading.take_over(plain)
