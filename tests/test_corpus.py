"""Every sample of the corpus parses to the calls, the text and the reasoning that its template was given."""

from __future__ import annotations

import pytest

from rightcall.formats import FORMATS
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import selected
from support.samples import CORPUS, Sample, exceptions, files, outcome, read_samples, samples, toolset

BY_ID = {sample.id: sample for sample in samples()}
EXACT = [id for id, sample in BY_ID.items() if not sample.lossy]


@pytest.mark.parametrize("id", selected(EXACT, kept=frozenset(EXACT[::2])))
def test_a_sample_parses_as_expected_under_every_chunking(id: str) -> None:
    sample = BY_ID[id]
    reply = hold_of_every_cut(sample.text, Setting(sample.format, toolset(sample.tools)))
    right = outcome(reply) == sample.expect and not any(problem.blocking for problem in reply.problems)
    if sample.id in exceptions():
        assert not right, "it reads well now: take it out of exceptions.toml"
    else:
        assert outcome(reply) == sample.expect
        assert right, reply.problems


@pytest.mark.parametrize("sample", [s for s in samples() if s.lossy], ids=lambda sample: str(sample.id))
def test_text_of_a_lossy_template_parses_the_same_under_every_chunking(sample: Sample) -> None:
    hold_of_every_cut(sample.text, Setting(sample.format, toolset(sample.tools)))


def test_every_format_has_a_file_of_samples() -> None:
    assert {file.stem for file in files()} == set(FORMATS)
    assert all(read_samples(file) for file in files())


def test_every_sample_is_in_the_file_of_its_format() -> None:
    assert [(s.id, file.stem) for file in files() for s in read_samples(file) if s.format != file.stem] == []


def test_every_format_has_samples_of_the_basic_shapes() -> None:
    shapes = {name: {s.shape for s in samples() if s.format == name and not s.lossy} for name in FORMATS}
    assert {name for name, found in shapes.items() if not {"single", "no_args", "markers"} <= found} == set()


def test_sample_ids_are_unique() -> None:
    assert len(BY_ID) == len(samples())


def test_every_exception_names_a_sample_and_a_reason() -> None:
    assert {id for id in exceptions() if id not in BY_ID} == set()
    assert all(reason.strip() for reason in exceptions().values())


def test_the_corpus_is_at_most_1_500_000_bytes() -> None:
    assert sum(file.stat().st_size for file in CORPUS.iterdir()) <= 1_500_000
