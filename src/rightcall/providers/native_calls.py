"""The native calls of one answer: pieces in, events out.

`NativeCalls` starts a call when its arguments begin and ends calls in the order in which they began. `CallMatcher`
decides which call a piece belongs to; servers count, name and repeat calls in many ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rightcall.ids import Ids
from rightcall.parsing.options import Limits
from rightcall.providers.dialect import CallDelta, Slot, UnknownField
from rightcall.providers.json_state import JsonState, ends_early, is_repeated
from rightcall.providers.sdk_view import dumps
from rightcall.repairs.envelope_repair import BesideMember, Keys, role_of
from rightcall.repairs.finish import RepairBudget, settle
from rightcall.repairs.tool_meant import hoist_name, infer_name, settle_name
from rightcall.strict_json import Undecodable, decode, decode_unique, is_same
from rightcall.tools.checks import name_problem
from rightcall.tools.toolset import Toolset
from rightcall.types import Arguments, Call, CallEnd, CallStart, Event, Problem, Repair, Text

_BLANKS = " \t\r\n"
_KEYS = Keys(("name",), ("arguments", "parameters", "args", "input"), ("id", "call_id", "tool_call_id"))
_MAX_QUOTED = 200  # characters of free text that a message quotes


# -- one call ----------------------------------------------------------------------------------------------------------


class PartialCall:
    """A native call as far as it has arrived."""

    __slots__ = (
        *("arguments", "closed", "conflicts", "custom", "draft", "emitted", "ended", "fault", "has_arguments", "id"),
        *("index", "name", "named_in_chunk", "parsed", "pending", "problems", "repairs", "size", "slot", "started"),
        *("state", "unknown", "used_id"),
        "_scanned",
    )

    def __init__(self, piece: CallDelta, index: int) -> None:
        self.index = index
        self.slot, self.id, self.custom = piece.slot, piece.id, piece.custom
        self.name = self.draft = ""
        self.named_in_chunk = -1  # the last chunk with its name
        self.arguments: list[str] = []  # pieces of the argument text
        self.size = 0  # of the argument text
        self.has_arguments = False  # argument text that is not blank has arrived
        self.parsed = self.ended = False
        self.fault: tuple[str, str] | None = None
        self.unknown: dict[str, UnknownField] = {}  # by key
        self.conflicts: list[UnknownField] = []  # fields that arrived again with another value
        self.closed = False  # nothing more follows
        self.started = False  # `CallStart` was emitted: id and name are final
        self.used_id = ""
        self.repairs: tuple[Repair, ...] = ()
        self.problems: tuple[Problem, ...] = ()  # found before the call ends
        self.pending: list[str] = []  # argument text that was not emitted
        self.emitted = 0  # characters of argument text
        self.state = JsonState()
        self._scanned = 0  # pieces of `arguments` that `state` has read

    def merge(self, piece: CallDelta) -> None:
        """Take the fields of a piece, except name, id and arguments."""
        self.draft = self.draft or piece.draft
        self.fault = self.fault or piece.fault
        self.parsed, self.ended = self.parsed or piece.parsed, self.ended or piece.ended
        for field in piece.unknown:
            known = self.unknown.setdefault(field.key, field)
            if not is_same(known.value, field.value):
                self.conflicts.append(field)

    # -- argument text -------------------------------------------------------------------------------------------------

    def extend(self, text: str) -> None:
        """Append argument text."""
        self.arguments.append(text)
        self.pending.append(text)
        self.size += len(text)
        self.has_arguments = self.has_arguments or bool(text.strip(_BLANKS))

    def replace(self, text: str) -> None:
        """Replace all argument text."""
        self.arguments, self.pending, self.size = [text], [text], len(text)
        self.state, self._scanned = JsonState(self.state.may_emit), 0
        self.has_arguments = bool(text.strip(_BLANKS))

    @property
    def text(self) -> str:
        """The argument text so far."""
        if len(self.arguments) > 1:
            self.scan()
            self.arguments, self._scanned = ["".join(self.arguments)], 1
        return self.arguments[0] if self.arguments else ""

    def is_text(self, text: str) -> bool:
        """Is this the argument text so far? Pieces are joined only if the length is the same."""
        return len(text) == self.size and text == self.text

    def scan(self) -> JsonState:
        """Return the state of the argument text."""
        for piece in self.arguments[self._scanned :]:
            self.state.feed(piece)
        self._scanned = len(self.arguments)
        return self.state

    @property
    def has_ended(self) -> bool:
        """Is it certain that the call is complete, so that a limit that ended the answer did not truncate it?

        The provider reports it; or the argument text is the model's own and is complete JSON. Free text, and arguments
        that the server parsed, prove nothing.
        """
        if self.ended or self.custom or self.parsed:
            return self.ended
        return self.scan().is_complete or is_repeated(self.text)

    # -- previews ------------------------------------------------------------------------------------------------------

    def enable_preview(self, may_emit: Callable[[str], bool]) -> None:
        """Scan the arguments again, to know how much of them is final."""
        self.state, self._scanned = JsonState(may_emit), 0
        self.pending = list(self.arguments)

    def take_preview(self) -> str:
        """Return argument text that is final and was not emitted; none of a custom tool's text is final."""
        if self.custom:
            return ""
        ready = self.scan().final - self.emitted
        if ready <= 0:
            return ""
        pending = "".join(self.pending)
        self.pending = [pending[ready:]]
        self.emitted += ready
        return pending[:ready]


