"""What `import rightcall` gives, and what it costs. A new public name is added here on purpose, or not at all."""

import subprocess
import sys
from typing import Any

import pytest

import rightcall

FUNCTIONS = {
    "parse",
    "render",
    "detect",
    "check",
    "repair",
    "select",
    "tool",
    "read",
    "read_all",
    "contract",
    "dispatch",
    "dispatch_sync",
    "grammar",
}
FUNCTIONS |= {"feedback", "canonical", "answers", "wrap"}
VALUES = {
    "Tool",
    "Toolset",
    "Call",
    "Reply",
    "Repair",
    "Problem",
    "Span",
    "Ids",
    "Limits",
    "Format",
    "formats",
    "Parser",
    "Stream",
    "Result",
    "Trace",
}
EVENTS = {"Text", "Reasoning", "CallStart", "Arguments", "CallEnd", "Recast"}
ERRORS = {"RightcallError", "CannotCarry", "UnknownFormat"}
NAMES = FUNCTIONS | VALUES | EVENTS | ERRORS | {"__version__"}

HEAVY = "pydantic jsonschema_rs json_repair llguidance typer click rich jinja2 aiohttp starlette uvicorn".split()


def test_the_public_names_are_these() -> None:
    assert set(rightcall.__all__) == NAMES


def test_no_name_is_listed_twice() -> None:
    assert len(rightcall.__all__) == len(set(rightcall.__all__))


def test_there_are_at_most_45_public_names() -> None:
    assert len(rightcall.__all__) <= 45


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(rightcall, name) is not None


def test_every_error_is_a_rightcall_error() -> None:
    assert all(issubclass(getattr(rightcall, name), rightcall.RightcallError) for name in ERRORS)


def test_importing_rightcall_imports_nothing_heavy() -> None:
    program = f"import rightcall, sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_a_star_import_gives_the_public_names() -> None:
    program = "from rightcall import *; print(*sorted(set(dir())))"
    given = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert set(given) >= NAMES


def test_contract_is_the_function_whatever_of_its_package_is_imported() -> None:
    program = "import rightcall.contract.ledger, rightcall; print(callable(rightcall.contract))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "True"


def test_the_machinery_of_the_contract_is_imported_when_it_is_called() -> None:
    program = "import rightcall, sys; print('rightcall.contract.prompt' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"


def test_dispatch_is_the_function_however_its_package_was_imported_first() -> None:
    program = (
        "import rightcall.dispatch.hooks, rightcall, importlib; from rightcall import dispatch as one\n"
        "import rightcall.dispatch.trace; importlib.reload(rightcall)\n"
        "print(callable(one), rightcall.dispatch is one, rightcall.dispatch.__name__)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == ["True", "True", "dispatch"]


@pytest.mark.parametrize(
    "given, words",
    [
        (None, r'not NoneType; an answer without text is "" \(`message\.content or ""`\)'),
        (b"Hi", r"not bytes; decode bytes first: data\.decode\(\)"),
        ({"choices": []}, r"not dict; give a provider's answer to rightcall\.read"),
        (3, r"not int; give a provider's answer to rightcall\.read"),
    ],
)
def test_what_is_no_text_is_refused_with_what_to_pass(given: Any, words: str) -> None:
    with pytest.raises(rightcall.RightcallError, match=words):
        rightcall.parse(given)
    with pytest.raises(rightcall.RightcallError, match=words):
        rightcall.Parser().feed(given)
