"""The public names of `rightcall` and the cost of importing them. Add a new public name here deliberately."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rightcall

ROOT = Path(__file__).resolve().parent.parent

FUNCTIONS = {
    "parse",
    "parse_many",
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
FUNCTIONS |= {"run", "run_sync", "feedback", "canonical", "answers", "wrap"}
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
    "GrammarBounds",
    "formats",
    "Parser",
    "Stream",
    "Result",
    "Trace",
    "Conversation",
    "Guard",
    "Runner",
}
EVENTS = {"Text", "Reasoning", "CallStart", "Arguments", "CallEnd", "Recast", "Done"}
ERRORS = {"RightcallError", "CannotCarry", "UnknownFormat"}
NAMES = FUNCTIONS | VALUES | EVENTS | ERRORS | {"__version__"}

PUBLIC = {  # modules that users may import from, beside `rightcall` itself
    "backends": "Answer Backend BaseBackend LocalBackend LocalServer Recorder ReplayBackend ReplayServer Request "
    "Retries Streaming SyncStreaming Timeouts Timing Try Usage",
    "datasets": "BadRows Capture Domain Settings Unreleased Watch assemble dedupe_files export find_domains "
    "import_files label_files mutate_files redact_files release_files split statistics validate write_prompts",
    "formats": "ALIASES FORMATS NAMED_ONLY Braced Channels Envelope Format NameThenJson Params Protocol Pythonic "
    "Special TsCall discover find known_formats register replace unregister",
    "hooks": "Bounds Budget BudgetGuard BudgetHook Continue Hook Invocation Pages Redaction RunLimits Skip "
    "Spans Terminate TimeBudget TokenBudget TokenHook call_budget fingerprint repair_history "
    "retry_class spill_to",
    "masks": "LogitsProcessor Matcher Vocabulary",
    "mcp": "connect serve_http serve_stdio server_of",
    "guard": "Guard GuardPolicy Intervention Judgement PastCall PastTurn Respond Turn announced failing_budget "
    "malformed_budget near_calls one_at_a_time oversized_results prerequisites problems repeated required_steps "
    "silence terminal_tools tool_choice turn_budget unknown_tool",
    "loop": "CallRan Over Spent",
    "messages": "HISTORY_PROFILES Deliverable HistoryChange HistoryProfile KeptFields Ledger LedgerState SaneHistory "
    "chat_messages declarations history_faults kept_of result_text sane violations",
    "testing": "LAWS Case Diagnosis How Law Recorder ReplayBackend ReplayServer Violation auto_law check_format "
    "conforms cut_law cuttings diagnose ends_law events_law keys_law live_law nothing_lost_law opener_law "
    "round_trip_law swallowing_law truncation_law",
    "workspace": "AllowRule Approval Ask BASH Denial EDIT_FILE EditLog FileEdit LIST_DIR NAMES Permission READ_FILE "
    "WRITE_FILE Workspace all_tools undo",
}

HEAVY = "pydantic jsonschema_rs llguidance typer click rich jinja2 aiohttp starlette uvicorn".split()


def test_the_public_names_are_exactly_the_listed_ones() -> None:
    assert set(rightcall.__all__) == NAMES


def test_no_name_is_listed_twice() -> None:
    assert len(rightcall.__all__) == len(set(rightcall.__all__))


def test_the_number_of_public_names_is_limited() -> None:
    assert len(rightcall.__all__) <= 55


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_exists(name: str) -> None:
    assert getattr(rightcall, name) is not None


def test_every_error_is_a_rightcall_error() -> None:
    assert all(issubclass(getattr(rightcall, name), rightcall.RightcallError) for name in ERRORS)


def test_importing_rightcall_loads_no_heavy_module() -> None:
    program = f"import rightcall, sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_no_public_name_needs_an_extra() -> None:
    others = [name for name in HEAVY if name != "jsonschema_rs"]
    program = f"from rightcall import *; import sys; print([name for name in {others} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


@pytest.mark.parametrize("module", [*PUBLIC, "errors"])
def test_a_public_module_is_available_without_a_separate_import(module: str) -> None:
    program = f"import rightcall; print(rightcall.{module}.__name__)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == f"rightcall.{module}"


def test_a_star_import_gives_the_public_names() -> None:
    program = "from rightcall import *; print(*sorted(set(dir())))"
    given = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert set(given) >= NAMES


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_exports_exactly_the_listed_names(module: str) -> None:
    public = importlib.import_module(f"rightcall.{module}")
    assert set(public.__all__) == set(PUBLIC[module].split())
    assert all(
        getattr(public, name).__name__
        for name in public.__all__
        if not name.isupper() and name not in {"Ask", "Permission"}
    )


def test_documents_and_examples_import_from_public_modules_only() -> None:
    """CONTRIBUTING.md is not checked, because it shows files of the package itself."""
    texts = [
        file.read_text("utf-8")
        for pattern in ("README.md", "docs/*.md", "examples/*.py")
        for file in ROOT.glob(pattern)
    ]
    found = {name for text in texts for name in re.findall(r"(?:from|import) rightcall\.([\w.]+)", text)}
    assert found - {*PUBLIC, "errors"} == set()


MODULES = sorted(module.name for module in pkgutil.walk_packages(rightcall.__path__, "rightcall."))


def test_no_public_name_is_the_name_of_a_module() -> None:
    stems = {name.rpartition(".")[2] for name in MODULES}
    assert stems & NAMES == {"formats"}, "`formats` is the module itself"


def test_module_names_are_unique() -> None:
    """Only `__main__`, a name that Python requires, may occur more than once."""
    stems = Counter(name.rpartition(".")[2] for name in MODULES)
    assert {stem for stem, count in stems.items() if count > 1} <= {"__main__"}


def test_class_names_are_unique() -> None:
    sources = [file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py")]
    names = Counter(name for source in sources for name in re.findall(r"(?m)^class (\w+)", source))
    assert {name for name, count in names.items() if count > 1} == set()


def test_every_module_can_be_imported_under_an_alias() -> None:
    own = [name for name in MODULES if not name.endswith(("__main__", "_child"))]
    tries = "for name in sys.argv[1:]:\n    exec(f'import {name} as x')\n    assert x.__name__ == name, name"
    program = f"import sys\nfrom rightcall import *\n{tries}"
    done = subprocess.run([sys.executable, "-c", program, *own], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:]


def test_the_contract_code_is_imported_on_first_use() -> None:
    program = "import rightcall, sys; print('rightcall.contracts.prompt' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"


@pytest.mark.parametrize(
    "given, message",
    [
        (None, r'not NoneType; an answer without text is "" \(`message\.content or ""`\)'),
        (b"Hi", r"not bytes; decode bytes first: data\.decode\(\)"),
        ({"choices": []}, r"not dict; give a provider's answer to rightcall\.read"),
        (3, r"not int; give a provider's answer to rightcall\.read"),
    ],
)
def test_a_value_that_is_not_text_is_rejected_with_the_expected_type(given: Any, message: str) -> None:
    with pytest.raises(rightcall.RightcallError, match=message):
        rightcall.parse(given)
    with pytest.raises(rightcall.RightcallError, match=message):
        rightcall.Parser().feed(given)


READERS = (
    *(rightcall.parse, rightcall.parse_many, rightcall.Parser),
    *(rightcall.read, rightcall.read_all, rightcall.Stream, rightcall.wrap),
)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_every_reader_has_the_same_options(reader: Any) -> None:
    """Options have the same names, types, defaults and order in every reader; `parse` has all of them."""
    known = inspect.signature(rightcall.parse).parameters
    taken = {
        name: each for name, each in inspect.signature(reader).parameters.items() if name in known and name != "text"
    }
    shared = [name for name in known if name in taken]
    assert {"tools", "format", "reasoning", "repair", "rescue", "reasoning_calls", "limits"} <= set(taken)
    assert [name for name in taken if name != "format"] == [name for name in shared if name != "format"]
    for name in shared:
        assert (taken[name].annotation, taken[name].default) == (known[name].annotation, known[name].default), name
