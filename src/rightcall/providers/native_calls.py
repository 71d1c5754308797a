"""Native calls on their way out: started when their arguments begin, ended in the order they began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rightcall.ids import Ids
from rightcall.parsing.options import Limits
from rightcall.providers.call_pieces import Gather, Gathered
from rightcall.providers.deltas import DeltaPiece, Slot
from rightcall.providers.json_state import ends_early
from rightcall.providers.sdk_view import dumps
from rightcall.repairs.beside import BesideMember
from rightcall.repairs.broken_blocks import Keys, role_of
from rightcall.repairs.finish import RepairBudget, settle
from rightcall.repairs.tool_meant import hoist_name, infer_name, settle_name
from rightcall.strict_json import Undecodable, decode, decode_unique
from rightcall.tools.checks import name_problem
from rightcall.tools.toolset import Toolset
from rightcall.types import Arguments, Call, CallEnd, CallStart, Event, Problem, Repair, Text

_BLANKS = " \t\r\n"
_KEYS = Keys(("name",), ("arguments", "parameters", "args", "input"), ("id", "call_id", "tool_call_id"))
_MOST_SAID = 200  # characters of free text that a message repeats


class Calls:
    """The native calls of one answer. Events go into the list it was given."""

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
        self.gather = Gather(tools, first)
        self._out = out
        self._live = live and tools is not None
        self._tools, self._repair, self._limits, self._ids = tools, repair, limits, ids
        self._first = first
        self._budget = RepairBudget()
        self._started = 0
        self._ended = 0

    @property
    def next(self) -> int:
        return self._first + min(len(self.gather.calls), self._limits.calls)

    def add(self, piece: DeltaPiece) -> None:
        known = len(self.gather.calls)
        call = self.gather.add(piece)
        if call.done or (call.started and call.index - self._first < self._ended):
            if piece.arguments.strip(_BLANKS) and not piece.all and not call.is_text(piece.arguments):
                # The call may have gone out and have run: what comes now can be told, and changes nothing.
                message = f"more arguments of {call.name!r:.80} came after the call had ended; they were not read"
                self._out.append(Problem("late_arguments", message, blocking=False))
            return
        if 0 < known < len(self.gather.calls):
            self._end_ready()
        self._arguments(call, piece)
        if piece.whole:
            call.done = True
            self._end_ready()

    def _arguments(self, call: Gathered, piece: DeltaPiece) -> None:
        text = piece.arguments
        if piece.all:
            if text.strip(_BLANKS) and not call.given:
                call.replace(text)
        elif text:
            if call.has_whole(text):
                return  # sent once more in whole
            call.extend(text)
        if call.begun:
            self._start_named(call)
        if call.started and self._live and (ready := call.passable()):
            self._out.append(Arguments(call.index, ready))

    def end(self, slot: Slot | None) -> None:
        """Nothing more comes for the call in this slot."""
        call = self.gather.call_in(slot)
        if call is not None and not call.done:
            call.done = True
            self._end_ready()

    def end_whole(self) -> None:
        """Something else than a call follows: whatever is whole has ended."""
        for call in self.gather.calls[self._ended :]:
            if not call.done and (call.custom or not call.scan().whole):
                return
            self._end(call, cut=False)

    def close(self, cut: bool) -> None:
        """The answer is over; `cut` if the provider says that a limit ended it: then its last call must be known to be
        whole. A call that anything follows is."""
        calls = self.gather.calls
        while self._ended < len(calls):
            self._end(calls[self._ended], cut=cut and self._ended == len(calls) - 1)

    def _end_ready(self) -> None:
        """Ends calls from the first on, as long as they are known to be over."""
        calls = self.gather.calls
        while self._ended < len(calls):
            call, is_last = calls[self._ended], self._ended == len(calls) - 1
            if is_last and not (call.done and call.is_whole):
                return  # a limit may have cut it off, which is said last
            if not call.done and (call.custom or not call.scan().whole):
                return
            self._end(call, cut=False)

    # -- one call ------------------------------------------------------------------------------------------------------

    def _start_named(self, call: Gathered) -> None:
        """Starts the calls up to this one, unless one has no name: that may turn out to stand among its arguments."""
        while not call.started and self._started < self._limits.calls:
            each = self.gather.calls[self._started]
            if self._tools is not None and not each.name.strip():
                return
            self._start(each)

    def _start(self, call: Gathered) -> None:
        """Its id and name are final now, and those of the calls before it."""
        if call.started or call.index - self._first >= self._limits.calls:
            return
        for each in self.gather.calls[self._started : call.index - self._first + 1]:
            each.started = True
            each.used_id = self._ids.take(each.id)
            each.name, found = settle_name(each.name, self._tools, self._policy(each.name))
            each.repairs += found
            self._out.append(CallStart(each.index, each.used_id, each.name))
            if each.fault is None and (self._tools is None or each.name not in self._tools):
                wrong = name_problem(each.name, self._tools)
                if wrong is not None:
                    self._problem(*wrong, each)
            if self._live and self._tools is not None:
                kinds = self._tools.kinds(each.name)
                each.watch(lambda key, kinds=kinds: kinds.get(key) == "plain")  # type: ignore[misc]
        self._started = max(self._started, call.index - self._first + 1)

    def _policy(self, name: str) -> str:
        """How far calls of this tool may be repaired."""
        repair = self._repair
        return repair if isinstance(repair, str) else repair.get(name, repair.get("*", "safe"))

    def _end(self, call: Gathered, *, cut: bool) -> None:
        self._ended += 1
        if call.index - self._first >= self._limits.calls:
            self._too_many(call)
            return
        text = call.sent
        if call.custom:
            self._start(call)
            self._as_function(call, text)
        json, value = self._read(call, text)
        self._start(call)
        made, problems = self._made(call, text, json, value, cut)
        # What was given out live is a preview of what was sent; the settled call is the truth.
        rest = (json[call.given :] if call.given else made.json) if made.complete else ""
        if rest:
            self._out.append(Arguments(call.index, rest))
        self._out.extend(problems)
        if call.problems or problems:
            made = msgspec.structs.replace(made, problems=(*call.problems, *problems))
        self._out.append(CallEnd(call.index, made))

    def _as_function(self, call: Gathered, text: str) -> None:
        """A function that was called as a custom tool: text that is a JSON object is its arguments, with a receipt."""
        if self._takes_text(call.name) or self._policy(call.name) == "off" or len(text) > self._limits.call:
            return
        if isinstance(decode(text, self._limits.depth), dict):
            call.custom = False
            call.repairs += (Repair("double_encoded", "exact", "", dumps(text), text),)

    def _read(self, call: Gathered, text: str) -> tuple[str, Any]:
        """The arguments as JSON, and what that holds. A name that stands among them, or that they imply, is taken."""
        if call.custom:
            return dumps({"input": text}), {"input": text}
        value: Any = Undecodable
        if text.strip(_BLANKS) and len(text) <= self._limits.call:
            value, twice = decode_unique(text, self._limits.depth)
            if twice and call.name.strip():
                return text, Undecodable  # told where the call is settled
        has_name = call.name.strip() or call.started or call.fault is not None
        if has_name or self._policy("") == "off":
            return text, value
        return self._with_name(call, text, value)

    def _with_name(self, call: Gathered, text: str, value: Any) -> tuple[str, Any]:
        """The arguments of a call without a name, which they may hold or imply."""
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

    def _made(self, call: Gathered, text: str, json: str, value: Any, cut: bool) -> tuple[Call, list[Problem]]:
        """The call and what is wrong with it. One that ends early, or may have been cut off, is never completed."""
        wrong = call.fault or self._fault_of(call, text, value, cut)
        if wrong is not None:
            broken = Call(call.name, {}, text, call.used_id, text, call.repairs, complete=False)
            return broken, [Problem(*wrong, call=call.index)]
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
            beside=self._beside(call, bool(text.strip(_BLANKS))),
            budget=self._budget,
        )

    def _fault_of(self, call: Gathered, text: str, value: Any, cut: bool) -> tuple[str, str] | None:
        """Code and message of what stands in the way of reading the arguments at all."""
        if len(text) > self._limits.call:
            return "too_large", f"the call is longer than {self._limits.call} characters"
        if call.custom and not self._takes_text(call.name):
            said = f"{text[:_MOST_SAID]!r}{' and more' if len(text) > _MOST_SAID else ''}"
            message = (
                f"{call.name!r} was called as a custom tool, with free text: {said}; it is a function, so send its"
            )
            return "arguments_not_object", f"{message} arguments as a JSON object"
        early = isinstance(value, Undecodable) and value.code == "invalid_json" and ends_early(text)
        if early or (cut and not call.is_whole):
            return "truncated", "the answer ended before the call did; send the whole call again"
        return None

    def _takes_text(self, name: str) -> bool:
        """May this tool be a custom one, whose one argument is the text? What is not declared may be anything."""
        tool = self._tools.get(name) if self._tools is not None else None
        properties = tool.parameters.get("properties") if tool is not None else None
        return not isinstance(properties, dict) or "input" in properties

    def _beside(self, call: Gathered, has_args: bool) -> tuple[BesideMember, ...]:
        """What the call has beside its name and arguments. What a server may have added is none of the model's, unless
        it is an argument."""
        members = [BesideMember(field.key, field.value, "clash") for field in call.clashes if field.inner]
        for field in call.beside.values():
            role = role_of(field.key, field.value, _KEYS, self._tools, name=call.name, has_args=has_args)
            if role == "stranger" and not field.inner:
                role = "known"
            members += [BesideMember(field.key, field.value, role)] if role is not None else []
        return tuple(members)

    def _too_many(self, call: Gathered) -> None:
        if call.index - self._first == self._limits.calls:
            message = f"the reply has more than {self._limits.calls} calls; the rest was not read"
            self._out.append(Problem("too_large", message))
        self._out.append(Text(f"{call.name}({call.text})\n"))

    def _problem(self, code: str, message: str, call: Gathered) -> None:
        made = Problem(code, message, call=call.index)
        call.problems += (made,)
        self._out.append(made)
