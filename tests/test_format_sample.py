"""The selection of formats that represent the others in `make test`."""

from __future__ import annotations

import pytest

from rightcall.formats import FORMATS
from support import format_sample
from support.format_sample import one_per_shape, sampled, sampled_rows, shape_of


def parameter_values(parameters: list[object]) -> list[object]:
    return [parameter.values[0] for parameter in parameters]  # type: ignore[attr-defined]


def test_every_shape_has_one_member_in_the_sample() -> None:
    chosen = [shape_of(FORMATS[name]) for name in one_per_shape(FORMATS)]
    assert sorted(chosen) == sorted({shape_of(format) for format in FORMATS.values()})


def test_the_sample_of_a_subset_has_one_format_of_each_of_its_shapes() -> None:
    names = list(FORMATS)[20:]
    assert {shape_of(FORMATS[name]) for name in one_per_shape(names)} == {shape_of(FORMATS[name]) for name in names}


def test_the_sample_has_the_first_format_of_each_shape() -> None:
    assert one_per_shape(["reka_edge", "hermes", "qwen3_coder"]) == ["reka_edge", "qwen3_coder"]


def test_values_that_are_not_formats_are_kept() -> None:
    assert parameter_values(sampled(["auto", "hermes"])) == ["auto", "hermes"]


def test_a_sweep_adds_exactly_the_omitted_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("hermes", 1), ("hermes", 2), ("reka_edge", 3), ("auto", 4)]
    monkeypatch.setattr(format_sample, "SWEEP", False)
    assert [parameter.values for parameter in sampled_rows(rows)] == [rows[0], rows[1], rows[3]]
    monkeypatch.setattr(format_sample, "SWEEP", True)
    swept = sampled_rows(rows)
    assert [parameter.values for parameter in swept] == rows
    assert [parameter.values for parameter in swept if parameter.marks] == [rows[2]]
