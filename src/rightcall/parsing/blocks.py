"""Parse a block of calls: its opener, its calls, its closing marker, and every error in between.

Three exceptions report what is wrong: `NotACall` (no call has begun), `Broken` (a call cannot be parsed any further:
continue at its closing marker, so that the calls behind it are parsed) and `Cut` (the text ended). An opener is never
silent: it gives a call, a rejected call, or a note.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from rightcall.formats.spec import HOLES
from rightcall.parsing.bodies.name_then_json import read_arguments_of
from rightcall.parsing.bodies.trailing_text import ARGUMENTS
from rightcall.parsing.buffer import Broken, Capture, Cut, NotACall, Steps, broken_by
from rightcall.parsing.call_builder import declared, name_at
from rightcall.parsing.markers import BLANKS, RUN, Pat, Probe, Scan, blanks, literal, seq
from rightcall.repairs.envelope_repair import LooseCall
from rightcall.repairs.finish import are_allowed, deviation_receipts
from rightcall.repairs.loose_json import FENCE_INFO
from rightcall.types import Repair

if TYPE_CHECKING:
    from rightcall.parsing.bodies.body_reader import BodyReader
    from rightcall.parsing.call_builder import CallBuilder


# How a block ended: it is text; at its closing marker; without that marker, which may still come and is reported as
# missing only if a marker opened the block ("due"); at the limit of calls.
Ending = Literal["text", "closed", "due", "late", "full"]

# A code fence between the opener of a call and its body.
FENCE_BEGIN = Probe(seq(literal("```"), Pat(FENCE_INFO, FENCE_INFO, sure=RUN), literal("\n")))
_FENCE_END = Probe(literal("```"))
_WORD = Probe(Pat(f"(?:{HOLES['name']})?+", f"(?:{HOLES['name']})?+", sure=RUN))
_WORDS = re.compile(r"(?:\s++[\w'.,-]++)++\Z").match
_QUOTES = "=\"' "
_BRACKETS = frozenset(")]}")  # the last character of a body that is not truncated
_LACKS_ARGUMENTS = re.compile(r"\{[^{}\[\]]*+\}|[\s\S]*[^)\]}]").fullmatch  # a JSON object with a name alone, or a name
_LONGEST_OPENER = 1_024
_TRUNCATED = "truncated", "the text ended before the call did; send the whole call again"
_UNTERMINATED = "unterminated_string", "the call's end marker stands inside a string that was never closed"
_NO_NAME = "the call has no tool name; send the name of a tool with its arguments"
_UNREADABLE = "the call could not be read; send it again exactly as the format asks for"


class Block:
    """One block of calls.

    - `bare`: no marker opened it.
    - `holds`: its calls are pending until what follows them is known.
    - `is_special`: its opener is a special token.
    - `fenced`: the repair that removed a code fence around the calls.
    """

    __slots__ = (
        *("_body_close", "_broken_at", "_builder", "_content", "_first", "_has_opener", "_in_reasoning"),
        *("_is_empty", "_is_headless", "_is_section", "_reader", "bare", "fenced", "holds", "is_special"),
    )

    def __init__(
        self,
        builder: CallBuilder,
        *,
        bare: bool,
        special: bool = False,
        is_section: bool = False,
        headless: bool = False,
        inner: bool = False,
        in_reasoning: bool = False,
    ) -> None:
        """Make the block that begins here.

        - `is_section`: its opener opens a section, and what follows is no call of the format.
        - `headless`: its opener begins with the name of a call: the prompt ended with the token before it.
        - `inner`: the opening tag of its body opened it: no marker around it must be closed.
        - `in_reasoning`: it ended reasoning whose closing marker may still come.
        """
        self._builder = builder
        self.bare = bare
        self.is_special = special
        self._is_section = is_section
        self._is_headless = headless
        self._has_opener = not (bare or inner)
        self._in_reasoning = in_reasoning
        self._is_empty = False
        self.fenced: tuple[Repair, ...] = ()
        self._reader: BodyReader | None = None
        self.holds = builder.compiled.call_ends.close is not None and not bare
        self._first = builder.index
        self._body_close = 0  # the length of the body's own closing marker, up to which a broken call was skipped
        self._broken_at = 0  # where the last call could not be parsed any further
        self._content = builder.at  # the position behind the opener

    def read(self, size: int) -> Steps[Ending]:
        """Take the opener, which has `size` characters, parse the calls of the block and its closing marker, and return
        how the block ended. What is no call becomes text, which is emitted here, or a rejected call; an opener without
        a call is reported, unless it is `bare` text. Beyond the limit of calls the remainder of what was taken is text.
        The builder's `block` is this one meanwhile, then None. Nothing is raised."""
        builder = self._builder
        opening = builder.capture()
        builder.advance(size)
        self._content = builder.at
        builder.block = self
        try:
            try:
                yield from self._read_calls()
            except NotACall:
                if builder.full or self.bare:
                    return self._emit_text(opening)
                if self._is_truncated(opening):
                    return self._end_of_text(opening, is_call=True)
                if not (yield from self._has_body()):
                    return self._emit_text(opening)
                yield from self._reject_unreadable()
            except Cut:
                return self._end_of_text(opening)
            except (Broken, RecursionError) as error:
                if self.bare and builder.index == self._first:
                    return self._emit_text(opening)
                yield from self._recover(broken_by(error, builder.limits.depth))
            if builder.full:
                return self._emit_text(opening)
            builder.drop(opening)
            if builder.index == self._first and not self._is_empty:
                builder.note("opener_without_call", f"the block at {self._content} holds no call")
            builder.advance(self._body_close)
            builder.output.end_calls(builder.at)
            return (yield from self.read_end())
        finally:
            builder.block = None

    # -- the calls -----------------------------------------------------------------------------------------------------

    def _read_calls(self) -> Steps[None]:
        """Parse the calls with the reader whose body begins here (an only one is not tested), which becomes `_reader`;
        `holds` is set if its values are raw text or the end of an earlier call is uncertain. Unless `bare`, an empty
        block is only reported and a code fence is taken first. An object in a body of arguments alone is those of the
        tool that the request names; `_reader` stays None. Raises `NotACall` if no call begins here, in a section, and
        beyond the limit; `Cut` if the text ends, `Broken` or `RecursionError` in a call."""
        builder, compiled = self._builder, self._builder.compiled
        char = builder.char() or (yield from builder.peek())
        if not char:
            raise Cut
        if self._is_section:
            raise NotACall
        if not self.bare:
            close = compiled.call_ends.close if char in compiled.call_ends.heads else None
            # Behind its closing marker, or another opener that begins as a body may, no body follows.
            for marker in (close, compiled.openers.like_bodies):
                if marker is not None and (yield from builder.test(marker)):
                    self._report_empty()
                    return
            if char == "`":
                char = yield from self._take_fence()
        readers, named_outside, choice = compiled.bodies.readers, compiled.bodies.named_outside, builder.options.choice
        if named_outside and choice and char == "{":
            yield from named_outside.read_choice(builder, choice)
            return
        reader = readers[0]
        if len(readers) > 1:
            for reader in readers:
                if (yield from builder.test(reader.begins)):
                    break
            else:
                raise NotACall
        self._reader = reader
        self.holds = self.holds or bool(reader.closers) or builder.is_end_uncertain
        yield from reader.read(builder, bare=self.bare)

    def _report_empty(self) -> None:
        """Report a block that a closing marker or another opener follows at once, and set `_is_empty`: with the problem
        `no_call`, which blocks, in a format with a protocol, else with the note `opener_without_call`. Output blanks
        that wait are dropped; nothing is taken."""
        builder = self._builder
        self._is_empty = True
        builder.output.drop_blanks()
        if builder.compiled.format.protocol is not None:
            builder.problem("no_call", "a block for a call is empty; it must hold one call, name({ ... })")
        else:
            builder.note("opener_without_call", f"the block at {self._content} holds no call")

    def _take_fence(self) -> Steps[str]:
        """Take the first line of a code fence between the opener and the calls, if a whole one is here and repairs are
        not off, and keep the receipt in `fenced` (agentscope-java#847). Return the next character, which is not taken,
        behind blanks, which are; "" at the end of the text."""
        builder = self._builder
        found = (yield from builder.test(FENCE_BEGIN)) if builder.policy("") != "off" else None
        if found:
            builder.take_match(found)
            self.fenced = (Repair("code_fence", "exact", "", found.group().strip(), ""),)
        return builder.char() or (yield from builder.peek())

    # -- its end -------------------------------------------------------------------------------------------------------

    def read_end(self) -> Steps[Ending]:
        """Take the closing marker of the block, and before it that of a fence that `_take_fence` took. Return "closed"
        if it is here, if the format has none, or if `_check_missing_close` returns False; else "due", or "late" if
        `bare` or if the opening tag of a body opened the block: the marker may still come (colibri#505).

        When "closed", a pending call becomes final, unless its body has raw values or the end of a call is uncertain.
        Arguments behind the marker of a pending call without arguments reject it and are not taken.
        """
        builder = self._builder
        close = builder.compiled.call_ends.close
        if self.fenced and (builder.char() or (yield from builder.peek())) == "`":
            end = yield from builder.test(_FENCE_END)
            if end:
                builder.take_match(end)
                builder.output.spans.mark("marker", builder.at)
        if close is not None:
            char = builder.char() or (yield from builder.peek())
            found = close.at(builder.buf, builder.pos, builder.ended)
            if found is None:
                found = yield from builder.test(close)
            if found:
                builder.take_match(found)
                call = builder.pending[1] if builder.pending is not None else None
                # Arguments that follow the closing marker of a call without arguments are its own.
                is_empty = call is not None and not call.arguments and _LACKS_ARGUMENTS(call.raw.strip())
                if is_empty and (yield from builder.test(ARGUMENTS)):
                    message = "the call is closed before its arguments; send them before its closing marker"
                    builder.reject_pending("trailing_content", message)
            is_due = not found and self._check_missing_close(close, char)
            builder.output.spans.mark("marker", builder.at)
            if is_due:
                return "due" if self._has_opener else "late"
        # If the values are raw text, what follows may show that the call has not ended.
        if self._reader is None or not (self._reader.closers or builder.is_end_uncertain):
            builder.finalize_pending()
        return "closed"

    def _check_missing_close(self, close: Probe, char: str) -> bool:
        """Return whether the closing marker, which is not here, may still come behind text. False at the end of the
        text, with the note `unclosed` if the block has an opener; False too if `bare` and the text ends in a truncated
        marker, which is taken (nothing else is). Before punctuation that cannot follow a call (any text, if only a
        fence closes calls) reject a pending call, but not before a truncated marker; the result is still True. `char`:
        the next character, or ""."""
        builder = self._builder
        is_partial = builder.ended and close.is_begun(builder.buf, builder.pos)
        if self.bare and is_partial:
            builder.take_all()  # the fence around the calls is truncated in its last line
            return False
        if not char:
            if self._has_opener:
                builder.problem("unclosed", "the text ended before the marker that closes the call", blocking=False)
            return False
        in_fence = builder.compiled.call_ends.heads == {"`"}  # all text up to the fence belongs to the call
        if (in_fence or char in ",;()[]{}") and builder.pending is not None and not is_partial:
            builder.reject_pending("trailing_content", f"unexpected {char!r} after the call")
        return True

    # -- blocks that are text ------------------------------------------------------------------------------------------

    def _emit_text(self, opening: Capture) -> Ending:
        """Emit what was taken as text, make a pending call final, and return "full" beyond the limit of calls, else
        "text". If the block has calls, the text is that of a call behind the last one, and nothing is reported; else it
        is all since `opening`, the capture of the block, which ends in both cases. Only in a block without calls that
        is neither `bare` nor "full" a note reports the opener, and one that is a special token is dropped, except the
        tool name that it begins with if the block is headless."""
        builder, output = self._builder, self._builder.output
        ending: Ending = "full" if builder.full else "text"
        text = builder.captured(opening)
        builder.drop(opening)
        builder.finalize_pending()
        if builder.index > self._first:
            text = builder.text_so_far()
            output.spans.mark("marker", builder.at - len(text))
        elif not self.bare and not builder.full:
            builder.note("opener_without_call", f"the text at {opening} opens a call, and none follows; it is text")
            if self.is_special:
                size = self._content - opening
                name = name_at(text) if self._is_headless else None
                builder.drop_text()
                if name is not None:
                    output.emit_exact(name.group(), opening + name.end())
                output.emit_behind_token(self._content, text[size:], builder.at)
                return ending
        builder.drop_text()
        output.emit_exact(text, builder.at)
        return ending

    def _has_body(self) -> Steps[bool]:
        """Return whether a body, or else the name of a declared tool (`declared`), begins behind the opener; wait for
        text until that is decided. If more than blanks and a fence was taken already, only such a name at its beginning
        counts. If False, the text only mentions the opener. Only blanks are taken."""
        builder = self._builder
        text = builder.captured(self._content).strip()
        if not text or text in [repair.before for repair in self.fenced]:
            yield from builder.peek()
            if (yield from builder.test(builder.compiled.bodies.begin)):
                return True
            word = yield from builder.test(_WORD)
            text = word.group() if word else ""
        name = name_at(text)
        return name is not None and bool(declared(name.group(), builder.tools))

    # -- truncated calls -----------------------------------------------------------------------------------------------

    def _end_of_text(self, opening: Capture, *, is_call: bool = False) -> Ending:
        """Take the remaining text and reject the call that it ends in (`_reject_truncated`), or emit the text. Return
        "closed", and make the pending call final; but "text" if so little is there that it is text, "full" beyond the
        limit of calls (`_emit_text`). `opening`: the capture of the block, which ends. `is_call`: all text behind the
        opener belongs to the call, which gets the name of a declared tool at its beginning."""
        builder = self._builder
        if is_call and not builder.update_full():
            builder.begin_text_at(self._content)
            builder.take_all()
            self._begin_declared(builder.captured(self._content).lstrip())
        if builder.update_full() or not self._reject_truncated(opening):
            return self._emit_text(opening)
        builder.drop(opening)
        builder.output.end_calls()
        builder.finalize_pending()
        return "closed"

    def _is_truncated(self, opening: Capture) -> bool:
        """Return whether the reply has ended inside a longer opener of calls that begins with this one, or in the
        opening tag of a body behind it; for a section, inside the opener of a call, or the closing marker, that must
        follow it. False if more than 1,024 characters have arrived since the beginning of the opener."""
        builder, compiled = self._builder, self._builder.compiled
        if not builder.ended or builder.base + len(builder.buf) - opening > _LONGEST_OPENER:
            return False
        text = builder.captured(opening) + builder.buf[builder.pos :]
        if self._is_section:
            start = compiled.openers.section_start
            return start is not None and start.is_begun(text, 0)
        rest = text[self._content - opening :].lstrip(BLANKS)
        is_body = bool(rest) and any(reader.begins.is_begun(rest, 0) for reader in compiled.bodies.readers)
        return is_body or compiled.openers.begin.is_begun(text, 0)

    def _reject_truncated(self, opening: Capture) -> bool:
        """Take the remaining text and reject the call in it with `truncated`, or `unterminated_string` if it has begun
        and a closing marker is in its arguments. If there is neither text of it nor a name in its header, emit a
        blocking `truncated` problem without a call, and behind a call of the block only if a comma is last. Return
        False, with the text taken but nothing emitted, if no call of the block has begun and it is prose, or, if
        `bare`, none of the reply. `opening`: the capture of the block, which goes on."""
        builder = self._builder
        builder.take_all()
        if builder.call is not None:
            builder.fail(*(_UNTERMINATED if self._has_close_in_arguments() else _TRUNCATED))
        elif builder.index == self._first and (not builder.index if self.bare else self._is_prose()):
            return False
        elif builder.header_name():
            builder.fail_truncated()
        elif builder.text_so_far().strip():
            builder.fail("truncated", "the text ended before the call's name was known; send the whole call again")
        else:
            builder.drop_text()
            builder.output.drop_blanks()
            if builder.index == self._first or builder.captured(opening).rstrip().endswith(","):
                builder.problem("truncated", "the text ended where a tool call was about to begin")
        return True

    def _is_prose(self) -> bool:
        """Return whether the text behind the opener shows that the opener is only mentioned: several words and nothing
        else, or one word that begins no declared tool's name (without declared tools: that ends in a period). False for
        any other or no text, and if the opener is a special token."""
        builder = self._builder
        text = builder.captured(self._content).strip()
        name = name_at(text) if not self.is_special else None
        if name is None or name.end() < len(text):
            return name is not None and _WORDS(text, name.end()) is not None
        if builder.tools is None:
            return text.endswith(".")
        return not any(tool.name.startswith(text) for tool in builder.tools)

    # -- broken calls --------------------------------------------------------------------------------------------------

    def _has_close_in_arguments(self) -> bool:
        """Return whether a closing marker is in the text of the call behind the beginning of its arguments, or anywhere
        in it if they have not begun."""
        builder = self._builder
        scan, start = builder.compiled.recovery.scan, builder.text.arguments - builder.text.start
        markers = scan.finditer(builder.text_so_far()[max(0, start) :])
        return any(scan.actions[marker.lastindex or 0].endswith("close") for marker in markers)

    def _recover(self, broken: Broken) -> Steps[None]:
        """Skip to the end of a broken call; then emit the calls that the tolerant reader finds in it, with the note
        `unclosed` if only bodies have closing markers and none is here. Else reject it, its end uncertain, with the
        problem of `broken`, or `invalid_name` if it has not begun and lacks its name. If no marker in a format with
        closing markers ends it, the text behind the place where it broke, if that is not its beginning, is emitted as
        text. Beyond the limit of calls nothing is emitted."""
        builder = self._builder
        found = yield from self._skip_to_end()
        if builder.update_full():
            return
        has_close = builder.compiled.recovery.has_close
        if self.reparse(closed=found and has_close):
            if has_close and not self._body_close and builder.compiled.call_ends.close is None:
                builder.note("unclosed", "the marker that closes the call is missing")
            return
        if builder.call is None and self._is_nameless():
            broken = Broken("invalid_name", _NO_NAME)
        if builder.index == self._first and builder.text.start == self._broken_at:
            builder.begin_text_at(self._content)  # nothing was parsed: the text behind the opener belongs to the call
        end = self._end_of_broken(found, self._broken_at)
        builder.fail(broken.code, broken.message, broken.path, end=end, is_end_uncertain=True)

    def _reject_unreadable(self) -> Steps[None]:
        """Skip to the end of what follows the opener and is no call, and emit it as a rejected call, its end uncertain,
        with the name of a declared tool at its beginning, if there is one: `invalid_name` if the name is missing,
        `truncated` if the text ended in it, else `invalid_call`; then, if no marker in a format with closing markers
        ends it, the text behind its name or tag is emitted as text. Beyond the limit of calls nothing is emitted."""
        builder = self._builder
        builder.drop_text()
        found = yield from self._skip_to_end()
        if builder.update_full():
            return
        content = builder.captured(self._content)
        text = content.lstrip()
        tag, name = self._begin_declared(text)
        is_whole = found or (not builder.compiled.recovery.has_close and text.rstrip()[-1:] in _BRACKETS)
        if (tag and name is None) or self._is_nameless():
            builder.fail("invalid_name", _NO_NAME, is_end_uncertain=True)
        elif builder.ended and not is_whole:
            builder.fail(*_TRUNCATED, is_end_uncertain=True)
        else:
            known = self._content + len(content) - len(text) + (name.end() if name is not None else len(tag))
            end = self._end_of_broken(found, known)
            builder.fail("invalid_call", _UNREADABLE, end=end, is_end_uncertain=True)

    def _begin_declared(self, text: str) -> tuple[str, re.Match[str] | None]:
        """Begin a call if `text`, a body, begins with the name of a declared tool (`declared`), with or without an
        opening tag before it. Return that tag, or "", and the match in `text` of the name behind it, declared or not,
        or None. Nothing is taken. Raises `NotACall` beyond the limit of calls."""
        tags = [tag.rstrip(_QUOTES) for tag in self._builder.compiled.bodies.tags]
        tag = next((tag for tag in tags if text.startswith(tag)), "")
        name = name_at(text, len(text) - len(text[len(tag) :].lstrip(_QUOTES)))
        if name is not None and (known := declared(name.group(), self._builder.tools)):
            self._builder.begin(known)
        return tag, name

    def _is_nameless(self) -> bool:
        """Return whether the text behind the opener, as far as it is taken, begins a body that is regular except that
        its name is missing."""
        builder = self._builder
        return bool(builder.compiled.bodies.nameless.at(builder.captured(self._content).lstrip(), 0, True))

    def _end_of_broken(self, found: bool, end: int) -> int | None:
        """Return where a rejected call ends: None for all its text, if a marker that ends it was `found` in a format
        with closing markers, or if nothing of it is before `end`; else `end`, the position where it broke.

        Without a closing marker it is unknown which text belongs to the call, so the text behind the break is text.
        """
        builder = self._builder
        return None if (found and builder.compiled.recovery.has_close) or end <= builder.text.start else end

    def _skip_to_end(self, *, headed: bool = False) -> Steps[bool]:
        """Take all up to the call's closing marker, or what can only follow the call, which is not taken, and return
        whether one was found; a call's text begins here if none is open. Set `_broken_at` to this place, and
        `_body_close` to the length of a body's closing marker. A turn end counts only if the next other marker closes
        nothing. Without a call before, a `bare` block ignores markers if the whole remaining text holds only calls
        (`_take_all_if_calls`). `headed`: a header opened the call, not a tag."""
        builder, recovery = self._builder, self._builder.compiled.recovery
        if not builder.text.is_open:
            builder.begin_text()
        self._broken_at = builder.at
        scan = recovery.scan_in_reasoning if self._in_reasoning else recovery.scan
        # The body's own opening tag does not end what it opens.
        skip = 0 if headed or builder.captured(self._content).strip() else 1
        turn: Capture | None = None
        action, size = yield from self._skip_to_sign(scan, skip)
        while action == "turn":
            # The end of the turn, or a word inside the call: that is decided by whether its closing marker follows.
            turn = builder.capture() if turn is None else turn
            builder.advance(size)
            action, size = yield from self._skip_to_sign(scan, 0)
        is_sign = bool(action) or turn is not None
        if is_sign and self.bare and not self._first and (yield from self._take_all_if_calls()):
            action = "close"
        if turn is not None:
            (builder.drop if action.endswith("close") else builder.give_back)(turn)
        if action == "body_close":
            self._body_close = size
        return is_sign

    def _take_all_if_calls(self) -> Steps[bool]:
        """Wait for the end of the text. Take all of it and return True if the tolerant reader finds calls in the text
        of the call up to there and nothing behind them; else take nothing and return False.

        Then a marker in it is a word inside a value (NAVER-Cloud-HyperCLOVA-X/hcx-vllm-plugin#5), as it is for a format
        that is detected. For calls that no marker opened.
        """
        builder, reader = self._builder, self._reader
        taken = builder.capture()
        while not builder.ended:
            builder.take_all()
            yield
        builder.take_all()
        text = builder.text_so_far()
        found = self._read_loose_calls(reader, text, closed=False) if reader is not None else []
        is_all = reader is not None and bool(found) and not text[reader.tail(text, found[-1].end) :].strip()
        (builder.drop if is_all else builder.give_back)(taken)
        return is_all

    def _skip_to_sign(self, scan: Scan[str], skip: int) -> Steps[tuple[str, int]]:
        """Take everything up to the next marker of `scan`, which is not taken. Return its action and length, ("", 0) at
        the end of the text. No marker is found in the first `skip` characters."""
        builder = self._builder
        while True:
            found = (scan.ended if builder.ended else scan.search)(builder.buf, builder.pos + skip)
            if builder.pos + skip <= len(builder.buf):
                builder.advance(skip)
                skip = 0
            builder.advance((found.start() if found else len(builder.buf)) - builder.pos)
            if found is not None and found.lastindex is not None:
                return scan.actions[found.lastindex], found.end() - found.start()
            if builder.ended:
                return "", 0
            yield

    # -- the tolerant reader -------------------------------------------------------------------------------------------

    def reparse(self, *, closed: bool = True) -> bool:
        """Parse the text of a broken call again with the tolerant reader and finish the calls that it finds; the
        current call, if there is one, is the first of them. Return False, with nothing emitted, if no reader or no text
        of a call is known, or if it finds none, more than the limit allows, or its repairs are not allowed.

        `closed`: the end of the call is known, so that open brackets were forgotten and not truncated. If not, text
        behind the calls is emitted as text.
        """
        builder, reader = self._builder, self._reader
        if reader is None or not builder.text.is_open:
            return False
        text, start = builder.text_so_far(), builder.text.start
        found = self._read_loose_calls(reader, text, closed=closed)
        if not found or builder.index + len(found) > builder.limits.calls:
            return False
        for loose_call in found:
            builder.add_loose_call(loose_call, text, start)
        rest = text[reader.tail(text, found[-1].end) :] if not closed else ""
        if rest.strip():
            builder.output.emit_after_call(rest, builder.at)
        return True

    def _read_loose_calls(self, reader: BodyReader, text: str, *, closed: bool) -> list[LooseCall]:
        """Return the calls that `reader`, in its tolerant mode, finds in `text`; none if the policy of the current call
        is "off" or forbids one of the repairs of any of them. `closed`: the end of the text is the end of the call.
        Nothing is emitted."""
        builder, tools = self._builder, self._builder.tools
        policy = builder.policy("" if builder.call is None else builder.call.name)
        found = reader.read_loose_calls(builder, text, closed) if policy != "off" else []
        named = [(each, tools.get(each.name) if tools is not None else None) for each in found]
        return (
            found if all(are_allowed(deviation_receipts(each.deviations), tool, policy) for each, tool in named) else []
        )

    # -- messages to a tool --------------------------------------------------------------------------------------------

    def read_message(self, name: str) -> Steps[None]:
        """Parse a message to the tool `name`, which holds nothing but the arguments of one call; a complete call stays
        pending (`holds` is set). The end of the message is not taken. A broken call is repaired or rejected, a
        truncated one rejected; beyond the limit of calls nothing is taken or emitted, and `full` is set. Nothing is
        raised."""
        builder = self._builder
        self.holds = True
        self._reader = builder.compiled.bodies.readers[0]
        builder.begin_text()
        builder.block = self
        try:
            yield from self._read_message_body(name)
        except NotACall:
            builder.drop_text()
        except Cut:
            builder.take_all()
            builder.fail(*_TRUNCATED)
        except (Broken, RecursionError) as error:
            broken = broken_by(error, builder.limits.depth)
            found = yield from self._skip_to_end(headed=True)
            if not self.reparse(closed=found):
                builder.fail(broken.code, broken.message, broken.path)
        finally:
            builder.block = None

    def _read_message_body(self, name: str) -> Steps[None]:
        """Begin the call of a message to the tool `name` and parse its arguments: JSON, nothing before the end of the
        message (an empty call), or any other text, which the tolerant reader may repair and which is rejected
        otherwise. Raises `NotACall` beyond the limit of calls, `Broken` if arguments cannot be parsed or follow that
        end, `Cut` if the text ends before or in them."""
        builder, channels = self._builder, self._builder.compiled.channels
        turn_end = builder.compiled.call_ends.turn
        call = builder.begin(name)
        char = yield from builder.peek()
        if not char or char in '{["':
            yield from read_arguments_of(builder, None)
        elif turn_end and (end := (yield from builder.test(turn_end))):
            assert channels is not None
            if (yield from builder.test(_late_arguments(channels.channel), end.end() - builder.pos)):
                raise Broken("trailing_content", "the message ends before the call's arguments; send them inside of it")
            builder.end_text()
            builder.finish(empty=True)
        else:
            # No JSON, such as code for an interpreter: its text is kept.
            builder.text.arguments = builder.at
            found = yield from self._skip_to_end(headed=True)
            if not self.reparse(closed=found):
                call.parts.append(builder.text_so_far())
                if not found:
                    raise Cut
                builder.fail("arguments_not_object", "the arguments must be a JSON object")


@lru_cache(8)
def _late_arguments(channel: str) -> Probe:
    """Return a probe for arguments behind the end of their message, with tokens of its header before them. `channel`:
    the token that introduces a channel and so begins another header, or ""."""
    other = rf"<\|start\|>|{re.escape(channel)}" if channel else r"<\|"
    tokens = rf"(?:(?!{other})<\|[^<>|\s]{{1,32}}+\|>\w{{0,16}}+[ \t\r\n]{{0,8}}+){{0,3}}+"
    return Probe(seq(blanks(), Pat(tokens, r"(?:<[^<>\s]{0,36}+>?+\w{0,16}+[ \t\r\n]{0,8}+){0,3}+"), ARGUMENTS.pat))
