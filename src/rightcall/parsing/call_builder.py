"""Build the calls of a reply, one at a time: begin it, take its arguments, emit its events, finish or reject it.

When live, the members of an argument object are emitted as they become final: a string while it arrives if its key is
declared as a plain string, any other value when it is whole. The emitted pieces are slices of the source, so that the
pieces joined are the arguments exactly as sent.

A call is emitted final, with all its problems. A call whose values are raw text is `pending` until what follows shows
whether it ended where it seemed to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from rightcall.formats.spec import HOLES
from rightcall.ids import Ids
from rightcall.parsing.buffer import Buffer, Capture, Cut, LostJsonEnd, NotACall, Steps
from rightcall.parsing.events import Output
from rightcall.parsing.markers import Probe
from rightcall.parsing.options import ReadOptions
from rightcall.repairs.envelope_repair import ExtraMember, LooseCall
from rightcall.repairs.finish import RepairBudget, deviation_receipts, finalize_call
from rightcall.repairs.loose_json import dumps
from rightcall.repairs.schema_repair import fold_name
from rightcall.repairs.tool_meant import header_name_problem, name_in_id, resolve_tool_name
from rightcall.schema.places import Kind
from rightcall.schema.unknown_names import needs_no_repair
from rightcall.strict_json import Undecodable, decode_unique
from rightcall.tools.checks import name_problem
from rightcall.tools.toolset import Toolset
from rightcall.types import Arguments, Call, CallEnd, CallStart, Problem, Repair

if TYPE_CHECKING:
    from rightcall.parsing.blocks import Block
    from rightcall.parsing.compile import CompiledFormat

name_at, names_in = re.compile(HOLES["name"]).match, re.compile(HOLES["name"]).findall


def declared(word: str, tools: Toolset | None) -> str:
    """Return the declared tool that a word names exactly, or without a colon and what follows it, or then without the
    namespace before the last dot; "" for none, or without tools."""
    name = word.partition(":")[0]
    names = (word, name, name.rpartition(".")[2])
    return next((name for name in names if tools is not None and name in tools), "")


# A call that has arrived whole: its start and end in `buf`, its name, its arguments as JSON and as a value, its id.
Whole = tuple[int, int, str, str, dict[str, Any], str]

_NO_CLOSER = re.compile(r"[ \t\r\n]{0,128}+[^ \t\r\n}\])]").match
_IS_NAME = re.compile(HOLES["name"]).fullmatch
_MOST_FOLDED = 256  # names that another one is compared with
_NO_KINDS: dict[str, Kind] = {}
_MOST_NOTES = 32  # of one code
_FORBIDDEN = "not_authorised", "no tool may be called in this turn; answer in text"
MINTED = "\0"  # the first character of an id that was not in the text


class OpenCall(msgspec.Struct):
    """The call that is being parsed.

    - `kinds`: the declared type of each argument.
    - `parts`: pieces of argument JSON; the first `given` characters of them were emitted.
    - `source`: the arguments as they were sent, if the parts are not.
    - `checked`: a problem was reported that makes the check against the schema useless.
    - `inline`: an argument was written without the line breaks around it.
    - `beside`: members of its envelope beside name and arguments.
    """

    index: int
    id: str
    name: str
    kinds: dict[str, Kind]
    repairs: tuple[Repair, ...]
    parts: list[str] = []
    given: int = 0
    source: str | None = None
    checked: bool = False
    inline: bool = False
    problems: list[Problem] = []
    beside: tuple[ExtraMember, ...] = ()

    def add_repairs(self, *repairs: Repair) -> None:
        """Append receipts of repairs."""
        self.repairs += repairs

    def add_beside(self, *members: ExtraMember) -> None:
        """Append members of the envelope that are neither name nor arguments."""
        self.beside += members


class CallText(msgspec.Struct):
    """The input text of the current or the last call.

    - `start`, `arguments`: the positions of the call and of its arguments.
    - `is_open`: the text is still captured from `start` on.
    - `whole`: the text, if its end is known.
    """

    start: Capture = 0
    is_open: bool = False
    whole: str | None = None
    arguments: int = 0


class CallBuilder(Buffer):
    """The buffer and the current call, which every reader of a body works with.

    - `index`: the index of the next call.
    - `call`: the current call.
    - `pending`: a call that has ended, unless what follows shows otherwise, with its index.
    - `block`: the current block of calls; None outside of all blocks.
    - `text`: the input text of the current call.
    - `header_names`: the names, separated by commas, in the header of a call whose body repeats its name.
    - `is_end_uncertain`: the end of a broken call is unknown: what follows may be part of it.
    - `full`: there were more calls than the limit allows.
    - `notes`: how many notes of each code were reported.
    """

    __slots__ = (
        *("_budget", "block", "call", "compiled", "full", "header_names", "ids", "index", "is_end_uncertain", "notes"),
        *("options", "output", "pending", "text", "tools"),
    )

    def __init__(self, compiled: CompiledFormat, options: ReadOptions, ids: Ids) -> None:
        Buffer.__init__(self, options.limits)
        self.compiled, self.options, self.tools, self.ids = compiled, options, options.tools, ids
        self.output = Output()
        self.index = 0
        self.call: OpenCall | None = None
        self.pending: tuple[int, Call] | None = None
        self.block: Block | None = None
        self.text = CallText()
        self.header_names = ""
        self.is_end_uncertain = False
        self.full = False
        self.notes: dict[str, int] = {}
        self._budget: RepairBudget | None = None

    def policy(self, name: str) -> str:
        """Return the repair policy for calls of the tool `name`; "" gives the policy of no tool in particular ("*",
        else "safe")."""
        repair = self.options.repair
        return repair if isinstance(repair, str) else repair.get(name, repair.get("*", "safe"))

    def is_declared(self, name: str) -> bool:
        """Return whether a declared tool has exactly this name."""
        return self.tools is not None and name in self.tools

    # -- problems ------------------------------------------------------------------------------------------------------

    def problem(
        self, code: str, message: str, path: str = "", *, blocking: bool = True, call: int | None = None
    ) -> None:
        """Emit a problem of the reply, or, with `call`, of the call with this index, which is rejected if the problem
        is `blocking`. The current call also records its own; a pending or ended call does not."""
        made = Problem(code, message, path, call, blocking)
        self.output.events.append(made)
        if self.call is not None and self.call.index == call:
            self.call.problems.append(made)

    def note(self, code: str, message: str) -> None:
        """Emit a problem of the reply that does not block; of each code only the first 32. All are counted in `notes`,
        also those that are not emitted."""
        self.notes[code] = count = self.notes.get(code, 0) + 1
        if count <= _MOST_NOTES:
            self.problem(code, message, blocking=False)

    def report_too_many(self, much: str = "") -> None:
        """Emit a `too_large` problem, that the reply has `much` (by default more calls than the limit) and the
        remainder is not parsed, and set `full`."""
        self.full = True
        much = much or f"more than {self.limits.calls} calls"
        self.problem("too_large", f"the reply has {much}; the rest was not read")

    # -- the input text of a call --------------------------------------------------------------------------------------

    def begin_text(self) -> None:
        """Begin to capture the input text of a call here; an open capture for an earlier call ends, and the position of
        its arguments is reset to 0. No call begins, and nothing is emitted."""
        if self.text.is_open:
            self.drop(self.text.start)
        self.text = CallText(self.capture(), True)

    def begin_text_at(self, start: int) -> None:
        """Move the beginning of the call's input text to the position `start`, which an open capture must cover; if the
        call's text has no capture, one begins here. The position of its arguments is kept, a known end is forgotten."""
        if not self.text.is_open:
            self.capture()
        self.text = CallText(start, True, arguments=self.text.arguments)

    def end_text(self) -> None:
        """Set the end of the call's input text to this place: what is read from now until `finish` is no part of it.
        The capture continues."""
        self.text.whole = self.captured(self.text.start)

    def drop_text(self) -> None:
        """End the capture of the call's input text, if one is open. Its positions are kept, a known end is
        forgotten."""
        text = self.text
        if text.is_open:
            self.drop(text.start)
            self.text = CallText(text.start, arguments=text.arguments)

    def text_so_far(self) -> str:
        """Return what was taken since the text of the call began; "" if no capture of it is open."""
        return self.captured(self.text.start) if self.text.is_open else ""

    # -- a call --------------------------------------------------------------------------------------------------------

    def has_room(self) -> bool:
        """Return whether one more call is within the limit."""
        return self.index < self.limits.calls

    def update_full(self) -> bool:
        """Set `full`, and return it: whether the call that is being parsed exceeds the limit of calls, so that it is
        text. Then, at the end of the text, take everything. False if a call has begun."""
        self.full = self.call is None and not self.has_room()
        if self.full and self.ended:
            self.take_all()
        return self.full

    def header_name(self) -> str:
        """Return the tool name in the header of the call; "" if it has none, several names, or no valid one."""
        return self.header_names if _IS_NAME(self.header_names) else ""

    def set_header_names(self, names: str, *, at_turn_end: bool = False) -> None:
        """Set the names in the header of the call that follows, "" for none. `at_turn_end`: what follows cannot be part
        of a broken call any more."""
        self.header_names = names
        self.is_end_uncertain = self.is_end_uncertain and not at_turn_end

    def begin(self, name: str, id: str = "", repairs: tuple[Repair, ...] = (), *, unread: bool = False) -> OpenCall:
        """Begin a call and return it; a pending one is emitted first. Resolve the name, add `repairs` and receipts of
        this and of a fence around the block, and emit `CallStart` and problems: calls are forbidden, or else the name
        is wrong; the header, or else the `id` in the text (or ""), names another tool. `unread`: the call broke before
        its name was parsed, which another problem reports, so neither name nor header is checked. Beyond the limit of
        calls only sets `full` and raises `NotACall`."""
        if not self.has_room():
            self.full = True
            raise NotACall
        if self.pending is not None:
            self.finalize_pending()
        self.output.call(self.text.start)
        tools, kinds = self.tools, _NO_KINDS
        if tools is not None:
            if name not in tools:
                name, found = resolve_tool_name(name, tools, self.policy(name))
                repairs += found
            kinds = tools.kinds(name)
        repairs = (*self.block.fenced, *repairs) if self.block is not None else repairs
        call = self.call = OpenCall(self.index, self.ids.take(id), name, kinds, repairs)
        self.index += 1
        self.output.events.append(CallStart(call.index, call.id, name))
        if self.options.forbidden:
            self.problem(*_FORBIDDEN, call=call.index)
        elif not unread and (tools is None or name not in tools) and (wrong := name_problem(name, tools)):
            self.problem(*wrong, call=call.index)
        others = self.header_names or (name_in_id(id, tools) if id else "")
        if (
            others not in ("", name)
            and not unread
            and (two := header_name_problem(others, name, tools, self.policy(name)))
        ):
            self.problem(*two, call=call.index)
        return call

    def add_repair(self, rule: str, before: str, after: str) -> None:
        """Add the receipt of an exact repair, that changed `before` into `after`, to the current call."""
        assert self.call is not None
        self.call.add_repairs(Repair(rule, "exact", "", before, after))

    def kind(self, key: str) -> str | None:
        """Return the declared kind of type of an argument of the current call; None for an undeclared one, without
        declared tools or without a call."""
        return self.call.kinds.get(key) if self.call is not None else None

    def kind_by_any_name(self, key: str) -> str | None:
        """Return the declared kind of type of an argument, also if it is named by an alias, or, if it is none, by a
        name that differs only in case and separators. For a tool with more than 256 arguments only the exact name
        counts. None if it means no declared argument, or without a call."""
        call = self.call
        if call is None or key in call.kinds or not 0 < len(call.kinds) <= _MOST_FOLDED:
            return self.kind(key)
        tool = self.tools.get(call.name) if self.tools is not None else None
        if tool is not None and key in tool.aliases:
            return call.kinds.get(tool.aliases[key])
        folded = fold_name(key)
        return next((kind for name, kind in call.kinds.items() if fold_name(name) == folded), None)

    def give(self, json: str, *, is_emitted: bool = False) -> None:
        """Add a piece of argument JSON to the current call. If live, it is counted in `given`, and an `Arguments` event
        is emitted at once, unless a sink did that (`is_emitted`)."""
        call = self.call
        assert call is not None
        call.parts.append(json)
        if self.options.live:
            call.given += len(json)
            if not is_emitted:
                self.output.events.append(Arguments(call.index, json))

    def read_arguments(self) -> Steps[Any]:
        """Take the JSON arguments of the current call, which begin here (`text.arguments`), and add them to it; if
        live, an object is emitted while it arrives, member by member. Return their content, or the class `Undecodable`
        if they are invalid, nested too deep, repeat a key, or are no object and had not arrived whole: their text must
        still be decoded or repaired. Raises `LostJsonEnd` or `Cut` if they have no end; what was taken (for `Cut` all
        text) stays with the call."""
        self.text.arguments = self.base + self.pos
        call = self.call
        assert call is not None
        found = self.take_whole_json()
        if found is not None:
            # A value that is no object is not final: a string may hold the object (vllm#54964).
            self.give(found[0]) if type(found[1]) is dict else call.parts.append(found[0])
            return found[1]
        is_object = self.buf[self.pos] == "{"
        preview = ArgumentPreview(self, call) if self.options.live and is_object else None
        taken = self.capture() if preview is None else preview.start
        try:
            if preview is not None:
                yield from preview.read_object()
            elif is_object:
                yield from self.skip_brackets([])
            else:
                yield from self.skip_json()
        except (LostJsonEnd, Cut) as lost:
            if isinstance(lost, Cut):
                self.take_all()
            # Kept with the call, but never emitted: it is not known to be final.
            call.parts.append(self.release(taken if preview is None else preview.start))
            raise
        text = self.release(taken if preview is None else preview.start)
        if not is_object:
            call.parts.append(text)
            return Undecodable
        self.give(text)
        value, repeated = decode_unique("".join(call.parts), self.limits.depth)
        return value if type(value) is dict and not repeated else Undecodable

    def take_extra_closers(self, probe: Probe | None = None) -> Steps[None]:
        """Take what `probe` (by default that for surplus brackets before the closing marker of the call) finds here,
        without the blanks behind it, with a repair receipt, and end the text of the call behind it
        (yigit353/langchain-qwq#30). Nothing is taken if it finds nothing or repairs are off."""
        probe = probe or self.compiled.call_ends.extra_brackets
        if probe is None or _NO_CLOSER(self.buf, self.pos):
            return
        found = yield from self.test(probe)
        if found and self.policy("") != "off":
            self.add_repair("extra_closer", found.group().strip(), "")
            self.advance(len(found.group().rstrip()))
            self.end_text()

    def check_key(self, key: str, names: re.Pattern[str]) -> None:
        """Report the problem `invalid_argument_name`, which rejects the current call, if the tool does not declare the
        argument `key` (without declared tools none is) and `names` does not match all of it. Does nothing without a
        call."""
        if self.call is not None and self.kind(key) is None and not names.fullmatch(key):
            self.problem("invalid_argument_name", f"{key[:80]!r} is no name of an argument", call=self.call.index)

    def finish(self, value: Any = Undecodable, *, empty: bool = False, unexpected: str = "") -> None:
        """Finish the current call, whose body has ended: repair it, check it (not if `checked`), emit the remaining
        arguments if it is complete and previews are on, and emit its end, or keep it pending if it is complete and its
        block requires that. A text beyond the limit makes it incomplete (`too_large`).

        `value`: its arguments if the reader decoded them; `empty`: it has none; `unexpected`: a character behind it
        that cannot be there, which rejects it.
        """
        call = self.call
        assert call is not None
        if unexpected:
            self.problem("trailing_content", f"unexpected {unexpected!r} after the call", call=call.index)
        text = self.text_so_far() if self.text.whole is None else self.text.whole
        self.drop_text()
        json = "" if empty else "".join(call.parts)
        if len(text) > self.limits.call:
            self.problem("too_large", f"the call is longer than {self.limits.call} characters", call=call.index)
            self._emit_end(Call(call.name, {}, json, call.id, text, call.repairs, complete=False))
            return
        tools = None if call.checked else self.tools
        tool = tools.get(call.name) if tools is not None else None
        is_regular = type(value) is dict and not empty and json and not call.beside and not call.repairs
        if is_regular and (tool is None or needs_no_repair(tool, value)):
            # Nothing to repair: the most frequent case, and the cheapest.
            made = Call(call.name, value, json, call.id, text)
            problems: list[Problem] = []
        else:
            self._budget = self._budget or RepairBudget()
            made, problems = finalize_call(
                call.name,
                json,
                index=call.index,
                id=call.id,
                raw=text,
                tools=tools,
                policy=self.policy(call.name),
                depth=self.limits.depth,
                value=value,
                repairs=call.repairs,
                beside=call.beside,
                budget=self._budget,
            )
        if made.complete:
            json = made.json
            if self.options.live:  # the remainder, as it was sent
                sent = "".join(call.parts) if call.source is None else call.source
                json = sent[call.given :] if call.given or sent.lstrip()[:1] == "{" else json
            if json and self.options.previews:
                self.output.events.append(Arguments(call.index, json))
        self.output.events.extend(problems)
        call.problems += problems
        self._emit_end(made)

    def fail(
        self, code: str, message: str, path: str = "", *, end: int | None = None, is_end_uncertain: bool = False
    ) -> None:
        """Emit the current call as rejected, with this problem and its text up to the position `end` (None: all of it);
        the text behind that is emitted as text. No call is current then. A call that has not begun begins without a
        name (a "truncated" one with the name in its header), or raises `NotACall` beyond the limit of calls.
        `is_end_uncertain`: what follows may be part of the call; False does not reset the builder's attribute."""
        assert self.text.is_open
        call = self.call or self.begin(self.header_name() if code == "truncated" else "", unread=True)
        self.problem(code, message, path, call=call.index)
        text, start = self.text_so_far(), self.text.start
        self.drop_text()
        size = len(text) if end is None else min(len(text), end - start)
        self._emit_end(Call(call.name, {}, "".join(call.parts), call.id, text[:size], call.repairs, complete=False))
        if size < len(text):
            self.output.emit_after_call(text[size:], self.at)
        self.is_end_uncertain = self.is_end_uncertain or is_end_uncertain

    def fail_truncated(self) -> None:
        """Take the remaining text and reject the call in it as truncated; one that has not begun gets the name in its
        header, or "". Beyond the limit of calls report that instead, and take nothing."""
        if self.call is None and not self.has_room():
            self.report_too_many()
            return
        if not self.text.is_open:
            self.begin_text()
        self.take_all()
        self.fail("truncated", "the text ended before the call did; send the whole call again")

    def _emit_end(self, made: Call) -> None:
        """Emit the end of the current call as `made`, with its problems, or keep it pending if it is complete and its
        block waits for what follows. No call is current then."""
        call = self.call
        assert call is not None
        if call.problems:
            made = msgspec.structs.replace(made, problems=tuple(call.problems))
        self.output.spans.mark("call", self.text.start + len(made.raw))
        self.call = None
        if made.complete and self.block is not None and self.block.holds:
            self.pending = call.index, made
        else:
            self.output.events.append(CallEnd(call.index, made))

    # -- whole calls ---------------------------------------------------------------------------------------------------

    def _add_whole_call(self, whole: Whole, moved: int = 0) -> None:
        """Add a call that has arrived whole and finish it. If it needs no repair or check, its text is left untaken for
        the caller, and `CallStart` and `Arguments` are emitted only where previews need them (`CallStart` also if
        bodies are held); else its text is taken as by `begin` and `finish`. `whole`: its place in `buf` when it was
        found, with what was read of it; `moved`: by how many characters its place has moved since."""
        start, end, name, json, value, id = whole
        if moved:
            start, end = start + moved, end + moved
        tools, header, options = self.tools, self.header_names, self.options
        tool = tools.get(name) if tools is not None else None
        if (
            tool is not None
            and value
            and end - start <= self.limits.call
            and not options.forbidden
            and (not header or header == name)
            and self.block is None
            and (not id or id.startswith(f"functions.{name}:") or name_in_id(id, tools) in ("", name))
            and needs_no_repair(tool, value)
        ):
            # Without repairs and problems the events of `begin` and `finish` are emitted directly, which costs less.
            if self.pending is not None:
                self.finalize_pending()
            output, index, base = self.output, self.index, self.base
            output.call(base + start, base + end)
            id = self.ids.take(id)
            call = Call(name, value, json, id, self.buf[start:end])
            self.index = index + 1
            # A call that stays pending keeps its place before the text behind it by its `CallStart`.
            if options.previews or self.compiled.bodies.is_quick_held:
                output.events.append(CallStart(index, id, name))
            if options.previews:
                output.events.append(Arguments(index, json))
            output.events.append(CallEnd(index, call))
            return
        self.advance(start - self.pos)
        self.begin_text()
        self.begin(name, id).parts.append(json)
        self.advance(end - start)
        self.finish(value)

    def add_whole_calls(self, calls: list[Whole], end: int, moved: int) -> None:
        """Take and add all calls of a block that ends at the index `end`, take the text up to there, and end the block
        in the output. `moved`: by how many characters the indexes have moved since they were found."""
        for call in calls:
            self._add_whole_call(call, moved)
        self.advance(end + moved - self.pos)
        self.output.end_calls(self.base + self.pos)

    def add_loose_call(self, loose_call: LooseCall, text: str, start: int) -> None:
        """Add a call that the tolerant reader found in `text`, which begins at position `start` of the reply, with a
        receipt of each repair, and finish it. If there is a current call, that is kept and gets its arguments and
        further members; else a call begins with its name and id, which raises `NotACall` beyond the limit of calls."""
        has_begun = self.call is not None
        arguments = self.text.arguments
        if not has_begun:
            self.begin_text()
            self.text = CallText(start + loose_call.start, True, arguments=arguments)
            self.begin(loose_call.name, loose_call.id)
        call = self.call
        assert call is not None
        # What was emitted was a preview of what is now parsed in another way: the remainder of the source follows it.
        is_inside = has_begun and start <= arguments < start + loose_call.end
        call.add_repairs(*deviation_receipts(loose_call.deviations))
        call.beside, call.parts = loose_call.beside, [dumps(loose_call.arguments)]
        call.source = text[arguments - start : loose_call.end] if is_inside else None
        self.text = CallText(self.text.start, True, text[loose_call.start : loose_call.end], arguments)
        self.finish(loose_call.arguments, empty=loose_call.arguments is None)

    def reparse(self, *, closed: bool = True) -> bool:
        """Parse the broken call again with the tolerant reader and emit what it finds. Return False, with nothing
        emitted, if that does not help or no block is open. `closed`: the end of the call is known."""
        return self.block is not None and self.block.reparse(closed=closed)

    def adopt(self, call: Call, note: Problem) -> None:
        """Emit all events of `call`, which another machine found in a part of the same text, with the problem `note`,
        the next index, and a new id unless its id was in the text. A pending call is emitted first. `Arguments` are
        emitted only for a complete call."""
        index = self.index
        if self.pending is not None:
            self.finalize_pending()
        id = self.ids.take("" if call.id.startswith(MINTED) else call.id)
        problems = tuple([msgspec.structs.replace(problem, call=index) for problem in (*call.problems, note)])
        self.output.call(self.output.spans.end)
        self.output.events += (CallStart(index, id, call.name), *problems)
        if call.complete and call.json:
            self.output.events.append(Arguments(index, call.json))
        self.output.events.append(CallEnd(index, msgspec.structs.replace(call, id=id, problems=problems)))
        self.index = index + 1

    # -- the pending call ----------------------------------------------------------------------------------------------

    def hold_last_call(self) -> None:
        """Make the call whose end is the last event pending again, if it is complete: what follows may show that it did
        not end where it seemed to. Nothing changes if the last event is no end of a call; there must be one."""
        end = self.output.events[-1]
        if isinstance(end, CallEnd) and end.call.complete:
            self.output.events.pop()
            self.pending = end.index, end.call

    def finalize_pending(self) -> None:
        """Emit the end of the pending call as it is, if there is one; none is pending then: nothing that follows can
        change it."""
        if self.pending is not None:
            self.output.events.append(CallEnd(*self.pending))
            self.pending = None

    def reject_pending(self, code: str, message: str) -> None:
        """Add a blocking problem to the pending call, which stays pending: what follows shows that it did not end where
        it seemed to. Nothing changes if it has a problem with this code."""
        assert self.pending is not None
        index, call = self.pending
        if any(problem.code == code for problem in call.problems):
            return
        made = Problem(code, message, call=index)
        self.output.events.append(made)
        self.pending = index, msgspec.structs.replace(call, problems=(*call.problems, made))

    def rollback(self, index: int, notes: dict[str, int]) -> None:
        """Forget the calls from `index` on, the ids of those whose events are not yet taken, and the pending call,
        because their text is parsed again; `notes` replaces the counts of notes. Their events are left to the
        caller."""
        events = self.output.events
        ends = [event.call.id for event in events if isinstance(event, CallEnd)]
        self.ids.forget([*ends, *[event.id for event in events if isinstance(event, CallStart)]])
        self.index, self.pending, self.notes = index, None, notes


