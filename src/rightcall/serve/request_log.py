"""One JSON line for each request: names, codes, counts and times. What was written in it only when asked for.

{"time":"2026-11-16T06:00:00.123Z","id":"req_...","route":"chat","client":"chat","status":200,"model":"qwen3",...}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from rightcall.providers.sdk_view import compact_json
from rightcall.providers.sse import decode_container
from rightcall.redaction.pieces import scrub_pieces
from rightcall.redaction.scrubber import Scrubber
from rightcall.redaction.secret_names import is_secret_name
from rightcall.safe_text import visible
from rightcall.serve.bounded_writer import BoundedWriter, LineSink
from rightcall.serve.exchanged import Exchanged
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.storage.jsonl import encode_row
from rightcall.types import Json, Reply

_LONGEST = 300  # characters of a name or line that came from outside


def known_secrets(settings: ProxySettings) -> list[str]:
    """The keys of the proxy and its upstreams, which nothing that is written down may hold."""
    keys = [settings.key, *[each.key for each in settings.upstream]]
    headers = [value for each in settings.upstream for name, value in each.headers.items() if is_secret_name(name)]
    return [*[key.reveal() for key in keys if key is not None], *headers]


class RequestLog:
    """The log of a proxy, to a file or, for "-", to standard error. Raises `FileFailed` where nothing can be written;
    what fails later is counted."""

    def __init__(self, settings: ProxySettings, *, tell: Callable[[str], None] | None = None) -> None:
        self._scrubber = Scrubber(known_secrets(settings))
        self._content = settings.log_content
        self._clean = lru_cache(1000)(self._cleaned)
        self.writer: BoundedWriter[Exchanged] = BoundedWriter(LineSink(settings.log), self.line, tell=tell)

    def add(self, exchanged: Exchanged) -> None:
        """A request is over. Costs next to nothing here: the line is made elsewhere."""
        self.writer.put(exchanged, exchanged.bytes_in + exchanged.bytes_out if self._content else 1000)

    def line(self, exchanged: Exchanged) -> bytes:
        """The line of one request."""
        row = log_row(exchanged, self._clean)
        if self._content and exchanged.content is not None:
            kept = exchanged.content
            row["content"] = {
                "sent": self._scrubber.value(kept.sent),
                "received": clean_answer(kept.received, self._scrubber) if kept.received else None,
                "answered": self._scrubber.value(_reply(kept.answered)),
            }
        return encode_row(row)

    def _cleaned(self, text: str) -> str:
        return visible(self._scrubber.text(text[:_LONGEST]), one_line=True)

    def close(self) -> None:
        """What waits is written."""
        self.writer.close()


def log_row(exchanged: Exchanged, clean: Callable[[str], str]) -> Json:
    """What the log says of a request; `clean` is asked for every text that came from outside. Empty facts are left
    out."""
    it = exchanged
    row: Json = {
        "time": datetime.fromtimestamp(it.began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "id": it.id,
        "method": it.method,
        "route": it.route,
        "status": it.status,
        "error": it.error,
        "client": it.client_api,
        "upstream_api": it.upstream_api,
        "upstream": it.upstream,
        "model": clean(it.model),
        "upstream_model": clean(it.upstream_model),
        "mode": it.mode,
        "why": [clean(each) for each in it.why],
        "format": it.format,
        "stream": it.stream,
        "tools": it.tools,
        "calls": it.calls,
        "repairs": _counted(it.repairs),
        "rescues": _counted(it.rescues),
        "problems": _counted(it.problems),
        "near": it.near,
        "retries": it.retries,
        "tries": it.tries,
        "failovers": it.failovers,
        "guard": it.guard,
        "gave_up": it.gave_up,
        "finish": it.finish,
        "warnings": [clean(each) for each in it.warnings],
        "client_gone": it.client_gone,
        "seconds": _rounded(it.total),
        "first_byte": _rounded(it.first_byte),
        "upstream_first_byte": _rounded(it.upstream_first_byte),
        "tokens": _tokens(it),
        "bytes_in": it.bytes_in,
        "bytes_out": it.bytes_out,
    }
    return {name: value for name, value in row.items() if value not in ("", 0, None, False, [], {})}


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(Counter(words))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


def _tokens(exchanged: Exchanged) -> Json:
    kinds = ("prompt", "completion", "cached", "reasoning")
    return {kind: many for kind in kinds if (many := getattr(exchanged.tokens, kind)) is not None}


def clean_answer(received: Any, scrubber: Scrubber) -> Any:
    """An answer without secrets: an object, or the text of a stream's events, since one may stand in several."""
    if isinstance(received, dict):
        return scrubber.value(received)
    pieces = [received] if isinstance(received, bytes) else [_event(each) for each in received]
    clean, _ = scrub_pieces(pieces, [0] * len(pieces), scrubber)
    text = b"".join(clean).decode("utf-8", "replace")
    whole = decode_container(text)
    return whole if isinstance(whole, dict) else text


def _event(payload: Json) -> bytes:
    return f"data: {compact_json(payload)}\n\n".encode("utf-8", "surrogatepass")


def _reply(reply: Reply | None) -> Any:
    return None if reply is None else msgspec.to_builtins(reply.parts)
