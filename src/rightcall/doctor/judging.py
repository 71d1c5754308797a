"""What a judge is given and what it says.

A judge is a function of a `ProbedCase`: one question, asked in one way, with what came back. It says one of five:

    ok            the server did as it should
    fault         it did not: the class of failure says how
    model         the model did not do as it was asked, so nothing can be said of the server
    not offered   the server says, or shows, that it has no such thing
    unreachable   there was no answer
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from rightcall.api_names import Api
from rightcall.doctor.questions import ServerQuestion, Way
from rightcall.doctor.raw_answer import RawAnswer
from rightcall.doctor.seen_answer import SeenAnswer
from rightcall.doctor.wire_faults import WireFault
from rightcall.types import Json

Verdict = Literal["ok", "fault", "model", "not offered", "unreachable"]
VERDICTS: tuple[Verdict, ...] = ("fault", "unreachable", "model", "not offered", "ok")  # the worst first


PATIENCE = 20.0  # seconds: clients were seen to wait 65, what stands between often 30


class ProbeFinding(msgspec.Struct, frozen=True):
    """What one judge says of one case."""

    verdict: Verdict
    slug: str = ""
    says: str = ""


class ProbedCase(msgspec.Struct, frozen=True, kw_only=True):
    """One question, asked once. `others` are the other cases of the same round, by question and way; `patience` is how
    many seconds of silence clients bear."""

    api: Api
    way: Way
    question: ServerQuestion
    body: Json
    raw: RawAnswer
    seen: SeenAnswer
    wire: tuple[WireFault, ...] = ()
    others: dict[tuple[str, Way], ProbedCase] = {}
    patience: float = PATIENCE

    def of(self, *slugs: str) -> list[WireFault]:
        """The faults of its wire that are of these classes."""
        return [fault for fault in self.wire if fault.slug in slugs]


Judge = Callable[[ProbedCase], ProbeFinding]
OK = ProbeFinding("ok")


def fault(slug: str, says: str) -> ProbeFinding:
    return ProbeFinding("fault", slug, says)


def model(says: str, slug: str = "") -> ProbeFinding:
    return ProbeFinding("model", slug, says)
