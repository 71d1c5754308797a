"""A call in a block that cannot be read: where it is over, and what becomes of it.

It is read again, loosely, or it is rejected and its text is kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rightcall.parsing.buffer import Broken, Capture, Steps
from rightcall.parsing.call_builder import declared, name_at
from rightcall.parsing.markers import BLANKS, Scan

if TYPE_CHECKING:
    from rightcall.parsing.blocks import Block
    from rightcall.parsing.call_builder import CallBuilder

_QUOTES = "=\"' "
_BRACKETS = frozenset(")]}")  # what a text that was not cut off may end with
_LONGEST_OPENER = 1_024
_NO_NAME = "the call has no tool name; send the name of a tool with its arguments"
_UNREADABLE = "the call could not be read; send it again exactly as the format asks for"


def read_broken(block: Block, broken: Broken) -> Steps[None]:
    """Reads on to the call's close. The call is read again, loosely, or fails."""
    builder = block.builder
    found = yield from resync(block)
    if block.is_full():
        return
    closes = builder.compiled.closes
    if block.reread(closed=found and closes):
        if closes and not block.body_close and builder.compiled.call_close is None:
            builder.note("unclosed", "the marker that closes the call is missing")
    else:
        if builder.call is None and _is_nameless(block):
            broken = Broken("invalid_name", _NO_NAME)
        if builder.index == block.first and builder.raw_at == block.broken_at:
            builder.raw = builder.raw_at = block.content  # nothing of it was read: what stood before it is left of it
        builder.fail(broken.code, broken.message, broken.path, end=_end_of_broken(block, found, block.broken_at))
        builder.is_end_uncertain = True


def read_unreadable(block: Block) -> Steps[None]:
    """What follows the opener is no call as the format writes it: the call is rejected, its text is kept."""
    builder = block.builder
    builder.raw_drop()
    found = yield from resync(block)
    if not block.is_full():
        _unreadable(block, builder.captured(block.content), found)


def _unreadable(block: Block, content: str, found: bool) -> None:
    """A call that cannot be read: what of its name is known, and why it may not run."""
    builder, text = block.builder, content.lstrip()
    tag, name = _begin_known(block, text)
    if (tag and name is None) or _is_nameless(block):
        builder.fail("invalid_name", _NO_NAME)
    elif builder.ended and not found and (builder.compiled.closes or text.rstrip()[-1:] not in _BRACKETS):
        builder.fail("truncated", "the text ended before the call did; send the whole call again")
    else:
        known_to = block.content + len(content) - len(text) + (name.end() if name is not None else len(tag))
        builder.fail("invalid_call", _UNREADABLE, end=_end_of_broken(block, found, known_to))
    builder.is_end_uncertain = True


def is_cut_short(block: Block, opening: Capture, odd: bool) -> bool:
    """Does the text end inside of a longer opener, or of what opens a call behind this one? Then it is no prose. `odd`:
    the opener is a section's, behind which other openers stand."""
    builder, compiled = block.builder, block.builder.compiled
    if not builder.ended or builder.base + len(builder.buf) - opening > _LONGEST_OPENER:
        return False
    text = builder.captured(opening) + builder.buf[builder.pos :]
    if odd:
        return compiled.section_start is not None and compiled.section_start.is_begun(text, 0)
    rest = text[block.content - opening :].lstrip(BLANKS)
    is_begun = bool(rest) and any(reader.begins.is_begun(rest, 0) for reader in compiled.readers)
    return is_begun or compiled.begins.is_begun(text, 0)


def keep_rest(block: Block) -> None:
    """All that stands behind the opener is the call's own text, and may say its name; text, where there is no room for
    the call."""
    builder = block.builder
    if block.is_full():
        return
    builder.raw_begin()
    builder.raw = builder.raw_at = block.content
    builder.pos = len(builder.buf)
    _begin_known(block, builder.captured(block.content).lstrip())


def _begin_known(block: Block, text: str) -> tuple[str, re.Match[str] | None]:
    """How the body's opening tag begins, if it stands here, and what stands where the name should. If that is a
    declared tool's, the call begins."""
    tag = next((tag for tag in map(_unquoted, block.builder.compiled.body_tags) if text.startswith(tag)), "")
    name = name_at(text, len(text) - len(text[len(tag) :].lstrip(_QUOTES)))
    if name is not None and (known := declared(name.group(), block.builder.tools)):
        block.builder.begin(known)
    return tag, name


def _unquoted(tag: str) -> str:
    """How a tag with a name begins, however it is quoted."""
    return tag.rstrip(_QUOTES)


def _is_nameless(block: Block) -> bool:
    """Is all as it should be behind the opener, but for the name?"""
    return bool(block.builder.compiled.nameless.at(block.builder.captured(block.content).lstrip(), 0, True))


def _end_of_broken(block: Block, found: bool, end: int) -> int | None:
    """Without a close nobody knows what belongs to a call: what stands behind the break is text. Of the call itself
    something is left."""
    return None if (found and block.builder.compiled.closes) or end <= block.builder.raw_at else end


def resync(block: Block, *, headed: bool = False) -> Steps[bool]:
    """Takes everything up to the call's close, or what can only stand behind it; False if the text ended first.
    `headed`: a header opened the call, and no tag."""
    builder = block.builder
    if builder.raw is None:
        builder.raw_begin()
    block.broken_at = builder.at
    scan = builder.compiled.resync_thought if builder.in_open_reasoning else builder.compiled.resync
    # A body's own opening tag does not end what it opens.
    skip = 0 if headed or builder.captured(block.content).strip() else 1
    turn: Capture | None = None
    action, size = yield from _next_sign(block.builder, scan, skip)
    while action == "turn":
        # The turn's end, or a word of a value: what came behind it before the call's close stands in the call.
        turn = builder.capture() if turn is None else turn
        builder.pos += size
        action, size = yield from _next_sign(block.builder, scan, 0)
    is_sign = bool(action) or turn is not None
    if is_sign and block.bare and not block.first and (yield from _is_all_of_it(block)):
        action = "close"
    if turn is not None:
        (builder.drop if action.endswith("close") else builder.give_back)(turn)
    if action == "body_close":
        block.body_close = size
    return bool(action) or turn is not None


def _is_all_of_it(block: Block) -> Steps[bool]:
    """Of calls that no marker opened: are they all the rest of the text, read loosely? Then a marker in it is a
    word of a value. Takes it, or nothing."""
    builder = block.builder
    taken = builder.capture()
    while not builder.ended:
        builder.pos = len(builder.buf)
        yield
    builder.pos = len(builder.buf)
    if block.holds_all():
        builder.drop(taken)
        return True
    builder.give_back(taken)
    return False


def _next_sign(builder: CallBuilder, scan: Scan[str], skip: int) -> Steps[tuple[str, int]]:
    """Takes everything up to the next marker: what it does, and its length. The first so many characters are no
    beginning of one. Nothing where the text ended first."""
    while True:
        found = (scan.ended if builder.ended else scan.search)(builder.buf, builder.pos + skip)
        if builder.pos + skip <= len(builder.buf):
            builder.pos, skip = builder.pos + skip, 0
        builder.pos = found.start() if found else len(builder.buf)
        if found is not None and found.lastindex is not None:
            return scan.actions[found.lastindex], found.end() - found.start()
        if builder.ended:
            return "", 0
        yield
