"""An envelope as it is usually written, as patterns: its keys in the usual order, and nothing odd behind it.

What they do not match is read key by key, with the same result.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rightcall.formats.spec import Envelope
from rightcall.parsing.markers import Pat, Probe, alt, blanks, literal, look, seq

_B = r"[ \t\r\n]*+"
_KEY = Pat(r'"[^"\\\x00-\x1f]{1,128}+"', r'(?:"[^"\\\x00-\x1f]{0,128}+"?+)?+')
_OBJECT = seq(literal(":"), blanks(), literal("{"))
Match = Callable[[str, int], "re.Match[str] | None"]


class EnvelopePatterns:
    def __init__(self, body: Envelope, closes: list[Pat]) -> None:
        usual = _usual(body)
        self.usual: Match = re.compile(usual).match
        outer = _any_of(body.outer)
        opens = rf'\{{{_B}"(?:{outer})"{_B}:{_B}(?P<list>\[{_B})' if outer else rf"(?P<list>\[{_B})?"
        self.first: Match = re.compile(_B + opens + usual).match
        # What may close the list, and the object around it, behind a call that was read loosely.
        self.tail: Match = re.compile(rf"{_B}\]?" + (rf"{_B}\}}?" if outer else "")).match
        # Blanks behind the marker are its own; a bracket behind them is one too many.
        close = "(?:" + "|".join(pat.whole for pat in closes) + rf"){_B}(?![}}\])])" if closes else ""
        # The end of an object; a second group where another follows.
        end = rf"{_B}{_id_behind(body)}(\}}){_B}"
        self.ends_item: Match = re.compile(rf"{end}(?:(,)|\]){_B}").match
        self.ends_alone: Match = re.compile(end).match
        self.ends_block: Match = re.compile(rf"{end}(?:(?=(\{{))|{close})").match if closes else self.ends_alone
        # What another call of the block begins with, behind a comma that does not belong there.
        self.another = _another(body)
        behind_list = rf"{_B}\}}{_B}" if outer else _B
        self.list_ends: tuple[Match, Match] = re.compile(behind_list).match, re.compile(behind_list + close).match


def _another(body: Envelope) -> Probe:
    """A comma or a semicolon, and then an object that begins with a name or an id; where the key is the name, with one
    that holds an object."""
    key = [alt(*[literal(f'"{key}"') for key in (*body.names, *body.ids)])] if body.names else [_KEY, blanks(), _OBJECT]
    return Probe(seq(Pat("[,;]", ""), blanks(), look(seq(literal("{"), blanks(), *key))))


def _usual(body: Envelope) -> str:
    """From the bracket to the arguments."""
    text = r'"(?P<{}>(?!\s*+")[^"\\\x00-\x1f]{{1,256}}+)"'.format
    if not body.names:
        # Where the key is the name, an id or a type is none: its value is no object.
        keys = rf"(?P<id_key>)(?P<id>)(?P<name_key>){text('name')}(?P<args_key>)"
        return rf"(?P<object>\{{){_B}{keys}{_B}:{_B}(?=\{{)"
    ids = _any_of(body.ids)
    before = rf'(?:"(?P<id_key>{ids})"{_B}:{_B}{text("id")}{_B},{_B})?' if ids else "(?P<id_key>)(?P<id>)"
    first = rf'"(?P<name_key>{_any_of(body.names)})"{_B}:{_B}{text("name")}'
    then = rf'{_B},{_B}"(?P<args_key>{_any_of(body.args)})"'
    return rf"(?P<object>\{{){_B}{before}{first}{then}{_B}:{_B}(?=[^ \t\r\n])"


def _id_behind(body: Envelope) -> str:
    ids = _any_of(body.ids) if body.names else ""
    return rf'(?:,{_B}"(?:{ids})"{_B}:{_B}"[^"\\\x00-\x1f]*+"{_B})?' if ids else ""


def _any_of(keys: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, keys))
