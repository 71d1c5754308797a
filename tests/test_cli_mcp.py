"""`rightcall mcp` and `rightcall call --workspace`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import run

pytest.importorskip("mcp")

SERVER = [sys.executable, str(Path(__file__).parent / "support" / "mcp_server.py")]


def test_call_runs_a_coding_tool_inside_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    result = run("call", "read_file", '{"path": "a.txt"}', "--workspace", str(tmp_path), "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["result"]["output"] == "hello\n"
    failed = run("call", "read_file", '{"path": "/etc/passwd"}', "--workspace", str(tmp_path))
    assert failed.exit_code == 1 and "outside the workspace" in " ".join(failed.stdout.split())


def test_call_without_tools_is_wrong_usage(tmp_path: Path) -> None:
    assert run("call", "bash").exit_code == 2
    missing = run("call", "bash", "--workspace", str(tmp_path / "nope"))
    assert missing.exit_code == 2 and "not a folder" in missing.stderr


def test_mcp_tools_lists_usable_and_rejected_tools() -> None:
    result = run("mcp", "tools", "--json", "--", *SERVER)
    assert result.exit_code == 1  # One of the tools cannot be used.
    found = json.loads(result.stdout)
    assert [each["name"] for each in found["tools"]] == ["add", "fail", "say.it", "picture", "gone"]
    assert [each["tool"] for each in found["refused"]] == ["bad"]
    assert "say.it" in run("mcp", "tools", "--", *SERVER).stdout


@pytest.mark.parametrize("server", [["http://127.0.0.1:9/mcp"], ["rightcall-no-such-command"], ["ftp://x"]])
def test_an_unreachable_server_is_an_error_without_a_traceback(server: list[str]) -> None:
    result = run("mcp", "tools", *server)
    assert result.exit_code == 2 and "Traceback" not in result.stderr and result.stderr.strip()


def test_an_mcp_client_lists_the_served_tools(tmp_path: Path) -> None:
    from rightcall.mcp import connect

    (tmp_path / "a.txt").write_text("hello\n")
    command = [sys.executable, "-m", "rightcall.cli", "mcp", "serve", "--workspace", str(tmp_path), "--read-only"]

    async def list_tools() -> list[str]:
        async with connect(command, env=dict(os.environ)) as tools:
            return [tool.name for tool in tools]

    assert asyncio.run(list_tools()) == ["read_file", "list_dir"]


@pytest.mark.parametrize(
    "options, word",
    [
        ([], "no tools"),
        (["--workspace", ".", "--http", "--host", "0.0.0.0", "--no-key"], "--no-key is only for loopback"),
        (["--workspace", ".", "--http", "--no-key", "--api-key-env", "HOME"], "exclude each other"),
        (["--workspace", ".", "--http", "--allow-origin", "*"], "is not an origin"),
        (["--workspace", ".", "--http", "--api-key-env", "RIGHTCALL_NOT_SET"], "RIGHTCALL_NOT_SET"),
    ],
)
def test_invalid_serve_options_are_rejected(options: list[str], word: str) -> None:
    command = [sys.executable, "-m", "rightcall.cli", "mcp", "serve", *options]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 2 and word in done.stderr
