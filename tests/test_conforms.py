"""`conforms` names what breaks clients: one broken stream for every fault that made a client lose a turn."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.errors import CallerError
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage
from rightcall.serve.answer_writers import WRITERS, encoded, new_answer_id
from rightcall.serve.client_request import ClientRequest
from rightcall.testing import conforms
from rightcall.testing.conformance.stream_rules import events_in
from rightcall.types import Call, Json, Reply, Text

Pairs = list[tuple[str | None, Any]]
CALLS = (Call("f", {"x": 1}, id="c1"), Call("g", {"y": 2}, id="c2"))
END = AnswerEnd(finish="tool_calls", usage=AnswerUsage(10, 5))


def write_stream(api: Any, *, text: str = "Hi", calls: tuple[Call, ...] = CALLS) -> bytes:
    request = ClientRequest(api=api, model="m", messages=[], wants_usage=True)
    writer = WRITERS[api](AnswerHead(id=new_answer_id(api), model="m", created=1, request=request))
    pieces = [writer.begin(), writer.reasoning("hm"), writer.text(text)]
    for call in calls:
        half = len(call.json) // 2
        pieces += [writer.call_begin(call.id, call.name), writer.call_piece(call.json[:half])]
        pieces += [writer.call_piece(call.json[half:]), writer.call_end()]
    return b"".join([*pieces, writer.finish(END)])


def pairs_of(api: Any) -> Pairs:
    return [(event.name, event.payload) for event in events_in(write_stream(api), api)]


def write_whole(api: Any) -> Json:
    request = ClientRequest(api=api, model="m", messages=[])
    writer = WRITERS[api](AnswerHead(id="a", model="m", created=1, request=request))
    body: Json = json.loads(encoded(writer.whole(Reply((Text("Hi"), *CALLS)), END)))
    return body


@pytest.mark.parametrize("api", WRITERS)
def test_a_correct_answer_has_no_faults_in_any_form(api: str) -> None:
    assert (
        conforms(write_stream(api), api)
        == conforms(write_stream(api).decode(), api)
        == conforms(pairs_of(api), api)
        == []
    )
    assert conforms(write_whole(api), api) == conforms(json.dumps(write_whole(api)).encode() + b"\n", api) == []


def test_an_unknown_api_is_rejected() -> None:
    with pytest.raises(CallerError, match="no api 'chatt'"):
        conforms([], "chatt")


# -- functions that break a stream -------------------------------------------------------------------------------------

Break = Callable[[Pairs], Any]


def value_at(payload: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at this path, or None if there is none."""
    for step in path:
        known = isinstance(payload, dict) and step in payload
        listed = isinstance(payload, list) and isinstance(step, int) and len(payload) > step
        payload = payload[step] if known or listed else None
    return payload


def replace_value(value: Any, *path: Any, kind: str = "", nth: int = 0) -> Break:
    """Replace the nth value at this path (in events of this kind); `...` deletes it."""

    def break_stream(pairs: Pairs) -> Pairs:
        mine = [payload for name, payload in pairs if not kind or name == kind]
        holder = value_at([each for each in mine if value_at(each, path) is not None][nth], path[:-1])
        if value is ...:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
        return pairs

    return break_stream


def add_value(value: Any, *path: Any, nth: int) -> Break:
    """Add the value to the nth object that has the parent of this path."""

    def break_stream(pairs: Pairs) -> Pairs:
        holders = [found for _, payload in pairs if (found := value_at(payload, path[:-1])) is not None]
        holders[nth][path[-1]] = value
        return pairs

    return break_stream


def drop_events(kind: str, nth: int | None = None) -> Break:
    """Drop the nth event of this kind, or all of them."""

    def break_stream(pairs: Pairs) -> Pairs:
        mine = [i for i, (name, payload) in enumerate(pairs) if kind in (name, (payload or {}).get("type"))]
        gone = mine if nth is None else [mine[nth]]
        return [pair for i, pair in enumerate(pairs) if i not in gone]

    return break_stream


def repeat_events(kind: str) -> Break:
    return lambda pairs: [each for pair in pairs for each in ([pair] * 2 if pair[0] == kind else [pair])]


