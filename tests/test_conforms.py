"""What clients break at is named: one broken stream for every fault that was seen to lose a client its turn."""

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


def written(api: Any, *, text: str = "Hi", calls: tuple[Call, ...] = CALLS) -> bytes:
    request = ClientRequest(api=api, model="m", messages=[], wants_usage=True)
    writer = WRITERS[api](AnswerHead(id=new_answer_id(api), model="m", created=1, request=request))
    pieces = [writer.begin(), writer.reasoning("hm"), writer.text(text)]
    for call in calls:
        half = len(call.json) // 2
        pieces += [writer.call_begin(call.id, call.name), writer.call_piece(call.json[:half])]
        pieces += [writer.call_piece(call.json[half:]), writer.call_end()]
    return b"".join([*pieces, writer.finish(END)])


def pairs_of(api: Any) -> Pairs:
    return [(event.name, event.payload) for event in events_in(written(api), api)]


def whole(api: Any) -> Json:
    request = ClientRequest(api=api, model="m", messages=[])
    writer = WRITERS[api](AnswerHead(id="a", model="m", created=1, request=request))
    body: Json = json.loads(encoded(writer.whole(Reply((Text("Hi"), *CALLS)), END)))
    return body


@pytest.mark.parametrize("api", WRITERS)
def test_a_right_answer_has_no_faults_in_any_form(api: str) -> None:
    assert conforms(written(api), api) == conforms(written(api).decode(), api) == conforms(pairs_of(api), api) == []
    assert conforms(whole(api), api) == conforms(json.dumps(whole(api)).encode() + b"\n", api) == []


def test_an_api_that_is_none_is_refused() -> None:
    with pytest.raises(CallerError, match="no api 'chatt'"):
        conforms([], "chatt")


# -- how to break one --------------------------------------------------------------------------------------------------

Break = Callable[[Pairs], Any]


def found_at(payload: Any, path: tuple[Any, ...]) -> Any:
    """What stands at this path; None where nothing does."""
    for step in path:
        known = isinstance(payload, dict) and step in payload
        listed = isinstance(payload, list) and isinstance(step, int) and len(payload) > step
        payload = payload[step] if known or listed else None
    return payload


def put(value: Any, *path: Any, kind: str = "", nth: int = 0) -> Break:
    """That value in place of the nth that stands there (in events of this kind); `...` takes it away."""

    def broken(pairs: Pairs) -> Pairs:
        mine = [payload for name, payload in pairs if not kind or name == kind]
        holder = found_at([each for each in mine if found_at(each, path) is not None][nth], path[:-1])
        if value is ...:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
        return pairs

    return broken


def give(value: Any, *path: Any, nth: int) -> Break:
    """That value beside the others in the nth object of this path."""

    def broken(pairs: Pairs) -> Pairs:
        holders = [found for _, payload in pairs if (found := found_at(payload, path[:-1])) is not None]
        holders[nth][path[-1]] = value
        return pairs

    return broken


def without(kind: str, nth: int | None = None) -> Break:
    """Without the (nth) event of this kind."""

    def broken(pairs: Pairs) -> Pairs:
        mine = [i for i, (name, payload) in enumerate(pairs) if kind in (name, (payload or {}).get("type"))]
        gone = mine if nth is None else [mine[nth]]
        return [pair for i, pair in enumerate(pairs) if i not in gone]

    return broken


def twice(kind: str) -> Break:
    return lambda pairs: [each for pair in pairs for each in ([pair] * 2 if pair[0] == kind else [pair])]


def cut(last: int) -> Break:
    return lambda pairs: pairs[:-last]


def moved(start: int, to: int) -> Break:
    def broken(pairs: Pairs) -> Pairs:
        pairs.insert(to, pairs.pop(start))
        return pairs

    return broken


def added(name: str | None, payload: Any, place: int = 1) -> Break:
    return lambda pairs: [*pairs[:place], (name, payload), *pairs[place:]]


def finished(pairs: Pairs, word: str) -> Pairs:
    pairs[-3][1]["choices"][0]["finish_reason"] = word
    return pairs


