"""The order that every dialect's answer keeps, whatever its writer is given: begun first, one thing open at a time,
ended once.

    class ChatWriter(OrderedWriter):
        def _text(self, said): ...        the shapes are the dialect's, the order is decided here

Blank text waits for the words that follow it: before a call, or at the end, it is left out, since some clients take
any text for the answer.
"""

from __future__ import annotations

from itertools import groupby
from typing import Literal

from msgspec import structs

from rightcall.ids import Ids
from rightcall.parsing.options import CUT
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead
from rightcall.serve.answer_writers.outgoing_call import LiveCall, OutgoingCall, outgoing
from rightcall.types import Call, Json, Reasoning, Reply, Text

Open = Literal["", "text", "reasoning", "call", "passed", "over"]


class OrderedWriter:
    """What is the same in every dialect. The methods with a leading underscore are a dialect's shapes."""

    content_type = "text/event-stream"

    def __init__(self, head: AnswerHead) -> None:
        self.head = head
        self.calls = 0  # that were written and are whole
        self._open: Open = ""
        self._has_begun = False
        self._blanks: list[str] = []
        self._ids = Ids()
        self._live: LiveCall | None = None
        self._was_cut = False  # a call went out, or was held, that is not whole
        self._beside: Json = {}  # what the last event of a server of this dialect held besides

    # -- what a caller gives ------------------------------------------------------------------------------------------

    def begin(self) -> bytes:
        if self._has_begun or self._open == "over":
            return b""
        self._has_begun = True
        return self._begun()

    def text(self, said: str) -> bytes:
        if self._open == "text":
            return self._text(said) if said else b""
        if self._open == "over" or not said:
            return b""
        if said.isspace():
            self._blanks.append(said)
            return b""
        whole = "".join([*self._blanks, said])
        self._blanks.clear()
        return self._turn_to("text") + self._text(whole)

    def reasoning(self, thought: str) -> bytes:
        if self._open == "reasoning":
            return self._thought(thought) if thought else b""
        if self._open == "over" or not thought:
            return b""
        return self._turn_to("reasoning") + self._thought(thought)

    def signature(self, fields: Json) -> bytes:
        return b"" if self._open == "over" or not fields else self._signed(fields)

    def call(self, call: Call, extras: Json | None = None) -> bytes:
        if self._open == "over":
            return b""
        made = outgoing(self.head.request, self._ids.take(call.id), call.name, call, extras)
        return self._turn_to("") + self._counted(made)

    def call_begin(self, id: str, name: str) -> bytes:
        if self._open == "over":
            return b""
        call = outgoing(self.head.request, self._ids.take(id), name)
        out = self._turn_to("call")
        self._live = LiveCall(call, name, held=not self._can_stream(call))
        return out if self._live.held else out + self._call_begun(call)

    def call_piece(self, json: str) -> bytes:
        if self._live is None or not json:
            return b""
        self._live.pieces.append(json)
        return b"" if self._live.held else self._call_piece(json)

    def call_end(self) -> bytes:
        live = self._live
        if live is None:
            return b""
        made = live.whole()
        if made is None:
            return self._cut_off(live)
        self._live, self._open = None, ""
        if live.held:
            return self._counted(made)
        self.calls += 1
        if live.json.strip():
            return self._call_ended(live.call, live.json, whole=True)
        live.pieces.append("{}")
        return self._call_piece("{}") + self._call_ended(live.call, live.json, whole=True)

    def passed(self, payload: Json) -> bytes:
        return b"" if self._open == "over" else self._passed(payload)

    def finish(self, end: AnswerEnd) -> bytes:
        if self._open == "over":
            return b""
        out = self.begin() + self._closed_open()
        self._open = "over"
        end = structs.replace(end, beside={**self._beside, **end.beside}) if self._beside else end
        return out + self._finished(end, self.finish_word(end.finish))

    def error(self, message: str, code: str = "upstream_error") -> bytes:
        if self._open == "over":
            return b""
        self._open, self._live = "over", None
        return self._failed(message, code)

    def alive(self) -> bytes:
        return b"" if self._open == "over" else self._sign_of_life()

    # -- the order ----------------------------------------------------------------------------------------------------

    def finish_word(self, said: str) -> str:
        """How the answer ended, now that these are its calls."""
        if self._was_cut:
            return said if said in CUT else "length"
        if self.calls:
            return "tool_calls"
        return "stop" if said in ("tool_calls", "") else said

    def _turn_to(self, kind: Open) -> bytes:
        """Ends what is open and opens the next. The blanks before anything but text are dropped."""
        out = self.begin() + self._closed_open()
        if kind in ("", "call"):
            self._blanks.clear()
        self._open = kind
        return out + self._opened(kind) if kind in ("text", "reasoning") else out

    def _closed_open(self) -> bytes:
        if self._live is not None:
            return self._broken_off(self._live)
        open, self._open = self._open, ""
        return self._closed(open) if open else b""

    def _broken_off(self, live: LiveCall) -> bytes:
        """Something else follows a call that nobody ended: it counts if it is whole."""
        return self.call_end() if live.json.strip() else self._cut_off(live)

    def _cut_off(self, live: LiveCall) -> bytes:
        """The arguments are no whole object: the answer must not end as if they were."""
        self._live, self._open, self._was_cut = None, "", True
        return b"" if live.held else self._call_ended(live.call, live.json, whole=False)

    def _counted(self, call: OutgoingCall) -> bytes:
        self.calls += 1
        return self._call(call)

    # -- the shapes of a dialect --------------------------------------------------------------------------------------

    def _begun(self) -> bytes:
        return b""

    def _opened(self, kind: Open) -> bytes:
        return b""

    def _closed(self, kind: Open) -> bytes:
        return b""

    def _text(self, said: str) -> bytes:
        raise NotImplementedError

    def _thought(self, thought: str) -> bytes:
        raise NotImplementedError

    def _signed(self, fields: Json) -> bytes:
        return b""

    def _call(self, call: OutgoingCall) -> bytes:
        raise NotImplementedError

    def _can_stream(self, call: OutgoingCall) -> bool:
        return False

    def _call_begun(self, call: OutgoingCall) -> bytes:
        return b""

    def _call_piece(self, json: str) -> bytes:
        return b""

    def _call_ended(self, call: OutgoingCall, json: str, *, whole: bool) -> bytes:
        return b""

    def _passed(self, payload: Json) -> bytes:
        return b""

    def _finished(self, end: AnswerEnd, word: str) -> bytes:
        raise NotImplementedError

    def _failed(self, message: str, code: str) -> bytes:
        raise NotImplementedError

    def _sign_of_life(self) -> bytes:
        return b": keep-alive\n\n"

    # -- whole answers ------------------------------------------------------------------------------------------------

    def said_parts(self, reply: Reply) -> list[Text | Reasoning | OutgoingCall]:
        """What a whole answer holds, in order, by the rules of a streamed one: runs of text and of reasoning as one,
        the calls that may run, no text that is blank."""
        out: list[Text | Reasoning | OutgoingCall] = []
        blanks: list[str] = []
        for kind, run in groupby([part for part in reply.parts if not isinstance(part, Call) or part.ok], type):
            if kind is Call:
                blanks.clear()
                out += [self._part_call(call, reply) for call in run if isinstance(call, Call)]
                continue
            said = "".join([part.text for part in run if not isinstance(part, Call)])
            if kind is Reasoning:
                out += [Reasoning(said)] if said else []
            elif said.isspace():
                blanks.append(said)
            elif said:
                out.append(Text("".join([*blanks, said])))
                blanks.clear()
        return out

    def _part_call(self, call: Call, reply: Reply) -> OutgoingCall:
        self.calls += 1
        extras = reply.extras.get(call.id) if reply.api == self.head.request.api else None
        return outgoing(self.head.request, self._ids.take(call.id), call.name, call, extras)

    def _message_extras(self, reply: Reply) -> Json:
        """What the server wants back with the message, if it speaks this dialect."""
        return reply.extras.get("", {}) if reply.api == self.head.request.api else {}
