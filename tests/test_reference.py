"""docs/reference.md is fresh, and has every public module."""

from pages import stale
from reference_page import MODULES
from test_exports import PUBLIC


def test_every_page_that_is_made_is_fresh() -> None:
    assert stale() == [], "run `make pages`"


def test_the_page_has_every_public_module() -> None:
    assert set(MODULES) == {"rightcall", "rightcall.errors", *[f"rightcall.{name}" for name in PUBLIC]}