def ended(pairs: Pairs, status: str) -> Pairs:
    response = pairs[-1][1]["response"]
    return [*pairs[:-1], (None, {"type": f"response.{status}", "response": {**response, "status": status}})]


DELTA = ("choices", 0, "delta")
CALL = (*DELTA, "tool_calls", 0)

BROKEN: list[tuple[str, str, Break, str]] = [
    # chat: as the tables of clients name them
    ("chat", "nometa", put(..., "created"), "`created` must be a whole number"),
    ("chat", "noanswerid", put("", "id"), "`id` must be a text that is not empty"),
    ("chat", "otheranswerid", put("chatcmpl-other", "id", nth=3), "the `id` differs"),
    ("chat", "nochoices", put(..., "choices"), "no list `choices`"),
    ("chat", "nochoiceindex", put(..., "choices", 0, "index"), "`index` must be a whole number"),
    ("chat", "norole", put(..., *DELTA, "role"), "no `role`"),
    ("chat", "noindex", put(..., *CALL, "index"), "`index` must be a number from 0"),
    ("chat", "indexnull", put(None, *CALL, "index"), "`index` must be a number from 0"),
    ("chat", "indexstr", put("0", *CALL, "index"), "`index` must be a number from 0"),
    ("chat", "index1", put(1, *CALL, "index"), "without gaps"),
    ("chat", "sameindex", put(0, *CALL, "index", nth=3), "the name is repeated"),
    ("chat", "namerepeat", give("f", *CALL, "function", "name", nth=1), "the name is repeated"),
    ("chat", "namelate", put(..., *CALL, "function", "name"), "name must be whole when it begins"),
    ("chat", "idnew", give("c9", *CALL, "id", nth=1), "the `id` of a call changes"),
    ("chat", "noid", put(..., *CALL, "id"), "`id` must be a text"),
    ("chat", "emptyid", put("", *CALL, "id"), "`id` must be a text"),
    ("chat", "nullid", put(None, *CALL, "id"), "`id` must be a text"),
    ("chat", "intid", put(7, *CALL, "id"), "`id` must be a text"),
    ("chat", "dupid", put("c1", *CALL, "id", nth=1), "two calls have the id 'c1'"),
    ("chat", "interleave", moved(4, 6), "a call continues after the next has begun"),
    ("chat", "notype", put(..., *CALL, "type"), "`type` must be function"),
    ("chat", "argsobj", put({"x": 1}, *CALL, "function", "arguments"), "`arguments` must be text"),
    ("chat", "firstnoargs", put(..., *CALL, "function", "arguments"), "`arguments` must be text"),
    ("chat", "nullargdelta", put(None, *CALL, "function", "arguments", nth=1), "`arguments` must be text"),
    ("chat", "badjson", put("x", *CALL, "function", "arguments", nth=1), "no JSON object"),
    ("chat", "emptycalls", give([], *DELTA, "tool_calls", nth=1), "a list of calls, or be left out"),
    ("chat", "finishlength", lambda pairs: finished(pairs, "length"), "must end with tool_calls"),
    ("chat", "finishodd", lambda pairs: finished(pairs, "eos"), "`finish_reason` must be one of"),
    ("chat", "nofinish", lambda pairs: [*pairs[:-3], *pairs[-2:]], "without a `finish_reason`"),
    ("chat", "twofinish", lambda pairs: [*pairs[:-2], pairs[-3], *pairs[-2:]], "two finishes"),
    ("chat", "textafter", lambda pairs: [*pairs[:-2], pairs[2], *pairs[-2:]], "after the finish"),
    ("chat", "afterdone", lambda pairs: [*pairs, pairs[2]], "after [DONE]"),
    ("chat", "nlbefore", put("\n\n", *DELTA, "content", nth=1), "blank text precedes a call"),
    ("chat", "chatusage", put(..., "usage", "prompt_tokens"), "`prompt_tokens` must be a whole number"),
    ("chat", "usageinwords", put("many", "usage"), "`usage` must be an object"),
    ("chat", "errornotype", added(None, {"error": {"message": "x"}}, 2), "`type` must be a text"),
    ("chat", "aftererror", added(None, {"error": {"message": "x", "type": "y"}}, 2), "after the error"),
    ("chat", "contentobj", put(7, *DELTA, "content", nth=1), "`content` must be text"),
    # responses
    ("responses", "nometa", put(..., "response", "created_at"), "`created_at` must be a whole number"),
    ("responses", "nocreated", without("response.created"), "must begin with response.created"),
    ("responses", "noadded", without("response.output_item.added", -1), "no open item"),
    ("responses", "nodeltas", without("response.function_call_arguments.delta"), "must be what the deltas gave"),
    ("responses", "noitemdone", without("response.output_item.done", -1), "while an item is open"),
    ("responses", "onlycompleted", lambda pairs: [pairs[0], pairs[-1]], "the items that were done"),
    ("responses", "nocompleted", cut(1), "ends without an end"),
    ("responses", "emptyoutput", put([], "response", "output", nth=-1), "the items that were done"),
    ("responses", "noitemid", put(..., "item", "id", kind="response.output_item.added"), "`id` must be a text"),
    ("responses", "nocallid", put(..., "item", "call_id"), "`call_id` must be a text"),
    ("responses", "emptycallid", put("", "item", "call_id"), "`call_id` must be a text"),
    ("responses", "nostatus", put(..., "item", "status", nth=2), "`status` must be a text"),
    ("responses", "nooutindex", put(..., "output_index"), "`output_index` must be 0"),
    ("responses", "nopart", without("response.content_part.added"), "before the part it belongs to"),
    ("responses", "noannotations", put(..., "item", "content", 0, "annotations"), "no list `annotations`"),
    ("responses", "dupid", put("c1", "item", "call_id", nth=2), "two calls have the id 'c1'"),
    ("responses", "argsobj", put({}, "item", "arguments"), "`arguments` must be text"),
    ("responses", "nousagekey", put(..., "response", "usage", nth=-1), "`usage` must be an object"),
    ("responses", "shortusage", put(..., "response", "usage", "total_tokens"), "`total_tokens`"),
    ("responses", "nocontentindex", put(..., "content_index", nth=1), "`content_index` must be a whole number"),
    ("responses", "wrongseq", put(99, "sequence_number", nth=4), "`sequence_number` must be 4"),
    ("responses", "wrongname", lambda pairs: [("response.done", pairs[0][1]), *pairs[1:]], "must name the type"),
    ("responses", "twocreated", twice("response.created"), "second response.created"),
    ("responses", "otherid", put("resp_x", "response", "id", nth=-1), "under another `id`"),
    ("responses", "incomplete", lambda pairs: ended(pairs, "incomplete"), "though its calls are whole"),
    ("responses", "respdone", lambda pairs: ended(pairs, "done"), "ends without an end"),
    ("responses", "afterend", lambda pairs: [*pairs, pairs[3]], "after response.completed"),
    # messages
    ("messages", "noevent", lambda pairs: [(None, payload) for _, payload in pairs], "`event:` line must name"),
    ("messages", "nostart", without("message_start"), "must begin with message_start"),
    ("messages", "twostarts", twice("message_start"), "second message_start"),
    ("messages", "nodelta", without("message_delta"), "no message_delta"),
    ("messages", "nomsgstop", without("message_stop"), "ends without an end"),
    ("messages", "nostop", without("content_block_stop"), "before the last has stopped"),
    ("messages", "noindex", put(..., "index"), "`index` must be 0"),
    ("messages", "index1", put(1, "index"), "`index` must be 0"),
    ("messages", "nodeltaindex", put(..., "index", kind="content_block_delta"), "delta's `index` must be 0"),
    ("messages", "inputstart", put({"x": 1}, "content_block", "input"), "empty where deltas follow"),
    ("messages", "noinput", put(..., "content_block", "input"), "`input` must be an object"),
    ("messages", "jsonobj", put({}, "delta", "partial_json"), "`partial_json` must be text"),
    ("messages", "badjson", put("x", "delta", "partial_json"), "contradicts the calls"),
    ("messages", "noid", put(..., "content_block", "id"), "`id` must be a text"),
    ("messages", "dupid", put("c1", "content_block", "id", nth=1), "two calls have the id 'c1'"),
    ("messages", "endturn", put("end_turn", "delta", "stop_reason"), "contradicts the calls"),
    ("messages", "maxtokens", put("max_tokens", "delta", "stop_reason"), "contradicts the calls"),
    ("messages", "stopnull", put(None, "delta", "stop_reason"), "must be a value of this dialect"),
    ("messages", "stopchat", put("tool_calls", "delta", "stop_reason"), "must be a value of this dialect"),
    ("messages", "emptytext", put("", "delta", "text"), "a text block is empty"),
    ("messages", "nousage", put(..., "message", "usage"), "`usage` must be an object"),
    ("messages", "nodeltausage", put(..., "usage", kind="message_delta"), "`usage` must be an object"),
    ("messages", "unknownevent", added("rightcall_note", {"type": "rightcall_note"}), "is no event of this dialect"),
    ("messages", "thinkingintext", put("text_delta", "delta", "type"), "a text_delta is in a block"),
    ("messages", "deltaoutside", moved(2, 1), "while no block is open"),
    ("messages", "twodeltas", twice("message_delta"), "two message_deltas"),
    ("messages", "afterstop", lambda pairs: [*pairs, pairs[1]], "after message_stop"),
    # ollama
    ("ollama", "argsstr", put("{}", "message", "tool_calls", 0, "function", "arguments"), "must be an object"),
    ("ollama", "nullcontent", put(None, "message", "content"), "`content` must be text"),
    ("ollama", "nocontent", put(..., "message", "content"), "`content` must be text"),
    ("ollama", "nodone", cut(1), "ends without an end"),
    ("ollama", "donestr", put("no", "done"), "`done` must be true or false"),
    ("ollama", "twodone", lambda pairs: [*pairs, pairs[-1]], "after the line with `done`"),
    ("ollama", "nomodel", put(..., "model"), "`model` must be a text"),
    ("ollama", "noname", put("", "message", "tool_calls", 0, "function", "name"), "name must be whole"),
    ("ollama", "oddreason", put("eos", "done_reason"), "`done_reason` must be"),
    ("ollama", "nlbefore", put("\n", "message", "content", nth=1), "blank text precedes a call"),
    # gemini
    ("gemini", "argsstr", put("{}", "candidates", 0, "content", "parts", 0, "functionCall", "args"), "an object"),
    ("gemini", "nofinish", cut(1), "ends without an end"),
    ("gemini", "oddfinish", put("eos", "candidates", 0, "finishReason"), "must be a value of this dialect"),
    ("gemini", "twofinish", lambda pairs: [*pairs, pairs[-1]], "after the finishReason"),
    ("gemini", "noparts", put([], "candidates", 0, "content", "parts"), "a content has no parts"),
    ("gemini", "nousage", put(..., "usageMetadata"), "no `usageMetadata`"),
    ("gemini", "noname", put("", "candidates", 0, "content", "parts", 0, "functionCall", "name"), "must be whole"),
    ("gemini", "norole", put(..., "candidates", 0, "content", "role"), "`role` must be model"),
    ("gemini", "done", lambda pairs: [*pairs, (None, None)], "[DONE] is no event"),
]


