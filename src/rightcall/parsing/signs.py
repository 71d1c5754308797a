"""What each marker in the text does: it begins a call, ends a thought, closes a section, or closes nothing at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rightcall.parsing.blocks import Block
from rightcall.parsing.buffer import Steps
from rightcall.parsing.channels import ends_call, header, hear_name, next_header
from rightcall.parsing.closes_of_calls import (
    begin_calls,
    close_late,
    end_message,
    end_to_tool,
    fail_unread,
    is_due,
    leave_section,
    refuse_words,
    settle_calls,
    settle_ended,
    take_cut_token,
    tell_unclosed,
    tell_words,
)
from rightcall.parsing.format_markers import Action, Sign
from rightcall.parsing.markers import Probe
from rightcall.parsing.states import InChannel, InReasoning, InSection, InText
from rightcall.parsing.thought_signs import drop_stray, on_stray, on_think, on_think_close
from rightcall.types import Done

if TYPE_CHECKING:
    from rightcall.parsing.machine import Machine

_NO_MORE = re.compile(r"[ \t\r\n]*+\Z").match
_FAR = 64
QUOTES = frozenset("`'\"")


def on_call(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    if not m.output.shown.is_new and m.is_shown(found, sign):
        return ()
    if (edges := m.compiled.name_edges) is not None and not hear_name(m, found.group()):
        return _cut_in_name(m, re.compile(re.escape(edges[0])), sign)
    if type(m.state) is InReasoning:
        m.leave_for_call()
    return m.block(found.end(), False, sign.special)


def _cut_in_name(m: Machine, opens: re.Pattern[str], sign: Sign) -> Iterable[None]:
    """The text ends inside the opener of a call, at or behind a name; or with a word, if no tool has that name and
    nothing stands behind it."""
    p = m.p
    start = opens.match(p.buf, p.pos)
    assert start is not None
    if p.buf.endswith(p.said) and not (p.tools is not None and p.said in p.tools):
        return on_end(m, start, sign)
    m.leave_for_call()
    settle_calls(m)
    leave_section(m)
    m.output.settle()
    m.marker(start.end())
    fail_unread(p)
    m.forget_thought()
    return ()


def on_body(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    if not m.output.shown.is_new and m.is_shown(found, sign):
        return ()
    if type(m.state) is InReasoning:
        m.leave_for_call()
    before = m.p.at
    steps = m.block(found.start(), False, sign.special, False, True)
    return _body(m, steps, before) if steps else ()


def _body(m: Machine, steps: Iterable[None], before: int) -> Steps[None]:
    yield from steps
    if m.p.at == before:  # nothing was taken: its first character is text
        m.say_exactly(m.p.pos + 1)


def on_section(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    if not m.output.shown.is_new and m.is_shown(found, sign):
        return ()
    p = m.p
    if type(m.state) is InReasoning:
        m.leave_for_call()
    if m.thought is not None:
        m.forget_thought()
    if p.pending is not None:
        settle_ended(m)
    if type(m.state) is InSection:
        leave_section(m)
    size, start = found.end() - p.pos, m.compiled.section_start
    assert start is not None
    if start.at(p.buf, p.pos, p.ended):
        _open_section(m, size)
        return ()
    return _section(m, size, sign, start)


def _section(m: Machine, size: int, sign: Sign, start: Probe) -> Steps[None]:
    """What opens a section, where it is not clear yet that it does."""
    p = m.p
    if (yield from p.test(start)):
        _open_section(m, size)
        return
    before, m.state = m.state, InSection(p.index, is_open=True)
    begin_calls(m)
    block, taken = Block(p, bare=False, special=sign.special, is_odd=True), p.capture()
    ending = yield from block.read(p.pos + size)
    if ending == "text":
        m.state = before
    m.end_block(taken)
    if ending == "full":
        yield from m.rest_is_text()


def _open_section(m: Machine, size: int) -> None:
    p = m.p
    m.state = InSection(p.index, True)
    begin_calls(m)
    m.marker(p.pos + size)
    if p.ended and p.buf[p.pos : p.pos + 1] <= " " and _NO_MORE(p.buf, p.pos) and not p.known_name():
        p.problem("truncated", "the text ended where a tool call was about to begin")


def on_section_close(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    if isinstance(m.state, InSection):
        if m.state.before == m.p.index:
            m.p.note("opener_without_call", f"the section of calls that ends at {m.p.at} holds none")
        elif m.state.due == "due":
            refuse_words(m)
            tell_unclosed(m)
        elif m.output.text_chars > m.words_from:
            tell_words(m, "section of calls")
        m.state = InText()
        m.marker(found.end())
    elif not m.is_shown(found, sign):
        drop_stray(m, found.group(), sign)
    return ()


def on_closer(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    """What closes a call: of one whose close had not come yet, or of none."""
    is_late = is_due(m)
    if not (is_late and sign.special) and m.is_shown(found, sign):
        return ()
    if is_late:
        close_late(m)
        m.marker(found.end())
    elif m.p.pending is not None and m.p.in_doubt:
        _block_pending(m, found)
    else:
        drop_stray(m, found.group(), sign)
    return ()


def _block_pending(m: Machine, found: re.Match[str]) -> None:
    """A marker that closes a call, or what is in one, stands behind a call that is over."""
    _doubt_pending(m, found.group())
    m.marker(found.end())


def _doubt_pending(m: Machine, marker: str) -> None:
    m.p.block_pending(
        "ambiguous_end",
        f"{marker[:60]!r} stands behind the call, so that its end is not certain; "
        "send the call again without its own closing markers inside a value",
    )


def _is_pending_open(m: Machine) -> bool:
    """Was the last call not closed? Then what shows a marker behind it may be left of the call itself."""
    return m.p.pending is not None and any(each.code == "unclosed" for each in m.p.pending[1].problems)


def on_value_close(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    """What ends a value, or the body, where values are raw: behind a call it says that the call had not ended."""
    p = m.p
    for other, is_it in m.compiled.closing:
        if is_it(found.group()):  # a closing tag that is named after an argument may be any other
            return ACTIONS[other.action](m, found, other)
    marker = found.group()
    if m.is_shown(found, sign):
        if _is_pending_open(m):
            _doubt_pending(m, marker)
        return ()
    is_doubled = m.output.fresh and any(is_it(found.group()) for is_it in m.compiled.body_is_call)
    if p.pending is not None and not is_doubled:
        _block_pending(m, found)
    else:
        drop_stray(m, found.group(), sign)
    return ()


def on_content(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    if m.is_shown(found, sign):
        m.output.shown.messages += 1
        return ()
    m.leave_for_call()
    m.in_content = True
    m.marker(found.end())
    return ()


def on_content_close(m: Machine, found: re.Match[str], sign: Sign) -> Steps[None]:
    if isinstance(m.state, InReasoning):  # that was opened inside the text
        m.thought_end = m.p.at
        m.leave_reasoning()
        m.in_content = False
        m.marker(found.end())
    elif _ends_thought(m, found.group()):
        yield from on_think_close(m, found, sign)
    elif (yield from _is_shown_end(m, found.group(), sign)):
        m.say_exactly(m.p.pos + len(found.group()))
    elif is_due(m) and not m.in_content and any(is_it(found.group()) for _, is_it in m.compiled.closing):
        close_late(m)
        m.marker(m.p.pos + len(found.group()))
    elif m.in_content or not sign.special:
        m.in_content = False
        m.marker(m.p.pos + len(found.group()))
        m.output.go_on_line()
    else:
        drop_stray(m, found.group(), sign)


def _ends_thought(m: Machine, marker: str) -> bool:
    """Does what ends a message end a thought that a call stood in? Nothing else is open then."""
    is_open = m.rehearsal is not None and not m.in_content and not is_due(m)
    return is_open and any(is_it(marker) for is_it in m.compiled.ends_thought)


def on_inline(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    if not m.is_shown(found, sign):
        m.p.pos = found.end()
        m.output.skip(m.p.at)
    return ()


def on_tag(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    """A block of text begins or ends. A code fence that was left open ends with it."""
    tag = m.compiled.tags[found.group()]
    if tag and m.is_shown(found, sign):
        return ()
    output = m.output
    m.state = InText()
    output.turn(thinking=False)
    output.tag = tag
    output.is_placed = output.is_placed or bool(tag)
    m.marker(found.end())
    output.at_start = True
    return ()


def on_done(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    protocol = m.compiled.format.protocol
    if m.is_shown(found, sign) or protocol is None:
        return ()
    opens, closes = protocol.done
    m.output.events.append(Done(found.group()[len(opens.strip()) : -len(closes.strip())].strip()))
    m.output.is_placed = True
    m.marker(found.end())
    m.output.at_start = True
    return ()


def on_line(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    m.say(found.end())
    m.output.at_start = not m.output.tag
    return ()


def on_end(m: Machine, found: re.Match[str], sign: Sign) -> Steps[None]:
    p = m.p
    marker = found.group()
    # Behind a call or another marker nothing shows it.
    if not m.output.fresh and (yield from _is_shown_end(m, marker, sign)):
        m.say_exactly(p.pos + len(marker))
        return
    if m.rehearsal is not None and _ends_thought(m, marker):
        yield from on_think_close(m, found, sign)
        return
    end_to_tool(m)
    settle_ended(m)
    if marker.startswith(m.compiled.first_tokens) and take_cut_token(m, marker):
        return
    p.said = ""
    m.release()
    if m.due_to is None and not m.output.fresh and ends_call(m, marker):
        m.due_to = p.index  # it ends like a call, and its header named no tool
    end_message(m)
    p.in_doubt = False
    m.output.at_start = True
    is_thought = m.output.thinking
    if isinstance(m.state, InChannel):
        m.output.turn(thinking=False)
        m.state = InText()
    m.marker(p.pos + len(marker))
    if is_thought:
        m.output.say_from(p.at)
    m.output.shown.begin_result(marker)
    if m.compiled.next_header is not None and not m.output.shows():
        yield from next_header(m, m.compiled.next_header)


def _is_shown_end(m: Machine, marker: str, sign: Sign) -> Steps[bool]:
    """Is what ends a turn or a message only shown? Then text goes on behind it, and it stands in code or in quotes, or
    it ends what is shown. The end of a message that another message or a call follows is real, whatever the message
    left open."""
    p, shown = m.p, m.output.shown
    if m.output.fresh or p.is_token(p.pos, p.pos + len(marker)):
        return False  # behind a call or another marker nothing shows it
    if shown.is_closing(marker):
        return True
    if shown.is_result_over(marker):
        return False
    in_code = shown.shows(special=sign.special)
    if in_code and shown.messages:
        shown.messages -= 1
        return True
    behind = yield from _behind(m, len(marker), in_code)
    if not behind.strip() or behind[0] in QUOTES:
        return bool(behind.strip())
    is_implied = sign.action == "content_close" and m.compiled.is_content_implied
    in_message = m.in_content or is_implied or isinstance(m.state, InChannel)
    return in_code and not (in_message and (yield from _goes_on(m, len(marker))))


def _behind(m: Machine, size: int, in_code: bool) -> Steps[str]:
    """What stands behind the marker of that size that stands here, as far as it must be known."""
    p = m.p
    while True:
        behind = p.buf[p.pos + size : p.pos + size + _FAR]
        if behind.strip() or (behind and not in_code) or len(behind) == _FAR or p.ended:
            return behind
        yield


def _goes_on(m: Machine, size: int) -> Steps[bool]:
    """Does a marker that opens something stand behind the one of that size that stands here?"""
    p = m.p
    while True:
        at = p.pos + size
        at += len(p.buf[at : at + _FAR]) - len(p.buf[at : at + _FAR].lstrip())
        found = m.compiled.begins.at(p.buf, at, p.ended)
        if found is not None:
            return bool(found)
        yield


def on_header(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    channels = m.compiled.channels
    if channels is not None and channels.to and _is_word(m, channels.to.strip()):
        m.say_exactly(m.p.pos + 1)
        return ()
    if isinstance(m.state, InChannel) and channels is not None and not channels.messages["content"][1]:
        # Nothing but the next header ends a message of such a format.
        m.output.shown.end_quotations(found.group())
    if m.is_shown(found, sign):
        m.output.shown.messages += 1
        m.output.shown.pass_marker()  # `>>>` at the beginning of a line is no block quote
        return ()
    end_to_tool(m)
    settle_calls(m)
    leave_section(m)
    m.release()
    return header(m)


def _is_word(m: Machine, to: str) -> bool:
    """Does a recipient stand here without the start of a header, among words to somebody else? They may speak of it."""
    return not m.output.thinking and m.p.buf.startswith(to, m.p.pos)


ACTIONS: dict[Action, Callable[[Machine, re.Match[str], Sign], Iterable[None]]] = {
    "call": on_call,
    "body": on_body,
    "section": on_section,
    "section_close": on_section_close,
    "closer": on_closer,
    "value_close": on_value_close,
    "think": on_think,
    "think_close": on_think_close,
    "content": on_content,
    "content_close": on_content_close,
    "inline": on_inline,
    "end": on_end,
    "header": on_header,
    "tag": on_tag,
    "done": on_done,
    "line": on_line,
    "stray": on_stray,
}
