"""What `import rightcall` gives, and what it costs. A new public name is added here on purpose, or not at all."""

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

PUBLIC = {  # the modules that may be imported from, beside `rightcall` itself
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


def test_the_public_names_are_these() -> None:
    assert set(rightcall.__all__) == NAMES


def test_no_name_is_listed_twice() -> None:
    assert len(rightcall.__all__) == len(set(rightcall.__all__))


def test_there_are_at_most_45_public_names() -> None:
    assert len(rightcall.__all__) <= 55


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(rightcall, name) is not None


def test_every_error_is_a_rightcall_error() -> None:
    assert all(issubclass(getattr(rightcall, name), rightcall.RightcallError) for name in ERRORS)


def test_importing_rightcall_imports_nothing_heavy() -> None:
    program = f"import rightcall, sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_no_public_name_needs_an_extra() -> None:
    others = [name for name in HEAVY if name != "jsonschema_rs"]
    program = f"from rightcall import *; import sys; print([name for name in {others} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


@pytest.mark.parametrize("module", [*PUBLIC, "errors"])
def test_a_public_module_is_there_without_being_imported(module: str) -> None:
    program = f"import rightcall; print(rightcall.{module}.__name__)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == f"rightcall.{module}"


def test_a_star_import_gives_the_public_names() -> None:
    program = "from rightcall import *; print(*sorted(set(dir())))"
    given = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert set(given) >= NAMES


@pytest.mark.parametrize("module", PUBLIC)
def test_the_names_of_a_public_module_are_these(module: str) -> None:
    public = importlib.import_module(f"rightcall.{module}")
    assert set(public.__all__) == set(PUBLIC[module].split())
    assert all(
        getattr(public, name).__name__
        for name in public.__all__
        if not name.isupper() and name not in {"Ask", "Permission"}
    )


def test_documents_and_examples_import_from_public_modules_only() -> None:
    """But for CONTRIBUTING.md, which shows files of the package itself."""
    texts = [
        file.read_text("utf-8")
        for pattern in ("README.md", "docs/*.md", "examples/*.py")
        for file in ROOT.glob(pattern)
    ]
    found = {name for text in texts for name in re.findall(r"(?:from|import) rightcall\.([\w.]+)", text)}
    assert found - {*PUBLIC, "errors"} == set()


MODULES = sorted(module.name for module in pkgutil.walk_packages(rightcall.__path__, "rightcall."))


def test_nothing_public_has_the_name_of_a_module() -> None:
    stems = {name.rpartition(".")[2] for name in MODULES}
    assert stems & NAMES == {"formats"}, "`formats` is the module itself"


def test_a_module_has_a_name_of_its_own() -> None:
    """Only files of the machinery that Python itself names may share one."""
    stems = Counter(name.rpartition(".")[2] for name in MODULES)
    assert {stem for stem, count in stems.items() if count > 1} <= {"__main__"}


def test_a_class_has_a_name_of_its_own() -> None:
    sources = [file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py")]
    names = Counter(name for source in sources for name in re.findall(r"(?m)^class (\w+)", source))
    assert {name for name, count in names.items() if count > 1} == set()


def test_every_module_can_be_imported_under_another_name() -> None:
    own = [name for name in MODULES if not name.endswith(("__main__", "_child"))]
    tries = "for name in sys.argv[1:]:\n    exec(f'import {name} as x')\n    assert x.__name__ == name, name"
    program = f"import sys\nfrom rightcall import *\n{tries}"
    done = subprocess.run([sys.executable, "-c", program, *own], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:]


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


WAYS_TO_READ = (
    *(rightcall.parse, rightcall.parse_many, rightcall.Parser),
    *(rightcall.read, rightcall.read_all, rightcall.Stream, rightcall.wrap),
)


@pytest.mark.parametrize("way", WAYS_TO_READ, ids=lambda way: way.__name__)
def test_every_way_to_read_takes_the_same_options(way: Any) -> None:
    """The same words, types, defaults and order; `parse` has them all."""
    known = inspect.signature(rightcall.parse).parameters
    taken = {name: each for name, each in inspect.signature(way).parameters.items() if name in known and name != "text"}
    shared = [name for name in known if name in taken]
    assert {"tools", "format", "reasoning", "repair", "rescue", "reasoning_calls", "limits"} <= set(taken)
    assert [name for name in taken if name != "format"] == [name for name in shared if name != "format"]
    for name in shared:
        assert (taken[name].annotation, taken[name].default) == (known[name].annotation, known[name].default), name
