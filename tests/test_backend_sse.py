"""Server-sent events as servers really send them: the payloads are independent of chunking."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.backends.event_stream import Payload, ServerEvents, Signal
from rightcall.providers.dialect import Fault

A, B = {"a": 1}, {"b": "ü→𝄞"}


def read_payloads(data: bytes, size: int = 0, **options: Any) -> list[Payload]:
    reader = ServerEvents(**options)
    size = size or len(data) or 1
    out = [payload for at in range(0, len(data), size) for payload in reader.feed(data[at : at + size])]
    return out + reader.close()


TEXTS: dict[str, tuple[str, list[Any]]] = {
    "usual": ('data: {"a": 1}\n\ndata: {"b": "ü→𝄞"}\n\ndata: [DONE]\n\n', [A, B, Signal.done]),
    "done is missing": ('data: {"a": 1}\n\n', [A]),
    "no blank at the end": ('data: {"a": 1}\n\ndata: {"b": "ü→𝄞"}', [A, B]),
    "no blank line at all": ('data: {"a": 1}\ndata: {"b": "ü→𝄞"}\ndata: [DONE]\n', [A, B, Signal.done]),
    "no blank after the colon": ('data:{"a": 1}\n\n', [A]),
    "comments": (': ping\n\n: ping\ndata: {"a": 1}\n: more\n\n:\n\n', [A]),
    "several data lines": ('data: {"a":\ndata: 1}\n\n', [A]),
    "a field without a colon": ('data\n\ndata: {"a": 1}\n\n', [A]),
    "other fields": ('event: message\nid: 7\nretry: 10\ndata: {"a": 1}\nunknown: x\n\n', [A]),
    "a byte order mark": ('\ufeffdata: {"a": 1}\n\n', [A]),
    "blank lines first": ('\n\n\ndata: {"a": 1}\n\n', [A]),
    "a list of payloads": ('data: [{"a": 1}, {"a": 1}]\n\n', [A, A]),
    "a line break of another alphabet": ('data: {"b": "\u2028\x85"}\n\n', [{"b": "\u2028\x85"}]),
    "an error event": ('event: error\ndata: {"message": "no"}\n\n', [{"error": {"message": "no"}}]),
    "an error that is text": ("event: error\ndata: no\n\n", [{"error": {"message": "no"}}]),
    "an error in band": ('data: {"error": {"message": "no"}}\n\n', [{"error": {"message": "no"}}]),
    "JSON lines": ('{"a": 1}\n{"b": "ü→𝄞"}\n', [A, B]),
    "JSON lines without an end": ('{"a": 1}\n{"b": "ü→𝄞"}', [A, B]),
    "one JSON value on many lines": ('{\n  "a":\n  1\n}\n', [A]),
    "nothing": ("", []),
    "a page": ("<html>\n<body>data: x</body>\n</html>\n", []),
}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("text, payloads", TEXTS.values(), ids=TEXTS)
def test_payloads_are_independent_of_line_ends_and_chunking(text: str, payloads: list[Any], end: str) -> None:
    data = text.replace("\n", end).encode()
    for size in (0, 1, 2, 3, 7):
        assert read_payloads(data, size) == payloads


_PAYLOADS = st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), min_size=1), max_size=5)


@given(_PAYLOADS, st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_all_payloads_are_read_under_any_chunking(
    payloads: list[dict[str, Any]], end: str, data: st.DataObject
) -> None:
    lines = [f"data: {json.dumps(each, ensure_ascii=False)}{end}{end}" for each in payloads]
    wire = "".join(lines).encode("utf-8", "replace")
    whole = read_payloads(wire)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    reader, out = ServerEvents(), list[Payload]()
    for start, stop in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        out += reader.feed(wire[start:stop])
    assert out + reader.close() == whole
    assert len(whole) == len(payloads)


_PIECES = st.sampled_from(
    [b"data: ", b"data:", b'{"a": 1}', b"[DONE]", b"\n", b"\r", b"\r\n", b"event: error", b": x", b"\xef\xbb\xbf"]
)


@given(st.lists(_PIECES | st.binary(max_size=6), max_size=12).map(b"".join), st.integers(1, 5))
def test_arbitrary_bytes_are_read_the_same_under_any_chunking(data: bytes, size: int) -> None:
    assert read_payloads(data, size) == read_payloads(data)


def test_invalid_json_is_a_fault_and_later_payloads_are_read() -> None:
    first, second = read_payloads(b'data: {"a": \n\ndata: {"a": 1}\n\n')
    assert isinstance(first, Fault) and first.code == "malformed_chunk"
    assert second == A


def test_an_incomplete_event_of_a_broken_connection_is_not_read() -> None:
    reader = ServerEvents()
    assert reader.feed(b'data: {"a": 1}') == []
    assert reader.close(broken=True) == []


@pytest.mark.parametrize(
    "data", [b"data: " + b"x" * 200, b"data: xxxxxxxxx\n" * 20, b"x" * 200, b"{" + b"\n" * 9 + b" " * 200]
)
def test_reading_ends_at_a_line_or_event_that_is_too_long(data: bytes) -> None:
    reader = ServerEvents(longest=100)
    out = [payload for at in range(len(data)) for payload in reader.feed(data[at : at + 1])]
    assert [payload.code for payload in out if isinstance(payload, Fault)] == ["too_large"]
    assert reader.too_long
    assert reader.feed(b'\n\ndata: {"a": 1}\n\n') == [] and reader.close() == []


def test_the_pieces_of_a_long_line_are_joined_once() -> None:
    reader = ServerEvents()
    for _ in range(20_000):
        reader.feed(b"x" * 100)
    assert len(reader._line) == 20_000  # joined only at the end of the line: work and memory are linear