@pytest.mark.parametrize("api, fault, breaking, named", BROKEN, ids=[f"{api}-{fault}" for api, fault, _, _ in BROKEN])
def test_a_broken_stream_is_named(api: str, fault: str, breaking: Break, named: str) -> None:
    found = conforms(breaking(copy.deepcopy(pairs_of(api))), api)
    assert any(named in line for line in found), found


def test_two_items_of_the_responses_api_may_be_open_at_once() -> None:
    pairs = pairs_of("responses")
    *_, first_done, _ = [at for at, (name, _) in enumerate(pairs) if name == "response.output_item.done"]
    *_, last_added = [at for at, (name, _) in enumerate(pairs) if name == "response.output_item.added"]
    events = moved(last_added, first_done)(pairs)
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


@pytest.mark.parametrize("api, fault, breaking, named", BYTES, ids=[f"{api}-{fault}" for api, fault, _, _ in BYTES])
def test_broken_bytes_are_named(api: str, fault: str, breaking: Callable[[bytes], bytes], named: str) -> None:
    found = conforms(breaking(written(api)), api)
    assert any(named in line for line in found), found


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_comments_crlf_and_event_ids_are_accepted(api: str) -> None:
    data = b": wait\n\n" + written(api).replace(b"data:", b"id: 1\ndata:").replace(b"\n", b"\r\n")
    assert conforms(data, api) == []


