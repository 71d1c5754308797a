"""Shell completion: offered names, and a check with a real bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rightcall.capture.domain import built_in_names
from rightcall.cli.app import app
from rightcall.cli.inputs import code_names, domain_names, format_names, model_names, read_format_names
from rightcall.formats import FORMATS
from rightcall.problems import CODES
from support.command import MINE


def words(offers: list[tuple[str, str]]) -> list[str]:
    return [word for word, _ in offers]


def test_names_with_the_typed_prefix_are_offered() -> None:
    assert words(format_names("")) == list(FORMATS) and words(read_format_names(""))[0] == "auto"
    assert words(format_names("herm")) == ["hermes"] and "qwen25" in words(format_names("qwen"))
    assert words(domain_names("")) == list(built_in_names()) and words(domain_names("a,shop")) == ["a,shopping"]
    assert words(code_names("unknown_to")) == ["unknown_tool"] and set(words(code_names(""))) > {*CODES, *FORMATS}
    assert words(model_names("smol")) == ["smollm2", "smollm2-tools"] and format_names("no such") == []


COMPLETED = {
    "rightcall expl": "explain",
    "rightcall explain unknown_to": "unknown_tool",
    "rightcall formats herm": "hermes",
    "rightcall capture --domains shop": "shopping",
    "rightcall parse --format min": "mine",
    "rightcall run --guard f": "full",
}
SHELL_LINES = ["rightcall expl", "rightcall formats herm"]


@pytest.mark.parametrize("line", COMPLETED)
def test_a_command_line_is_completed(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    monkeypatch.setenv("RIGHTCALL_FORMATS", str(tmp_path))
    env = {"_RIGHTCALL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = CliRunner().invoke(app, [], prog_name="rightcall", env=env)
    assert COMPLETED[line] in done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_real_bash_completes_command_lines(tmp_path: Path) -> None:
    command = tmp_path / "rightcall"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m rightcall \"$@\"\n")
    command.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = ['eval "$(_RIGHTCALL_COMPLETE=source_bash rightcall)"']
    for line in SHELL_LINES:
        typed = line.split()
        script += [
            f"COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}",
            'COMPREPLY=(); _rightcall_completion rightcall; echo "${COMPREPLY[@]}"',
        ]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, env=env, timeout=120)
    for line, found in zip(SHELL_LINES, done.stdout.splitlines(), strict=True):
        assert COMPLETED[line] in found.split(), done
