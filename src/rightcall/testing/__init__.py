"""Tools for the tests of other projects: laws of formats, rules of providers' answers, recorded models, server
diagnosis.

    assert check_format(Format.from_toml(text)) == []
    assert conforms(stream, "messages") == []
    diagnose("http://127.0.0.1:8080", model="qwen3").check()

The pytest fixture `rightcall_cassette` comes with the package; it replays a model that was recorded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall.backends.recording import Recorder, ReplayBackend, ReplayServer
    from rightcall.doctor.diagnosis import Diagnosis
    from rightcall.doctor.examination import diagnose
    from rightcall.testing.conformance import conforms
    from rightcall.testing.laws import (
        LAWS,
        Case,
        How,
        Law,
        Violation,
        auto_law,
        check_format,
        cut_law,
        cuttings,
        ends_law,
        events_law,
        keys_law,
        live_law,
        nothing_lost_law,
        opener_law,
        round_trip_law,
        swallowing_law,
        truncation_law,
    )

__all__ = [
    "Case",
    "Diagnosis",
    "How",
    "LAWS",
    "Law",
    "Recorder",
    "ReplayBackend",
    "ReplayServer",
    "Violation",
    "auto_law",
    "check_format",
    "conforms",
    "cut_law",
    "cuttings",
    "diagnose",
    "ends_law",
    "events_law",
    "keys_law",
    "live_law",
    "nothing_lost_law",
    "opener_law",
    "round_trip_law",
    "swallowing_law",
    "truncation_law",
]

__getattr__ = load_lazily(
    __name__,
    {
        "Case": "rightcall.testing.laws",
        "Diagnosis": "rightcall.doctor.diagnosis",
        "How": "rightcall.testing.laws",
        "LAWS": "rightcall.testing.laws",
        "Law": "rightcall.testing.laws",
        "Recorder": "rightcall.backends.recording",
        "ReplayBackend": "rightcall.backends.recording",
        "ReplayServer": "rightcall.backends.recording",
        "Violation": "rightcall.testing.laws",
        "auto_law": "rightcall.testing.laws",
        "check_format": "rightcall.testing.laws",
        "conforms": "rightcall.testing.conformance",
        "cut_law": "rightcall.testing.laws",
        "cuttings": "rightcall.testing.laws",
        "diagnose": "rightcall.doctor.examination",
        "ends_law": "rightcall.testing.laws",
        "events_law": "rightcall.testing.laws",
        "keys_law": "rightcall.testing.laws",
        "live_law": "rightcall.testing.laws",
        "nothing_lost_law": "rightcall.testing.laws",
        "opener_law": "rightcall.testing.laws",
        "round_trip_law": "rightcall.testing.laws",
        "swallowing_law": "rightcall.testing.laws",
        "truncation_law": "rightcall.testing.laws",
    },
)
