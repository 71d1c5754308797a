"""Hostile request bodies: each is read or rejected, and a request that is read can be written for every upstream."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.backends.profiles import BY_API, UNKNOWN, find_profile
from rightcall.backends.request_body import write_body
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.request_readers import READERS, read_request
from rightcall.serve.upstream_body import dropped_fields, mended_history, same_dialect_body, to_request
from rightcall.types import Json
from test_serve_readers import BODIES

KEYS = (
    "role content type text parts name id call_id tool_call_id tool_use_id tool_calls function arguments input output "
    "source data url image_url file thinking signature summary encrypted_content functionCall functionResponse args "
    "response thoughtSignature inlineData mimeType parameters input_schema properties tools functionDeclarations "
    "custom format namespace description action operation tool_choice mode allowed_tools options system stop "
    "generationConfig instructions systemInstruction execution defer_loading max_tokens temperature images "
    "previous_response_id thread"
).split()
WORDS = (
    "user assistant system developer tool function model tool_result tool_use message reasoning function_call image "
    "function_call_output custom_tool_call custom namespace tool_search bash_20250124 local_shell_call object string "
    "any auto required document \ud800 \x00 data:;base64, thinking text input_text input_image"
).split()
LEAVES = (
    st.none() | st.booleans() | st.integers(-1, 1 << 70) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=40,
)
ENTRIES = st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8), max_size=6)
LISTS = ("messages", "input", "contents")


def process_request(api: Any, body: Any) -> None:
    """Run every step that precedes the request to an upstream."""
    try:
        request = read_request(api, body, model="m", stream=True)
    except RefusedRequest:
        return
    assert len(request.origins) == len(request.messages)
    assert all(isinstance(each["role"], str) for each in request.messages)
    repaired = mended_history(request, "strict")
    same_dialect_body(request, messages=repaired.messages, appended=repaired.messages[:1])
    for other in READERS:
        dropped_fields(request, other)
        profile = find_profile(BY_API[other]) if other in BY_API else UNKNOWN
        write_body(make_plan(to_request(request, other), ModeChoice("native", profile), other, "m", stream=True))


@pytest.mark.parametrize("api", READERS)
@given(entries=ENTRIES, tools=VALUES | ENTRIES, rest=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_a_body_of_wrong_types_is_read_or_rejected(api: Any, entries: list[Json], tools: Any, rest: Json) -> None:
    process_request(api, {**rest, **dict.fromkeys(LISTS, entries), "tools": tools})


@pytest.mark.parametrize("api", READERS)
@given(st.data())
def test_a_real_body_with_any_value_in_any_place_is_read_or_rejected(api: Any, data: st.DataObject) -> None:
    body = json.loads(json.dumps(BODIES[api]))
    place: Any = body
    while data.draw(st.booleans(), label="deeper"):
        inner = [
            each for each in (place.values() if isinstance(place, dict) else place) if isinstance(each, dict | list)
        ]
        if not any(inner):
            break
        place = data.draw(st.sampled_from([each for each in inner if each]), label="place")
    key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))), label="key")
    place[key] = data.draw(VALUES, label="value")
    process_request(api, body)


def deep_value(depth: int) -> Json:
    value: Json = {}
    for _ in range(depth):
        value = {"properties": {"content": [value]}}
    return value


@pytest.mark.parametrize("api", READERS)
@pytest.mark.parametrize("depth", [100, 5_000])
def test_a_deeply_nested_body_is_read_or_rejected(api: Any, depth: int) -> None:
    nested = deep_value(depth)
    entry = {"role": "user", "content": [nested], "parts": [nested, {"functionResponse": {"response": nested}}]}
    call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": nested}}]}
    tools = [{"type": "function", "name": "f", "parameters": nested, "function": {"name": "f", "parameters": nested}}]
    process_request(api, {**{key: [entry, call] for key in LISTS}, "tools": tools})


@pytest.mark.parametrize("api", READERS)
def test_names_that_differ_after_the_length_limit_stay_distinct(api: Any) -> None:
    entries = [{"type": "namespace", "name": "n" * 300, "tools": [{"name": f"f{at}"} for at in range(300)]}]
    if api != "responses":
        entries = [{"name": f"{'n' * 150}{at}"} for at in range(300)]
    found = read_request(api, {**{key: [] for key in LISTS}, "tools": entries})
    assert len({each.tool.name for each in found.tools or ()}) == 300
