"""Pages as commands make them, of hostile and of plain text, for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from rightcall.cli.stats_page import stats_page
from rightcall.datasets.inspection import statistics
from rightcall.doctor.diagnosis import Diagnosis, ProbeEvidence, ProbeResult, SpokenDialect
from rightcall.doctor.doctor_page import doctor_page
from rightcall.doctor.judges import VERDICTS, Verdict
from rightcall.doctor.questions import BOTH
from rightcall.evaluation.eval_case import EvalVerdict
from rightcall.evaluation.eval_page import compare_page, eval_page
from rightcall.evaluation.eval_rows import EvalRow
from rightcall.evaluation.eval_tally import EvalTally
from rightcall.evaluation.reports.log_changes import compare_logs
from rightcall.evaluation.reports.report_page import report_page
from rightcall.evaluation.webpage import WebPage
from support.captured import rows, write
from support.reported import TEXTS, hermes, logged_reply, tally_replies

HOSTILE = '</title></pre></svg><script>document.title = "owned"</script><img src=x onerror="alert(1)">\u202e\x00&amp;'
MODELS = (
    "Qwen/Qwen2.5-7B-Instruct",
    "smollm2",
    "NousResearch/Hermes-3-Llama-3.1-8B-a-name-that-is-very-long",
    "d",
    "e",
    "f",
)


def pages(folder: Path, *, hostile: str = HOSTILE) -> Iterator[WebPage]:
    """Yield pages of reports, a comparison, an empty report, a dataset, evaluations and the doctor.

    Hostile text is everywhere where text may come from outside.
    """
    call = hermes(f'{{"name": "get_weather", "arguments": {{}}, "x": "{hostile[:40]}"}}')
    texts = [*TEXTS, *TEXTS, f"{hostile} get_weather(city={hostile!r})", f"{hostile}\n{call}", f"{call[:-30]}{hostile}"]
    names = [*MODELS, hostile]
    now = tally_replies(
        logged_reply(text, at, model=name, server=hostile) for at, text in enumerate(texts) for name in names
    )
    earlier = tally_replies(
        logged_reply(text, at, model=name, server=hostile) for at, text in enumerate(TEXTS[:2] * 9) for name in names
    )
    yield report_page(now, hostile)
    yield report_page(now, hostile, comparison=compare_logs(earlier, now), old=hostile)
    yield report_page(tally_replies(()), hostile)
    row = {**rows("right")[0], "format": hostile, "candidate_call": {"name": hostile, "arguments": {}}}
    yield stats_page(statistics([write(folder / "rows.jsonl", [*rows(), row])]), hostile)
    yield eval_page(example_evaluation(hostile, 9), hostile, [hostile])
    yield compare_page(example_evaluation(hostile, 9), example_evaluation(hostile, 3), hostile, hostile)
    yield doctor_page(example_diagnosis(hostile))
    silent = SpokenDialect(api="chat", spoken=False, says=hostile)
    yield doctor_page(Diagnosis(url=hostile, model=hostile, dialects=(silent,)))


def example_evaluation(hostile: str, right: int) -> EvalTally:
    """Return two configurations of ten cases each; `right` cases are right in the second."""
    return EvalTally(
        EvalRow(
            suite=hostile,
            case=f"{hostile}/{at}",
            category=f"{hostile}{at % 3}",
            run=0,
            configuration=name,
            verdict=EvalVerdict(valid=True, right_tool=at < 5, right_arguments=name != "bare" and at < right),
            ended="done",
            turns=1,
            prompt_tokens=100,
            completion_tokens=at,
            seconds=0.5,
        )
        for name in ("bare", "+parse", hostile)
        for at in range(10)
    )


def example_diagnosis(hostile: str) -> Diagnosis:
    """Return a diagnosis with every verdict, with and without a proxy."""
    evidence = ProbeEvidence(request=hostile, status=200, answer=hostile, answer_left_out=7)
    verdicts: list[tuple[Verdict, str]] = [("fault", "bad_ids"), *[(each, "") for each in VERDICTS[1:]]]
    plain = ProbeResult(probe="", title="a probe", api="chat", way="whole", verdict="ok", says=hostile, passed=1, of=3)
    results = [
        msgspec.structs.replace(plain, probe=f"probe_{at}", way=way, verdict=verdict, slug=slug, evidence=evidence)
        for at, (verdict, slug) in enumerate(verdicts)
        for way in BOTH
    ]
    dialects = (SpokenDialect(api="chat", spoken=True), SpokenDialect(api="ollama", spoken=False, says=hostile))
    found = Diagnosis(url=hostile, model=hostile, kind=hostile, dialects=dialects, results=tuple(results))
    return msgspec.structs.replace(found, through=msgspec.structs.replace(found, results=tuple(results[2:])))
