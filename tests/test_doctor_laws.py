"""The doctor gives a verdict for every server answer, and every form of the diagnosis can be written."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall.api_names import Api
from rightcall.cli.doctor_command import show_diagnosis
from rightcall.cli.layout import Page
from rightcall.doctor.diagnosis import Diagnosis, SpokenDialect
from rightcall.doctor.doctor_page import doctor_page
from rightcall.doctor.examination import case_of, follow_up_body
from rightcall.doctor.judges import ProbedCase
from rightcall.doctor.probes import PROBES, ProbeResults
from rightcall.doctor.questions import QUESTIONS, TOOL_APIS, Sending, Way, question_body
from rightcall.doctor.server_answers import RawAnswer
from rightcall.evaluation.webpage import render_page
from rightcall.redaction.scrubber import Scrubber

DEEP = '{"a":' * 500 + "1" + "}" * 500
TEXTS = ["", "a", "\ud800", "{", "{}", '{"city": "Oslo"}', '{"city": NaN}', "null", "[1]", '"x"', DEEP, "get_weather"]
TEXTS += ["<think>", '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>', "\x1b[1m\u202e</script>"]
TEXTS += "stop length tool_calls tool_use function_call message message_start content_block_start text".split()
KEYS = "type id index choices delta message content role tool_calls function arguments name finish_reason usage output"
KEYS += " item response content_block partial_json input stop_reason candidates parts functionCall args done error"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 10**20) | st.floats() | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=5),
    max_leaves=15,
)


def _chat_answer(message: Any, way: Way) -> bytes:
    """Return a Chat answer with this message, so that a part of it is parsed."""
    key = "delta" if way == "streamed" else "message"
    body = {"id": "x", "choices": [{"index": 0, key: message, "finish_reason": "stop"}], "usage": message}
    return b"data: %s\n\n" % json.dumps(body).encode() if way == "streamed" else json.dumps(body).encode()


def _cases(api: Api, message: Any, raw: RawAnswer, *, framed: bool) -> dict[tuple[str, Way], ProbedCase]:
    cases: dict[tuple[str, Way], ProbedCase] = {}
    for question in [each for each in QUESTIONS.values() if api in each.apis]:
        for way in question.ways:
            body = question_body(question, api, "m", stream=way == "streamed", sending=Sending())
            if question.follows:
                body = follow_up_body(question, api, body, cases["plain", "whole"]) or body
                json.dumps(body, allow_nan=False)  # it can be sent
            data = _chat_answer(message, way) if framed else json.dumps(message).encode()
            cases[question.name, way] = case_of(question, api, way, body, msgspec.structs.replace(raw, body=data))
    return cases


@settings(max_examples=12, deadline=None)
@given(
    message=VALUES,
    api=st.sampled_from(TOOL_APIS),
    framed=st.booleans(),
    status=st.sampled_from([200, 200, 204, 302, 400, 500]),
    broke=st.sampled_from(["", "", "broke", "late"]),
)
def test_every_server_answer_gets_a_printable_verdict(
    message: Any, api: Api, framed: bool, status: int, broke: Any
) -> None:
    raw = RawAnswer(status=status, headers={"content-type": "application/json"}, broke=broke, says=broke)
    cases = _cases(api, message, raw, framed=framed)
    results = ProbeResults(Scrubber())
    results_found = [
        results.result_of(probe, [msgspec.structs.replace(cases[place], others=cast(Any, cases))])
        for probe in PROBES.values()
        for way in probe.ways
        if (place := (probe.question, way)) in cases
    ]
    dialects = (SpokenDialect(api=api, spoken=True),)
    diagnosis = Diagnosis(url="http://h", model="m", dialects=dialects, results=tuple(results_found))
    page = Page(80)
    show_diagnosis(page, diagnosis)
    for output in (json.dumps(diagnosis.to_json()), page.text, render_page(doctor_page(diagnosis))):
        assert "\u202e" not in output and output.encode()
