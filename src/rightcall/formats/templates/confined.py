"""Render untrusted chat templates in a child process with limited time and memory.

A sandbox keeps a template away from Python, but limits neither time nor memory; the child's resource limits do.
"""

from __future__ import annotations

import importlib.util
import json
import os.path
import signal
import subprocess
import sys
from typing import Any

import msgspec

from rightcall.errors import MissingExtra
from rightcall.extras import install_advice, require_extra
from rightcall.formats.templates import template_child as child
from rightcall.formats.templates.template_faults import BadTemplate, TemplateStopped
from rightcall.types import Json

_NOW = "2026-01-02T03:04:05"  # a template that shows the date renders the same every day


class ChildBounds(msgspec.Struct, frozen=True):
    """The resources that one template may use for all its renderings together. `memory` is address space in bytes."""

    cpu_seconds: int = 5
    wall_seconds: int = 20
    memory: int = 512_000_000
    output: int = 4_000_000


class Rendering(msgspec.Struct, frozen=True):
    """The rendered text, or the error that the template raised for this conversation."""

    text: str = ""
    error: str = ""


def render_template(template: str, contexts: list[Json], bounds: ChildBounds | None = None) -> list[Rendering]:
    """Return one rendering of the template for each context, with an error in those that it refuses. Raises
    `BadTemplate` if it cannot be used at all, `TemplateStopped` if it exceeds `bounds`, and `MissingExtra` without
    jinja2."""
    bounds = bounds or ChildBounds()
    request = {
        "template": template,
        "contexts": contexts,
        "now": _NOW,
        "path": _package_folders("jinja2", "markupsafe"),
        **msgspec.structs.asdict(bounds),
    }
    answer = _run_child(json.dumps(request).encode(), bounds)
    if "missing" in answer:
        raise MissingExtra("templates", install_advice("templates"))
    if "stopped" in answer:
        raise _limit_error(answer["stopped"], bounds)
    if "error" in answer:
        raise BadTemplate(f"the template cannot be used: {answer['error']}")
    return [Rendering(**result) for result in answer["results"]]


def _package_folders(*packages: str) -> list[str]:
    """Return the folders that contain these packages, since an isolated child does not search all of ours. Raises
    `MissingExtra` if the extra `templates` is not installed."""
    require_extra("templates")
    specs = [importlib.util.find_spec(package) for package in packages]
    return sorted({os.path.dirname(os.path.dirname(spec.origin)) for spec in specs if spec and spec.origin})


def _run_child(request: bytes, bounds: ChildBounds) -> dict[str, Any]:
    """Run the child process with this request and return its answer. Raises `TemplateStopped` if it exceeds a limit.
    The process has ended when this returns or raises."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", "-X", "utf8", child.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        close_fds=True,
    )
    try:
        output, _ = process.communicate(request, timeout=bounds.wall_seconds)
    except subprocess.TimeoutExpired:
        raise _limit_error("wall", bounds) from None
    finally:
        process.kill()
        process.communicate()
    return _parse_answer(output, process.returncode, bounds)


def _parse_answer(output: bytes, code: int, bounds: ChildBounds) -> dict[str, Any]:
    """Return the answer in the output of the child, which ended with this exit code. Raises `TemplateStopped` if it was
    killed, for its CPU time, or wrote no answer, for lack of memory."""
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise _limit_error("cpu", bounds)
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        raise _limit_error("memory", bounds) from None  # nothing was left to say even that
    return answer


def _limit_error(limit: str, bounds: ChildBounds) -> TemplateStopped:
    """Return, without raising it, the error for the exceeded limit: "cpu", "wall", "memory" or "output"."""
    causes = {
        "cpu": f"it used more than {bounds.cpu_seconds} seconds of CPU time",
        "wall": f"it took longer than {bounds.wall_seconds} seconds",
        "memory": f"it needs more memory than {bounds.memory:,} bytes",
        "output": f"it wrote more than {bounds.output:,} characters",
    }
    return TemplateStopped(limit, causes[limit])
