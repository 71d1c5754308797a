"""The table of probes, and their results: each probe is a question, a judge and a title.

`judge_case` judges one case; `ProbeResults` makes one result of all cases of a probe, with evidence. A response that is
not an answer of the dialect (no connection, a rejected request, a broken stream) is judged here, before any probe.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import msgspec

from rightcall.doctor.diagnosis import ProbeEvidence, ProbeResult
from rightcall.doctor.judges import (
    VERDICTS,
    Judge,
    ProbedCase,
    ProbeFinding,
    judge_acceptance,
    judge_calls,
    judge_constraint,
    judge_events,
    judge_finish,
    judge_first_byte,
    judge_forbidden_call,
    judge_history,
    judge_ids,
    judge_index,
    judge_leak,
    judge_long_argument,
    judge_prompt_length,
    judge_prompt_refusal,
    judge_reasoning,
    judge_required_call,
    judge_schema_fit,
    judge_silence,
    judge_stream_equality,
    judge_strict_tool,
    judge_text,
    judge_tool_tokens,
    judge_truncation,
    judge_two_calls,
    judge_unicode,
    model_failure,
    server_fault,
)
from rightcall.doctor.questions import BOTH, WHOLE, Way
from rightcall.doctor.server_answers import RawAnswer
from rightcall.providers.sdk_view import error_text
from rightcall.redaction.pieces import scrub_pieces
from rightcall.redaction.scrubber import Scrubber
from rightcall.strict_json import Undecodable, decode

STREAMED: tuple[Way, ...] = ("streamed",)


class ServerProbe(msgspec.Struct, frozen=True, kw_only=True):
    """One check of a server.

    - `name`, `title`: its stable name, and its name for people.
    - `question`: the name of the question whose answers are judged.
    - `judge`: the function that judges them.
    - `ways`: whole, streamed or both.
    - `refusal`: judges a rejected request, if a rejection means something specific.
    - `is_curable`: whether the proxy can cure a fault.
    """

    name: str
    title: str
    question: str
    judge: Judge
    ways: tuple[Way, ...] = BOTH
    refusal: Judge | None = None
    is_curable: bool = True


def _make_probe(
    name: str, title: str, question: str, judge: Judge, ways: tuple[Way, ...] = BOTH, **more: Any
) -> ServerProbe:
    """Return a probe; `more` are further fields of `ServerProbe`."""
    return ServerProbe(name=name, title=title, question=question, judge=judge, ways=ways, **more)


_ALL_PROBES = (
    _make_probe("text", "an answer without tools", "bare", judge_text),
    _make_probe("first_byte", "time to the first byte", "bare", judge_first_byte),
    _make_probe("plain_call", "a plain call", "plain", judge_schema_fit),
    _make_probe("leak", "no call left in the text", "plain", judge_leak),
    _make_probe("ids", "ids of calls", "parallel", judge_ids),
    _make_probe("index", "index of streamed calls", "parallel", judge_index, STREAMED),
    _make_probe("finish", "finish reason", "plain", judge_finish),
    _make_probe("events", "the dialect's own rules", "plain", judge_events),
    _make_probe("no_arguments", "a call without arguments", "no_arguments", judge_calls),
    _make_probe("nested", "nested and unicode arguments", "nested", judge_unicode),
    _make_probe("long", "long arguments", "long", judge_long_argument),
    _make_probe("silence", "signs of life in a stream", "long", judge_silence, STREAMED),
    _make_probe("types", "enum and union types", "types", judge_schema_fit),
    _make_probe("parallel", "two calls at once", "parallel", judge_two_calls),
    _make_probe("required", "tool_choice required", "required", judge_required_call),
    _make_probe("named", "tool_choice by name", "named", judge_required_call),
    _make_probe("none", "tool_choice none", "none", judge_forbidden_call),
    _make_probe("same_plain", "streamed as whole: a call", "plain", judge_stream_equality, STREAMED),
    _make_probe("same_parallel", "streamed as whole: two calls", "parallel", judge_stream_equality, STREAMED),
    _make_probe("same_long", "streamed as whole: long", "long", judge_stream_equality, STREAMED),
    _make_probe("cut", "cut at max_tokens", "cut", judge_truncation),
    _make_probe("history", "a history with results", "history", judge_history),
    _make_probe("reasoning", "reasoning with tools", "plain", judge_reasoning),
    _make_probe("kept", "its own turn sent back", "kept", judge_acceptance, WHOLE),
    _make_probe("dropped", "its turn without reasoning", "dropped", judge_acceptance, WHOLE),
    _make_probe("poisoned", "a broken call in the history", "poisoned", judge_acceptance, WHOLE),
    _make_probe("own_ids", "long ids in the history", "own_ids", judge_acceptance, WHOLE),
    _make_probe("null_content", "null content in the history", "null_content", judge_acceptance, WHOLE),
    _make_probe("orphan", "a result without its call", "orphan", judge_acceptance, WHOLE),
    _make_probe("same_role", "turns of one role in a row", "same_role", judge_acceptance, WHOLE),
    _make_probe("result_parts", "a result in parts", "result_parts", judge_acceptance, WHOLE),
    _make_probe("tool_tokens", "tools counted in the prompt", "plain", judge_tool_tokens, WHOLE),
    _make_probe(
        "prompt", "a long prompt read whole", "filler", judge_prompt_length, WHOLE, refusal=judge_prompt_refusal
    ),
    _make_probe("constraint", "a constraint that holds", "constraint", judge_constraint, WHOLE, is_curable=False),
    _make_probe("hard_schema", "schemas with hard keywords", "hard_schema", judge_acceptance, WHOLE),
    _make_probe("strict", "strict tools hold their schema", "strict", judge_strict_tool, WHOLE),
    _make_probe("prefixed", "a name with a prefix", "prefixed", judge_schema_fit, WHOLE),
    _make_probe("client_fields", "fields that clients send", "client_fields", judge_acceptance, WHOLE),
    _make_probe("unknown_field", "an unknown field", "unknown_field", judge_acceptance, WHOLE),
    _make_probe("empty_tools", "an empty list of tools", "empty_tools", judge_acceptance, WHOLE),
    _make_probe("other_tools", "tools that are no functions", "other_tools", judge_acceptance, WHOLE),
    _make_probe("tool_names", "names with dots, and long", "tool_names", judge_acceptance, WHOLE),
    _make_probe("image", "an image", "image", judge_acceptance, WHOLE),
)
PROBES: dict[str, ServerProbe] = {each.name: each for each in _ALL_PROBES}


_MAX_EVIDENCE = 4000  # characters of a request, and of an answer
_MAX_SEARCHED = 32_000  # bytes of an answer that are searched for secrets and shown
_DEPTH = 400
_ABOUT_FIELDS = re.compile(
    r"\bstrict\b|\b(?:unknown|unexpected|unrecogni[sz]ed|extra) (?:field|input|argument)", re.IGNORECASE
)
_ABOUT_REASONING = re.compile(r"reasoning|thought|thinking|signature", re.IGNORECASE)
_ABOUT_IDS = re.compile(r"\b(?:call|call_id|tool_call_id|tool_use_id) ?ids?\b|_id\b|\bids\b", re.IGNORECASE)
_HISTORY_CLASSES = ("history_order", "poisoned_history", "bad_ids", "refused_results")
_ALWAYS_REJECTED = (401, 403, 429, 502, 503, 504)  # independent of the question
_GAVE_UP = "x-rightcall-gave-up"  # header of the proxy when it rejected all calls of the model


def judge_case(probe: ServerProbe, case: ProbedCase) -> ProbeFinding:
    """Return the finding of a probe for one case. A case without an answer of the dialect is judged by its response:
    nothing answered, the request was rejected, the response broke off, is an error or is unreadable. Any other is
    judged by `probe.judge`."""
    raw, answer = case.raw, case.answer
    if raw.broke in ("unreachable", "late"):
        return ProbeFinding("unreachable", "", raw.says)
    if raw.is_refused:
        return _judge_rejection(probe, case)
    if raw.broke:
        return server_fault("idle_stream", raw.says)
    if not 200 <= raw.status < 300:
        return ProbeFinding("unreachable", "", describe_odd_status(raw))
    if answer.error:
        return server_fault("idle_stream", f"the answer is an error: {answer.error[:200]}")
    if not answer.is_json and _is_other_protocol(case.others.get(("bare", "whole"), case)):
        return ProbeFinding("unreachable", "", describe_odd_answer(raw))
    if not answer.is_json:
        return server_fault("bad_translation", "the answer has nothing that a client can parse")
    return probe.judge(case)


def _judge_rejection(probe: ServerProbe, case: ProbedCase) -> ProbeFinding:
    """Return the finding for a rejected request: unreachable if the server rejects every question, not offered if it
    may reject this one, else a fault of the server. The proxy's error after calls that it rejected is a failure of the
    model, or ok for a truncated answer."""
    status, message = case.raw.status, rejection_message(case.raw.body)
    says = f"status {status}: {message}"
    if status in _ALWAYS_REJECTED or _was_rejected(case, "bare") or case.question.name == "bare":
        return ProbeFinding("unreachable", "", says)  # it rejects every question
    if case.raw.headers.get(_GAVE_UP) == "error":
        return ProbeFinding("ok", "", says) if probe.name == "cut" else model_failure(says)
    if probe.refusal is not None:
        return probe.refusal(case)
    no_tools = case.question.tools and case.question.name != "plain" and _was_rejected(case, "plain")
    if not case.question.refused or no_tools:
        return ProbeFinding("not offered", "", says)
    return _classify_rejection(case, message, says)


def _was_rejected(case: ProbedCase, name: str) -> bool:
    """Return whether the question `name` was rejected too, when its answer was requested whole."""
    other = case.others.get((name, "whole"))
    return other is not None and other.raw.is_refused


def _classify_rejection(case: ProbedCase, message: str, says: str) -> ProbeFinding:
    """Return the finding for a rejected request that the server should accept: a fault of the class of the question,
    unless the message or other cases suggest another class; not offered where only this feature of tools is missing.
    `says` is the reason to report."""
    slug = case.question.refused
    if slug == "lost_reasoning" and (kept := case.others.get(("kept", "whole"))) is not None and kept.raw.is_refused:
        slug = "history_order"  # it is rejected with its reasoning as well
    if slug in _HISTORY_CLASSES and _ABOUT_REASONING.search(message):
        return server_fault("lost_reasoning", says)
    if slug == "history_order" and _ABOUT_IDS.search(message):
        return server_fault("bad_ids", says)
    if slug != "no_native_tools":
        return server_fault(slug, says)
    if _ABOUT_FIELDS.search(message):
        return server_fault("refused_fields", says)
    if case.question.choice != "auto":
        return ProbeFinding("not offered", "tool_choice_ignored", says)
    plain = case.others.get(("plain", case.way))
    if case.raw.status < 500 and case.question.name != "plain" and plain is not None and plain.raw.is_ok:
        return ProbeFinding("not offered", "", says)  # it has tools, and not this feature
    return server_fault(slug, says)


def _is_other_protocol(case: ProbedCase) -> bool:
    return case.question.name == "bare" and case.raw.is_ok and not case.answer.is_json


def describe_odd_answer(raw: RawAnswer) -> str:
    """Return why an answer that is not of this dialect is unusable, as text."""
    return f"the answer is not of this dialect ({raw.kind[:60] or 'no content type'}); check the address"


def describe_odd_status(raw: RawAnswer) -> str:
    """Return a sentence about a status that is neither a success nor an error, with the address for a redirect."""
    where = raw.headers.get("location", "")
    return f"status {raw.status}" + (f": it redirects to {where:.200}; pass that address" if where else "")


def rejection_message(body: bytes) -> str:
    """Return the message of an error body, which is text or JSON in any form, in at most 300 characters; "no message"
    if it is empty."""
    text = body[:64_000].decode("utf-8", "replace")
    value = decode(text, _DEPTH)
    if isinstance(value, Undecodable) or not isinstance(value, dict):
        return " ".join(text.split())[:300] or "no message"
    return error_text(value.get("error") or value.get("detail") or value)[:300]


class ProbeResults:
    """Makes results from cases. Evidence that several results share is searched for secrets once."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._evidence_by_id: dict[int, ProbeEvidence] = {}

    def _evidence_of(self, case: ProbedCase) -> ProbeEvidence:
        """Return the evidence of a case. It is made once for each response and kept."""
        if id(case.raw) not in self._evidence_by_id:
            self._evidence_by_id[id(case.raw)] = _make_evidence(case, self._scrubber)
        return self._evidence_by_id[id(case.raw)]

    def result_of(self, probe: ServerProbe, cases: list[ProbedCase]) -> ProbeResult:
        """Return the result of a probe from all its cases in one mode. Its verdict is "fault" or "unreachable" if one
        of them is, in this order, otherwise the most frequent one; reason and evidence are of the first case with that
        verdict."""
        findings = [judge_case(probe, case) for case in cases]
        counts = Counter([each.verdict for each in findings])
        worst = [each for each in VERDICTS[:2] if counts[each]]
        verdict = worst[0] if worst else counts.most_common(1)[0][0]
        at = next(at for at, each in enumerate(findings) if each.verdict == verdict)
        case = cases[at]
        return ProbeResult(
            probe=probe.name,
            title=probe.title,
            api=case.api,
            way=case.way,
            verdict=verdict,
            slug=findings[at].slug,
            says=self._scrubber.text(findings[at].says),
            passed=counts["ok"],
            of=len(cases),
            evidence=None if verdict == "ok" else self._evidence_of(case),
            is_curable=probe.is_curable,
        )


def _make_evidence(case: ProbedCase, scrubber: Scrubber) -> ProbeEvidence:
    """Return the request and the response of a case as evidence: without secrets, cut to 4000 characters each, with the
    numbers of characters that were left out."""
    request = scrubber.text(json.dumps(case.body, ensure_ascii=False))
    (body,), _ = scrub_pieces([case.raw.body[:_MAX_SEARCHED] or b" "], [0], scrubber)
    answer = body.decode("utf-8", "replace").strip() or scrubber.text(case.raw.says)
    return ProbeEvidence(
        request=request[:_MAX_EVIDENCE],
        status=case.raw.status,
        answer=answer[:_MAX_EVIDENCE],
        request_left_out=max(0, len(request) - _MAX_EVIDENCE),
        answer_left_out=max(0, len(answer) - _MAX_EVIDENCE, len(case.raw.body) - _MAX_SEARCHED),
    )
