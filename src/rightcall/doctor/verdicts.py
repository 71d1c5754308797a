"""From a case to a finding, and from many findings to one result."""

from __future__ import annotations

import json
import re
from collections import Counter

from rightcall.doctor.diagnosis import ProbeEvidence, ProbeResult
from rightcall.doctor.judging import VERDICTS, ProbedCase, ProbeFinding, fault, model
from rightcall.doctor.probes import ServerProbe
from rightcall.doctor.raw_answer import RawAnswer
from rightcall.providers.sdk_view import error_text
from rightcall.redaction.pieces import without_secrets
from rightcall.redaction.scrubber import Scrubber
from rightcall.strict_json import Undecodable, decode

_MOST_SHOWN = 4000  # characters of a request, and of an answer
_MOST_READ = 32_000  # bytes of an answer that are looked through for secrets, and then cut
_DEPTH = 400
_FIELDS = re.compile(
    r"\bstrict\b|\b(?:unknown|unexpected|unrecogni[sz]ed|extra) (?:field|input|argument)", re.IGNORECASE
)
_THOUGHTS = re.compile(r"reasoning|thought|thinking|signature", re.IGNORECASE)
_IDS = re.compile(r"\b(?:call|call_id|tool_call_id|tool_use_id) ?ids?\b|_id\b|\bids\b", re.IGNORECASE)
_OF_HISTORIES = ("history_order", "poisoned_history", "bad_ids", "refused_results")
_NOT_NOW = (401, 403, 429, 502, 503, 504)  # whoever asks, and whatever for
_GAVE_UP = "x-rightcall-gave-up"  # of the proxy, which let none of the model's calls through


def finding(probe: ServerProbe, case: ProbedCase) -> ProbeFinding:
    """What the probe says of this case: first whether there is an answer at all."""
    raw, seen = case.raw, case.seen
    if raw.broke in ("unreachable", "late"):
        return ProbeFinding("unreachable", "", raw.says)
    if raw.is_refused:
        return _refused(probe, case)
    if raw.broke:
        return fault("idle_stream", raw.says)
    if not 200 <= raw.status < 300:
        return ProbeFinding("unreachable", "", odd_status(raw))
    if seen.error:
        return fault("idle_stream", f"an error stands in place of an answer: {seen.error[:200]}")
    if not seen.is_json and _is_nonsense(case.others.get(("bare", "whole"), case)):
        return ProbeFinding("unreachable", "", odd_answer(raw))
    if not seen.is_json:
        return fault("bad_translation", "there is nothing in the answer that a client can read")
    return probe.judge(case)


def _refused(probe: ServerProbe, case: ProbedCase) -> ProbeFinding:
    status, said = case.raw.status, refusal_words(case.raw.body)
    words = f"status {status}: {said}"
    if status in _NOT_NOW or _is_refused(case, "bare") or case.question.name == "bare":
        return ProbeFinding("unreachable", "", words)  # it takes no question at all
    if case.raw.headers.get(_GAVE_UP) == "error":
        return ProbeFinding("ok", "", words) if probe.name == "cut" else model(words)
    if probe.refusal is not None:
        return probe.refusal(case)
    no_tools = case.question.tools and case.question.name != "plain" and _is_refused(case, "plain")
    if not case.question.refused or no_tools:
        return ProbeFinding("not offered", "", words)
    return _by_words(case, said, words)


def _is_refused(case: ProbedCase, name: str) -> bool:
    """Was this question refused too, when it was asked whole?"""
    other = case.others.get((name, "whole"))
    return other is not None and other.raw.is_refused


def _by_words(case: ProbedCase, said: str, words: str) -> ProbeFinding:
    """The class of a refusal: the question's, unless what the server says tells of another."""
    slug = case.question.refused
    if slug == "lost_reasoning" and (kept := case.others.get(("kept", "whole"))) is not None and kept.raw.is_refused:
        slug = "history_order"  # with its reasoning it is refused as well
    if slug in _OF_HISTORIES and _THOUGHTS.search(said):
        return fault("lost_reasoning", words)
    if slug == "history_order" and _IDS.search(said):
        return fault("bad_ids", words)
    if slug != "no_native_tools":
        return fault(slug, words)
    if _FIELDS.search(said):
        return fault("refused_fields", words)
    if case.question.choice != "auto":
        return ProbeFinding("not offered", "tool_choice_ignored", words)
    plain = case.others.get(("plain", case.way))
    if case.raw.status < 500 and case.question.name != "plain" and plain is not None and plain.raw.is_ok:
        return ProbeFinding("not offered", "", words)  # it has tools, and not this
    return fault(slug, words)


def _is_nonsense(case: ProbedCase) -> bool:
    return case.question.name == "bare" and case.raw.is_ok and not case.seen.is_json


def odd_answer(raw: RawAnswer) -> str:
    """What is said of an answer that is none."""
    return f"what it answers is none of this dialect ({raw.kind[:60] or 'of no type'}); is the address right?"


def odd_status(raw: RawAnswer) -> str:
    """What a status says that is neither an answer nor a refusal."""
    where = raw.headers.get("location", "")
    return f"status {raw.status}" + (f": it sends on to {where:.200}; ask there" if where else "")


def refusal_words(body: bytes) -> str:
    """What an error body says, whichever of the shapes it has."""
    said = body[:64_000].decode("utf-8", "replace")
    value = decode(said, _DEPTH)
    if isinstance(value, Undecodable) or not isinstance(value, dict):
        return " ".join(said.split())[:300] or "nothing was said"
    return error_text(value.get("error") or value.get("detail") or value)[:300]


class ProbeResults:
    """Makes results of findings; evidence that several of them show is looked through for secrets once."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._shown: dict[int, ProbeEvidence] = {}  # by the identity of what came

    def _evidence(self, case: ProbedCase) -> ProbeEvidence:
        if id(case.raw) not in self._shown:
            self._shown[id(case.raw)] = _evidence(case, self._scrubber)
        return self._shown[id(case.raw)]

    def of(self, probe: ServerProbe, cases: list[ProbedCase]) -> ProbeResult:
        """One result of all times that a question was asked in one way."""
        found = [finding(probe, case) for case in cases]
        counts = Counter([each.verdict for each in found])
        worst = [each for each in VERDICTS[:2] if counts[each]]
        verdict = worst[0] if worst else counts.most_common(1)[0][0]
        at = next(at for at, each in enumerate(found) if each.verdict == verdict)
        case = cases[at]
        return ProbeResult(
            probe=probe.name,
            title=probe.title,
            api=case.api,
            way=case.way,
            verdict=verdict,
            slug=found[at].slug,
            says=self._scrubber.text(found[at].says),
            passed=counts["ok"],
            of=len(cases),
            evidence=None if verdict == "ok" else self._evidence(case),
            is_curable=probe.is_curable,
        )


def _evidence(case: ProbedCase, scrubber: Scrubber) -> ProbeEvidence:
    request = scrubber.text(json.dumps(case.body, ensure_ascii=False))
    (came,), _ = without_secrets([case.raw.body[:_MOST_READ] or b" "], [0], scrubber)
    answer = came.decode("utf-8", "replace").strip() or scrubber.text(case.raw.says)
    return ProbeEvidence(
        request=request[:_MOST_SHOWN],
        status=case.raw.status,
        answer=answer[:_MOST_SHOWN],
        request_left_out=max(0, len(request) - _MOST_SHOWN),
        answer_left_out=max(0, len(answer) - _MOST_SHOWN, len(case.raw.body) - _MOST_READ),
    )
