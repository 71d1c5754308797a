"""What was asked and answered, as rows for `rightcall dataset import`: `--capture FILE`.

    {"id": "req_...", "time": "...", "model": "qwen3", "request": {...}, "response": {...}, "rightcall": {...}}

The request is as the upstream was sent it and the answer as it gave it, before anything was put right, so that a
dataset shows what the model does. Secrets that are known by their shape or their name are taken out.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from rightcall.redaction.scrubber import Scrubber
from rightcall.serve.bounded_writer import BoundedWriter, LineSink
from rightcall.serve.exchanged import Exchanged
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.serve.request_log import clean_answer, known_secrets, log_row
from rightcall.storage.jsonl import encode_row

_FACTS = ("client", "upstream", "mode", "format", "repairs", "rescues", "problems", "retries", "finish")


class TrafficCapture:
    """Rows of requests that were answered, a share of them, appended to a file. Raises `FileFailed` where nothing can
    be written; what fails later is counted."""

    def __init__(self, settings: ProxySettings, *, tell: Callable[[str], None] | None = None) -> None:
        self._scrubber, self._sample = Scrubber(known_secrets(settings)), settings.capture_sample
        self.writer: BoundedWriter[Exchanged] = BoundedWriter(LineSink(settings.capture), self.line, tell=tell)

    def add(self, exchanged: Exchanged) -> None:
        """A request is over. It is captured if it was answered, and belongs to the sample."""
        content = exchanged.content
        if content is None or not content.sent or not content.received or exchanged.status != 200:
            return
        if random.random() < self._sample:  # 1.0 takes all
            self.writer.put(exchanged, exchanged.bytes_in + exchanged.bytes_out)

    def line(self, exchanged: Exchanged) -> bytes:
        """The row of one request."""
        content = exchanged.content
        assert content is not None  # or it would not have been put
        facts = log_row(exchanged, self._scrubber.text)
        return encode_row(
            {
                "id": exchanged.id,
                "time": facts["time"],
                "model": facts.get("upstream_model") or facts.get("model", ""),
                "request": self._scrubber.value(content.sent),
                "response": clean_answer(content.received, self._scrubber),
                "rightcall": {name: facts[name] for name in _FACTS if name in facts},
            }
        )

    def close(self) -> None:
        """What waits is written."""
        self.writer.close()
