"""The native calls of one answer: call deltas in, events out.

`NativeCalls` starts a call when its arguments begin and ends calls in the order in which they began. `CallMatcher`
decides which call a delta belongs to, because servers number, name and repeat calls in different ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rightcall.ids import Ids
from rightcall.parsing.options import Limits
from rightcall.providers.dialect import CallDelta, Slot, UnknownField
from rightcall.providers.json_state import JsonState, ends_early, is_repeated
from rightcall.providers.sdk_view import compact_json
from rightcall.repairs.envelope_repair import EnvelopeKeys, ExtraMember, member_role
from rightcall.repairs.finish import RepairBudget, finalize_call
from rightcall.repairs.tool_meant import hoist_name, infer_name, resolve_tool_name
from rightcall.strict_json import Undecodable, decode, decode_unique, is_same_json
from rightcall.tools.checks import name_problem
from rightcall.tools.toolset import Toolset
from rightcall.types import Arguments, Call, CallEnd, CallStart, Event, Problem, Repair, Text

_BLANKS = " \t\r\n"
_KEYS = EnvelopeKeys(("name",), ("arguments", "parameters", "args", "input"), ("id", "call_id", "tool_call_id"))
_MAX_QUOTED = 200  # characters of free text that a message quotes


# -- one call ----------------------------------------------------------------------------------------------------------


class PartialCall:
    """A native call of which some deltas have arrived: its name, id, argument text and problems so far. The first delta
    gives it only slot, id and kind; `merge` and `extend` read the rest of it."""

    __slots__ = (
        *("arguments", "closed", "conflicts", "custom", "draft", "emitted", "ended", "fault", "has_arguments", "id"),
        *("index", "name", "named_in_chunk", "parsed", "pending", "problems", "repairs", "size", "slot", "started"),
        *("state", "unknown", "used_id"),
        "_scanned",
    )

    def __init__(self, delta: CallDelta, index: int) -> None:
        self.index = index
        self.slot, self.id, self.custom = delta.slot, delta.id, delta.custom
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

    def merge(self, delta: CallDelta) -> None:
        """Add the fields of a call delta to this call, except slot, name, id and argument text. The first draft, fault
        and value of an unknown field count; another value of such a field is added to `conflicts`."""
        self.draft = self.draft or delta.draft
        self.fault = self.fault or delta.fault
        self.parsed, self.ended = self.parsed or delta.parsed, self.ended or delta.ended
        for field in delta.unknown:
            known = self.unknown.setdefault(field.key, field)
            if not is_same_json(known.value, field.value):
                self.conflicts.append(field)

    # -- argument text -------------------------------------------------------------------------------------------------

    def extend(self, text: str) -> None:
        """Append a piece of argument text; it is not scanned yet."""
        self.arguments.append(text)
        self.pending.append(text)
        self.size += len(text)
        self.has_arguments = self.has_arguments or bool(text.strip(_BLANKS))

    def replace(self, text: str) -> None:
        """Replace all argument text, to be scanned from its beginning. `emitted` is not changed."""
        self.arguments, self.pending, self.size = [text], [text], len(text)
        self.state, self._scanned = JsonState(self.state.may_emit), 0
        self.has_arguments = bool(text.strip(_BLANKS))

    @property
    def text(self) -> str:
        """Return the argument text so far; the pieces are joined and scanned once."""
        if len(self.arguments) > 1:
            self.scan()
            self.arguments, self._scanned = ["".join(self.arguments)], 1
        return self.arguments[0] if self.arguments else ""

    def has_argument_text(self, text: str) -> bool:
        """Return True if `text` equals the argument text so far. Pieces are joined only if the lengths are equal."""
        return len(text) == self.size and text == self.text

    def scan(self) -> JsonState:
        """Feed the argument text that was not scanned yet to the JSON scanner, and return the scanner."""
        for piece in self.arguments[self._scanned :]:
            self.state.feed(piece)
        self._scanned = len(self.arguments)
        return self.state

    @property
    def has_ended(self) -> bool:
        """Return True if the call is certainly complete, so that a limit that ended the answer did not truncate it.

        This is certain if the provider reports it, or if the argument text was written by the model and is complete
        JSON, once or repeated. Free text, and arguments that the server parsed and wrote again, prove nothing.
        """
        if self.ended or self.custom or self.parsed:
            return self.ended
        return self.scan().is_complete or is_repeated(self.text)

    # -- previews ------------------------------------------------------------------------------------------------------

    def enable_preview(self, may_emit: Callable[[str], bool]) -> None:
        """Begin to count how much of the arguments may be emitted before the call ends: they are scanned again from the
        beginning, and `may_emit` decides by top-level key whether its string may be emitted while it arrives."""
        self.state, self._scanned = JsonState(may_emit), 0
        self.pending = list(self.arguments)

    def take_preview(self) -> str:
        """Return the argument text that is final and was not emitted before, and mark it as emitted; "" if there is
        none.

        The free text of a custom tool is never final before the call ends.
        """
        if self.custom:
            return ""
        ready = self.scan().final - self.emitted
        if ready <= 0:
            return ""
        pending = "".join(self.pending)
        self.pending = [pending[ready:]]
        self.emitted += ready
        return pending[:ready]


# -- which call a delta belongs to -------------------------------------------------------------------------------------


class CallMatcher:
    """Finds the call that each call delta belongs to, and holds the calls of one answer in their order.

    A delta is matched by its id, else by the provider's index, else by its position. Last, if the JSON of a call is
    complete, an object that begins belongs to another call. A delta that nothing identifies continues the last call, so
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

    def find_by_slot(self, slot: Slot | None) -> PartialCall | None:
        """Return the call that a slot refers to now; for None, as some providers have no slots, the last call. Return
        None if there is no such call."""
        if slot is None:
            return self.calls[-1] if self.calls else None
        return self._by_slot.get(slot)

    def match(self, delta: CallDelta) -> PartialCall:
        """Return the call that this delta belongs to, a known one or a new one, after adding all fields of the delta to
        it except the argument text. A name in pieces is joined; a name that comes again is not."""
        call = None if delta.whole else self._find_known_call(delta)
        if call is None or self._begins_call(call, delta):
            call = PartialCall(delta, self._first + len(self.calls))
            self.calls.append(call)
            self._open.append(call)
        if delta.slot is not None:
            self._by_slot[delta.slot] = call
        if delta.id:
            call.id = call.id or delta.id
            self._by_id[delta.id] = call
        if delta.name:
            call.named_in_chunk = self.chunk
            is_final = call.started or (call.name and call.has_arguments)
            if not is_final and not (delta.name == call.name and self._is_repetition(call.name)):
                call.name += delta.name
        call.merge(delta)
        return call

    def _find_known_call(self, delta: CallDelta) -> PartialCall | None:
        """Return the known call that the delta refers to by id, index or position; None if it is a new call. Calls that
        have ended are removed from `_open`."""
        by_slot = None if delta.slot is None else self._by_slot.get(delta.slot)
        by_id = self._by_id.get(delta.id) if delta.id else None
        if by_id is not None and (by_slot is None or by_slot.id != delta.id):
            return by_id
        if by_slot is not None:
            return by_slot
        if not self.calls:
            return None
        # Neither its id nor its index is known: is it the first delta of a call?
        new_id, new_slot = bool(delta.id), delta.slot is not None
        if (new_id and new_slot) or ((new_id or new_slot) and (bool(delta.name) or not delta.arguments)):
            return None
        if delta.name:
            return self.calls[-1]
        # Arguments under an unknown index or id were announced under another one: they continue the last open call.
        while self._open and (self._open[-1].closed or self._open[-1].scan().is_complete):
            self._open.pop()
        return self._open[-1] if self._open else self.calls[-1]

    def _begins_call(self, call: PartialCall, delta: CallDelta) -> bool:
        """Return True if the delta begins another call than `call`, although its id, index or position refers to
        `call`: it has another id, the name of another call, or a new object after complete arguments."""
        if delta.id and call.id and delta.id != call.id and (delta.name or not delta.arguments):
            return True
        if delta.all:
            return False
        if delta.name:
            return self._is_name_of_another(call, delta)
        # An object without a name, after arguments that are complete: those of the next call, unless they repeat.
        is_its_own = delta.id == call.id if delta.id else delta.slot is not None and delta.slot == call.slot
        if is_its_own or not _begins_object(delta) or not call.scan().is_complete:
            return False
        return not call.has_argument_text(delta.arguments)

    def _is_name_of_another(self, call: PartialCall, delta: CallDelta) -> bool:
        """Return True if the name in this delta is that of another call than `call`; False if it is a part of the
        call's name, or the name again.

        A `call` without a name takes any name."""
        if not call.name:
            return False
        if call.named_in_chunk == self.chunk or call.closed:
            return True
        if call.has_arguments:
            return delta.name != call.name or self._is_second_call(call, delta)
        # No arguments yet: is this a part of the name, the name again, or the name of the next call?
        if _is_in_other_slot(call, delta) and (delta.name != call.name or not delta.arguments):
            return True
        tools = self._tools
        if delta.name == call.name or tools is None:
            return False
        return call.name in tools and delta.name in tools and call.name + delta.name not in tools

    def _is_second_call(self, call: PartialCall, delta: CallDelta) -> bool:
        """Return whether the delta, which has the name of `call` again after arguments, begins a second call of the
        same tool (True), or the server repeats the name in every chunk (False)."""
        state = call.scan()
        if state.is_complete:
            is_repeated_delta = bool(delta.id) and delta.id == call.id and call.has_argument_text(delta.arguments)
            return not is_repeated_delta if delta.arguments.strip(_BLANKS) else _is_in_other_slot(call, delta)
        if not _begins_object(delta) or call.custom:
            return False
        return not state.is_invalid and state.would_invalidate(delta.arguments)

    def _is_repetition(self, name: str) -> bool:
        """Return whether receiving this name a second time repeats it. If only the doubled name is declared
        (`pingping`, not `ping`), the second piece continues it instead."""
        return self._tools is None or name in self._tools or name + name not in self._tools