# -- which call a piece belongs to -------------------------------------------------------------------------------------


class CallMatcher:
    """The calls of one answer, in the order in which they began.

    A piece is matched by its id, else by the provider's index, else by its position. Last, if the JSON of a call is
    complete, an object that begins belongs to another call. A piece that nothing identifies continues the last call, so
    that no argument text is lost.
    """

    def __init__(self, tools: Toolset | None, first: int) -> None:
        self.calls: list[PartialCall] = []
        self.chunk = 0  # the number of the current chunk
        self._first = first
        self._tools = tools
        self._by_id: dict[str, PartialCall] = {}
        self._by_slot: dict[Slot, PartialCall] = {}
        self._open: list[PartialCall] = []  # calls that may continue, and some that have ended since

    def call_in(self, slot: Slot | None) -> PartialCall | None:
        """Return the call in a slot; the last call if the provider has no slots."""
        if slot is None:
            return self.calls[-1] if self.calls else None
        return self._by_slot.get(slot)

    def match(self, piece: CallDelta) -> PartialCall:
        """Return the call of this piece, with all its fields except the argument text."""
        call = None if piece.whole else self._known_call(piece)
        if call is None or self._begins_call(call, piece):
            call = PartialCall(piece, self._first + len(self.calls))
            self.calls.append(call)
            self._open.append(call)
        if piece.slot is not None:
            self._by_slot[piece.slot] = call
        if piece.id:
            call.id = call.id or piece.id
            self._by_id[piece.id] = call
        if piece.name:
            call.named_in_chunk = self.chunk
            is_final = call.started or (call.name and call.has_arguments)
            if not is_final and not (piece.name == call.name and self._is_whole_name(call.name)):
                call.name += piece.name
        call.merge(piece)
        return call

    def _known_call(self, piece: CallDelta) -> PartialCall | None:
        """Return the call that the piece refers to, if any."""
        by_slot = None if piece.slot is None else self._by_slot.get(piece.slot)
        by_id = self._by_id.get(piece.id) if piece.id else None
        if by_id is not None and (by_slot is None or by_slot.id != piece.id):
            return by_id
        if by_slot is not None:
            return by_slot
        if not self.calls:
            return None
        # Neither its id nor its index is known: is it the first piece of a call?
        new_id, new_slot = bool(piece.id), piece.slot is not None
        if (new_id and new_slot) or ((new_id or new_slot) and (bool(piece.name) or not piece.arguments)):
            return None
        if piece.name:
            return self.calls[-1]
        # Arguments under an unknown index or id were announced under another one: they continue the last open call.
        while self._open and (self._open[-1].closed or self._open[-1].scan().is_complete):
            self._open.pop()
        return self._open[-1] if self._open else self.calls[-1]

    def _begins_call(self, call: PartialCall, piece: CallDelta) -> bool:
        """The piece refers to this call; is it the beginning of another call nevertheless?"""
        if piece.id and call.id and piece.id != call.id and (piece.name or not piece.arguments):
            return True
        if piece.all:
            return False
        if piece.name:
            return self._names_another(call, piece)
        # An object without a name, after arguments that are complete: those of the next call, unless they repeat.
        is_its_own = piece.id == call.id if piece.id else piece.slot is not None and piece.slot == call.slot
        if is_its_own or not _begins_object(piece) or not call.scan().is_complete:
            return False
        return not call.is_text(piece.arguments)

    def _names_another(self, call: PartialCall, piece: CallDelta) -> bool:
        if not call.name:
            return False
        if call.named_in_chunk == self.chunk or call.closed:
            return True
        if call.has_arguments:
            return piece.name != call.name or self._is_same_tool_again(call, piece)
        # No arguments yet: is this a part of the name, the name again, or the name of the next call?
        if _is_in_other_slot(call, piece) and (piece.name != call.name or not piece.arguments):
            return True
        tools = self._tools
        if piece.name == call.name or tools is None:
            return False
        return call.name in tools and piece.name in tools and call.name + piece.name not in tools

    def _is_same_tool_again(self, call: PartialCall, piece: CallDelta) -> bool:
        """The name arrived again after arguments: does it begin a second call of the tool, or is it in every chunk?"""
        state = call.scan()
        if state.is_complete:
            is_repeated_piece = bool(piece.id) and piece.id == call.id and call.is_text(piece.arguments)
            return not is_repeated_piece if piece.arguments.strip(_BLANKS) else _is_in_other_slot(call, piece)
        if not _begins_object(piece) or call.custom:
            return False
        return not state.is_invalid and state.would_invalidate(piece.arguments)

    def _is_whole_name(self, name: str) -> bool:
        """A name arrived again: is it the whole name, and not one half of a declared name such as `pingping`?"""
        return self._tools is None or name in self._tools or name + name not in self._tools


