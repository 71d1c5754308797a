"""What `import rightcall` gives, and what it costs. A new public name is added here on purpose, or not at all."""

import pkgutil
import subprocess
import sys
from collections import Counter
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


MODULES = sorted(module.name for module in pkgutil.walk_packages(rightcall.__path__, "rightcall."))


def test_nothing_public_has_the_name_of_a_module() -> None:
    stems = {name.rpartition(".")[2] for name in MODULES}
    assert stems & NAMES == {"formats"}, "`formats` is the module itself"


def test_a_module_has_a_name_of_its_own() -> None:
    """Only files of the machinery that Python itself names may share one."""
    stems = Counter(name.rpartition(".")[2] for name in MODULES)
    assert {stem for stem, count in stems.items() if count > 1} <= {"__main__"}


def test_every_module_can_be_imported_under_another_name() -> None:
    own = [name for name in MODULES if not name.endswith(("__main__", "_child"))]
    program = "\n".join(f"import {name} as x; assert x.__name__ == {name!r}" for name in own)
    subprocess.run([sys.executable, "-c", f"import rightcall\nfrom rightcall import *\n{program}"], check=True)


def test_the_machinery_of_the_contract_is_imported_when_it_is_called() -> None:
    program = "import rightcall, sys; print('rightcall.contracts.prompt' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"


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
