"""One answer on its way: a server's bytes in, a client's bytes out, and the reply that they were. No IO.

    flow = AnswerFlow(reading, make_writer, rules)
    send(flow.feed(data)) ...
    send(flow.end())
    flow.reply, flow.begun, flow.refused

Text and reasoning go on as they come; a call when it is whole and may run. White space before a call is held back, and
where a call is demanded, all text. A piece of text that nothing was found in goes on as the server wrote it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.backends.attempts import first_choice
from rightcall.backends.event_stream import MAX_LINE, Payload, ServerEvents, Signal
from rightcall.backends.metadata import AnswerMetadata
from rightcall.backends.request_plan import ToolNames
from rightcall.providers.dialect import Fault, TextDelta, argument_text
from rightcall.providers.provider_answers import Stream
from rightcall.providers.sdk_view import error_text
from rightcall.serve.answer_writer import AnswerEnd, AnswerUsage, AnswerWriter
from rightcall.serve.event_frames import Frames
from rightcall.serve.flow_rules import FlowRules, is_prose
from rightcall.serve.plain_chunks import PlainChunks
from rightcall.strict_json import is_object_text
from rightcall.tools.toolset import Toolset
from rightcall.types import Arguments, Call, CallEnd, CallStart, Event, Json, Reasoning, Reply, Text

_BROKEN = "the stream broke before its end; send the whole answer again"
_WHOLE_CALLS: tuple[Api, ...] = ("ollama", "gemini")  # their streams have no word for a piece of a call


class AnswerReading(msgspec.Struct, frozen=True, kw_only=True):
    """How the server's answer is read: its dialect, names put back, and the options of `Stream`."""

    api: Api
    naming: ToolNames
    options: dict[str, Any] = {}


