"""`rightcall explain CODE`: explain a problem code, a repair rule, an event or a format."""

from __future__ import annotations

import difflib
import inspect
import json as json_module
from typing import Annotated

import msgspec
import typer

from rightcall.cli.formats_command import render_sample
from rightcall.cli.inputs import AsJson, code_names, exit_with_usage_error, register_own_formats
from rightcall.cli.layout import console, format_json, heading, paragraph, row, table
from rightcall.formats import find, known_formats
from rightcall.formats.spec import Format
from rightcall.problems import CODES, Code
from rightcall.repairs.rules import RULES, RepairRule
from rightcall.safe_text import visible
from rightcall.types import Arguments, CallEnd, CallStart, Done, Problem, Reasoning, Recast, Text, to_json

_LONGEST = 400
_EVENTS = {each.__name__: each for each in (Text, Reasoning, CallStart, Arguments, CallEnd, Problem, Recast, Done)}
_RULES = {rule.name: rule for rule in reversed(RULES)}  # the first of several examples
_KINDS = {
    "exact": "exact: the input has only one reading",
    "schema": "schema: the declared schema determines the value",
    "guess": "guess: likely, not certain; applied to read-only tools, and to all with the policy lenient",
}


class Topic(msgspec.Struct, frozen=True):
    """An explanation of one name: `what` is one sentence, `more` has further texts by label."""

    kind: str
    name: str
    what: str
    more: dict[str, str]


def explain(
    code: Annotated[
        str,
        typer.Argument(
            metavar="CODE",
            help="A problem code, a repair rule, an event or a format; without it, all are listed.",
            autocompletion=code_names,
        ),
    ] = "",
    json: AsJson = False,
) -> None:
    """Explain a name in rightcall's output: a problem code, a repair rule, an event or a format."""
    register_own_formats()
    if not code:
        _print_names(json)
        return
    topic = find_topic(code)
    if topic is None:
        near = difflib.get_close_matches(code[:64], _known_names(), 3, 0.5) or difflib.get_close_matches(
            code[:64].lower(), _known_names(), 3, 0.5
        )
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        exit_with_usage_error(f"unknown code {code[:80]!r}; {hint}`rightcall explain` lists all codes")
    if json:
        typer.echo(format_json(to_json(topic)))
    else:
        _print_topic(topic)


def summaries() -> dict[str, tuple[str, str]]:
    """Return a dict from every name that can be explained to its kind and a sentence about it."""
    problems = {each.code: ("problem", each.cause) for each in CODES.values()}
    rules = {rule.name: ("repair", rule.what) for rule in RULES}
    events = {name: ("event", _split_event_docstring(event)[0]) for name, event in _EVENTS.items()}
    return {
        **problems,
        **rules,
        **events,
        **{each.name: ("format", each.models) for each in known_formats().formats.values()},
    }


def find_topic(name: str) -> Topic | None:
    """Return the explanation of a problem code, a repair rule, an event or a format; None for another name."""
    if name in CODES:
        return _problem_topic(CODES[name])
    if name in _RULES:
        return _rule_topic(_RULES[name])
    if name in _EVENTS:
        return _event_topic(name)
    return _format_topic(find(name)) if name in _known_names() else None


def _known_names() -> list[str]:
    """Return every name that can be explained, with the aliases of formats."""
    return [*summaries(), *[alias for format in known_formats().formats.values() for alias in format.aliases]]


def _problem_topic(code: Code) -> Topic:
    """Return the explanation of a problem code."""
    effect = "the call is rejected" if code.blocking else "a note: no call is rejected for it"
    more = {"effect": effect, "cure": code.cure, "example": code.example[:_LONGEST]}
    return Topic("problem", code.code, code.cause, more)


def _rule_topic(rule: RepairRule) -> Topic:
    """Return the explanation of a repair rule, with its example."""
    becomes = json_module.dumps(rule.arguments, ensure_ascii=False)
    return Topic("repair", rule.name, rule.what, {"kind": _KINDS[rule.kind], "sent": rule.sent, "becomes": becomes})


def _event_topic(name: str) -> Topic:
    """Return the explanation of an event, from the docstring of its class."""
    about, fields = _split_event_docstring(_EVENTS[name])
    return Topic("event", name, about, {"fields": fields})


def _split_event_docstring(event: type) -> tuple[str, str]:
    """Return the first paragraph of an event class's docstring in one line, and the rest, which lists its fields."""
    about, _, fields = inspect.cleandoc(event.__doc__ or "").partition("\n\n")
    return " ".join(about.split()), fields.strip()


def _format_topic(format: Format) -> Topic:
    """Return the explanation of a format, with its aliases and a sample reply."""
    what = f"How calls are written by {format.models}." if format.models else "A wire format."
    return Topic("format", format.name, what, {"aliases": ", ".join(format.aliases), "sample": render_sample(format)})


def _print_topic(topic: Topic) -> None:
    """Print one explanation: its kind, name and sentence, then its further texts with their labels."""
    out = console()
    row(out, topic.kind, topic.name, "bold")
    row(out, "what", topic.what)
    for label, text in topic.more.items():
        if text:
            row(out, label, visible(text), "green" if label in ("example", "sample", "sent", "becomes") else "default")


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line, without its full stop."""
    return visible(text, one_line=True).partition(". ")[0].rstrip(".")


def _print_names(json: bool) -> None:
    """Print all names that can be explained, by kind, each with a sentence; or as JSON."""
    found = summaries()
    if json:
        typer.echo(format_json([{"name": name, "kind": kind, "what": what} for name, (kind, what) in found.items()]))
        return
    out = console()
    for kind in dict.fromkeys(kind for kind, _ in found.values()):
        rows = [(name, _first_sentence(what)) for name, (each, what) in found.items() if each == kind]
        heading(out, f"{kind}s")
        table(out, ("", ""), rows, indent=2)
        out.print()
    paragraph(out, "`rightcall explain CODE` shows the details of one.", "dim")