def drop_last(last: int) -> Break:
    return lambda pairs: pairs[:-last]


def move_event(start: int, to: int) -> Break:
    def break_stream(pairs: Pairs) -> Pairs:
        pairs.insert(to, pairs.pop(start))
        return pairs

    return break_stream


def insert_event(name: str | None, payload: Any, place: int = 1) -> Break:
    return lambda pairs: [*pairs[:place], (name, payload), *pairs[place:]]


def with_finish_reason(pairs: Pairs, word: str) -> Pairs:
    pairs[-3][1]["choices"][0]["finish_reason"] = word
    return pairs


def with_status(pairs: Pairs, status: str) -> Pairs:
    response = pairs[-1][1]["response"]
    return [*pairs[:-1], (None, {"type": f"response.{status}", "response": {**response, "status": status}})]


DELTA = ("choices", 0, "delta")
CALL = (*DELTA, "tool_calls", 0)

BROKEN: list[tuple[str, str, Break, str]] = [
    # chat: named as in the tables of clients
    ("chat", "nometa", replace_value(..., "created"), "`created` must be a whole number"),
    ("chat", "noanswerid", replace_value("", "id"), "`id` must be a text that is not empty"),
    ("chat", "otheranswerid", replace_value("chatcmpl-other", "id", nth=3), "the `id` differs"),
    ("chat", "nochoices", replace_value(..., "choices"), "no list `choices`"),
    ("chat", "nochoiceindex", replace_value(..., "choices", 0, "index"), "`index` must be a whole number"),
    ("chat", "norole", replace_value(..., *DELTA, "role"), "no `role`"),
    ("chat", "noindex", replace_value(..., *CALL, "index"), "`index` must be a number from 0"),
    ("chat", "indexnull", replace_value(None, *CALL, "index"), "`index` must be a number from 0"),
    ("chat", "indexstr", replace_value("0", *CALL, "index"), "`index` must be a number from 0"),
    ("chat", "index1", replace_value(1, *CALL, "index"), "without gaps"),
    ("chat", "sameindex", replace_value(0, *CALL, "index", nth=3), "the name is repeated"),
    ("chat", "namerepeat", add_value("f", *CALL, "function", "name", nth=1), "the name is repeated"),
    ("chat", "namelate", replace_value(..., *CALL, "function", "name"), "name must be whole when it begins"),
    ("chat", "idnew", add_value("c9", *CALL, "id", nth=1), "the `id` of a call changes"),
    ("chat", "noid", replace_value(..., *CALL, "id"), "`id` must be a text"),
    ("chat", "emptyid", replace_value("", *CALL, "id"), "`id` must be a text"),
    ("chat", "nullid", replace_value(None, *CALL, "id"), "`id` must be a text"),
    ("chat", "intid", replace_value(7, *CALL, "id"), "`id` must be a text"),
    ("chat", "dupid", replace_value("c1", *CALL, "id", nth=1), "two calls have the id 'c1'"),
    ("chat", "interleave", move_event(4, 6), "a call continues after the next has begun"),
    ("chat", "notype", replace_value(..., *CALL, "type"), "`type` must be function"),
    ("chat", "argsobj", replace_value({"x": 1}, *CALL, "function", "arguments"), "`arguments` must be text"),
    ("chat", "firstnoargs", replace_value(..., *CALL, "function", "arguments"), "`arguments` must be text"),
    ("chat", "nullargdelta", replace_value(None, *CALL, "function", "arguments", nth=1), "`arguments` must be text"),
    ("chat", "badjson", replace_value("x", *CALL, "function", "arguments", nth=1), "no JSON object"),
    ("chat", "emptycalls", add_value([], *DELTA, "tool_calls", nth=1), "a list of calls, or be left out"),
    ("chat", "finishlength", lambda pairs: with_finish_reason(pairs, "length"), "must end with tool_calls"),
    ("chat", "finishodd", lambda pairs: with_finish_reason(pairs, "eos"), "`finish_reason` must be one of"),
    ("chat", "nofinish", lambda pairs: [*pairs[:-3], *pairs[-2:]], "without a `finish_reason`"),
    ("chat", "twofinish", lambda pairs: [*pairs[:-2], pairs[-3], *pairs[-2:]], "two finishes"),
    ("chat", "textafter", lambda pairs: [*pairs[:-2], pairs[2], *pairs[-2:]], "after the finish"),
    ("chat", "reasoningafter", move_event(1, 9), "after the finish"),
    ("chat", "argumentsafter", move_event(8, 9), "after the finish"),
    ("chat", "callafter", lambda pairs: [*pairs[:6], pairs[9], *pairs[6:9], *pairs[10:]], "after the finish"),
    ("chat", "afterdone", lambda pairs: [*pairs, pairs[2]], "after [DONE]"),
    ("chat", "nlbefore", replace_value("\n\n", *DELTA, "content", nth=1), "blank text precedes a call"),
    ("chat", "chatusage", replace_value(..., "usage", "prompt_tokens"), "`prompt_tokens` must be a whole number"),
    ("chat", "usageinwords", replace_value("many", "usage"), "`usage` must be an object"),
    ("chat", "errornotype", insert_event(None, {"error": {"message": "x"}}, 2), "`type` must be a text"),
    ("chat", "aftererror", insert_event(None, {"error": {"message": "x", "type": "y"}}, 2), "after the error"),
    ("chat", "contentobj", replace_value(7, *DELTA, "content", nth=1), "`content` must be text"),
    # responses
    ("responses", "nometa", replace_value(..., "response", "created_at"), "`created_at` must be a whole number"),
    ("responses", "nocreated", drop_events("response.created"), "must begin with response.created"),
    ("responses", "noadded", drop_events("response.output_item.added", -1), "no open item"),
    ("responses", "nodeltas", drop_events("response.function_call_arguments.delta"), "must be what the deltas gave"),
    ("responses", "noitemdone", drop_events("response.output_item.done", -1), "while an item is open"),
    ("responses", "onlycompleted", lambda pairs: [pairs[0], pairs[-1]], "the items that were done"),
    ("responses", "nocompleted", drop_last(1), "ends without an end"),
    ("responses", "emptyoutput", replace_value([], "response", "output", nth=-1), "the items that were done"),
    (
        "responses",
        "noitemid",
        replace_value(..., "item", "id", kind="response.output_item.added"),
        "`id` must be a text",
    ),
    ("responses", "nocallid", replace_value(..., "item", "call_id"), "`call_id` must be a text"),
    ("responses", "emptycallid", replace_value("", "item", "call_id"), "`call_id` must be a text"),
    ("responses", "nostatus", replace_value(..., "item", "status", nth=2), "`status` must be a text"),
    ("responses", "nooutindex", replace_value(..., "output_index"), "`output_index` must be 0"),
    ("responses", "nopart", drop_events("response.content_part.added"), "before the part it belongs to"),
    ("responses", "noannotations", replace_value(..., "item", "content", 0, "annotations"), "no list `annotations`"),
    ("responses", "dupid", replace_value("c1", "item", "call_id", nth=2), "two calls have the id 'c1'"),
    ("responses", "argsobj", replace_value({}, "item", "arguments"), "`arguments` must be text"),
    ("responses", "nousagekey", replace_value(..., "response", "usage", nth=-1), "`usage` must be an object"),
    ("responses", "shortusage", replace_value(..., "response", "usage", "total_tokens"), "`total_tokens`"),
    (
        "responses",
        "nocontentindex",
        replace_value(..., "content_index", nth=1),
        "`content_index` must be a whole number",
    ),
    ("responses", "wrongseq", replace_value(99, "sequence_number", nth=4), "`sequence_number` must be 4"),
    ("responses", "wrongname", lambda pairs: [("response.done", pairs[0][1]), *pairs[1:]], "must name the type"),
    ("responses", "twocreated", repeat_events("response.created"), "second response.created"),
    ("responses", "otherid", replace_value("resp_x", "response", "id", nth=-1), "under another `id`"),
    ("responses", "incomplete", lambda pairs: with_status(pairs, "incomplete"), "though its calls are whole"),
    ("responses", "respdone", lambda pairs: with_status(pairs, "done"), "ends without an end"),
    ("responses", "afterend", lambda pairs: [*pairs, pairs[3]], "after response.completed"),
    # messages
    ("messages", "noevent", lambda pairs: [(None, payload) for _, payload in pairs], "`event:` line must name"),
    ("messages", "nostart", drop_events("message_start"), "must begin with message_start"),
    ("messages", "twostarts", repeat_events("message_start"), "second message_start"),
    ("messages", "nodelta", drop_events("message_delta"), "no message_delta"),
    ("messages", "nomsgstop", drop_events("message_stop"), "ends without an end"),
    ("messages", "nostop", drop_events("content_block_stop"), "before the last has stopped"),
    ("messages", "noindex", replace_value(..., "index"), "`index` must be 0"),
    ("messages", "index1", replace_value(1, "index"), "`index` must be 0"),
    ("messages", "nodeltaindex", replace_value(..., "index", kind="content_block_delta"), "delta's `index` must be 0"),
    ("messages", "inputstart", replace_value({"x": 1}, "content_block", "input"), "empty where deltas follow"),
    ("messages", "noinput", replace_value(..., "content_block", "input"), "`input` must be an object"),
    ("messages", "jsonobj", replace_value({}, "delta", "partial_json"), "`partial_json` must be text"),
    ("messages", "badjson", replace_value("x", "delta", "partial_json"), "contradicts the calls"),
    ("messages", "noid", replace_value(..., "content_block", "id"), "`id` must be a text"),
    ("messages", "dupid", replace_value("c1", "content_block", "id", nth=1), "two calls have the id 'c1'"),
    ("messages", "endturn", replace_value("end_turn", "delta", "stop_reason"), "contradicts the calls"),
    ("messages", "maxtokens", replace_value("max_tokens", "delta", "stop_reason"), "contradicts the calls"),
    ("messages", "stopnull", replace_value(None, "delta", "stop_reason"), "must be a value of this dialect"),
    ("messages", "stopchat", replace_value("tool_calls", "delta", "stop_reason"), "must be a value of this dialect"),
    ("messages", "emptytext", replace_value("", "delta", "text"), "a text block is empty"),
    ("messages", "nousage", replace_value(..., "message", "usage"), "`usage` must be an object"),
    ("messages", "nodeltausage", replace_value(..., "usage", kind="message_delta"), "`usage` must be an object"),
    (
        "messages",
        "unknownevent",
        insert_event("rightcall_note", {"type": "rightcall_note"}),
        "is no event of this dialect",
    ),
    ("messages", "thinkingintext", replace_value("text_delta", "delta", "type"), "a text_delta is in a block"),
    ("messages", "deltaoutside", move_event(2, 1), "while no block is open"),
    ("messages", "twodeltas", repeat_events("message_delta"), "two message_deltas"),
    ("messages", "afterstop", lambda pairs: [*pairs, pairs[1]], "after message_stop"),
    # ollama
    (
        "ollama",
        "argsstr",
        replace_value("{}", "message", "tool_calls", 0, "function", "arguments"),
        "must be an object",
    ),
    ("ollama", "nullcontent", replace_value(None, "message", "content"), "`content` must be text"),
    ("ollama", "nocontent", replace_value(..., "message", "content"), "`content` must be text"),
    ("ollama", "nodone", drop_last(1), "ends without an end"),
    ("ollama", "donestr", replace_value("no", "done"), "`done` must be true or false"),
    ("ollama", "twodone", lambda pairs: [*pairs, pairs[-1]], "after the line with `done`"),
    ("ollama", "nomodel", replace_value(..., "model"), "`model` must be a text"),
    ("ollama", "noname", replace_value("", "message", "tool_calls", 0, "function", "name"), "name must be whole"),
    ("ollama", "oddreason", replace_value("eos", "done_reason"), "`done_reason` must be"),
    ("ollama", "nlbefore", replace_value("\n", "message", "content", nth=1), "blank text precedes a call"),
    # gemini
    (
        "gemini",
        "argsstr",
        replace_value("{}", "candidates", 0, "content", "parts", 0, "functionCall", "args"),
        "an object",
    ),
    ("gemini", "nofinish", drop_last(1), "ends without an end"),
    ("gemini", "oddfinish", replace_value("eos", "candidates", 0, "finishReason"), "must be a value of this dialect"),
    ("gemini", "twofinish", lambda pairs: [*pairs, pairs[-1]], "after the finishReason"),
    ("gemini", "noparts", replace_value([], "candidates", 0, "content", "parts"), "a content has no parts"),
    ("gemini", "nousage", replace_value(..., "usageMetadata"), "no `usageMetadata`"),
    (
        "gemini",
        "noname",
        replace_value("", "candidates", 0, "content", "parts", 0, "functionCall", "name"),
        "must be whole",
    ),
    ("gemini", "norole", replace_value(..., "candidates", 0, "content", "role"), "`role` must be model"),
    ("gemini", "done", lambda pairs: [*pairs, (None, None)], "[DONE] is no event"),
]