class AnswerFlow:
    """`make_writer` is asked once, for the writer of an answer with this id and model, both "" where the server gave
    none."""

    def __init__(self, reading: AnswerReading, make_writer: Callable[[Json], AnswerWriter], rules: FlowRules) -> None:
        self._api, self._naming, self._rules = reading.api, reading.naming, rules
        self._stream = Stream(reading.api, live=True, **reading.options)
        self._tools: Toolset | None = Toolset.of(reading.options.get("tools"))
        self._facts = AnswerMetadata(reading.api)
        self._events = ServerEvents(longest=MAX_LINE)
        self._frames = Frames() if rules.same and rules.streamed and reading.api == "chat" else None
        self._plain = PlainChunks()
        self._make_writer = make_writer
        self._writer: AnswerWriter | None = None
        self._out: list[bytes] = []
        self._blank = ""  # white space that is held back
        self._held: list[Event] = []  # text that waits for a call
        self._first_left = rules.holds_first  # characters
        self._live_at: int | None = None  # the call that goes out as it comes
        self._live_sent: list[str] = []  # its pieces
        self._behind: list[Call] = []  # calls that were over before it was
        self._payloads = 0
        self._early: list[bytes] = []  # events that are none of the answer's content, before it began
        self.begun = False  # something of the answer has gone to the client
        self.sent: list[Call] = []
        self.waiting: list[Call] = []  # calls that are right, and wait for the end
        self.refused: list[Call] = []
        self.left_out: list[Call] = []  # right, but one too many
        self.passed_live = False  # a call went out as it came, though it should have been another
        self.is_spoiled = False  # a call went out in part, and is wrong
        self.error = ""  # what the server says in place of an answer
        self.reply = Reply()
        self.raw: Json | None = None  # an answer that came whole

    @property
    def writer(self) -> AnswerWriter:
        if self._writer is None:
            self._writer = self._make_writer({})
        return self._writer

    @property
    def api(self) -> Api:
        return self._api

    @property
    def is_same(self) -> bool:
        """Do server and client speak the same dialect, with nothing in between?"""
        return self._rules.same

    @property
    def facts(self) -> AnswerMetadata:
        return self._facts

    # -- bytes of the server -------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> bytes:
        """What may go to the client now."""
        if self._frames is None:
            for payload in self._events.feed(data):
                self._take(payload)
        else:
            self._feed_frames(self._frames, data)
        return self._taken()

    def _feed_frames(self, frames: Frames, data: bytes) -> None:
        """Chunks that only hold text are read together, and go on as they are if they were only that."""
        said: list[str] = []
        plain: list[bytes] = []
        for run, text in self._plain.runs(frames.feed(data)):
            if text is not None:
                if self._writer is None and (first := self._plain.first) is not None:
                    self._first({"id": first.id, "model": first.model, "created": first.created})
                said.append(text)
                plain.append(run)
                continue
            self._plain_text(said, plain)
            for payload in self._events.feed(run):
                self._take(payload)
        self._plain_text(said, plain)
        if frames.too_long:
            self._take(Fault("too_large", "an event of the stream is too long; the rest is not read"))

    def _plain_text(self, said: list[str], plain: list[bytes]) -> None:
        joined, written = "".join(said), b"".join(plain)
        said.clear()
        plain.clear()
        if not joined:
            return
        self._facts.is_answer = True
        self._payloads += 1
        events = self._stream.feed(TextDelta(joined))
        untouched = len(events) == 1 and isinstance(events[0], Text) and events[0].text == joined
        if untouched and not self._waits and not self._blank and not joined.isspace():
            self._give(written)
        elif not events and not self.begun and not self._waits and is_prose(joined, self._tools):
            self._begin()  # the word itself waits for what follows it
        else:
            self._process(events)

    def _take(self, payload: Payload) -> None:
        if isinstance(payload, Signal):
            self._facts.ended = True
            return
        if isinstance(payload, Fault):
            self._process(self._stream.feed(payload))
            return
        self._payloads += 1
        if payload.get("error") and not any(payload.get(key) for key in ("choices", "output", "message")):
            self.error = self.error or error_text(payload["error"])
        if self._writer is None:
            self._first(payload)
        self._facts.add(payload)
        if not self._rules.streamed:
            self.raw = payload if self._payloads == 1 else None
        self._process(self._stream.feed(first_choice(payload)))
        if self._rules.same and self._rules.streamed:
            passed = self.writer.passed(payload)
            if passed and self.begun:
                self._out.append(passed)
            elif passed:
                self._early.append(passed)

    def _first(self, payload: Json) -> None:
        self._writer = self._make_writer(payload)

    def end(self, *, broken: bool = False) -> bytes:
        """The server has said all, or its connection broke."""
        if self._frames is not None and (rest := self._frames.close()):
            for payload in self._events.feed(rest + b"\n\n"):
                self._take(payload)
        for payload in self._events.close():
            self._take(payload)
        unfinished = self._rules.streamed and self.raw is None and not self._facts.is_over and self._payloads
        if self.api in _WHOLE_CALLS and self._stream.has_native_calls:
            unfinished = False  # its calls come in one piece, so an end that is not told has cut none of them
        if not self.error and ((broken and not self._facts.ended) or unfinished):
            self._process(self._stream.feed(Fault("truncated", _BROKEN)))
        self._process(self._stream.close())
        self.reply = self._naming.restore_reply(self._stream.reply)
        return self._taken()

    # -- events --------------------------------------------------------------------------------------------------------

    def _process(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Text):
                self._text(event.text)
            elif isinstance(event, Reasoning):
                self._reasoning(event.text)
            elif isinstance(event, CallEnd):
                named = self._naming.restore_event(event)
                assert isinstance(named, CallEnd)
                self._call(named.index, named.call)
            elif self._rules.live and isinstance(event, CallStart | Arguments):
                self._live(self._naming.restore_event(event))

    def _text(self, said: str) -> None:
        if not said or not self._rules.streamed:
            return
        if not self._waits:
            self._say(said)
            return
        self._held.append(Text(said))
        self._first_left -= len(said)
        if not self._waits:
            self._give_held()

    @property
    def _waits(self) -> bool:
        """Does text that comes now wait?"""
        if self.sent:
            return False
        return self._rules.holds_text or (self._first_left > 0 and not self.begun)

    def _say(self, said: str) -> None:
        said = self._blank + said
        self._blank = ""
        if said.isspace():
            self._blank = said
        else:
            self._give(self.writer.text(said))

    def _reasoning(self, thought: str) -> None:
        if not thought or not self._rules.streamed:
            return
        if self._held or (self._rules.holds_text and not self.sent):
            self._held.append(Reasoning(thought))
        else:
            self._give(self.writer.reasoning(thought))

    def _call(self, at: int, call: Call) -> None:
        if self._live_at == at:
            self._live_at = None
            self._end_live(call, "".join(self._live_sent))
            behind, self._behind = self._behind, []
            for other in behind:
                self._settle(other)
        elif self._live_at is not None:
            self._behind.append(call)  # one call at a time is open
        else:
            self._settle(call)

    def _settle(self, call: Call) -> None:
        if not self.may_go(call):
            self.refused.append(call)
        elif not self._rules.parallel and (self.sent or self.waiting):
            self.left_out.append(call)
        elif self._rules.holds_calls or not self._rules.streamed:
            self.waiting.append(call)
        else:
            self.send(call)

    def may_go(self, call: Call) -> bool:
        """Is the call right?"""
        if call.ok:
            return True
        blocking = [problem.code for problem in call.problems if problem.blocking]
        return call.complete and blocking == ["unknown_tool"] and self._rules.may_call(call.name)

    def send(self, call: Call) -> None:
        """The call goes to the client, and what waited for one."""
        self.sent.append(call)
        if not self._rules.streamed:
            return
        self._release()
        extras = self._stream.reply.extras.get(call.id) if self._rules.same else None
        self._give(self.writer.call(call, extras))

    def _release(self) -> None:
        """What waited goes out, but for white space around it."""
        self._blank = ""
        self._give_held()
        self._blank = ""

    def _give_held(self) -> None:
        held, self._held = self._held, []
        for event in held:
            if isinstance(event, Reasoning):
                self._give(self.writer.reasoning(event.text))
            elif isinstance(event, Text):
                self._say(event.text)

    # -- live ----------------------------------------------------------------------------------------------------------

    def _live(self, event: Event) -> None:
        """A call of the server's own goes out as it comes, one at a time and while it is right so far."""
        if isinstance(event, CallStart):
            may = self._stream.has_native_calls and not self._rules.holds_calls and self._rules.streamed
            may = may and self._live_at is None and (self._rules.parallel or not self.sent)
            if not may or self._is_unknown(event.name):
                return
            self._blank = ""
            self._live_at, self._live_sent = event.index, []
            self._give(self.writer.call_begin(event.id, event.name))
        elif isinstance(event, Arguments) and event.index == self._live_at:
            self._live_sent.append(event.json)
            self._give(self.writer.call_piece(event.json))

    def _spoil(self, why: str) -> None:
        """What has gone out cannot be taken back: the client must learn that it is not to be trusted."""
        self.is_spoiled = True
        self.error = self.error or why

    def _is_unknown(self, name: str) -> bool:
        return not name.strip() or not (self._declared(name) or self._rules.may_call(name))

    def _declared(self, name: str) -> bool:
        tools = self._naming.tools
        return tools is None or self._naming.server_name(name) in tools

    def _end_live(self, call: Call, sent: str) -> None:
        """What has gone out of it can only go on. If it should have been another, it stays as it was written where
        that may be passed, since the client's own check says what is wrong with it."""
        settled = argument_text(call)
        if self.may_go(call) and settled.startswith(sent):
            rest = settled[len(sent) :]
            self._give((self.writer.call_piece(rest) if rest else b"") + self.writer.call_end())
        elif self._rules.passes and is_object_text(sent):
            self.passed_live = True
            self._give(self.writer.call_end())
        else:
            self.refused.append(call)
            self._spoil("a call that had begun to go out turned out to be wrong")
            return
        self.sent.append(call)

    # -- bytes for the client ------------------------------------------------------------------------------------------

    def _give(self, data: bytes) -> None:
        if not data:
            return
        if not self.begun:
            self._begin()
        self._out.append(data)

    def _begin(self) -> None:
        self.begun = True
        self._out += [self.writer.begin(), *self._early]
        self._early.clear()

    def _taken(self) -> bytes:
        if not self._out:
            return b""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def finish(self, finish: str, *, with_text: bool = True) -> bytes:
        """What ends the answer. White space and text that waited for a call go out if none came."""
        if with_text and not self.sent:
            blank, self._blank = self._blank, ""
            self._release()
            if blank and self.begun:
                self._give(self.writer.text(blank))
        self._give(self.writer.finish(self.ending(finish)))
        return self._taken()

    def ending(self, finish: str) -> AnswerEnd:
        tokens = self._facts.tokens
        usage = AnswerUsage(
            tokens.prompt,
            tokens.completion,
            tokens.cached,
            tokens.reasoning,
            (self.reply.usage or {}) if self._rules.same else {},
        )
        return AnswerEnd(finish=finish, usage=usage)

    def how_ended(self) -> str:
        """The finish to tell, now that it is known what went out."""
        if self.sent:
            return "tool_calls"
        said = self.reply.finish or "stop"
        return {"tool_calls": "stop", "error": "length"}.get(said, said)