WHOLES: list[tuple[str, str, Break, str]] = [
    ("chat", "argsobj", put({}, "choices", 0, "message", "tool_calls", 0, "function", "arguments"), "must be text"),
    ("chat", "noid", put(..., "choices", 0, "message", "tool_calls", 0, "id"), "`id` must be a text"),
    ("chat", "nofinish", put(None, "choices", 0, "finish_reason"), "no `finish_reason`"),
    ("chat", "finishlength", put("length", "choices", 0, "finish_reason"), "must end with tool_calls"),
    ("chat", "nousage", put(..., "usage"), "`usage` must be an object"),
    ("chat", "nocontent", put(..., "choices", 0, "message", "content"), "no `content`"),
    ("responses", "nocallid", put(..., "output", 1, "call_id"), "`call_id` must be a text"),
    ("responses", "noannotations", put(..., "output", 0, "content", 0, "annotations"), "no list `annotations`"),
    ("responses", "chatusage", put({"prompt_tokens": 1}, "usage"), "`input_tokens` must be"),
    ("responses", "badjson", put("x", "output", 1, "arguments"), "no JSON object"),
    ("messages", "inputstr", put("{}", "content", 1, "input"), "`input` must be an object"),
    ("messages", "endturn", put("end_turn", "stop_reason"), "contradicts the calls"),
    ("messages", "emptytext", put("", "content", 0, "text"), "a text block is empty"),
    ("messages", "thinknosig", put({"type": "thinking", "thinking": "hm"}, "content", 0), "needs the texts"),
    ("ollama", "nodone", put(False, "done"), "`done` must be true"),
    ("gemini", "nofinish", put(..., "candidates", 0, "finishReason"), "no `finishReason`"),
]


