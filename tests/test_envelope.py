"""Bounded output: it respects its bounds, reports and pages what it omits, and redacts secrets."""

from __future__ import annotations

import enum
import io
import json
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from rightcall import Call, Toolset, dispatch_sync
from rightcall.dispatching.bounded_output import (
    BoundedOutput,
    Bounds,
    Pages,
    PageToken,
    Redaction,
    bound,
    json_size,
    spill_to,
)
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.plain_json_values import plain

texts = st.text(max_size=300)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=40,
)
small = st.builds(
    Bounds,
    string_chars=st.integers(1, 200),
    array_items=st.integers(1, 8),
    total_bytes=st.integers(64, 2_000),
)
relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def longest_array(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return max([len(value) if isinstance(value, list) else 0, *map(longest_array, inner)])


@relaxed
@given(values, small)
def test_bounded_output_respects_its_bounds(value: Any, bounds: Bounds) -> None:
    envelope = bound(value, bounds)
    assert json_size(envelope.payload) <= bounds.total_bytes
    assert all(len(text) <= bounds.string_chars for text in strings(envelope.payload))
    assert longest_array(envelope.payload) <= bounds.array_items
    envelope.text.encode()


@relaxed
@given(values, small)
def test_bounded_output_is_whole_or_counts_what_it_omits(value: Any, bounds: Bounds) -> None:
    envelope = bound(value, bounds)
    counted = envelope.omitted_chars + envelope.omitted_items + envelope.omitted_values
    assert (envelope.payload == plain(value)) == (not envelope.truncated) == (counted == 0)
    assert envelope.page_token == (envelope.omitted[0].page_token if envelope.omitted else "")


@relaxed
@given(values)
def test_a_value_within_the_bounds_is_unchanged(value: Any) -> None:
    assert bound(value).payload == plain(value)


@relaxed
@given(st.text(min_size=1, max_size=2_000), st.integers(1, 300))
def test_the_pages_of_a_truncated_text_join_to_the_whole_text(text: str, chars: int) -> None:
    pages = Pages()
    envelope = bound({"log": text}, Bounds(string_chars=chars, pages=pages))
    whole = plain(text)
    if not envelope.truncated:
        assert envelope.payload["log"] == whole
        return
    head = PageToken.read(envelope.page_token)
    assert head is not None and head.pointer == "/log" and head.reason == "string_chars"
    assert envelope.payload["log"].startswith(whole[: head.at])
    joined, token = whole[: head.at], envelope.page_token
    while token:
        piece = pages.read(token)
        assert 0 < len(piece.payload) <= chars
        joined, token = joined + piece.payload, piece.page_token
    assert joined == whole


@relaxed
@given(st.lists(st.integers(0, 99), max_size=60), st.integers(1, 9))
def test_the_pages_of_a_truncated_array_join_to_the_whole_array(items: list[int], most: int) -> None:
    pages = Pages()
    envelope = bound(items, Bounds(array_items=most, pages=pages))
    joined, token = list(envelope.payload), envelope.page_token
    while token:
        piece = pages.read(token)
        joined, token = joined + piece.payload, piece.page_token
    assert joined == items


@relaxed
@given(
    st.integers(5, 30), st.integers(4, 12), st.integers(20, 64), st.integers(100, 2_000), st.sampled_from(["", "/a"])
)
def test_the_pages_of_an_array_whose_items_are_cut_have_every_item_once(
    count: int, fields: int, width: int, most: int, pointer: str
) -> None:
    """A few items exceed the byte limit here even with short texts, so that every page is shrunk."""
    rows = [{"id": at, **{f"field {n}": "x" * width for n in range(fields)}} for at in range(count)]
    pages = Pages()
    piece = bound({"a": rows} if pointer else rows, Bounds(total_bytes=most, pages=pages))
    shown = list(piece.payload["a"] if pointer else piece.payload)
    while tokens := [each.page_token for each in piece.omitted if each.pointer == pointer]:
        head = PageToken.read(tokens[0])
        assert head is not None and head.at == len(shown)
        piece = pages.read(tokens[0])
        assert piece.payload and piece.omitted_items == count - len(shown) - len(piece.payload)
        shown += piece.payload
    assert [row.get("id") for row in shown] == list(range(count))


def test_pointers_inside_a_page_refer_to_the_whole_value() -> None:
    pages = Pages()
    rows = [{"text": f"{at}:" + "x" * 50} for at in range(6)]
    first = bound({"rows": rows}, Bounds(string_chars=20, array_items=2, pages=pages))
    token = next(each.page_token for each in first.omitted if each.reason == "array_items")
    second = pages.read(token)
    assert [each.pointer for each in second.omitted] == ["/rows/2/text", "/rows/3/text", "/rows"]
    assert pages.read(second.omitted[0].page_token).payload == rows[2]["text"][20:40]


def test_a_truncated_text_keeps_its_head_and_its_tail() -> None:
    text = "".join(f"line {at}\n" for at in range(5_000))
    cut = bound(text).payload
    assert cut.startswith("line 0\n") and cut.endswith("line 4999\n") and len(cut) <= 4_000
    assert "characters left out" in cut


def test_the_count_of_omitted_characters_is_exact() -> None:
    envelope = bound("x" * 10_000)
    assert envelope.payload.count("x") == 10_000 - envelope.omitted_chars


def test_the_largest_values_are_truncated_first() -> None:
    given = {"ok": True, "log": ["y" * 900] * 40, "note": "all fine", "inner": {"dump": "z" * 3_900, "code": 7}}
    envelope = bound(given, Bounds(total_bytes=8_000))
    assert envelope.payload["ok"] is True and envelope.payload["note"] == "all fine"
    assert envelope.payload["inner"]["code"] == 7 and envelope.payload["inner"]["dump"].startswith("zzz")
    assert len(envelope.payload["log"]) == 40 and json_size(envelope.payload) <= 8_000


def test_fields_are_omitted_and_listed_if_truncation_is_not_enough() -> None:
    given = {f"field {at}": list(range(30)) for at in range(100)} | {"small": 1}
    envelope = bound(given, Bounds(total_bytes=600, pages=Pages()))
    assert envelope.payload["small"] == 1 and envelope.omitted_values > 0
    assert {each.reason for each in envelope.omitted} >= {"total_bytes"}


def test_a_very_long_key_does_not_exceed_the_bounds() -> None:
    envelope = bound({"k" * 200_000: "x" * 9_000, "j" * 900_000: 1}, Bounds(pages=Pages()))
    assert json_size(envelope.payload) <= 256_000 and len(envelope.text) < 260_000 and "Ask for less" in envelope.text


def test_kept_items_keep_their_positions() -> None:
    given = ["small", "x" * 5_000, "small too"]
    envelope = bound(given, Bounds(total_bytes=300))
    assert envelope.payload[0] == "small" and envelope.payload[1].startswith("xxx")
    assert envelope.payload[2] == "small too"


def test_a_very_large_output_is_truncated() -> None:
    envelope = bound(
        {"rows": [{"k": "v" * 5_000, "n": at} for at in range(2_000)], **{str(at): at for at in range(50_000)}}
    )
    assert envelope.truncated and json_size(envelope.payload) <= 256_000


def test_a_page_token_contains_pointer_reason_and_limit() -> None:
    token = bound({"a/b": "x" * 5_000}).page_token
    assert token.startswith("v1:") and bytes.fromhex(token[3:]).decode().isascii()
    read = PageToken.read(token)
    assert read is not None and (read.pointer, read.reason, read.limit) == ("/a~1b", "string_chars", 4_000)


@pytest.mark.parametrize("text", ["", "v1:", "v1:zz", "v2:7b7d", "v1:7b7d", "v1:" + "00" * 20_000, "v1:" + b"[]".hex()])
def test_an_invalid_page_token_is_rejected(text: str) -> None:
    assert PageToken.read(text) is None
    with pytest.raises(ValueError, match="page token"):
        Pages().read(text)


@relaxed
@given(st.text(max_size=30), st.integers(-5, 500), st.sampled_from(["r1", "r2", ""]))
def test_a_forged_page_token_gives_a_page_or_a_clear_error(pointer: str, at: int, of: str) -> None:
    pages = Pages()
    bound({"log": "x" * 500, "rows": [[1, 2, 3]]}, Bounds(string_chars=10, pages=pages))
    message = "a page token"
    try:
        pages.read(str(PageToken(pointer, "string_chars", 10, of, at)))
    except ValueError as error:
        message = str(error)
    assert "page token" in message


def test_the_oldest_outputs_are_dropped_over_the_byte_limit() -> None:
    pages = Pages(most_bytes=20_000)
    tokens = [bound("x" * 9_000, Bounds(pages=pages)).page_token for _ in range(4)]
    with pytest.raises(ValueError, match="no longer kept"):
        pages.read(tokens[0])
    assert pages.read(tokens[-1]).payload.startswith("xxx")


# -- redaction ---------------------------------------------------------------------------------------------------------

ACCOUNT = {"user": {"name": "Ada", "password": "hunter2"}, "cards": [{"no": 1234}, {"no": 5678}], "a/b": "hunter2"}


def test_denied_pointers_are_redacted() -> None:
    envelope = bound(ACCOUNT, Bounds(redaction=Redaction(deny=("/user/password", "/cards/1", "/a~1b", "/not/there"))))
    assert envelope.payload == {
        "user": {"name": "Ada", "password": "[redacted]"},
        "cards": [{"no": 1234}, "[redacted]"],
        "a/b": "[redacted]",
    }
    assert envelope.redacted_values == 3 and not envelope.truncated


POINTERS = {
    "": "/",
    "a": "/a",
    "a/b": "/a~1b",
    "a~b": "/a~0b",
    "a~1b": "/a~01b",
    "a~0b": "/a~00b",
    "a~01b": "/a~001b",
    "/~": "/~1~0",
    "~/": "/~0~1",
}


@pytest.mark.parametrize("key, pointer", POINTERS.items())
def test_an_escaped_pointer_refers_to_its_member_only(key: str, pointer: str) -> None:
    value = dict.fromkeys(POINTERS, "x")
    denied = bound(value, Bounds(redaction=Redaction(deny=(pointer,))))
    assert denied.payload == {**value, key: "[redacted]"}
    allowed = bound(value, Bounds(redaction=Redaction(allow=(pointer,))))
    assert allowed.payload == {**dict.fromkeys(POINTERS, "[redacted]"), key: "x"}


@pytest.mark.parametrize("key, pointer", POINTERS.items())
def test_a_page_token_leads_to_a_member_with_any_key(key: str, pointer: str) -> None:
    pages = Pages()
    value = {each: f"{each}|" * 50 for each in POINTERS}
    omitted = bound(value, Bounds(string_chars=20, pages=pages)).omitted
    (token,) = [each.page_token for each in omitted if each.pointer == pointer]
    start = PageToken.read(token)
    assert start is not None and pages.read(token).payload == value[key][start.at :][:20]


def test_an_allow_list_redacts_everything_outside_its_pointers() -> None:
    envelope = bound(ACCOUNT, Bounds(redaction=Redaction(allow=("/user/name", "/cards"), text="-")))
    assert envelope.payload == {"user": {"name": "Ada", "password": "-"}, "cards": ACCOUNT["cards"], "a/b": "-"}


def test_a_star_matches_any_step_and_deny_takes_precedence() -> None:
    envelope = bound(ACCOUNT, Bounds(redaction=Redaction(allow=("/cards",), deny=("/cards/*/no",))))
    assert envelope.payload["cards"] == [{"no": "[redacted]"}] * 2


@pytest.mark.parametrize("whole", ["secret", ["secret"], {"a": "secret"}])
def test_the_empty_pointer_matches_the_whole_value(whole: Any) -> None:
    assert bound(whole, Bounds(redaction=Redaction(deny=("",)))).payload == "[redacted]"
    assert bound(whole, Bounds(redaction=Redaction(allow=("",)))).payload == whole


@relaxed
@given(st.dictionaries(st.text(max_size=5), values, max_size=5), small)
def test_a_redacted_value_appears_in_no_text_page_or_spill_file(others: dict[str, Any], bounds: Bounds) -> None:
    secret = "s3cr3t-9f2a"
    file, pages = io.BytesIO(), Pages()
    value = {**others, "deep": [{"key": secret}], "key": secret}
    redaction = Redaction(deny=("/deep/*/key", "/key"))
    tight = Bounds(
        string_chars=bounds.string_chars,
        array_items=bounds.array_items,
        total_bytes=bounds.total_bytes,
        redaction=redaction,
        pages=pages,
        spill=spill_to(file),
    )
    envelope = bound(value, tight)
    shown_texts = [envelope.text, *[pages.read(each.page_token).text for each in envelope.omitted]]
    assert secret not in "".join(shown_texts) and secret.encode() not in file.getvalue()


# -- tool results as plain JSON ----------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    on: date


class Model(BaseModel):
    colour: Colour = Colour.RED


@dataclass
class Holder:
    inner: Model


class Odd:
    def __str__(self) -> str:
        raise RuntimeError


CIRCLE: list[Any] = [1]
CIRCLE.append(CIRCLE)
PLAIN: list[tuple[Any, Any]] = [
    (Point(1, date(2026, 5, 17)), {"x": 1, "on": "2026-05-17"}),
    (Model(), {"colour": "red"}),
    (Holder(Model()), {"inner": {"colour": "red"}}),
    (
        Call("f", {"a": (1,)}, ""),
        {
            "name": "f",
            "arguments": {"a": [1]},
            "json": '{"a": [1]}',
            "id": "",
            "raw": "",
            "repairs": [],
            "problems": [],
            "complete": True,
        },
    ),
    ({1: {2}}, {"1": [2]}),
    (b"ok", "ok"),
    (b"\xff\x00", "/wA="),
    (float("nan"), "nan"),
    (float("-inf"), "-inf"),
    ("a\ud800b", "a\ufffdb"),
    (CIRCLE, [1, "[refers to itself]"]),
    (Odd(), "[Odd]"),
    (Colour.RED, "red"),
    (ValueError("x"), "x"),
]


@pytest.mark.parametrize("given, expected", PLAIN, ids=[type(given).__name__ for given, _ in PLAIN])
def test_every_tool_result_becomes_plain_json(given: Any, expected: Any) -> None:
    assert plain(given) == expected
    json.dumps(plain(given), allow_nan=False).encode()


def test_deeply_nested_values_are_truncated() -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    assert "[nested too deeply]" in json.dumps(plain(deep))


# -- with dispatch -----------------------------------------------------------------------------------------------------


def test_hooks_see_the_whole_output_and_the_result_is_bounded() -> None:
    from rightcall.dispatching.hook import Hook, Invocation
    from rightcall.dispatching.result import Result

    seen: list[int] = []

    class Watch(Hook):
        def after(self, invocation: Invocation, result: Result) -> None:
            seen.append(len(result.output))

    async def dump() -> str:
        return "x" * 50_000

    result = dispatch_sync(Call("dump", {}, "{}"), [dump], hooks=[Watch()], limits=RunLimits(result=Bounds()))[0]
    assert seen == [50_000] and len(result.output) <= 4_000
    assert isinstance(result.envelope, BoundedOutput) and result.envelope.truncated


def test_without_bounds_the_output_is_whole_and_only_its_text_is_bounded() -> None:
    async def dump() -> str:
        return "x" * 50_000

    result = dispatch_sync(Call("dump", {}, "{}"), [dump])[0]
    assert len(result.output) == 50_000 and len(result.text) < 5_000 and "Ask for less" in result.text


def test_output_that_the_tool_has_bounded_is_unwrapped() -> None:
    def dump() -> BoundedOutput:
        return bound("x" * 50_000, Bounds())

    (result,) = dispatch_sync(Call("dump", {}, "{}"), [dump])
    assert result.envelope is not None and result.envelope.truncated
    assert isinstance(result.output, str) and result.output == result.envelope.payload


def test_a_model_can_read_further_pages_with_the_tool_read_more() -> None:
    pages = Pages()

    async def dump() -> str:
        return "".join(f"{at:05}," for at in range(4_000))

    tools = Toolset(dump, pages.tool())
    limits = RunLimits(result=Bounds(pages=pages, redaction=Redaction(deny=("/nothing",))))
    result = dispatch_sync(Call("dump", {}, "{}"), tools, limits=limits)[0]
    assert (
        result.envelope is not None
        and f"read_more with a token:\n(the whole) {result.envelope.page_token}" in result.text
    )
    head = PageToken.read(result.envelope.page_token)
    assert head is not None
    more = dispatch_sync(Call("read_more", {"token": result.envelope.page_token}, ""), tools, limits=limits)[0]
    assert more.envelope is not None and more.envelope.page_token
    assert more.output == "".join(f"{at:05}," for at in range(4_000))[head.at : head.at + 4_000]
    wrong = dispatch_sync(Call("read_more", {"token": "v1:00"}, ""), tools, limits=limits)[0]
    assert wrong.error and "exactly as a result showed it" in wrong.text


def test_an_allow_list_does_not_redact_further_pages() -> None:
    pages = Pages()

    async def dump() -> dict[str, str]:
        return {"log": "x" * 9_000, "key": "secret"}

    tools = Toolset(dump, pages.tool())
    limits = RunLimits(result=Bounds(pages=pages, redaction=Redaction(allow=("/log",))))
    result = dispatch_sync(Call("dump", {}, "{}"), tools, limits=limits)[0]
    assert result.envelope is not None and "secret" not in result.text
    more = dispatch_sync(Call("read_more", {"token": result.envelope.page_token}, ""), tools, limits=limits)[0]
    assert more.output == "x" * 4_000


def test_the_whole_value_is_written_to_a_configured_spill_file(tmp_path: Any) -> None:
    with (tmp_path / "spill.txt").open("ab") as file:
        bounds = Bounds(spill=spill_to(file))
        assert bound("small", bounds).handle == "" and file.tell() == 0
        one, two = bound("x" * 5_000, bounds), bound({"y": "z" * 6_000}, bounds)
    data = (tmp_path / "spill.txt").read_bytes()
    assert data[:5_000] == b"x" * 5_000 and json.loads(data[5_001:]) == {"y": "z" * 6_000}
    closed = bound("x" * 5_000, bounds)
    assert closed.handle == "" and closed.truncated, "a file that cannot be written to costs nobody a result"
    assert "spill.txt (bytes 0-5000)" in one.handle and "(bytes 5001-" in two.handle and two.handle in two.text
