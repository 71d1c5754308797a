"""The results of an examination, for the terminal, the page, JSON and tests."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.doctor.failure_classes import FAILURE_CLASSES, FailureClass
from rightcall.doctor.judges import Verdict
from rightcall.doctor.questions import Way
from rightcall.types import Json

_MAX_LINES = 20


class SpokenDialect(msgspec.Struct, frozen=True, kw_only=True):
    """One dialect: the `api`, whether the server has it (`spoken`), and if not, why (`says`)."""

    api: Api
    spoken: bool
    says: str = ""


class ProbeEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A `request` and its `answer` with `status`, shortened and without secrets. `request_left_out` and
    `answer_left_out` are the numbers of characters that were removed."""

    request: str
    status: int
    answer: str
    request_left_out: int = 0
    answer_left_out: int = 0


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one probe in one dialect, whole or streamed.

    - `probe`, `title`: the name of the probe, and its title for people.
    - `api`, `way`: the dialect, and whether the answer was requested `whole` or `streamed`.
    - `verdict`: `ok`, `fault`, `model`, `not offered` or `unreachable`.
    - `slug`: the class of failure, if there is one.
    - `says`: the reason of the verdict.
    - `passed`, `of`: how many repetitions were ok, and how many there were.
    - `evidence`: a request and answer that show it; None if the verdict is ok.
    - `is_curable`: whether the proxy can cure this fault, if it cures those of its class.
    """

    probe: str
    title: str
    api: Api
    way: Way
    verdict: Verdict
    slug: str = ""
    says: str = ""
    passed: int = 0
    of: int = 0
    evidence: ProbeEvidence | None = None
    is_curable: bool = True

    @property
    def failure(self) -> FailureClass | None:
        """The class of failure; None if there is none."""
        return FAILURE_CLASSES.get(self.slug)

    @property
    def flags(self) -> tuple[str, ...] | None:
        """The flags of `rightcall serve` that cure it, besides `--upstream`; None if the proxy does not."""
        failure = self.failure
        return None if failure is None or not self.is_named or not self.is_curable else failure.flags

    @property
    def is_named(self) -> bool:
        """Whether it shows a class of failure, of the server or of the model."""
        return bool(self.slug) and self.verdict in ("fault", "model")

    @property
    def advice(self) -> str:
        """The cure, in a sentence; "" without a class of failure, and a note that only the server can cure it if the
        proxy cannot."""
        if self.failure is None:
            return ""
        return self.failure.cure if self.is_curable else "Only the server can cure it, not a proxy in front of it."

    def cure(self, url: str) -> str:
        """Return the `rightcall serve` command that cures it for the server at this `url`; empty if there is none."""
        failure = self.failure
        return "" if failure is None or self.flags is None else failure.line(upstream(url, self.api))


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The results of an examination.

    - `url`, `model`: the server and the model.
    - `kind`: the kind of the server, if it is known.
    - `dialects`: the dialects that were tried.
    - `results`: one for each probe and dialect, whole and streamed.
    - `requests`, `seconds`: the cost of the examination.
    - `skipped`: questions that were not sent, since the budget was spent or the server had stopped answering.
    - `through`: the diagnosis through the proxy; None if there was none.
    """

    url: str
    model: str
    kind: str = ""
    dialects: tuple[SpokenDialect, ...] = ()
    results: tuple[ProbeResult, ...] = ()
    requests: int = 0
    seconds: float = 0.0
    skipped: int = 0
    through: Diagnosis | None = None

    @property
    def spoken(self) -> tuple[Api, ...]:
        """The dialects that the server has."""
        return tuple([each.api for each in self.dialects if each.spoken])

    @property
    def faults(self) -> tuple[ProbeResult, ...]:
        """The results with the verdict `fault`."""
        return tuple([each for each in self.results if each.verdict == "fault"])

    @property
    def classes(self) -> tuple[FailureClass, ...]:
        """The classes of the faults, the most frequently reported first."""
        return _classes_of(self.faults)

    @property
    def habits(self) -> tuple[FailureClass, ...]:
        """The classes that only the model shows. They are no faults of the server, but the proxy may cure them."""
        found = _classes_of([each for each in self.results if each.is_named])
        return tuple([each for each in found if each not in self.classes])

    def advice(self, failure: FailureClass) -> tuple[str, str]:
        """Return the cure of the class `failure` as a sentence, and the `rightcall serve` command that cures it, or "".
        The diagnosis must have a result of this class."""
        mine = self.shown(failure)
        says = next((each.advice for each in mine if each.is_curable), mine[0].advice)
        return says, next((line for each in mine if (line := each.cure(self.url))), "")

    def shown(self, failure: FailureClass) -> list[ProbeResult]:
        """Return the results that show the class `failure`, faults of the server before failures of the model; none if
        no result shows it."""
        mine = [each for each in self.results if each.is_named and each.slug == failure.slug]
        return sorted(mine, key=lambda each: each.verdict != "fault")

    @property
    def unanswered(self) -> tuple[ProbeResult, ...]:
        """The results with the verdict `unreachable`."""
        return tuple([each for each in self.results if each.verdict == "unreachable"])

    @property
    def is_sound(self) -> bool:
        """Whether there are results, the server answered each time, and has no fault."""
        return bool(self.results) and not self.faults and not self.unanswered

    def _curable(self, api: Api | None) -> list[ProbeResult]:
        """Return the results that the proxy can cure, of all dialects or of `api`."""
        return [each for each in self.results if api in (None, each.api) and each.flags is not None]

    def cure_flags(self, api: Api | None = None) -> dict[str, str]:
        """Return a dict of the `rightcall serve` flags to their values that cure all results which the proxy can cure,
        or those of one dialect (`api`); empty if there are none."""
        found: dict[str, str] = {}
        for each in self._curable(api):
            flags = each.flags or ()
            found |= dict(zip(flags[::2], flags[1::2], strict=True))
        return found

    def cure(self, api: Api | None = None) -> str:
        """Return the `rightcall serve` command that cures all results which the proxy can cure, or those of one dialect
        (`api`); "" if there are none."""
        faults = self._curable(api)
        if not faults:
            return ""
        line = ["rightcall", "serve", "--upstream", upstream(self.url, faults[0].api)]
        return shlex.join([*line, *[word for pair in self.cure_flags(api).items() for word in pair]])

    def check(self) -> None:
        """Raise an AssertionError that lists the first faults and the questions that were not answered, with the cure;
        for tests. Return None if the diagnosis `is_sound`. Without any answered dialect, the error gives the
        reasons."""
        if self.is_sound:
            return
        if not self.spoken:
            tried = "; ".join([f"{each.api}: {each.says}" for each in self.dialects])
            raise AssertionError(f"{self.url} answers in none of the dialects that were tried ({tried})")
        wrong = [*self.faults, *self.unanswered]
        lines = [f"{each.api} {each.way} {each.probe}: {each.slug or each.verdict}: {each.says}" for each in wrong]
        more = [f"and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES else []
        listing = "\n  ".join([*lines[:_MAX_LINES], *more])
        raise AssertionError(
            f"{self.url} with {self.model}: {len(lines)} checks failed\n  {listing}\ncure: {self.cure()}"
        )

    def to_json(self) -> Json:
        """Return the diagnosis as JSON data."""
        return {
            "url": self.url,
            "model": self.model,
            "kind": self.kind,
            "is_sound": self.is_sound,
            "classes": [each.slug for each in self.classes],
            "habits": [each.slug for each in self.habits],
            "cure": self.cure(),
            "dialects": [msgspec.to_builtins(each) for each in self.dialects],
            "results": [_result_json(each, self.url) for each in self.results],
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "skipped": self.skipped,
            "through": None if self.through is None else self.through.to_json(),
        }


def _classes_of(results: Iterable[ProbeResult]) -> tuple[FailureClass, ...]:
    """Return the failure classes of these results, each once, by their rank: the most frequently reported first.
    Results without a class are left out."""
    found = {each.slug: failure for each in results if (failure := each.failure) is not None}
    return tuple(sorted(found.values(), key=lambda each: (each.number, each.slug)))


def upstream(url: str, api: Api) -> str:
    """Return the server as a value of `--upstream`: its URL, for most dialects after `API=`."""
    return url if api in ("chat", "completions") else f"{api}={url}"


def _result_json(result: ProbeResult, url: str) -> Json:
    """Return a result as a JSON object. `cure` is the `rightcall serve` command that cures it, "" if there is none."""
    fields: dict[str, Any] = msgspec.to_builtins(result)
    return {**fields, "cure": result.cure(url)}