@pytest.mark.parametrize("api, fault, breaking, named", WHOLES, ids=[f"{api}-{fault}" for api, fault, _, _ in WHOLES])
def test_a_broken_whole_answer_is_named(api: str, fault: str, breaking: Break, named: str) -> None:
    ((_, body),) = breaking([(None, whole(api))])
    found = conforms(body, api)
    assert any(named in line for line in found), found


# -- whatever a server sends -------------------------------------------------------------------------------------------

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
def test_every_answer_gets_a_verdict(payloads: list[Any], api: str, stream: bool | None) -> None:
    texts = [json.dumps(payload) for payload in payloads]
    for said in (*texts, "\n".join(texts), "".join([f"data: {each}\n\n" for each in texts]), f"[{','.join(texts)}]"):
        assert conforms(said, api, stream=stream)
    for given_ in (payloads, *[each for each in payloads if isinstance(each, dict)]):
        assert conforms(given_, api, stream=stream)


@pytest.mark.parametrize("api", WRITERS)
@pytest.mark.parametrize("depth", [450, 900, 100_000])
def test_an_answer_that_is_nested_too_deeply_is_no_answer(api: str, depth: int) -> None:
    deep = '{"choices": ' + "[" * depth + "]" * depth + "}"
    for said in (deep, f"data: {deep}\n\n", f"[{deep}]", f"{deep}\n"):
        assert conforms(said, api)


def test_numbers_that_json_does_not_have_are_reported() -> None:
    assert any("not JSON" in line for line in conforms('data: {"id": NaN}\n\n', "chat"))


def test_the_first_of_very_many_faults_are_reported() -> None:
    found = conforms("data: {}\n\n" * 5000, "chat")
    assert 1000 < len(found) < 1020 and found[-1].startswith("and so on: ")