def _is_in_other_slot(call: PartialCall, piece: CallDelta) -> bool:
    return None not in (piece.slot, call.slot) and piece.slot != call.slot


def _begins_object(piece: CallDelta) -> bool:
    return piece.arguments.lstrip(_BLANKS).startswith("{")


# -- events ------------------------------------------------------------------------------------------------------------


class NativeCalls:
    """The native calls of one answer. Events are appended to `out`."""

    def __init__(
        self,
        out: list[Event],
        ids: Ids,
        first: int,
        *,
        tools: Toolset | None,
        repair: str | Mapping[str, str],
        live: bool,
        limits: Limits,
    ) -> None:
        self._matcher = CallMatcher(tools, first)
        self._calls = self._matcher.calls
        self._out = out
        self._live = live and tools is not None
        self._tools, self._repair, self._limits, self._ids = tools, repair, limits, ids
        self._first = first
        self._budget = RepairBudget()
        self._started = 0
        self._ended = 0

    @property
    def next_index(self) -> int:
        """The index that the next call would have."""
        return self._first + min(len(self._calls), self._limits.calls)

    def begin_chunk(self) -> None:
        """Count a chunk. Two names in one chunk are those of two calls."""
        self._matcher.chunk += 1

    def add(self, piece: CallDelta) -> None:
        """Read one piece."""
        known = len(self._calls)
        call = self._matcher.match(piece)
        if call.closed or (call.started and call.index - self._first < self._ended):
            if piece.arguments.strip(_BLANKS) and not piece.all and not call.is_text(piece.arguments):
                # The call may have run already, so late arguments are reported and not read.
                message = f"more arguments of {call.name!r:.80} came after the call had ended; they were not read"
                self._out.append(Problem("late_arguments", message, blocking=False))
            return
        if 0 < known < len(self._calls):
            self._end_ready()
        text = piece.arguments
        if piece.all:
            if text.strip(_BLANKS) and not call.emitted:
                call.replace(text)
        elif text:
            is_complete = call.has_arguments and not call.custom and call.scan().is_complete
            if not (is_complete and call.is_text(text)):  # else all arguments once more
                call.extend(text)
        if call.has_arguments:
            self._start_named(call)
        if call.started and self._live and (ready := call.take_preview()):
            self._out.append(Arguments(call.index, ready))
        if piece.whole:
            call.closed = True
            self._end_ready()

    def close_slot(self, slot: Slot | None) -> None:
        """Nothing more follows for the call in this slot."""
        call = self._matcher.call_in(slot)
        if call is not None and not call.closed:
            call.closed = True
            self._end_ready()

    def end_complete(self) -> None:
        """End the calls that are complete, because text or reasoning follows."""
        for call in self._calls[self._ended :]:
            if not call.closed and (call.custom or not call.scan().is_complete):
                return
            self._end(call, truncated=False)

    def close(self, truncated: bool) -> None:
        """End all calls. Of a truncated answer, the last call is rejected unless it is certain that it is complete."""
        while self._ended < len(self._calls):
            self._end(self._calls[self._ended], truncated=truncated and self._ended == len(self._calls) - 1)

    def _end_ready(self) -> None:
        """End calls in order, as long as they are certain to be over."""
        while self._ended < len(self._calls):
            call, is_last = self._calls[self._ended], self._ended == len(self._calls) - 1
            if is_last and not (call.closed and call.has_ended):
                return  # whether the answer was truncated is known only at its end
            if not call.closed and (call.custom or not call.scan().is_complete):
                return
            self._end(call, truncated=False)

    # -- the start of a call -------------------------------------------------------------------------------------------

    def _start_named(self, call: PartialCall) -> None:
        """Start the calls up to this one. A call without a name waits, because its arguments may contain the name."""
        while not call.started and self._started < self._limits.calls:
            each = self._calls[self._started]
            if self._tools is not None and not each.name.strip():
                return
            self._start(each)

    def _start(self, call: PartialCall) -> None:
        """Make id and name of this call, and of those before it, final."""
        if call.started or call.index - self._first >= self._limits.calls:
            return
        for each in self._calls[self._started : call.index - self._first + 1]:
            each.started = True
            each.used_id = self._ids.take(each.id)
            each.name, repairs = settle_name(each.name, self._tools, self._policy(each.name))
            each.repairs += repairs
            self._out.append(CallStart(each.index, each.used_id, each.name))
            if each.fault is None and (self._tools is None or each.name not in self._tools):
                wrong = name_problem(each.name, self._tools)
                if wrong is not None:
                    problem = Problem(*wrong, call=each.index)
                    each.problems += (problem,)
                    self._out.append(problem)
            if self._live and self._tools is not None:
                kinds = self._tools.kinds(each.name)
                each.enable_preview(lambda key, kinds=kinds: kinds.get(key) == "plain")  # type: ignore[misc]
        self._started = max(self._started, call.index - self._first + 1)

    def _policy(self, name: str) -> str:
        """Return the repair policy for calls of this tool."""
        repair = self._repair
        return repair if isinstance(repair, str) else repair.get(name, repair.get("*", "safe"))

    # -- the end of a call ---------------------------------------------------------------------------------------------

    def _end(self, call: PartialCall, *, truncated: bool) -> None:
        self._ended += 1
        if call.index - self._first >= self._limits.calls:
            if call.index - self._first == self._limits.calls:
                message = f"the reply has more than {self._limits.calls} calls; the rest was not read"
                self._out.append(Problem("too_large", message))
            self._out.append(Text(f"{call.name}({call.text})\n"))
            return
        text = call.text if call.has_arguments or not call.draft else call.draft
        if call.custom:
            self._start(call)
            self._convert_to_function(call, text)
        json, value = self._decode(call, text)
        self._start(call)
        settled, problems = self._settle(call, text, json, value, truncated)
        # What `live` emitted is a preview of the input; the settled call is authoritative.
        remaining = (json[call.emitted :] if call.emitted else settled.json) if settled.complete else ""
        if remaining:
            self._out.append(Arguments(call.index, remaining))
        self._out.extend(problems)
        if call.problems or problems:
            settled = msgspec.structs.replace(settled, problems=(*call.problems, *problems))
        self._out.append(CallEnd(call.index, settled))

    def _convert_to_function(self, call: PartialCall, text: str) -> None:
        """Convert a custom call of a function tool, if its text is a JSON object, and record the repair."""
        if self._accepts_text(call.name) or self._policy(call.name) == "off" or len(text) > self._limits.call:
            return
        if isinstance(decode(text, self._limits.depth), dict):
            call.custom = False
            call.repairs += (Repair("double_encoded", "exact", "", dumps(text), text),)

    def _decode(self, call: PartialCall, text: str) -> tuple[str, Any]:
        """Return the arguments as JSON and as a value. A missing name is taken from the arguments or inferred."""
        if call.custom:
            return dumps({"input": text}), {"input": text}
        value: Any = Undecodable
        if text.strip(_BLANKS) and len(text) <= self._limits.call:
            value, duplicates = decode_unique(text, self._limits.depth)
            if duplicates and call.name.strip():
                return text, Undecodable  # `settle` reports the duplicate keys
        if call.name.strip() or call.started or call.fault is not None or self._policy("") == "off":
            return text, value
        hoisted = hoist_name(value, self._tools)
        if hoisted is not None:
            call.name, value = hoisted
            call.repairs += (Repair("hoisted_name", "schema", "", text, dumps(value)),)
            return dumps(value), value
        inferred = infer_name(value, self._tools)
        if inferred is not None:
            call.name = inferred
            call.repairs += (Repair("inferred_name", "schema", "", "", inferred),)
        return text, value

    def _settle(
        self, call: PartialCall, text: str, json: str, value: Any, truncated: bool
    ) -> tuple[Call, list[Problem]]:
        """Return the call and its problems. A call that may have been truncated is never completed."""
        fault = call.fault
        if fault is None:
            if len(text) > self._limits.call:
                fault = ("too_large", f"the call is longer than {self._limits.call} characters")
            elif call.custom and not self._accepts_text(call.name):
                fault = _custom_call_fault(call.name, text)
            elif (truncated and not call.has_ended) or (
                isinstance(value, Undecodable) and value.code == "invalid_json" and ends_early(text)
            ):
                fault = ("truncated", "the answer ended before the call did; send the whole call again")
        if fault is not None:
            rejected = Call(call.name, {}, text, call.used_id, text, call.repairs, complete=False)
            return rejected, [Problem(*fault, call=call.index)]
        beside = self._extra_members(call, text) if call.unknown else ()
        return settle(
            call.name,
            json,
            index=call.index,
            id=call.used_id,
            raw=text,
            tools=self._tools,
            policy=self._policy(call.name),
            depth=self._limits.depth,
            value=value,
            repairs=call.repairs,
            closed=False,
            beside=beside,
            budget=self._budget,
        )

    def _accepts_text(self, name: str) -> bool:
        """May this be a custom tool, whose one argument is the text? An undeclared tool may be anything."""
        tool = self._tools.get(name) if self._tools is not None else None
        properties = tool.parameters.get("properties") if tool is not None else None
        return not isinstance(properties, dict) or "input" in properties

    def _extra_members(self, call: PartialCall, text: str) -> tuple[BesideMember, ...]:
        """Return the unknown fields of the call. A field that the server may have added matters only as an argument."""
        members = [BesideMember(field.key, field.value, "clash") for field in call.conflicts if field.inner]
        has_arguments = bool(text.strip(_BLANKS))
        for field in call.unknown.values():
            role = role_of(field.key, field.value, _KEYS, self._tools, name=call.name, has_args=has_arguments)
            if role == "stranger" and not field.inner:
                role = "known"
            members += [BesideMember(field.key, field.value, role)] if role is not None else []
        return tuple(members)


def _custom_call_fault(name: str, text: str) -> tuple[str, str]:
    quoted = f"{text[:_MAX_QUOTED]!r}{' and more' if len(text) > _MAX_QUOTED else ''}"
    message = f"{name!r} was called as a custom tool, with free text: {quoted}; it is a function, so send its"
    return "arguments_not_object", f"{message} arguments as a JSON object"
