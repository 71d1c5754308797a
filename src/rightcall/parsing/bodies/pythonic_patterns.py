"""The patterns of Python calls:  names, keys, and what may stand between two calls."""

from __future__ import annotations

import re

from rightcall.parsing.markers import Pat, Probe, blanks, literal, look, seq

_WORD = Pat(r"[^\W\d][\w.\-]{0,255}+", r"(?:[^\W\d][\w.\-]{0,255}+)?")
STRICT = Probe(look(seq(_WORD, blanks(), literal("("))))
# Behind a list: another one, between the same markers.
ANOTHER_LIST = Probe(seq(blanks(), literal("["), look(seq(blanks(), _WORD, blanks(), literal("(")))))
_ARG_NAME = Pat(r"[\w.\-]{1,256}+", r"[\w.\-]{0,256}+")
NAMELESS = Probe(look(seq(literal("("), blanks(), _ARG_NAME, blanks(), literal("="))))
# Behind a call: an argument that a parenthesis was closed before too early.
LOST_ARGUMENT = Probe(look(seq(blanks(), literal(","), blanks(), _ARG_NAME, blanks(), literal("="))))
_NAME_END = r"()\[\]{},'\"=<>\n`"
NAME = Probe(look(Pat(rf"[^{_NAME_END}]{{0,256}}+[{_NAME_END}]", rf"[^{_NAME_END}]{{0,256}}+")))
NAME_RUN = re.compile(rf"[^{_NAME_END}]{{0,256}}+").match
_KEY_END = r"=(),\[\]{}'\"<>`"
KEY = re.compile(rf"[^{_KEY_END}]{{0,256}}+").match
KEY_PROBE = Probe(look(Pat(rf"[^{_KEY_END}]{{0,256}}+[{_KEY_END}]", rf"[^{_KEY_END}]{{0,256}}+")))
GOOD_KEY = re.compile(r"[\w.\-]+").fullmatch
ENDS_VALUE = re.compile(r"[ \t\r\n]*+[,)]").match
MAY_CLOSE = re.compile(r"[<`]").search  # what a marker begins with
COMMAS = re.compile(r"[ \t\r\n,]*+").match  # all at once: what is not the usual argument is never looked at again
# The usual argument: a name that was not there before, an equals sign, and the first character of its value.
ARGUMENT = re.compile(r"[ \t\r\n,]*+([\w.\-]{1,256}+)[ \t\r\n]*+=[ \t\r\n]*+(?=[^ \t\r\n,)])").match
STRING_START = re.compile(r"[bBrRuUfF]{0,2}+(?:['\"]|\Z)").match
# In a bare value: what only code has, and an argument that lost the comma before it.
CODE = re.compile(r"[()\[\]{}\"]|(?<!\w)'|'(?!\w)|\n").search
ANY_WORD = re.compile(r"\w").search
CALL_BEGUN = re.compile(r"[\w.]++[(\[{]").match
ARGUMENT_INSIDE = re.compile(r"\s[^\W\d][\w.\-]*+\s*+=(?!=)").search
# Between two calls that stand on lines of their own, each printed:  print(f())\nprint(g())
PRINT = Probe(
    Pat(
        r"\)?+[ \t\r\n;]{0,128}+print[ \t]{0,8}+\(",
        r"\)?+[ \t\r\n;]{0,128}+(?:p(?:r(?:i(?:n(?:t[ \t]{0,8}+)?+)?+)?+)?+)?+",
    )
)
