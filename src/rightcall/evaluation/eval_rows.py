"""The rows of an evaluation, `rightcall-eval/v1`: a first line that describes the run, then one line per case, run and
configuration. A file may hold several runs, one after the other; the last one counts.

    {"schema_version": "rightcall-eval/v1", "kind": "run", "run": {"model": "qwen3", ...}, "made": {...}}
    {"schema_version": "rightcall-eval/v1", "kind": "case", "case": "questions/a", "configuration": "bare", ...}
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rightcall import __version__
from rightcall.errors import CallerError, FileFailed
from rightcall.evaluation.case_run import CaseRun
from rightcall.evaluation.eval_case import CaseOutcome, EvalCase, EvalVerdict
from rightcall.storage.file_kinds import json_lines
from rightcall.storage.jsonl import LineFault, read_rows
from rightcall.types import Call, Json

SCHEMA = "rightcall-eval/v1"
EVALUATION = json_lines("evaluation", "schema_version", SCHEMA)
_MAX_TEXT = 4_000  # characters of an answer that a row keeps


class EvalRow(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one case in one configuration, in one run.

    - `suite`, `case`, `category`, `run`, `configuration`: which case it is.
    - `verdict`: what is right about it.
    - `ended`: "done", "stopped" by the guard, or "out of turns".
    - `turns`, `prompt_tokens`, `completion_tokens`, `seconds`: the cost; an answer that another configuration had
      requested before counts in full.
    - `calls`: those of the last answer, or of all answers of a task; `ok` is whether a call is valid, and `runs`
      whether the guard accepted it.
    - `wanted`: the expected calls.
    - `text`: the text of the last answer.
    - `problems`, `repairs`, `interventions`: of all answers.
    """

    suite: str
    case: str
    category: str
    run: int
    configuration: str
    verdict: EvalVerdict
    ended: str
    turns: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    calls: tuple[Json, ...] = ()
    wanted: object = None
    text: str = ""
    problems: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    interventions: tuple[str, ...] = ()
    mode: str = ""
    format: str = ""
    seed: int | None = None
    at: str = ""

    @property
    def key(self) -> tuple[str, int, str]:
        """Identifies the row; the same in every evaluation."""
        return self.case, self.run, self.configuration


def case_row(
    case: EvalCase, result: CaseRun, *, run: int, configuration: str, seconds: float, seed: int | None
) -> EvalRow:
    """Return the row of one run of a case in one configuration, with the verdict of the case's judge and the present
    time. `result` is the conversation, `seconds` how long it took."""
    answers, outcome = result.answers, result.outcome
    last = answers[-1] if answers else None
    return EvalRow(
        suite=case.suite,
        case=case.key,
        category=case.category,
        run=run,
        configuration=configuration,
        verdict=case.judge(outcome),
        ended=outcome.ended,
        turns=len(answers),
        prompt_tokens=sum([answer.tokens.prompt or 0 for answer in answers]),
        completion_tokens=sum([answer.tokens.completion or 0 for answer in answers]),
        seconds=round(seconds, 4),
        calls=tuple([_call_json(call, outcome) for call in outcome.attempts]),
        wanted=case.wanted,
        text=outcome.text[:_MAX_TEXT],
        problems=tuple([problem.code for answer in answers for problem in answer.problems]),
        repairs=tuple([repair.rule for call in outcome.attempts for repair in call.repairs]),
        interventions=result.interventions,
        mode=last.mode if last is not None else "",
        format=last.format if last is not None else "",
        seed=seed,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _call_json(call: Call, outcome: CaseOutcome) -> Json:
    return {"name": call.name, "arguments": call.arguments, "ok": call.ok, "runs": call in outcome.calls}


def row_json(row: EvalRow) -> Json:
    """Return a row as JSON data for its line."""
    return {"schema_version": SCHEMA, "kind": "case", **msgspec.to_builtins(row)}


def head_json(run: Json, command: str = "") -> Json:
    """Return the first line of a run as JSON data: its identity (`run`), the present time, versions, and the `command`
    line, if any."""
    made = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rightcall": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **({"command": command} if command else {}),
    }
    return {"schema_version": SCHEMA, "kind": "run", "run": run, "made": made}


class RecordedRun(msgspec.Struct):
    """The last run of a file: its identity (`run`), how it was `made` (time, versions, command), and its `rows`."""

    run: Json
    made: Json
    rows: list[EvalRow]


def read_evaluation(path: Path) -> RecordedRun | None:
    """Return the last run of an evaluation's file; None if the file has none. An incomplete last line is ignored.

    Raises `FileFailed` for an unreadable file and for a line that is no JSON object, `CallerError` for a row of another
    kind or with invalid fields.
    """
    past: RecordedRun | None = None
    for number, row in read_rows(path):
        if isinstance(row, LineFault):
            if row.torn:
                break
            raise FileFailed(f"{path}:{number}: {row.message}; fix the line, or name another file")
        if row.get("schema_version") != SCHEMA:
            raise CallerError(f"{path}:{number}: not a row of {SCHEMA}; `rightcall eval --out` writes such files")
        if row.get("kind") == "run":
            past = RecordedRun(_read_object(row, "run", path, number), _read_object(row, "made", path, number), [])
        elif past is not None:
            past.rows.append(_parse_row(row, path, number))
    return past


def _read_object(row: Json, name: str, path: Path, number: int) -> Json:
    """Return the object under the key `name` of a row, {} if it is missing. Raises `CallerError`, with file and line
    `number`, if it is not an object."""
    value = row.get(name, {})
    if not isinstance(value, dict):
        raise CallerError(f"{path}:{number}: `{name}` is not an object; not a row of {SCHEMA}")
    return value


def _parse_row(row: Json, path: Path, number: int) -> EvalRow:
    """Return a line's JSON data as an `EvalRow`. Raises `CallerError`, with file and line `number`, if it lacks fields
    or has wrong types."""
    try:
        return msgspec.convert(row, EvalRow)
    except msgspec.ValidationError as error:
        raise CallerError(f"{path}:{number}: {error}; not a row of {SCHEMA}") from error
