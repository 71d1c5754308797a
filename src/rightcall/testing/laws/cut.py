"""The cut law, the live law and the events law: the reply does not depend on how the text arrives, and the events of a
parse add up to its reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from rightcall.formats.spec import Format
from rightcall.testing.laws.lost import nothing_lost_law
from rightcall.testing.laws.reading import USUAL, How, Reading, cuttings, parse_whole, read
from rightcall.testing.laws.samples import Case, Violation, raised_violation, renderings, texts
from rightcall.tools.toolset import Toolset
from rightcall.types import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    Done,
    Event,
    Part,
    Problem,
    Reasoning,
    Recast,
    Reply,
    Span,
    Text,
)


def cut_law(
    format: str | Format,
    text: str,
    *,
    tools: Toolset | None = None,
    seed: int = 0,
    how: How = USUAL,
    cuts: Mapping[str, Sequence[str]] | None = None,
) -> list[Violation]:
    """Return a list with the first violation of this law, [] if there is none: however the text is divided into chunks,
    the reply and the joined events are the same; the events add up to the reply, and no text is lost. With `live`, the
    calls are the same. With `hold`, there is no `Recast` event. An exception is a violation.

    - `format`: a name, or a `Format`.
    - `text`: any text.
    - `tools`: the declared tools; None: names are not checked.
    - `seed`: selects the random positions of cuts.
    - `how`: the other options of the parser.
    - `cuts`: divisions of the text to use instead of `cuttings`, by name.
    """
    try:
        divisions = cuttings(format, text, seed) if cuts is None else cuts
        return next(_find_violations(format, text, tools, how, divisions), [])
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, text)]


def _find_violations(
    format: str | Format, text: str, tools: Toolset | None, how: How, divisions: Mapping[str, Sequence[str]]
) -> Iterator[list[Violation]]:
    """Yield the violations of the cut law, each in a list, as they are found: the text is parsed at once, live, in the
    chunks of each division, and held back. Exceptions of the parser are not caught."""
    at_rest = read(format, [text], tools=tools, how=how)
    yield from _yield_cut_violation(
        text, "read at once", reply_difference(at_rest.reply, parse_whole(format, text, tools=tools, how=how))
    )
    yield from filter(None, [nothing_lost_law(format, text, at_rest.reply), events_law(at_rest, text)])
    preview = read(format, [text], tools=tools, how=how, live=True)
    yield from filter(None, [live_law(at_rest.reply, preview.reply, text), events_law(preview, text, live=True)])
    for live, whole in ((False, at_rest), (True, preview)):
        for name, chunks in divisions.items():
            got = read(format, chunks, tools=tools, how=how, live=live)
            yield from _yield_cut_violation(
                text, f"cut {name}{', live' if live else ''}", _describe_reading_difference(whole, got)
            )
            yield from filter(None, [events_law(got, text, live=live)])
    for name, chunks in list(divisions.items())[:1]:
        yield from _find_hold_violations(format, text, tools, how, name, chunks, at_rest.reply)


def _find_hold_violations(
    format: str | Format, text: str, tools: Toolset | None, how: How, name: str, chunks: Sequence[str], whole: Reply
) -> Iterator[list[Violation]]:
    """Yield a list with each violation of two further parses in these chunks, one with `hold` and one whose reply is
    read after each chunk: the reply must be `whole`, and a held text is never recast."""
    held = read(format, chunks, tools=tools, how=how, hold=True)
    yield from _yield_cut_violation(text, f"held back, cut {name}", reply_difference(whole, held.reply))
    if any(isinstance(event, Recast) for event in held.events):
        yield [Violation("cut", "text is recast although it is held back", text)]
    observed = read(format, chunks, tools=tools, how=how, look=True)
    yield from _yield_cut_violation(
        text, f"reply read after each chunk, cut {name}", reply_difference(whole, observed.reply)
    )


def _yield_cut_violation(text: str, name: str, what: str) -> Iterator[list[Violation]]:
    """Yield a list with one violation of the cut law, with the text, the name of the parse and the difference `what`;
    nothing if `what` is empty."""
    if what:
        yield [Violation("cut", f"{name}: {what}", text)]


def reply_difference(whole: Reply, other: Reply) -> str:
    """Return a description of the first difference of two replies; "" if they are equal."""
    if whole != other:
        for field in ("parts", "problems", "spans", "format", "done"):
            a, b = getattr(whole, field), getattr(other, field)
            if a != b:
                return f"the {field} are {b!r}, not {a!r}"
    return ""


def _describe_reading_difference(whole: Reading, cut: Reading) -> str:
    """Return a description of the first difference of two parses of one text, in their replies or joined events; "" if
    there is none."""
    what = reply_difference(whole.reply, cut.reply)
    if what:
        return what
    a, b = _joined_events(whole), _joined_events(cut)
    return "" if a == b else f"the joined events are {b!r}, not {a!r}"


def _joined_events(got: Reading) -> list[Event]:
    """Return the events of a parse, pieces joined, without the arguments of incomplete calls: how many of those were
    emitted depends on the chunks."""
    incomplete = {i for i, call in enumerate(got.reply.attempts) if not call.complete}
    return join_events(
        [event for event in got.events if not (isinstance(event, Arguments) and event.index in incomplete)]
    )


# -- live --------------------------------------------------------------------------------------------------------------


def live_law(at_rest: Reply, live: Reply, text: str) -> list[Violation]:
    """Return a list with one violation if the calls, problems, text or reasoning of two replies differ, otherwise
    []; ids are not compared. `at_rest` and `live` are the replies of the same `text`, parsed without and with
    `live`."""
    a, b = _comparable_parts(at_rest), _comparable_parts(live)
    return [] if a == b else [Violation("live", f"live it reads {b!r}, at rest {a!r}", text)]


def _comparable_parts(reply: Reply) -> object:
    """Return what the replies of a live parse and of any other parse of one text must have in common, as a value to
    compare: calls, problems, text and reasoning."""
    calls = [(call.name, call.arguments, call.complete, call.ok) for call in reply.attempts]
    problems = sorted((p.code, p.path, -1 if p.call is None else p.call, p.blocking) for p in reply.problems)
    return calls, problems, reply.content, reply.reasoning


# -- examples ----------------------------------------------------------------------------------------------------------


def cut_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield about `count` cases for the cut law: damaged and random texts, then renderings and prefixes of
    renderings."""
    rendered = list(renderings(format, seed, count // 3 + 1))
    dice = Random(f"{seed} {format.name} cut")
    for text in texts(format, rendered, seed, count - count // 3):
        yield Case("cut", text, seed=seed)
    for text in rendered[: count // 3]:
        yield Case("cut", text[: dice.randrange(len(text) + 1)] if dice.random() < 0.3 else text, seed=seed)


def events_law(got: Reading, text: str, *, live: bool = False) -> list[Violation]:
    """Return a list with one violation if the events do not add up to the reply, or the pieces of a call's arguments
    are not its arguments; otherwise [].

    - `got`: the events and the reply of a parse.
    - `text`: the text.
    - `live`: whether it was parsed live, so that pieces are a preview.
    """
    what = _reply_mismatch(got) or _calls_mismatch(got, live)
    return [Violation("events", what, text)] if what else []


def _reply_mismatch(got: Reading) -> str:
    """Return a description of how the reply of a parse differs from the reply that its events make; "" if it does
    not."""
    folded = reply_of_events(got.events, got.reply.format, got.reply.spans)
    for name in ("parts", "problems", "done"):
        a, b = getattr(folded, name), getattr(got.reply, name)
        if a != b:
            return f"the {name} of the events are {a!r}, those of the reply {b!r}"
    return ""


def _calls_mismatch(got: Reading, live: bool) -> str:
    """Return a description of how the events of calls contradict each other or the reply; "" if they do not. After a
    `live` parse, pieces of arguments may differ from arguments that were repaired."""
    pieces: dict[int, str] = {}
    ended: dict[int, Call] = {}
    for event in got.events:
        if isinstance(event, Arguments):
            if event.index in ended:
                return "arguments after the end of their call"
            pieces[event.index] = pieces.get(event.index, "") + event.json
        elif isinstance(event, CallEnd):
            ended[event.index] = event.call
    started = [event for event in got.events if isinstance(event, CallStart)]
    return _order_mismatch(started, ended, got.reply) or _pieces_mismatch(started, ended, pieces, live)


def _order_mismatch(started: list[CallStart], ended: dict[int, Call], reply: Reply) -> str:
    """Return a description of how the starts and ends of calls do not fit each other or the attempts of the reply; ""
    if they do."""
    if [start.index for start in started] != list(range(len(started))) or set(ended) != set(range(len(started))):
        return f"calls began as {[start.index for start in started]} and ended as {list(ended)}"
    if [ended[i] for i in range(len(started))] != list(reply.attempts):
        return "the calls that ended are not the attempts of the reply"
    return ""


def _pieces_mismatch(started: list[CallStart], ended: dict[int, Call], pieces: dict[int, str], live: bool) -> str:
    """Return a description of the first call whose start, end and joined pieces do not fit each other; "" if all do.
    `ended` and `pieces` are by the index of the call."""
    for start in started:
        what = _call_mismatch(start, ended[start.index], pieces.get(start.index, ""), live)
        if what:
            return f"call {start.index + 1}: {what}"
    return ""


def _incomplete_call_mismatch(call: Call) -> str:
    """Return a description of what is wrong with an incomplete call, which must have no arguments and a problem that
    blocks it; "" if nothing is."""
    if call.arguments or call.ok:
        return "it was cut off and has arguments"
    return "" if any(problem.blocking for problem in call.problems) else "it was cut off and nothing blocks it"


def _call_mismatch(start: CallStart, call: Call, pieces: str, live: bool) -> str:
    """Return a description of how a call differs from its start and its joined pieces; "" if it does not. After a
    `live` parse, the pieces may differ if the call was repaired."""
    if (start.name, start.id) != (call.name, call.id):
        return f"it began as {start.name!r} ({start.id}) and is {call.name!r} ({call.id})"
    if not call.complete:
        return _incomplete_call_mismatch(call)
    # Live pieces may differ from the final arguments only if a repair says what was changed.
    if pieces != call.json and not (live and call.repairs):
        return f"the joined pieces are {pieces!r}, not {call.json!r}"
    if call.ok and json.loads(call.json) != call.arguments:
        return f"its json is {call.json!r}, its arguments are {call.arguments!r}"
    return ""


# -- joining and folding -----------------------------------------------------------------------------------------------


def join_events(events: Iterable[Event]) -> list[Event]:
    """Return the events with adjacent pieces of the same text, reasoning or arguments joined; the given ones are not
    changed."""
    out: list[Event] = []
    for event in events:
        one = _join_pair(out[-1], event) if out else None
        if one is None:
            out.append(event)
        else:
            out[-1] = one
    return out


def _join_pair(last: Event, event: Event) -> Event | None:
    """Return two events as one if they are pieces of the same text, reasoning or arguments; None if they are not."""
    if isinstance(event, Text) and isinstance(last, Text) and last.tag == event.tag:
        return Text(last.text + event.text, event.tag)
    if isinstance(event, Reasoning) and isinstance(last, Reasoning):
        return Reasoning(last.text + event.text)
    if isinstance(event, Arguments) and isinstance(last, Arguments) and last.index == event.index:
        return Arguments(event.index, last.json + event.json)
    return None


def reply_of_events(events: Iterable[Event], format: str, spans: tuple[Span, ...] | None) -> Reply:
    """Return the reply that the events make, with this format and these spans. A call is placed where it began; one
    without an end is left out. Recast text is moved or removed."""
    parts: list[Part | int] = []
    ended: dict[int, Call] = {}
    problems: list[Problem] = []
    done: str | None = None
    for event in join_events(events):
        if isinstance(event, (Text, Reasoning)):
            parts.append(event)
        elif isinstance(event, CallStart):
            parts.append(event.index)
        elif isinstance(event, CallEnd):
            ended[event.index] = event.call
        elif isinstance(event, Problem):
            problems.append(event)
        elif isinstance(event, Recast):
            parts = _apply_recast(parts, event)
        elif isinstance(event, Done):
            done = event.text
    return Reply(tuple(_join_parts(_insert_calls(parts, ended))), tuple(problems), format, done, spans)


def _insert_calls(parts: list[Part | int], ended: dict[int, Call]) -> list[Part]:
    """Return the parts with each index replaced by its call, or left out if the call did not end."""
    complete: list[Part] = []
    for part in parts:
        if not isinstance(part, int):
            complete.append(part)
        elif part in ended:
            complete.append(ended[part])
    return complete


def _join_parts(parts: list[Any]) -> list[Any]:
    """Join adjacent text and reasoning parts, which a problem may have separated."""
    return join_events(parts)


def _apply_recast(parts: list[Part | int], event: Recast) -> list[Part | int]:
    """Return the parts with the last `event.chars` characters of text turned into reasoning or removed, or for the kind
    "thought" those of reasoning removed: the parser has found that they belong to a call, or to reasoning."""
    chars, out = event.chars, list[Part | int]()
    if event.kind == "thought":
        rest = "".join([part.text for part in parts if isinstance(part, Reasoning)])[: -chars or None]
        return _shorten_reasoning(parts, len(rest))
    for part in reversed(parts):
        if isinstance(part, Text) and chars:
            taken = min(chars, len(part.text))
            chars -= taken
            if event.kind == "reasoning":
                out.append(Reasoning(part.text[len(part.text) - taken :]))
            if taken < len(part.text):
                out.append(Text(part.text[: len(part.text) - taken], part.tag))
        else:
            out.append(part)
    return out[::-1]


def _shorten_reasoning(parts: list[Part | int], keep: int) -> list[Part | int]:
    """Return the parts with only the first `keep` characters of their reasoning, counted over all parts; other parts
    are unchanged."""
    out: list[Part | int] = []
    for part in parts:
        if isinstance(part, Reasoning):
            if keep:
                out.append(Reasoning(part.text[:keep]))
            keep = max(0, keep - len(part.text))
        else:
            out.append(part)
    return out
