"""What was found out about a server: values that a screen, a page, JSON and a test all read."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.doctor.failure_classes import FAILURE_CLASSES, FailureClass
from rightcall.doctor.judging import Verdict
from rightcall.doctor.questions import Way
from rightcall.types import Json

_MOST_LINES = 20


class SpokenDialect(msgspec.Struct, frozen=True, kw_only=True):
    """One dialect: the `api`, whether the server has `spoken` it, and what it `says` otherwise."""

    api: Api
    spoken: bool
    says: str = ""


class ProbeEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent and what came back, without secrets and cut to size: the `request`, the `status` and the `answer`;
    `request_left_out` and `answer_left_out` are the characters of each that are not here."""

    request: str
    status: int
    answer: str
    request_left_out: int = 0
    answer_left_out: int = 0


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one probe found, in one dialect and one way.

    - `probe`, `title`: its name, and what it is called.
    - `api`, `way`: the dialect, and `whole` or `streamed`.
    - `verdict`: `ok`, `fault`, `model`, `not offered` or `unreachable`.
    - `slug`: the class of failure, where there is one.
    - `says`: why, in words.
    - `passed`, `of`: how often it was ok, of how many times.
    - `evidence`: an exchange that shows it; None where all is well.
    - `is_curable`: the proxy cures such a fault, if it does those of its class.
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
        """The class of failure; None where there is none."""
        return FAILURE_CLASSES.get(self.slug)

    @property
    def flags(self) -> tuple[str, ...] | None:
        """Those of `rightcall serve` that cure it, beside `--upstream`; None where the proxy does not."""
        failure = self.failure
        return None if failure is None or not self.is_named or not self.is_curable else failure.flags

    @property
    def is_named(self) -> bool:
        """Does it show a class of failure: of the server, or of the model behind it?"""
        return bool(self.slug) and self.verdict in ("fault", "model")

    @property
    def advice(self) -> str:
        """What cures it, in a sentence."""
        if self.failure is None:
            return ""
        return self.failure.cure if self.is_curable else "The server must; nothing between it and a client can."

    def cure(self, url: str) -> str:
        """The command that cures it for the server at this `url`; empty where there is none."""
        failure = self.failure
        return "" if failure is None or self.flags is None else failure.line(upstream(url, self.api))


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found.

    - `url`, `model`: who was asked.
    - `kind`: what kind of server it is, if that was told.
    - `dialects`: those that were tried.
    - `results`: one for each probe, dialect and way.
    - `requests`, `seconds`: what it took.
    - `skipped`: questions that were not asked, because the budget was spent or the server had stopped answering.
    - `through`: the same, asked through the proxy; None if it was not.
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
        """The dialects in which the server answered."""
        return tuple([each.api for each in self.dialects if each.spoken])

    @property
    def faults(self) -> tuple[ProbeResult, ...]:
        """The results that are the server's fault."""
        return tuple([each for each in self.results if each.verdict == "fault"])

    @property
    def classes(self) -> tuple[FailureClass, ...]:
        """The classes of the faults, the most reported first."""
        return _classes(self.faults)

    @property
    def habits(self) -> tuple[FailureClass, ...]:
        """The classes of what the model does: no fault of the server's, and the proxy cures it all the same."""
        found = _classes([each for each in self.results if each.is_named])
        return tuple([each for each in found if each not in self.classes])

    def advice(self, failure: FailureClass) -> tuple[str, str]:
        """What cures the faults of a class (`failure`), in a sentence and as a command; "" where none does."""
        mine = self.shown(failure)
        says = next((each.advice for each in mine if each.is_curable), mine[0].advice)
        return says, next((line for each in mine if (line := each.cure(self.url))), "")

    def shown(self, failure: FailureClass) -> list[ProbeResult]:
        """The results that show a class (`failure`); those that are the server's fault first."""
        mine = [each for each in self.results if each.is_named and each.slug == failure.slug]
        return sorted(mine, key=lambda each: each.verdict != "fault")

    @property
    def unanswered(self) -> tuple[ProbeResult, ...]:
        """The results of which nothing is known, because there was no answer."""
        return tuple([each for each in self.results if each.verdict == "unreachable"])

    @property
    def is_sound(self) -> bool:
        """Was the server asked, did it answer each time, and is nothing its fault?"""
        return bool(self.results) and not self.faults and not self.unanswered

    def _curable(self, api: Api | None) -> list[ProbeResult]:
        return [each for each in self.results if api in (None, each.api) and each.flags is not None]

    def cure_flags(self, api: Api | None = None) -> dict[str, str]:
        """The flags of `rightcall serve` that cure all that was found, or that of one dialect (`api`)."""
        found: dict[str, str] = {}
        for each in self._curable(api):
            flags = each.flags or ()
            found |= dict(zip(flags[::2], flags[1::2], strict=True))
        return found

    def cure(self, api: Api | None = None) -> str:
        """The one `rightcall serve` line for all that was found, or for that of one dialect (`api`); empty where it
        cures nothing of it."""
        faults = self._curable(api)
        if not faults:
            return ""
        line = ["rightcall", "serve", "--upstream", upstream(self.url, faults[0].api)]
        return shlex.join([*line, *[word for pair in self.cure_flags(api).items() for word in pair]])

    def check(self) -> None:
        """Raises an AssertionError that lists the faults, for tests. A server that could not be asked is one."""
        if self.is_sound:
            return
        if not self.spoken:
            tried = "; ".join([f"{each.api}: {each.says}" for each in self.dialects])
            raise AssertionError(f"{self.url} answers in no dialect that was tried ({tried})")
        wrong = [*self.faults, *self.unanswered]
        lines = [f"{each.api} {each.way} {each.probe}: {each.slug or each.verdict}: {each.says}" for each in wrong]
        more = [f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
        said = "\n  ".join([*lines[:_MOST_LINES], *more])
        raise AssertionError(f"{self.url} with {self.model}: {len(lines)} checks failed\n  {said}\ncure: {self.cure()}")

    def to_json(self) -> Json:
        """Plain data."""
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


def _classes(results: Iterable[ProbeResult]) -> tuple[FailureClass, ...]:
    found = {each.slug: failure for each in results if (failure := each.failure) is not None}
    return tuple(sorted(found.values(), key=lambda each: (each.number, each.slug)))


def upstream(url: str, api: Api) -> str:
    """The server as `--upstream` names it."""
    return url if api in ("chat", "completions") else f"{api}={url}"


def _result_json(result: ProbeResult, url: str) -> Json:
    fields: dict[str, Any] = msgspec.to_builtins(result)
    return {**fields, "cure": result.cure(url)}