class ArgumentPreview:
    """Emits the members of an argument object while it arrives. `start`: where the text begins that is not emitted."""

    def __init__(self, builder: CallBuilder, call: OpenCall) -> None:
        self._builder, self.index, self.start = builder, call.index, builder.capture()

    def emit(self) -> None:
        """Give the text that was taken since `start` to the call, which emits it, and move `start` to this place."""
        text = self._builder.captured(self.start)
        self.start = self._builder.at
        if text:
            self._builder.give(text)

    def record(self, text: str) -> None:
        """Give `text`, which a sink has already emitted, to the call, and move `start` behind it."""
        self._builder.give(text, is_emitted=True)
        self.start += len(text)

    def read_object(self) -> Steps[None]:
        """Take the JSON object that begins here, with its closing brace, and emit each member when it is whole and a
        comma follows (a plain string while it arrives). The remainder behind that, and all from something odd on, whose
        end is found by brackets alone, is taken, but the caller must emit it. Raises `Cut` if the text ends,
        `LostJsonEnd` if no end can be found."""
        builder = self._builder
        builder.advance()
        while True:
            char = yield from builder.peek()
            if char == '"' and (key := (yield from builder.take_json_string())) is not None:
                char = yield from builder.peek()
                if char == ":":
                    builder.advance()
                    char = yield from builder.peek()
                if char == '"' and builder.kind(key) == "plain":
                    yield from builder.skip_json_string(self)
                elif char:
                    yield from (builder.skip_json() if char in '"[{' else builder.skip_scalar())
                char = yield from builder.peek()
            if not char:
                raise Cut
            if char != ",":
                break
            builder.advance()
            self.emit()
        # The closing brace, or something odd: then the end is found as it is without looking inside.
        yield from builder.skip_brackets(["}"])