@pytest.mark.parametrize("api, fault, breaking, message", BROKEN, ids=[f"{api}-{fault}" for api, fault, _, _ in BROKEN])
def test_the_fault_of_a_broken_stream_is_named(api: str, fault: str, breaking: Break, message: str) -> None:
    found = conforms(breaking(copy.deepcopy(pairs_of(api))), api)
    assert any(message in line for line in found), found


def test_two_items_of_the_responses_api_may_be_open_at_once() -> None:
    pairs = pairs_of("responses")
    *_, first_done, _ = [at for at, (name, _) in enumerate(pairs) if name == "response.output_item.done"]
    *_, last_added = [at for at, (name, _) in enumerate(pairs) if name == "response.output_item.added"]
    events = move_event(last_added, first_done)(pairs)
    for number, (_, payload) in enumerate(events):
        payload["sequence_number"] = number
    assert conforms(events, "responses") == []


BYTES: list[tuple[str, str, Callable[[bytes], bytes], str]] = [
    ("chat", "wholejson", lambda data: b'{"choices": []}', "no `choices`"),
    ("chat", "notjson", lambda data: data.replace(b'"created"', b"created", 1), "it is not JSON"),
    ("chat", "cutmid", lambda data: data[: len(data) // 2], "ends without a `finish_reason`"),
    ("chat", "noblankline", lambda data: data.rstrip(b"\n"), "not ended by a blank line"),
    ("chat", "oddline", lambda data: b"{}\n\n" + data, "no field of an event"),
    ("messages", "notutf8", lambda data: data.replace(b"Hi", b"\xff"), "not UTF-8"),
    ("ollama", "blank", lambda data: data.replace(b"\n", b"\n\n", 1), "a blank line"),
    ("ollama", "sse", lambda data: b"data: " + data, "events in place of lines"),
    ("gemini", "comments", lambda data: b": wait\n\n" + data, "a comment"),
    ("gemini", "openarray", lambda data: b"[" + data[6:], "the array is not JSON"),
]


@pytest.mark.parametrize("api, fault, breaking, message", BYTES, ids=[f"{api}-{fault}" for api, fault, _, _ in BYTES])
def test_the_fault_of_broken_bytes_is_named(
    api: str, fault: str, breaking: Callable[[bytes], bytes], message: str
) -> None:
    found = conforms(breaking(write_stream(api)), api)
    assert any(message in line for line in found), found


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_comments_crlf_and_event_ids_are_accepted(api: str) -> None:
    data = b": wait\n\n" + write_stream(api).replace(b"data:", b"id: 1\ndata:").replace(b"\n", b"\r\n")
    assert conforms(data, api) == []


WHOLES: list[tuple[str, str, Break, str]] = [
    (
        "chat",
        "argsobj",
        replace_value({}, "choices", 0, "message", "tool_calls", 0, "function", "arguments"),
        "must be text",
    ),
    ("chat", "noid", replace_value(..., "choices", 0, "message", "tool_calls", 0, "id"), "`id` must be a text"),
    ("chat", "nofinish", replace_value(None, "choices", 0, "finish_reason"), "no `finish_reason`"),
    ("chat", "finishlength", replace_value("length", "choices", 0, "finish_reason"), "must end with tool_calls"),
    ("chat", "nousage", replace_value(..., "usage"), "`usage` must be an object"),
    ("chat", "nocontent", replace_value(..., "choices", 0, "message", "content"), "no `content`"),
    ("responses", "nocallid", replace_value(..., "output", 1, "call_id"), "`call_id` must be a text"),
    (
        "responses",
        "noannotations",
        replace_value(..., "output", 0, "content", 0, "annotations"),
        "no list `annotations`",
    ),
    ("responses", "chatusage", replace_value({"prompt_tokens": 1}, "usage"), "`input_tokens` must be"),
    ("responses", "badjson", replace_value("x", "output", 1, "arguments"), "no JSON object"),
    ("messages", "inputstr", replace_value("{}", "content", 1, "input"), "`input` must be an object"),
    ("messages", "endturn", replace_value("end_turn", "stop_reason"), "contradicts the calls"),
    ("messages", "emptytext", replace_value("", "content", 0, "text"), "a text block is empty"),
    ("messages", "thinknosig", replace_value({"type": "thinking", "thinking": "hm"}, "content", 0), "needs the texts"),
    ("ollama", "nodone", replace_value(False, "done"), "`done` must be true"),
    ("gemini", "nofinish", replace_value(..., "candidates", 0, "finishReason"), "no `finishReason`"),
]


@pytest.mark.parametrize("api, fault, breaking, message", WHOLES, ids=[f"{api}-{fault}" for api, fault, _, _ in WHOLES])
def test_the_fault_of_a_broken_whole_answer_is_named(api: str, fault: str, breaking: Break, message: str) -> None:
    ((_, body),) = breaking([(None, write_whole(api))])
    found = conforms(body, api)
    assert any(message in line for line in found), found


# -- arbitrary input ---------------------------------------------------------------------------------------------------

_KEYS = (
    "type id index choices delta message content role tool_calls function arguments name finish_reason usage item "
    "output response output_index content_block partial_json input stop_reason candidates parts functionCall args done "
    "done_reason status error sequence_number text"
).split()
_WORDS = (
    "message_start content_block_start content_block_delta content_block_stop message_delta tool_use function_call "
    "message response.created response.output_item.added response.output_item.done response.completed error text"
).split()
_SCALARS = st.none() | st.booleans() | st.integers(-1, 2) | st.floats() | st.sampled_from(["", " ", "a", *_WORDS])
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=20,
)


@given(
    payloads=st.lists(_VALUES, max_size=4), api=st.sampled_from([*WRITERS]), stream=st.sampled_from([None, True, False])
)
def test_faults_are_reported_for_arbitrary_answers(payloads: list[Any], api: str, stream: bool | None) -> None:
    texts = [json.dumps(payload) for payload in payloads]
    for text in (*texts, "\n".join(texts), "".join([f"data: {each}\n\n" for each in texts]), f"[{','.join(texts)}]"):
        assert conforms(text, api, stream=stream)
    for given_ in (payloads, *[each for each in payloads if isinstance(each, dict)]):
        assert conforms(given_, api, stream=stream)


@pytest.mark.parametrize("api", WRITERS)
@pytest.mark.parametrize("depth", [450, 900, 100_000])
def test_an_answer_that_is_nested_too_deeply_has_faults(api: str, depth: int) -> None:
    deep = '{"choices": ' + "[" * depth + "]" * depth + "}"
    for text in (deep, f"data: {deep}\n\n", f"[{deep}]", f"{deep}\n"):
        assert conforms(text, api)


def test_numbers_outside_json_are_reported() -> None:
    assert any("not JSON" in line for line in conforms('data: {"id": NaN}\n\n', "chat"))


def test_the_number_of_reported_faults_is_bounded() -> None:
    found = conforms("data: {}\n\n" * 5000, "chat")
    assert 1000 < len(found) < 1020 and found[-1].startswith("and so on: ")
