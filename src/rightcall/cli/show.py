"""How replies are shown. All text from outside passes `visible` and is never read as markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text as Styled

from rightcall.cli.safe import brief, visible
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
_LABEL = 11


def console(*, width: int | None = None, stderr: bool = False) -> Console:
    """Standard output, or error: no markup, no highlighting, no emoji codes, nothing cut at the edge."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=width is None, width=width, stderr=stderr)


def row(out: Console, label: str, text: str, style: str = "default") -> None:
    """A label, and text that may have several lines, beside each other."""
    for i, line in enumerate(text.split("\n")):
        out.print(Styled.assemble(((label if i == 0 else "").ljust(_LABEL), "bold"), (line, style)))


def show_reply(out: Console, reply: Reply) -> None:
    """The parts in the order written, then the problems."""
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
    show_problems(out, reply.problems)


def show_call(out: Console, number: int, call: Call) -> None:
    """Name, id, arguments and receipts."""
    name = brief(call.name) or "(no name)"
    verdict = "" if call.ok else "  must not run" if call.complete else "  not usable: it never became complete"
    row(out, f"call {number}", f"{name}  id {brief(call.id)}{verdict}", "bold green" if call.ok else "bold red")
    if call.complete:
        row(out, "", visible(_pretty(call)), STYLES["call"] if call.ok else "red")
    else:
        row(out, "", visible(call.raw), "red")
    for repair in call.repairs:
        row(out, "repair", receipt(repair), "yellow")


def receipt(repair: Repair) -> str:
    """One receipt on one line: the rule, its kind, where, and what became of what."""
    where = f" at {brief(repair.path)}" if repair.path else ""
    before, after = brief(repair.before) or "(nothing)", brief(repair.after) or "(nothing)"
    return f"{repair.rule} ({repair.kind}){where}: {before} -> {after}"


def _pretty(call: Call) -> str:
    try:
        return json.dumps(call.arguments, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a number too large for a float: the exact text still says it
        return call.json


def show_problems(out: Console, problems: Iterable[Problem]) -> None:
    for problem in problems:
        about = "" if problem.call is None else f" (call {problem.call + 1})"
        path = f" at {brief(problem.path)}" if problem.path else ""
        style = "red" if problem.blocking else "yellow"
        label = "problem" if problem.blocking else "note"
        row(out, label, f"{problem.code}{about}{path}: {brief(problem.message, 500)}", style)


# -- explain -----------------------------------------------------------------------------------------------------------


def show_spans(out: Console, text: str, spans: Sequence[Span]) -> None:
    """The text with every span coloured by what it became; without colours, one labelled line each."""
    if out.color_system is None or out.no_color:
        for span in spans:
            piece = visible(text[span.start : span.end], one_line=True)
            out.print(f"{span.start:>7}-{span.end:<7} {span.kind:<{_LABEL}}{piece}")
        return
    legend = Styled()
    for kind, style in STYLES.items():
        legend.append(f" {kind} ", style).append("  ")
    out.print(legend)
    coloured = Styled()
    for span in spans:
        coloured.append(visible(text[span.start : span.end]), STYLES[span.kind])
    out.print(coloured)


def show_events(out: Console, events: Iterable[tuple[int, Event]]) -> None:
    """One line per event; the number is how much of the text had been fed when it came."""
    for fed, event in events:
        out.print(f"{fed:>7}  {_event(event)}")


def _event(event: Event) -> str:
    name = type(event).__name__.ljust(_LABEL)
    if isinstance(event, (Text, Reasoning)):
        return f"{name}{brief(event.text)}"
    if isinstance(event, CallStart):
        return f"{name}{event.index + 1}  {brief(event.name)}  id {brief(event.id)}"
    if isinstance(event, Arguments):
        return f"{name}{event.index + 1}  {brief(event.json)}"
    if isinstance(event, CallEnd):
        return f"{name}{event.index + 1}  {'complete' if event.call.complete else 'not complete'}"
    if isinstance(event, Recast):
        return f"{name}the last {event.chars} characters of text were {event.kind}"
    if isinstance(event, Done):
        return f"{name}{brief(event.text)}"
    return f"{name}{event.code}: {brief(event.message, 500)}"
