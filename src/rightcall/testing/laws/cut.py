"""The cut law: what is read does not depend on how the text arrives, live or not, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from rightcall.formats.spec import Format
from rightcall.testing.laws.case import Case, Violation, raised
from rightcall.testing.laws.fold_of_events import events_law, joined
from rightcall.testing.laws.lost import nothing_lost_law
from rightcall.testing.laws.reading import USUAL, How, Reading, at_once, cuttings, read
from rightcall.testing.laws.samples import renderings, texts
from rightcall.tools.toolset import Toolset
from rightcall.types import Arguments, Event, Recast, Reply


def cut_law(
    format: str | Format,
    text: str,
    *,
    tools: Toolset | None = None,
    seed: int = 0,
    how: How = USUAL,
    cuts: Mapping[str, Sequence[str]] | None = None,
) -> list[Violation]:
    """One reply and the same joined events however the text is cut; the events add up to it, and nothing is lost. Read
    `live` it holds the same calls. Held back, nothing is recast.

    - `format`: a name, or a `Format`.
    - `text`: any text.
    - `tools`: what may be called; None: names are not checked.
    - `seed`: says where it is cut at random.
    - `how`: the other options of the reading.
    - `cuts`: other ways to cut than `cuttings`, by name.
    """
    try:
        ways = cuttings(format, text, seed) if cuts is None else cuts
        return next(_violations(format, text, tools, how, ways), [])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]


def _violations(
    format: str | Format, text: str, tools: Toolset | None, how: How, ways: Mapping[str, Sequence[str]]
) -> Iterator[list[Violation]]:
    at_rest = read(format, [text], tools=tools, how=how)
    yield from _said(text, "read at once", reply_difference(at_rest.reply, at_once(format, text, tools=tools, how=how)))
    yield from filter(None, [nothing_lost_law(format, text, at_rest.reply), events_law(at_rest, text)])
    preview = read(format, [text], tools=tools, how=how, live=True)
    yield from filter(None, [live_law(at_rest.reply, preview.reply, text), events_law(preview, text, live=True)])
    for live, whole in ((False, at_rest), (True, preview)):
        for way, chunks in ways.items():
            got = read(format, chunks, tools=tools, how=how, live=live)
            yield from _said(text, f"cut {way}{', live' if live else ''}", _difference(whole, got))
            yield from filter(None, [events_law(got, text, live=live)])
    for way, chunks in list(ways.items())[:1]:
        yield from _held(format, text, tools, how, way, chunks, at_rest.reply)


def _held(
    format: str | Format, text: str, tools: Toolset | None, how: How, way: str, chunks: Sequence[str], whole: Reply
) -> Iterator[list[Violation]]:
    held = read(format, chunks, tools=tools, how=how, hold=True)
    yield from _said(text, f"held back, cut {way}", reply_difference(whole, held.reply))
    if any(isinstance(event, Recast) for event in held.events):
        yield [Violation("cut", "what is held back is recast all the same", text)]
    looked = read(format, chunks, tools=tools, how=how, look=True)
    yield from _said(text, f"looked at after each piece, cut {way}", reply_difference(whole, looked.reply))


def _said(text: str, way: str, what: str) -> Iterator[list[Violation]]:
    if what:
        yield [Violation("cut", f"{way}: {what}", text)]


def reply_difference(whole: Reply, other: Reply) -> str:
    if whole != other:
        for field in ("parts", "problems", "spans", "format", "done"):
            a, b = getattr(whole, field), getattr(other, field)
            if a != b:
                return f"the {field} are {b!r}, not {a!r}"
    return ""


def _difference(whole: Reading, cut: Reading) -> str:
    what = reply_difference(whole.reply, cut.reply)
    if what:
        return what
    a, b = _told(whole), _told(cut)
    return "" if a == b else f"the joined events are {b!r}, not {a!r}"


def _told(got: Reading) -> list[Event]:
    """The joined events. How much went out of a call that never became one is up to the cut."""
    lost = {i for i, call in enumerate(got.reply.attempts) if not call.complete}
    return joined([event for event in got.events if not (isinstance(event, Arguments) and event.index in lost)])


# -- live --------------------------------------------------------------------------------------------------------------


def live_law(at_rest: Reply, live: Reply, text: str) -> list[Violation]:
    """Live pieces are a preview: the calls are the same, and so is what is wrong with them. `at_rest` and `live` are
    the replies that were read of the same `text` without and with it."""
    a, b = _gist(at_rest), _gist(live)
    return [] if a == b else [Violation("live", f"live it reads {b!r}, at rest {a!r}", text)]


def _gist(reply: Reply) -> object:
    calls = [(call.name, call.arguments, call.complete, call.ok) for call in reply.attempts]
    problems = sorted((p.code, p.path, -1 if p.call is None else p.call, p.blocking) for p in reply.problems)
    return calls, problems, reply.content, reply.reasoning


# -- examples ----------------------------------------------------------------------------------------------------------


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Renderings, texts that nobody rendered, and beginnings of both."""
    rendered = list(renderings(format, seed, count // 3 + 1))
    dice = Random(f"{seed} {format.name} cut")
    for text in texts(format, rendered, seed, count - count // 3):
        yield Case("cut", text, seed=seed)
    for text in rendered[: count // 3]:
        yield Case("cut", text[: dice.randrange(len(text) + 1)] if dice.random() < 0.3 else text, seed=seed)


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return cut_law(format, case.text, tools=tools, seed=case.seed, how=how)
