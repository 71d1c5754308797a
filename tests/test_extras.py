"""The core has two dependencies: it works without the extras, and a missing extra is named."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

import pytest

from rightcall import extras
from rightcall.errors import CallerError, MissingExtra

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DECLARED: dict[str, list[str]] = PROJECT["optional-dependencies"]
MISSING = """
import runpy, sys
sys.modules.update(dict.fromkeys({missing!r}))
sys.argv = {argv!r}
{run}
"""
OTHERS = "pydantic pydantic_core typer click rich aiohttp jinja2 mcp llguidance pyarrow xllamacpp".split()


def run_without(packages: list[str], run: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program in which these packages are missing."""
    program = MISSING.format(missing=packages, argv=list(argv), run=run)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


def package_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=]", each)[0] for each in requirements}


def test_rightcall_has_two_dependencies() -> None:
    assert package_names(PROJECT["dependencies"]) == {"msgspec", "jsonschema-rs"}


def test_the_core_works_without_the_extras() -> None:
    core = f"runpy.run_path({str(ROOT / 'tests' / 'support' / 'core_alone.py')!r}, run_name='__main__')"
    done = run_without([*OTHERS, "opentelemetry"], core, "core_alone.py")
    assert done.returncode == 0 and done.stdout.strip() == PROJECT.get("version", done.stdout.strip()), done.stderr


def test_the_library_knows_exactly_the_declared_extras() -> None:
    assert set(typing.get_args(extras.Extra)) == DECLARED.keys() - {"all", "dev"}


def test_the_extra_all_has_every_extra_except_the_heavy_ones() -> None:
    (whole,) = DECLARED["all"]
    heavy = {"all", "dev", "local", "parquet", "ray", "train"}
    assert set(whole.partition("[")[2].rstrip("]").split(",")) == DECLARED.keys() - heavy


@pytest.mark.parametrize("extra", typing.get_args(extras.Extra))
def test_a_missing_extra_is_reported_with_the_install_command(
    extra: extras.Extra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, extras._MODULES[extra][0], None)
    with pytest.raises(MissingExtra, match=rf"not installed: pip install 'rightcall\[{extra}\]'") as caught:
        extras.require_extra(extra)
    assert caught.value.extra == extra and isinstance(caught.value, CallerError)


COMMANDS: dict[str, tuple[list[str], list[str], str]] = {
    "any": (["typer"], ["formats"], "cli"),
    "chat": (["aiohttp"], ["chat", "--base-url", "http://127.0.0.1:9", "--model", "m"], "http"),
    "mcp": (["mcp"], ["mcp", "tools", "http://127.0.0.1:9"], "mcp"),
}


@pytest.mark.parametrize("missing, argv, extra", COMMANDS.values(), ids=COMMANDS)
def test_a_command_reports_a_missing_extra_in_one_line(missing: list[str], argv: list[str], extra: str) -> None:
    done = run_without(missing, "from rightcall.cli import main; main()", "rightcall", *argv)
    assert done.returncode == 2, done
    (line,) = done.stderr.splitlines()
    assert line.startswith("rightcall: ") and line.endswith(f"pip install 'rightcall[{extra}]'")


# -- pytest ------------------------------------------------------------------------------------------------------------

LIGHT = {"rightcall", "rightcall.lazy_names", "rightcall.testing", "rightcall.testing.pytest_plugin"}
TEST = """
import sys

def test_nothing():
    ours = {name for name in sys.modules if name.partition(".")[0] == "rightcall"}
    heavy = {"msgspec", "jsonschema_rs", "pydantic", "aiohttp"} & set(sys.modules)
    print(*sorted(ours), *sorted(heavy), file=open("found", "w"))
"""


def test_pytest_without_use_of_the_plugin_imports_only_light_modules(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert set((tmp_path / "found").read_text().split()) == LIGHT
