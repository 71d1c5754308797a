"""Print replies, calls, problems, spans and events. Text of a model passes `visible` and is never parsed as markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text as Styled

from rightcall.cli.layout import LABEL, paragraph, row
from rightcall.safe_text import brief, visible
from rightcall.types import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    Done,
    Event,
    Problem,
    Reasoning,
    Recast,
    Repair,
    Reply,
    Span,
    SpanKind,
    Text,
)

STYLES: dict[SpanKind, str] = {
    "text": "default",
    "reasoning": "italic cyan",
    "call": "green",
    "marker": "black on bright_black",
}


def show_reply(out: Console, reply: Reply) -> None:
    """Print the parts of a reply in order, each call with its verdict, then the problems that no verdict names."""
    row(out, "format", reply.format)
    index = 0
    for part in reply.parts:
        if isinstance(part, Call):
            index += 1
            show_call(out, index, part)
        else:
            kind: SpanKind = "reasoning" if isinstance(part, Reasoning) else "text"
            row(out, kind, visible(part.text), STYLES[kind])
    if not reply.parts:
        row(out, "text", "(nothing)", "dim")
    if reply.done is not None:
        row(out, "done", visible(reply.done) or "(nothing)", STYLES["text"])
    show_problems(out, other_problems(reply.problems, reply.attempts))


def show_call(out: Console, number: int, call: Call) -> None:
    """Print a call with its number: name and verdict on one line, then its arguments (of an incomplete call its raw
    text) and repairs."""
    row(out, f"call {number}", call_status(call))
    if call.complete:
        row(out, "", visible(_format_arguments(call)), STYLES["call"] if call.ok else "red")
    else:
        row(out, "", visible(call.raw), "red")
    for repair in call.repairs:
        row(out, "repair", format_repair(repair), "yellow")


def call_status(call: Call) -> Styled:
    """Return the name of a call and its verdict, "runnable" or "rejected" with the reason, as styled text; and its id,
    if the model wrote it."""
    style = "green" if call.ok else "red"
    text = Styled(brief(call.name) or "(no name)", f"bold {style}").append("  ")
    reason = blocking_problem(call)
    if call.ok:
        text.append("runnable", style)
    elif reason is None:
        text.append("rejected: the call is incomplete", style)
    else:
        path = f" at {brief(reason.path)}" if reason.path else ""
        text.append(f"rejected: {brief(reason.message, 500)} ({reason.code}{path})", style)
    return text.append(f"  id {brief(call.id)}", "dim") if call.id and call.id in call.raw else text


def other_problems(problems: Iterable[Problem], calls: Iterable[Call]) -> list[Problem]:
    """Return the problems that are not the first blocking problem of one of these calls: the verdicts of calls show
    that one."""
    named = [reason for call in calls if (reason := blocking_problem(call)) is not None]
    return [problem for problem in problems if problem not in named]


def blocking_problem(call: Call) -> Problem | None:
    """Return the first problem that blocks a call. None if the call is ok, and for an incomplete call that has no such
    problem."""
    return None if call.ok else next((problem for problem in call.problems if problem.blocking), None)


def format_repair(repair: Repair) -> str:
    """Return a repair in one line: the rule, its kind, the path, and the values before and after."""
    where = f" at {brief(repair.path)}" if repair.path else ""
    before, after = brief(repair.before) or "(nothing)", brief(repair.after) or "(nothing)"
    return f"{repair.rule} ({repair.kind}){where}: {before} -> {after}"


def _format_arguments(call: Call) -> str:
    """Return the arguments of a call as indented JSON, or their exact text if a number is too large for JSON."""
    try:
        return json.dumps(call.arguments, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a number too large for a float: show the exact text
        return call.json


def show_problems(out: Console, problems: Iterable[Problem]) -> None:
    """Print one line per problem: code, call, place and message."""
    for problem in problems:
        about = "" if problem.call is None else f" (call {problem.call + 1})"
        path = f" at {brief(problem.path)}" if problem.path else ""
        style = "red" if problem.blocking else "yellow"
        label = "problem" if problem.blocking else "note"
        row(out, label, f"{problem.code}{about}{path}: {brief(problem.message, 500)}", style)


# -- explain -----------------------------------------------------------------------------------------------------------


def show_spans(out: Console, text: str, spans: Sequence[Span]) -> None:
    """Print text with each span in the colour of its kind; without colours, one labelled line each."""
    if out.color_system is None or out.no_color:
        for span in spans:
            piece = visible(text[span.start : span.end], one_line=True)
            paragraph(out, piece, label=f"{span.start:>7}-{span.end:<7} {span.kind:<{LABEL}}")
        return
    legend = Styled()
    for kind, style in STYLES.items():
        legend.append(f" {kind} ", style).append("  ")
    paragraph(out, legend)
    coloured = Styled()
    for span in spans:
        coloured.append(visible(text[span.start : span.end]), STYLES[span.kind])
    paragraph(out, coloured)


def show_events(out: Console, events: Iterable[tuple[int, Event]]) -> None:
    """Print one line for each event, after the number of characters that were fed before it was emitted."""
    for fed, event in events:
        paragraph(out, _format_event(event), label=f"{fed:>7}  {type(event).__name__.ljust(LABEL)}")


def _format_event(event: Event) -> str:
    """Return an event in one line: its text, or the number of its call, from 1, with a detail; a problem as its code
    and message."""
    if isinstance(event, Text | Reasoning | Done):
        return brief(event.text)
    if isinstance(event, CallStart):
        return f"{event.index + 1}  {brief(event.name)}  id {brief(event.id)}"
    if isinstance(event, Arguments):
        return f"{event.index + 1}  {brief(event.json)}"
    if isinstance(event, CallEnd):
        return f"{event.index + 1}  {'complete' if event.call.complete else 'not complete'}"
    if isinstance(event, Recast):
        return f"the last {event.chars} characters of text were {event.kind}"
    return f"{event.code}: {brief(event.message, 500)}"
