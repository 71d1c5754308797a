"""Native calls on their way out: started when their arguments begin, ended in the order they began."""

from __future__ import annotations

from typing import Any

from rightcall.apis.deltas import Piece, Slot
from rightcall.apis.gather import Gather, Gathered
from rightcall.apis.json_state import ends_early
from rightcall.apis.plain import dumps
from rightcall.check import name_problem
from rightcall.declare.toolset import Toolset
from rightcall.ids import Ids
from rightcall.parse.engine import Limits
from rightcall.repair.settle import settle
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Arguments, Call, CallEnd, CallStart, Event, Problem, Text

_BLANKS = " \t\r\n"


class Calls:
    """The native calls of one answer. Events go into the list it was given."""

    def __init__(
        self, out: list[Event], ids: Ids, first: int, *, tools: Toolset | None, repair: str, live: bool, limits: Limits
    ) -> None:
        self.gather = Gather(tools, first)
        self._out = out
        self._live = live and tools is not None
        self._tools, self._repair, self._limits, self._ids = tools, repair, limits, ids
        self._first = first
        self._started = 0
        self._ended = 0

    @property
    def next(self) -> int:
        return self._first + min(len(self.gather.calls), self._limits.calls)

    def add(self, piece: Piece) -> None:
        known = len(self.gather.calls)
        call = self.gather.add(piece)
        if call.started and call.index - self._first < self._ended:
            if piece.arguments.strip(_BLANKS) and not piece.all and piece.arguments != call.text:
                self._problem("trailing_content", "more arguments came after the call had ended", call)
            return
        self._arguments(call, piece)
        if piece.whole:
            call.done = True
        if len(self.gather.calls) > known:
            self._end_ready(but=call)

    def _arguments(self, call: Gathered, piece: Piece) -> None:
        text = piece.arguments
        if piece.all:
            if text.strip(_BLANKS) and not call.given:
                call.replace(text)
        elif text:
            if call.begun and not call.custom and call.scan().whole and text == call.text:
                return  # sent once more in whole
            call.extend(text)
        if call.begun:
            self._start(call)
            if self._live and not call.custom and (ready := call.passable()):
                self._out.append(Arguments(call.index, ready))

    def end(self, slot: Slot | None) -> None:
        """Nothing more comes for the call in this slot."""
        call = self.gather.call_in(slot)
        if call is not None:
            call.done = True
            self._end_ready()

    def end_whole(self) -> None:
        """Something else than a call follows: whatever is whole has ended."""
        for call in self.gather.calls[self._ended :]:
            if not call.scan().whole:
                return
            call.done = True
        self._end_ready()

    def close(self, cut: bool) -> None:
        """The answer is over; `cut` if the provider says that a limit ended it."""
        calls = self.gather.calls
        while self._ended < len(calls):
            self._end(calls[self._ended], cut=cut and self._ended == len(calls) - 1)

    def _end_ready(self, but: Gathered | None = None) -> None:
        """Ends calls from the first on, as long as they are known to be over."""
        calls = self.gather.calls
        while self._ended < len(calls):
            call = calls[self._ended]
            if not call.done and (call is but or but is None or not call.scan().whole):
                return
            self._end(call, cut=False)

    # -- one call ------------------------------------------------------------------------------------------------------

    def _start(self, call: Gathered) -> None:
        """Its id and name are final now, and those of the calls before it."""
        if call.started or call.index - self._first >= self._limits.calls:
            return
        for each in self.gather.calls[self._started : call.index - self._first + 1]:
            each.started = True
            each.used_id = self._ids.take(each.id)
            self._out.append(CallStart(each.index, each.used_id, each.name))
            if each.fault is None and (self._tools is None or each.name not in self._tools):
                wrong = name_problem(each.name, self._tools)
                if wrong is not None:
                    self._problem(*wrong, each)
            if self._live and self._tools is not None:
                kinds = self._tools.kinds(each.name)
                each.watch(lambda key, kinds=kinds: kinds.get(key) == "plain")  # type: ignore[misc]
        self._started = max(self._started, call.index - self._first + 1)

    def _end(self, call: Gathered, *, cut: bool) -> None:
        self._ended += 1
        if call.index - self._first >= self._limits.calls:
            self._too_many(call)
            return
        self._start(call)
        text = call.text
        if not call.begun and call.draft:
            text = call.draft
        made = self._made(call, text, cut)
        if made.complete:
            rest = made.json[call.given :]
            if rest:
                self._out.append(Arguments(call.index, rest))
        self._out.append(CallEnd(call.index, made))

    def _made(self, call: Gathered, text: str, cut: bool) -> Call:
        broken = Call(call.name, {}, text, call.used_id, text, (), False)
        if call.fault is not None:
            self._problem(*call.fault, call)
            return broken
        if len(text) > self._limits.call:
            self._problem("too_large", f"the call is longer than {self._limits.call} characters", call)
            return broken
        json = text
        value: Any = Undecodable
        if call.custom:
            json, value = dumps({"input": text}), {"input": text}
        elif text.strip(_BLANKS):
            value = decode(text, self._limits.depth)
        early = isinstance(value, Undecodable) and value.code == "invalid_json" and ends_early(text)
        if early or (cut and (call.custom or not text.strip(_BLANKS))):
            self._problem("truncated", "the answer ended before the call did; send the whole call again", call)
            return broken
        return self._settled(call, json, text, value)

    def _settled(self, call: Gathered, json: str, raw: str, value: Any) -> Call:
        made, problems = settle(
            call.name,
            json,
            index=call.index,
            id=call.used_id,
            raw=raw,
            tools=self._tools,
            policy="off" if call.given else self._repair,  # what was given out is final
            depth=self._limits.depth,
            value=value,
        )
        self._out.extend(problems)
        return made

    def _too_many(self, call: Gathered) -> None:
        if call.index - self._first == self._limits.calls:
            message = f"the reply has more than {self._limits.calls} calls; the rest was not read"
            self._out.append(Problem("too_large", message))
        self._out.append(Text(f"{call.name}({call.text})\n"))

    def _problem(self, code: str, message: str, call: Gathered) -> None:
        self._out.append(Problem(code, message, call=call.index))
