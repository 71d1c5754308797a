"""What the clients of Anthropic's Messages insist on, event by event."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.testing.conformance.stream_rules import StreamRules, is_object
from rightcall.types import Json

_EVENTS = frozenset(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping "
    "error".split()
)
_STOPS = frozenset(
    "end_turn max_tokens stop_sequence tool_use pause_turn refusal model_context_window_exceeded".split()
)
_CUT = ("max_tokens", "refusal", "model_context_window_exceeded")
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
_THOUGHT = ("thinking", "signature")


class MessagesRules(StreamRules):
    """The rules of a message's events."""

    def __init__(self) -> None:
        super().__init__()
        self._started = False
        self._stop = ""  # its reason, once it was said
        self._blocks = 0
        self._open: Json | None = None
        self._pieces: list[str] = []
        self._calls = 0
        self._broken = False  # a call whose input is no object

    def take(self, name: str | None, payload: Json) -> None:
        kind = payload.get("type")
        if name != kind:
            self.say(f"the `event:` line must name the type {kind!r:.40}, not {name!r:.40}")
        if text(kind) not in _EVENTS:
            self.say(f"{kind!r:.40} is no event of this dialect; clients that check refuse the stream")
            return
        if kind == "error":
            self.take_error(payload, "type", "message")
            return
        if not self._started and kind not in ("message_start", "ping"):
            self.say("the stream must begin with message_start")
            self._started = True
        getattr(self, f"_on_{kind}")(payload)

    def _on_ping(self, payload: Json) -> None:
        pass

    def _on_message_start(self, payload: Json) -> None:
        if self._started:
            self.say("there is a second message_start")
        self._started = True
        message = obj(payload.get("message")) or {}
        self.want_texts(message, "id", "type", "role", "model")
        self.want_usage(message.get("usage"), "input_tokens", "output_tokens")
        if message.get("content") != []:
            self.say("the message must begin with an empty list `content`")

    def _on_content_block_start(self, payload: Json) -> None:
        if self._open is not None:
            self.say("a block begins before the last has stopped")
        if self._stop:
            self.say("a block begins after the stop_reason")
        if payload.get("index") != self._blocks or type(payload.get("index")) is not int:
            self.say(f"the block's `index` must be {self._blocks}, not {payload.get('index')!r:.40}")
        self._open, self._pieces = obj(payload.get("content_block")) or {}, []
        self.want_texts(self._open, "type")
        if self._open.get("type") == "tool_use":
            self._call(self._open, {})

    def _call(self, block: Json, input: Any) -> None:
        self._calls += 1
        self.new_call_id(block.get("id"))
        self.want_call_name(block.get("name"))
        if block.get("input") != input or type(block.get("input")) is not dict:
            self.say(f"`input` must be an object, empty where deltas follow, not {block.get('input')!r:.40}")

    def _on_content_block_delta(self, payload: Json) -> None:
        if self._open is None:
            self.say("a delta comes while no block is open")
            return
        if payload.get("index") != self._blocks or type(payload.get("index")) is not int:
            self.say(f"the delta's `index` must be {self._blocks}, not {payload.get('index')!r:.40}")
        delta = obj(payload.get("delta")) or {}
        kind, field = _DELTAS.get(str(delta.get("type")), ("", ""))
        if not field:
            return
        mine = self._open.get("type")
        if kind != mine and not (kind == "tool_use" and str(mine).endswith("_tool_use")):
            self.say(f"a {delta.get('type')} stands in a block of type {mine!r:.40}")
        if not isinstance(delta.get(field), str):
            self.say(f"`{field}` must be text, not {delta.get(field)!r:.40}")
        elif field != "signature":
            self._pieces.append(delta[field])

    def _on_content_block_stop(self, payload: Json) -> None:
        if self._open is None:
            self.say("a block stops that is not open")
            return
        if payload.get("index") != self._blocks or type(payload.get("index")) is not int:
            self.say(f"the `index` must be {self._blocks}, not {payload.get('index')!r:.40}")
        said = "".join(self._pieces)
        if self._open.get("type") == "text" and not said.strip():
            self.say("a text block is empty; some clients take it for the answer")
        if self._open.get("type") == "tool_use":
            self._broken = self._broken or not is_object(said)
        self._open = None
        self._blocks += 1

    def _on_message_delta(self, payload: Json) -> None:
        delta = obj(payload.get("delta")) or {}
        if self._stop:
            self.say("there are two message_deltas with a stop_reason")
        if self._open is not None:
            self.say("the message ends while a block is open")
        self._stopped(delta.get("stop_reason"))
        self.want_usage(payload.get("usage"), "output_tokens")

    def _stopped(self, stop: Any) -> None:
        self._stop = str(stop)
        if text(stop) not in _STOPS:
            self.say(f"`stop_reason` must be a word of this dialect, not {stop!r:.40}")
        elif (stop == "tool_use") != bool(self._calls and not self._broken):
            self.say(f"`stop_reason` is {stop}, but the calls say otherwise")
        elif self._broken and stop not in _CUT:
            self.say("a call's input is no JSON object")

    def _on_message_stop(self, payload: Json) -> None:
        if not self._stop:
            self.say("there was no message_delta with a stop_reason")
        self.ended = "message_stop"

    def whole(self, body: Json) -> None:
        """A whole message."""
        self.want_texts(body, "id", "type", "role", "model")
        for block in objects(body.get("content")):
            self.want_texts(block, "type")
            if block.get("type") == "tool_use":
                self._call(block, block.get("input"))
            elif block.get("type") == "text" and not str(block.get("text") or "").strip():
                self.say("a text block is empty")
            elif block.get("type") == "thinking" and not all(isinstance(block.get(key), str) for key in _THOUGHT):
                self.say("a thinking block needs the texts `thinking` and `signature`, if only empty ones")
        self._stopped(body.get("stop_reason"))
        self.want_usage(body.get("usage"), "input_tokens", "output_tokens")
        self.ended = "it"
