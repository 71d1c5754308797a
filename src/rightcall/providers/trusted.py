"""What the writers of trusted answers have in common: one frame of a stream, as it goes over the wire."""

from __future__ import annotations

import json
from typing import NamedTuple

from rightcall.types import Json


class EventFrame(NamedTuple):
    """One event of a stream; `event` names it where the dialect does so."""

    payload: Json | None
    event: str = ""

    def encode(self) -> bytes:
        data = "[DONE]" if self.payload is None else json.dumps(self.payload, ensure_ascii=False, separators=(",", ":"))
        name = f"event: {self.event}\n" if self.event else ""
        return f"{name}data: {data}\n\n".encode("utf-8", "replace")


DONE = EventFrame(None)