def _is_in_other_slot(call: PartialCall, delta: CallDelta) -> bool:
    """Return True if the call and the delta both have a slot and the slots differ."""
    return None not in (delta.slot, call.slot) and delta.slot != call.slot


def _begins_object(delta: CallDelta) -> bool:
    """Return True if the delta's argument text begins with `{`, after blanks."""
    return delta.arguments.lstrip(_BLANKS).startswith("{")


# -- events ------------------------------------------------------------------------------------------------------------


class NativeCalls:
    """The native calls of one answer. The events of all calls are appended to the list `out`, which the caller empties.

    `first` is the index of the first call. `live` emits previews, which needs `tools`.
    """

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
        """Return the index that the next call would have; calls beyond the limit have none and do not count."""
        return self._first + min(len(self._calls), self._limits.calls)

    def begin_chunk(self) -> None:
        """Note that the deltas that follow are those of the next chunk: two names within one chunk are those of two
        calls."""
        self._matcher.chunk += 1

    def add(self, delta: CallDelta) -> None:
        """Add one call delta to its call, and emit the events that it makes certain: the end of earlier calls, the
        start of this one and, with `live`, a part of its arguments. Arguments for a call that has ended are not read;
        new ones are reported as a problem."""
        known = len(self._calls)
        call = self._matcher.match(delta)
        if call.closed or (call.started and call.index - self._first < self._ended):
            if delta.arguments.strip(_BLANKS) and not delta.all and not call.has_argument_text(delta.arguments):
                # The call may have run already, so late arguments are reported and not read.
                message = f"more arguments of {call.name!r:.80} came after the call had ended; they were not read"
                self._out.append(Problem("late_arguments", message, blocking=False))
            return
        if 0 < known < len(self._calls):
            self._end_ready()
        text = delta.arguments
        if delta.all:
            if text.strip(_BLANKS) and not call.emitted:
                call.replace(text)
        elif text:
            is_complete = call.has_arguments and not call.custom and call.scan().is_complete
            if not (is_complete and call.has_argument_text(text)):  # else all arguments once more
                call.extend(text)
        if call.has_arguments:
            self._start_named(call)
        if call.started and self._live and (ready := call.take_preview()):
            self._out.append(Arguments(call.index, ready))
        if delta.whole:
            call.closed = True
            self._end_ready()

    def close_slot(self, slot: Slot | None) -> None:
        """Mark the call in this slot (None: the last call) as closed, and end the calls that are now certainly
        complete. Nothing happens for an unknown slot."""
        call = self._matcher.find_by_slot(slot)
        if call is not None and not call.closed:
            call.closed = True
            self._end_ready()

    def end_complete(self) -> None:
        """End the open calls in order, because text or reasoning follows them, up to the first one that is neither
        closed nor has complete JSON as its arguments."""
        for call in self._calls[self._ended :]:
            if not call.closed and (call.custom or not call.scan().is_complete):
                return
            self._end_call(call, truncated=False)

    def close(self, truncated: bool) -> None:
        """End all calls. In a truncated answer, the last call is rejected unless it is certainly complete."""
        while self._ended < len(self._calls):
            self._end_call(self._calls[self._ended], truncated=truncated and self._ended == len(self._calls) - 1)

    def _end_ready(self) -> None:
        """End the open calls in order, up to the first one that is not certainly complete. The last call of all must
        also be closed, since the end of the answer may still truncate it."""
        while self._ended < len(self._calls):
            call, is_last = self._calls[self._ended], self._ended == len(self._calls) - 1
            if is_last and not (call.closed and call.has_ended):
                return  # whether the answer was truncated is known only at its end
            if not call.closed and (call.custom or not call.scan().is_complete):
                return
            self._end_call(call, truncated=False)

    # -- the start of a call -------------------------------------------------------------------------------------------

    def _start_named(self, call: PartialCall) -> None:
        """Emit the start of each call up to this one, but stop at a call without a name, as its arguments may contain
        the name.

        Without declared tools, such a call is started too.
        """
        while not call.started and self._started < self._limits.calls:
            each = self._calls[self._started]
            if self._tools is not None and not each.name.strip():
                return
            self._start_up_to(each)

    def _start_up_to(self, call: PartialCall) -> None:
        """Emit the start of this call and of those before it that have none, under their repaired names, with problems
        of these names. Their ids and names are final from then on. A call beyond the limit is not started."""
        if call.started or call.index - self._first >= self._limits.calls:
            return
        for each in self._calls[self._started : call.index - self._first + 1]:
            each.started = True
            each.used_id = self._ids.take(each.id)
            each.name, repairs = resolve_tool_name(each.name, self._tools, self._policy_for(each.name))
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

    def _policy_for(self, name: str) -> str:
        """Return the repair policy for calls of the tool `name`: its own, that of "*", or "safe"."""
        repair = self._repair
        return repair if isinstance(repair, str) else repair.get(name, repair.get("*", "safe"))

    # -- the end of a call ---------------------------------------------------------------------------------------------

    def _end_call(self, call: PartialCall, *, truncated: bool) -> None:
        """End the next call: decode and check its arguments, emit its remaining arguments, its problems and its end.
        Its start is emitted if that did not happen yet. A call beyond the limit is emitted as text."""
        self._ended += 1
        if call.index - self._first >= self._limits.calls:
            self._emit_as_text(call)
            return
        text = call.text if call.has_arguments or not call.draft else call.draft
        if call.custom:
            self._start_up_to(call)
            self._convert_custom_call(call, text)
        json, value = self._decode_arguments(call, text)
        self._start_up_to(call)
        finalized, problems = self._finalize(call, text, json, value, truncated)
        # What `live` emitted is a preview of the input; the finalized call is authoritative.
        remaining = (json[call.emitted :] if call.emitted else finalized.json) if finalized.complete else ""
        if remaining:
            self._out.append(Arguments(call.index, remaining))
        self._out.extend(problems)
        if call.problems or problems:
            finalized = msgspec.structs.replace(finalized, problems=(*call.problems, *problems))
        self._out.append(CallEnd(call.index, finalized))

    def _convert_custom_call(self, call: PartialCall, text: str) -> None:
        """Turn a custom call into a function call, in place and with a repair, if its free text is a JSON object, the
        tool takes no free text, and repairs are on; otherwise leave it unchanged."""
        if self._accepts_text(call.name) or self._policy_for(call.name) == "off" or len(text) > self._limits.call:
            return
        if isinstance(decode(text, self._limits.depth), dict):
            call.custom = False
            call.repairs += (Repair("double_encoded", "exact", "", compact_json(text), text),)

    def _emit_as_text(self, call: PartialCall) -> None:
        """Emit a call beyond the limit on calls as text, and for the first such call a problem."""
        if call.index - self._first == self._limits.calls:
            message = f"the reply has more than {self._limits.calls} calls; the rest was not read"
            self._out.append(Problem("too_large", message))
        self._out.append(Text(f"{call.name}({call.text})\n"))

    def _decode_arguments(self, call: PartialCall, text: str) -> tuple[str, Any]:
        """Return the arguments as JSON text and as a value, which is `Undecodable` if the text is not JSON, too long,
        or has duplicate keys. Free text of a custom call becomes the argument `input`. A missing name is taken from the
        arguments or inferred, unless repairs are off, and stored in the call."""
        if call.custom:
            return compact_json({"input": text}), {"input": text}
        value: Any = Undecodable
        if text.strip(_BLANKS) and len(text) <= self._limits.call:
            value, duplicates = decode_unique(text, self._limits.depth)
            if duplicates and call.name.strip():
                return text, Undecodable  # `finalize_call` reports the duplicate keys
        if call.name.strip() or call.started or call.fault is not None or self._policy_for("") == "off":
            return text, value
        return self._restore_name(call, text, value)

    def _restore_name(self, call: PartialCall, text: str, value: Any) -> tuple[str, Any]:
        """Take the missing name of a call from its arguments, or infer it from them, and store it in the call with a
        repair. Return the arguments as text and as a value, without the name. If no name is found, the call has none
        still, and both are returned unchanged."""
        hoisted = hoist_name(value, self._tools)
        if hoisted is not None:
            call.name, value = hoisted
            call.repairs += (Repair("hoisted_name", "schema", "", text, compact_json(value)),)
            return compact_json(value), value
        inferred = infer_name(value, self._tools)
        if inferred is not None:
            call.name = inferred
            call.repairs += (Repair("inferred_name", "schema", "", "", inferred),)
        return text, value

    def _finalize(
        self, call: PartialCall, text: str, json: str, value: Any, truncated: bool
    ) -> tuple[Call, list[Problem]]:
        """Validate and repair the arguments of a call; return the call and its problems, which the call does not have
        yet.

        A call that is faulty, too long or possibly truncated gets no arguments and `complete=False`.
        """
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
        return finalize_call(
            call.name,
            json,
            index=call.index,
            id=call.used_id,
            raw=text,
            tools=self._tools,
            policy=self._policy_for(call.name),
            depth=self._limits.depth,
            value=value,
            repairs=call.repairs,
            closed=False,
            beside=beside,
            budget=self._budget,
        )

    def _accepts_text(self, name: str) -> bool:
        """Return True if the tool may be a custom tool, whose one argument `input` is free text.

        A tool that is not declared, or declares no properties, may be any kind of tool.
        """
        tool = self._tools.get(name) if self._tools is not None else None
        properties = tool.parameters.get("properties") if tool is not None else None
        return not isinstance(properties, dict) or "input" in properties

    def _extra_members(self, call: PartialCall, text: str) -> tuple[ExtraMember, ...]:
        """Return the unknown fields of the call as `ExtraMember`s, each with its role, which decides how the repair of
        the arguments treats it; fields without a role are left out.

        A field that the server may have added matters only if it is an argument."""
        members = [ExtraMember(field.key, field.value, "clash") for field in call.conflicts if field.inner]
        has_arguments = bool(text.strip(_BLANKS))
        for field in call.unknown.values():
            role = member_role(field.key, field.value, _KEYS, self._tools, name=call.name, has_args=has_arguments)
            if role == "stranger" and not field.inner:
                role = "known"
            members += [ExtraMember(field.key, field.value, role)] if role is not None else []
        return tuple(members)


def _custom_call_fault(name: str, text: str) -> tuple[str, str]:
    """Return code and message of the problem of a call of a function tool that came as a custom call with free text;
    the text is quoted."""
    quoted = f"{text[:_MAX_QUOTED]!r}{' and more' if len(text) > _MAX_QUOTED else ''}"
    message = f"{name!r} was called as a custom tool, with free text: {quoted}; it is a function, so send its"
    return "arguments_not_object", f"{message} arguments as a JSON object"
