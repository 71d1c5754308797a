"""Render one untrusted template. `confined` runs this file as a program (`python -I template_child.py`).

A request is read from standard input and the answer is written to standard output, both as one JSON object. The process
first gives up the resources that it does not need (memory, CPU time, files), so that neither a mistake nor malice in a
template can use more. It imports nothing of rightcall.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any


def main() -> None:
    """Read the request from standard input, limit the resources of this process, render, and write the answer to
    standard output, both as JSON. The answer is {"missing": "jinja2"} if that is not installed."""
    request = json.loads(sys.stdin.buffer.read())
    sys.path[:0] = request["path"]
    try:
        import jinja2.ext
        import jinja2.sandbox  # noqa: F401 - loaded while there is still room for it
    except ImportError:
        answer: dict[str, Any] = {"missing": "jinja2"}
    else:
        limit_resources(request["cpu_seconds"], request["memory"])
        answer = render_contexts(request)
    sys.stdout.write(json.dumps(answer))


def limit_resources(cpu_seconds: int, memory: int) -> None:
    """Limit CPU time in seconds and memory in bytes of this process, and forbid it to write files. A limit that the
    system does not support is skipped; macOS does not enforce the memory limit."""
    for limit, most in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(limit, (most, most))
        except (ValueError, OSError):
            continue


def render_contexts(request: dict[str, Any]) -> dict[str, Any]:
    """Return {"results": [...]} with the text or error of each context; {"stopped": "memory" or "output"} if a limit
    was reached; {"error": message} if the template itself cannot be used."""
    left = request["output"]
    try:
        template = compile_template(request["template"], request["now"])
        results: list[dict[str, str]] = []
        for context in request["contexts"]:
            results.append(render_context(template, context, left))
            left -= len(results[-1].get("text", ""))
    except MemoryError:
        return {"stopped": "memory"}
    except OutputTooLong:
        return {"stopped": "output"}
    except RecursionError:
        return {"error": "it is nested too deeply"}
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the template is the answer
        return {"error": error_summary(error)}
    return {"results": results}


class OutputTooLong(Exception):
    """The template wrote more than is allowed."""


def render_context(template: Any, context: dict[str, Any], most: int) -> dict[str, str]:
    """Return {"text": ...} with the rendered text, or {"error": ...} if the template raises an error, since it may
    accept another conversation. Raises `OutputTooLong` beyond `most` characters, and `MemoryError`."""
    pieces: list[str] = []
    try:
        for piece in template.generate(**context):
            pieces.append(piece)
            most -= len(piece)
            if most < 0:
                raise OutputTooLong
    except (MemoryError, OutputTooLong):
        raise
    except Exception as error:  # noqa: BLE001 - a template may refuse one conversation and take another
        return {"error": error_summary(error)}
    return {"text": "".join(pieces)}


def error_summary(error: Exception) -> str:
    """Return the class and message of an error, cut to 500 characters."""
    return f"{type(error).__name__}: {error}"[:500]


def compile_template(source: str, now: str) -> Any:
    """Return the compiled template, in a sandboxed environment with the functions of model libraries; `now` is the time
    that it sees, in ISO 8601. Raises errors of jinja for an invalid template."""
    from datetime import datetime

    from jinja2.exceptions import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> None:
        """Raise `TemplateError` with this message: templates call it for conversations that they do not accept."""
        raise TemplateError(message)

    def strftime_now(format: str) -> str:
        """Return the fixed time `now` in this format of `strftime`."""
        return datetime.fromisoformat(now).strftime(format)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", generation_extension()]
    )
    environment.filters["tojson"] = template_to_json
    environment.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return environment.from_string(source)


def template_to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Return a value as JSON without HTML escapes; jinja's own filter `tojson` escapes them, which no model was trained
    on."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def generation_extension() -> type[Any]:
    """Return the jinja extension for `{% generation %}`, which marks training text; its content is rendered
    unchanged."""
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012 - jinja wants it so

        def parse(self, parser: Any) -> Any:
            """Return the nodes between `{% generation %}` and `{% endgeneration %}`, unchanged."""
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    return Generation


if __name__ == "__main__":
    main()
