"""Build the calls of a reply, one at a time: begin a call, emit its events, finish or reject it.

A call is emitted final, with all its problems. A call whose values are raw text is `pending` until what follows shows
whether it really ended where it seemed to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from rightcall.formats.spec import HOLES
from rightcall.ids import Ids
from rightcall.parsing.buffer import Buffer, Capture, NotACall, Steps, TokenMap
from rightcall.parsing.events import Output
from rightcall.parsing.markers import Probe
from rightcall.parsing.options import ReadOptions
from rightcall.repairs.envelope_repair import BesideMember, Sketch
from rightcall.repairs.finish import RepairBudget, receipts, settle
from rightcall.repairs.loose_json import dumps
from rightcall.repairs.schema_repair import fold
from rightcall.repairs.tool_meant import name_in_id, settle_name, two_names
from rightcall.schema.places import Kind
from rightcall.schema.unknown_names import is_settled
from rightcall.strict_json import Undecodable
from rightcall.tools.checks import name_problem
from rightcall.tools.toolset import Toolset
from rightcall.types import Arguments, Call, CallEnd, CallStart, Problem, Repair

if TYPE_CHECKING:
    from rightcall.parsing.blocks import Block
    from rightcall.parsing.compile import CompiledFormat

name_at, names_in = re.compile(HOLES["name"]).match, re.compile(HOLES["name"]).findall


def declared(word: str, tools: Toolset | None) -> str:
    """Return the declared tool that a word names, with or without a namespace and a number; "" for none."""
    name = word.partition(":")[0]
    names = (word, name, name.rpartition(".")[2])
    return next((name for name in names if tools is not None and name in tools), "")


# A call that is all there: where it begins and ends, its name, its arguments as JSON and as a value, its id.
Whole = tuple[int, int, str, str, dict[str, Any], str]

_NO_CLOSER = re.compile(r"[ \t\r\n]{0,128}+[^ \t\r\n}\])]").match
_IS_NAME = re.compile(HOLES["name"]).fullmatch
_MOST_FOLDED = 256  # names that another one is compared with
_NO_KINDS: dict[str, Kind] = {}
_MOST_NOTES = 32
_FORBIDDEN = "not_authorised", "no tool may be called in this turn; answer in text"
MINTED = "\0"  # an id that begins so was not in the text


class Building:
    """The call that is being read."""

    __slots__ = (
        *("beside", "checked", "given", "id", "index", "inline", "kinds", "name", "parts", "problems", "repairs"),
        "source",
    )

    def __init__(self, index: int, id: str, name: str, kinds: dict[str, Kind]) -> None:
        self.index, self.id, self.name = index, id, name
        self.kinds = kinds  # how each declared argument is to be read
        self.parts: list[str] = []  # pieces of argument JSON
        self.given = 0  # how many characters of them were given out
        self.source: str | None = None  # the arguments as they were sent, where the pieces are not
        self.checked = False  # a problem was found that says it all
        self.inline = False  # an argument was written without the line breaks around it
        self.repairs: tuple[Repair, ...] = ()
        self.problems: list[Problem] = []
        self.beside: tuple[BesideMember, ...] = ()  # what stands in its envelope beside the arguments


class CallBuilder(Buffer):
    """The buffer and the current call, which every reader of a body works with."""

    __slots__ = (
        *("_budget", "_most", "_raw_text", "args_at", "block", "call", "compiled", "full", "header_names"),
        *("ids", "in_open_reasoning", "index", "is_end_uncertain", "limits", "live", "notes", "options"),
        *("output", "pending", "raw", "raw_at", "token_map", "tools"),
    )

    def __init__(self, compiled: CompiledFormat, options: ReadOptions, ids: Ids) -> None:
        Buffer.__init__(self)
        self.index = 0  # of the next call
        self.header_names = ""  # the names, with commas, in what stands before a call that says its name again
        self.call: Building | None = None
        self.pending: tuple[int, Call] | None = None  # a call that has ended, if what follows does not say otherwise
        self.block: Block | None = None  # that is being read
        self.raw: Capture | None = None  # where the call's own text begins
        self.raw_at = 0
        self.args_at = 0  # where the arguments of the call began
        self.is_end_uncertain = False  # nobody knows where a broken call ended: what follows may be a part of it
        self.in_open_reasoning = False  # a thought was left open, which a close may still end
        self.full = False  # there were more calls than there may be
        self._raw_text: str | None = None
        self.token_map: TokenMap | None = None  # which text came as special tokens, where somebody said so
        self.compiled = compiled
        self.options = options
        self.limits = options.limits
        self._most = 0 if options.forbidden else options.limits.call  # characters of a call that may run
        self.tools = options.tools
        self.live = options.live and options.tools is not None
        self.ids = ids
        self.output = Output()
        self.notes: dict[str, int] = {}  # how many of each kind there were
        self._budget: RepairBudget | None = None

    @property
    def budget(self) -> RepairBudget:
        """What repairs may still cost in this reply."""
        if self._budget is None:
            self._budget = RepairBudget()
        return self._budget

    def is_plain_text(self, start: int, end: int) -> bool:
        """Is this part of the buffer known to be plain text, whatever its letters are?"""
        return self.token_map is not None and self.token_map.of(self.base + start, self.base + end) is False

    def is_token(self, start: int, end: int) -> bool:
        """Is this part of the buffer known to be a special token?"""
        return self.token_map is not None and self.token_map.of(self.base + start, self.base + end) is True

    # -- what readers say to the output --------------------------------------------------------------------------------

    def drop_blanks(self) -> None:
        self.output.drop_blanks()

    def content(self, text: str, source: int) -> None:
        """Emit text that the format carries as a JSON value. `source`: its length in the input, up to `pos`."""
        self.output.content(text, self.at - source, self.at)

    def problem(
        self, code: str, message: str, path: str = "", *, blocking: bool = True, call: int | None = None
    ) -> None:
        made = Problem(code, message, path, call, blocking)
        self.output.problem(made)
        if self.call is not None and self.call.index == call:
            self.call.problems.append(made)

    def note(self, code: str, message: str) -> None:
        """Report a problem that does not block; of each code only the first few."""
        self.notes[code] = count = self.notes.get(code, 0) + 1
        if count <= _MOST_NOTES:
            self.problem(code, message, blocking=False)

    # -- a call's own text ---------------------------------------------------------------------------------------------

    def raw_begin(self) -> None:
        """Begin the raw text of a call here."""
        if self.raw is not None:
            self.raw_drop()
        self.raw = self.raw_at = self.capture()
        self._raw_text = None

    def raw_end(self) -> None:
        """End the raw text of a call here: what is read from now until `finish` is no part of it."""
        assert self.raw is not None
        self._raw_text = self.captured(self.raw)

    def raw_drop(self) -> None:
        if self.raw is not None:
            self.drop(self.raw)
            self.raw = None

    # -- a call --------------------------------------------------------------------------------------------------------

    def begin(self, name: str, id: str = "", repairs: tuple[Repair, ...] = (), *, unread: bool = False) -> Building:
        """Begin a call: emit what is known before its arguments, which is final. `unread`: it broke before its name was
        read, which another problem reports."""
        if not self.has_room():
            self.full = True
            raise NotACall
        if self.pending is not None:
            self.finalize_pending()
        self.output.call(self.raw_at)
        tools = self.tools
        is_known = tools is not None and name in tools
        if tools is not None and not is_known:
            name, found = settle_name(name, tools, self.policy(name))
            repairs += found
            is_known = name in tools
        kinds = _NO_KINDS if tools is None else tools.kinds(name)
        call = self.call = Building(self.index, self.ids.take(id), name, kinds)
        call.repairs = (*self.block.fenced, *repairs) if self.block is not None else repairs
        self.index += 1
        self.output.events.append(CallStart(call.index, call.id, name))
        if self.options.forbidden:
            self.problem(*_FORBIDDEN, call=call.index)
        elif not is_known and not unread and (wrong := name_problem(name, tools)):
            self.problem(*wrong, call=call.index)
        said = self.header_names or (name_in_id(id, tools) if id else "")
        if said not in ("", name) and not unread and (two := two_names(said, name, tools, self.policy(name))):
            self.problem(*two, call=call.index)
        return call

    def policy(self, name: str) -> str:
        """Return the repair policy for calls of this tool."""
        repair = self.options.repair
        return repair if isinstance(repair, str) else repair.get(name, repair.get("*", "safe"))

    def whole_call(self, whole: Whole, moved: int = 0) -> None:
        """Add a call that has arrived whole. `moved`: by how much its index has changed since it was found."""
        start, end, name, json, value, id = whole
        if moved:
            start, end = start + moved, end + moved
        tools, said = self.tools, self.header_names
        tool = tools.get(name) if tools is not None else None
        if (
            tool is not None
            and value
            and end - start <= self._most
            and (not said or said == name)
            and self.block is None
            and (not id or id.startswith(f"functions.{name}:") or name_in_id(id, tools) in ("", name))
            and is_settled(tool, value)
        ):
            # Where there is nothing to repair and nothing to tell, the same events as below cost less.
            if self.pending is not None:
                self.finalize_pending()
            output, index, base = self.output, self.index, self.base
            output.whole_call(base + start, base + end)
            id = self.ids.take(id)
            call = Call(name, value, json, id, self.buf[start:end])
            self.index = index + 1
            if self.options.previews:
                output.events += (CallStart(index, id, name), Arguments(index, json))
            output.events.append(CallEnd(index, call))
            return
        self.pos = start
        self.raw_begin()
        self.begin(name, id).parts.append(json)
        self.pos = end
        self.finish(value)

    def take_extra_closers(self, probe: Probe | None = None) -> Steps[None]:
        """Take one to three surplus brackets before the closing marker (or what `probe` finds), with a receipt."""
        probe = probe or self.compiled.call_ends.extra_brackets
        if probe is None or self.policy("") == "off" or _NO_CLOSER(self.buf, self.pos):
            return
        self.raw_end()
        found = yield from self.test(probe)
        if found:
            self.repaired("extra_closer", found.group().strip(), "")
            self.pos += len(found.group().rstrip())
            self.raw_end()

    def reread(self, *, closed: bool = True) -> bool:
        """Read a broken call again with the tolerant reader. False if that does not help."""
        return self.block is not None and self.block.reread(closed=closed)

    def add_reread_call(self, sketch: Sketch, text: str, start: int) -> None:
        """Add a call that the tolerant reader found. `text`: its block from `start` on."""
        has_begun = self.call is not None
        if not has_begun:
            self.raw_begin()
            self.raw_at = start + sketch.start
            self.begin(sketch.name, sketch.id)
        call = self.call
        assert call is not None
        call.repairs += receipts(sketch.liberties)
        call.beside = sketch.beside
        # What was given out was a preview of what is now read otherwise: the rest of what was sent follows it.
        is_inside = has_begun and start <= self.args_at < start + sketch.end
        call.source = text[self.args_at - start : sketch.end] if is_inside else None
        call.parts = [dumps(sketch.arguments)]
        self._raw_text = text[sketch.start : sketch.end]
        self.finish(sketch.arguments, empty=sketch.arguments is None)

    def kind(self, key: str) -> str | None:
        """Return the declared type of an argument of the current call; None for an undeclared one."""
        return self.call.kinds.get(key) if self.call is not None else None

    def kind_by_another_name(self, key: str) -> str | None:
        """Return the declared type of an argument whose name the repair will replace by a declared one."""
        call = self.call
        if call is None or not 0 < len(call.kinds) <= _MOST_FOLDED:
            return None
        tool = self.tools.get(call.name) if self.tools is not None else None
        if tool is not None and key in tool.aliases:
            return call.kinds.get(tool.aliases[key])
        folded = fold(key)
        return next((kind for name, kind in call.kinds.items() if fold(name) == folded), None)

    def give(self, json: str) -> None:
        """Add a piece of argument JSON as it was sent. It is emitted at once when `live`."""
        call = self.call
        assert call is not None
        call.parts.append(json)
        if self.live:
            self.output.events.append(Arguments(call.index, json))
            call.given += len(json)

    def record_given(self, json: str) -> None:
        """Add argument JSON to the call whose events a sink emitted."""
        call = self.call
        assert call is not None
        call.parts.append(json)
        if self.live:
            call.given += len(json)

    def finish(self, value: Any = Undecodable, *, empty: bool = False) -> None:
        """Finish the call: its body has ended. `value`: its arguments, if the reader knows them."""
        call, raw = self.call, self.raw
        assert call is not None and raw is not None
        text = self.captured(raw) if self._raw_text is None else self._raw_text
        self.raw_drop()
        json = "" if empty else "".join(call.parts)
        if len(text) > self.limits.call:
            self.problem("too_large", f"the call is longer than {self.limits.call} characters", call=call.index)
            self._out(Call(call.name, {}, json, call.id, text, call.repairs, complete=False))
            return
        simple = type(value) is dict and not empty and json and not call.beside and not call.repairs
        if simple and self._fits(call, value):
            self._give_rest(call, json)
            self._out(Call(call.name, value, json, call.id, text))
            return
        made, problems = settle(
            call.name,
            json,
            index=call.index,
            id=call.id,
            raw=text,
            tools=None if call.checked else self.tools,
            policy=self.policy(call.name),
            depth=self.limits.depth,
            value=value,
            repairs=call.repairs,
            beside=call.beside,
            budget=self.budget,
        )
        if made.complete:
            self._give_rest(call, made.json)
        self.output.events.extend(problems)
        call.problems += problems
        self._out(made)

    def adopt(self, call: Call, note: Problem) -> None:
        """Add a call that another reading found in a part of the same text, with a note."""
        index = self.index
        if self.pending is not None:
            self.finalize_pending()
        id = self.ids.take("" if call.id.startswith(MINTED) else call.id)
        problems = tuple([msgspec.structs.replace(problem, call=index) for problem in (*call.problems, note)])
        self.output.call(self.output.tiled)
        self.output.events += (CallStart(index, id, call.name), *problems)
        if call.complete and call.json:
            self.output.events.append(Arguments(index, call.json))
        self.output.events.append(CallEnd(index, msgspec.structs.replace(call, id=id, problems=problems)))
        self.index = index + 1

    def _give_rest(self, call: Building, json: str) -> None:
        """Emit the arguments of a complete call; when live, the remainder as it was sent."""
        if self.live:
            sent = "".join(call.parts) if call.source is None else call.source
            json = sent[call.given :] if call.given or sent.lstrip()[:1] == "{" else json
        if json and self.options.previews:
            self.output.events.append(Arguments(call.index, json))

    def repaired(self, rule: str, before: str, after: str) -> None:
        assert self.call is not None
        self.call.repairs += (Repair(rule, "exact", "", before, after),)

    def _fits(self, call: Building, value: dict[str, Any]) -> bool:
        """Does the call need no repair? This is the usual case, and the cheapest."""
        if self.tools is None or call.checked:
            return True
        tool = self.tools.get(call.name)
        return tool is None or is_settled(tool, value)

    def fail(self, code: str, message: str, path: str = "", *, end: int | None = None) -> None:
        """Reject the call with a problem and keep its text. What is behind `end` is text."""
        assert self.raw is not None
        call = self.call or self.begin(self.header_name() if code == "truncated" else "", unread=True)
        self.problem(code, message, path, call=call.index)
        raw = self.captured(self.raw)
        self.raw_drop()
        size = len(raw) if end is None else min(len(raw), end - self.raw_at)
        self._out(Call(call.name, {}, "".join(call.parts), call.id, raw[:size], call.repairs, complete=False))
        if size < len(raw):
            self.output.emit_after_call(raw[size:], self.at)

    def has_room(self) -> bool:
        """Is one more call within the limit?"""
        return self.index < self.limits.calls

    def fail_truncated(self) -> None:
        """Reject a call that the text ends before, or in its first characters, which are taken. Beyond the limit of
        calls they are text."""
        if self.call is None and not self.has_room():
            self.report_too_many()
            return
        if self.raw is None:
            self.raw_begin()
        self.pos = len(self.buf)
        self.fail("truncated", "the text ended before the call did; send the whole call again")

    def report_too_many(self, much: str = "") -> None:
        """Report that a limit is exceeded, by default that of calls: the remainder is not read."""
        self.full = True
        self.problem(
            "too_large", f"the reply has {much or f'more than {self.limits.calls} calls'}; the rest was not read"
        )

    def header_name(self) -> str:
        """Return the one tool name in the header of the call, or ""."""
        return self.header_names if _IS_NAME(self.header_names) else ""

    def _out(self, made: Call) -> None:
        call = self.call
        assert call is not None
        if call.problems:
            made = msgspec.structs.replace(made, problems=tuple(call.problems))
        self.output.mark("call", self.raw_at + len(made.raw))
        self.call = None
        if made.complete and self.block is not None and self.block.holds:
            self.pending = call.index, made
        else:
            self.output.events.append(CallEnd(call.index, made))

    # -- a call that waits for what follows it -------------------------------------------------------------------------

    def finalize_pending(self) -> None:
        """Emit the pending call: nothing that follows can change it."""
        if self.pending is not None:
            self.output.events.append(CallEnd(*self.pending))
            self.pending = None

    def reject_pending(self, code: str, message: str) -> None:
        """Reject the pending call: what follows shows that it did not end where it seemed to."""
        assert self.pending is not None
        index, call = self.pending
        if any(problem.code == code for problem in call.problems):
            return
        made = Problem(code, message, call=index)
        self.output.problem(made)
        self.pending = index, msgspec.structs.replace(call, problems=(*call.problems, made))
