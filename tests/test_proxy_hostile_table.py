"""Every endpoint with every kind of invalid body: an answer or a rejection, no failure and no hang."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from zoo.keeper import GOOD
from zoo.scenes import build_request
from zoo.visit import ZooSession

APIS = ("chat", "responses", "messages", "ollama", "gemini")
OTHERS = (
    "/v1/completions",
    "/v1/messages/count_tokens",
    "/v1beta/models/good:countTokens",
    "/v1beta/models/good:streamGenerateContent",
    "/api/show",
    "/api/generate",
    "/v1/responses/compact",
    "/v1/embeddings",
    "/nowhere",
)


def valid_body(api: str) -> bytes:
    _, body = build_request("after_result", api, model="good", stream=False)
    return json.dumps(body).encode()


def deep_body(depth: int) -> bytes:
    return b'{"model":"good","messages":' + b"[" * depth + b"]" * depth + b"}"


# Bytes that are no request body, or a body in an unexpected encoding.
RAW: dict[str, bytes] = {
    "nothing": b"",
    "blank": b" \n ",
    "null": b"null",
    "number": b"7",
    "list": b"[]",
    "text": b'"hello"',
    "cut": b'{"model": "good", "messages": [',
    "words": b"not json",
    "form": b"model=good&messages=1",
    "two_objects": b'{"model": "good"}{"model": "good"}',
    "marked": b"\xef\xbb\xbf" + valid_body("chat"),
    "wide": valid_body("chat").decode().encode("utf-16"),
    "latin": '{"model": "good", "messages": [{"role": "user", "content": "é"}]}'.encode("latin-1"),
    "packed_unsaid": gzip.compress(valid_body("chat")),
    "half_letter": b'{"model": "good", "messages": [{"role": "user", "content": "\\ud800"}]}',
    "nan": b'{"model": "good", "temperature": NaN, "messages": []}',
    "huge_number": b'{"model": "good", "max_tokens": 1' + b"0" * 5000 + b', "messages": []}',
    "deep": deep_body(3_000),
    "same_key": b'{"model": "good", "model": 7, "messages": [], "messages": null}',
    "zero": b"\x00" * 100,
}
# One field of a valid body with a value of another type.
Bodies = list[tuple[str, bytes, dict[str, str]]]
VALUES: list[Any] = [None, True, -1, "", "x" * 50_000, [], {}, [None, [[]]], [{}]]
LISTS = {"chat": "messages", "responses": "input", "messages": "messages", "ollama": "messages", "gemini": "contents"}


@pytest.fixture(scope="module")
def zoo_session() -> Iterator[ZooSession]:
    with ZooSession() as open_session:
        yield open_session


async def post_bodies(url: str, bodies: Bodies) -> list[tuple[str, int, str]]:
    """Post every body and return the responses that are neither an answer nor a clear rejection."""
    wrong = []
    limit = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(timeout=limit) as session:
        for name, data, headers in bodies:
            async with session.post(url, data=data, headers={"Content-Type": "application/json", **headers}) as answer:
                text = await answer.text(errors="replace")
            is_clear = answer.status == 200 or (400 <= answer.status < 500 and text)
            wrong += [] if is_clear else [(name, answer.status, text[:200])]
    return wrong


def paths() -> list[tuple[str, str]]:
    own = [
        (api, build_request("plain", api, model="good", stream=stream)[0]) for api in APIS for stream in (False, True)
    ]
    return [*dict.fromkeys(own), *[("chat", path) for path in OTHERS]]


@pytest.mark.parametrize("api, path", paths(), ids=[path for _, path in paths()])
def test_invalid_bytes_are_rejected(zoo_session: ZooSession, api: str, path: str) -> None:
    bodies: Bodies = [(name, data, {}) for name, data in RAW.items()]
    bodies += [
        (f"said {encoding}", valid_body(api), {"Content-Encoding": encoding})
        for encoding in ("gzip", "deflate", "br", "zstd", "x")
    ]
    bodies += [
        (f"as {kind}", valid_body(api), {"Content-Type": kind}) for kind in ("text/plain", "multipart/form-data", "a")
    ]
    assert zoo_session.run(post_bodies(zoo_session.address(GOOD, api) + path, bodies)) == []


@pytest.mark.parametrize("api, path", paths(), ids=[path for _, path in paths()])
def test_fields_of_other_types_are_read_or_rejected(zoo_session: ZooSession, api: str, path: str) -> None:
    whole = json.loads(valid_body(api))
    fields = [*whole, "tool_choice", "max_tokens", "system"]
    bodies = [(f"{key} {value!r:.20}", {**whole, key: value}) for key in fields for value in VALUES]
    bodies += [(f"without {key}", {name: each for name, each in whole.items() if name != key}) for key in whole]
    bodies += list(_disordered_conversations(api, whole))
    encoded: Bodies = [(name, json.dumps(body).encode(), {}) for name, body in bodies]
    assert zoo_session.run(post_bodies(zoo_session.address(GOOD, api) + path, encoded)) == []


def _disordered_conversations(api: str, whole: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield conversations whose turns are in an invalid order."""
    key = LISTS[api]
    turns = whole[key]
    yield "backwards", {**whole, key: turns[::-1]}
    yield "twice", {**whole, key: turns * 2}
    yield "only results", {**whole, key: turns[-1:]}
    yield "only calls", {**whole, key: turns[1:2]}
    yield "many", {**whole, key: turns[:1] * 500}
    yield "odd roles", {**whole, key: [{**turn, "role": role} for turn in turns for role in ("x", "", 7, None)]}
