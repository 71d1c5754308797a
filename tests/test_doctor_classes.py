"""Failure classes: each can be looked up, and each cure is an existing command."""

import re

import pytest

from rightcall.doctor.failure_classes import FAILURE_CLASSES, FailureClass
from rightcall.serve.proxy_settings import SETTINGS

CLASSES = list(FAILURE_CLASSES.values())
FLAGS = {setting.flag for setting in SETTINGS.values()}


def test_every_rank_from_1_to_27_has_a_class() -> None:
    assert sorted({each.number for each in CLASSES}) == list(range(1, 28))


@pytest.mark.parametrize("each", CLASSES, ids=[each.slug for each in CLASSES])
def test_a_failure_class_has_a_description_threads_and_a_cure(each: FailureClass) -> None:
    assert FAILURE_CLASSES[each.slug] is each
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for thread in each.threads) and each.threads
    assert each.what.endswith(".") and each.cure.endswith(".") and len(each.title) <= 50


@pytest.mark.parametrize("each", [each for each in CLASSES if each.flags], ids=lambda each: each.slug)
def test_the_flags_of_a_cure_are_flags_of_serve(each: FailureClass) -> None:
    flags = each.flags or ()
    assert {flag for flag in flags if flag.startswith("--")} <= FLAGS
    assert each.line("http://h/v1?a b") == f"rightcall serve --upstream 'http://h/v1?a b' {' '.join(flags)}"
