"""What the beginning of a line says: a quotation, a diff, a numbered line of a file, a turn of a transcript, a log."""

from __future__ import annotations

import re

BLANKS = re.compile(r"[ \t\r\f\v]*+").match
RUN = re.compile(r"`{3,}+|~{3,}+").match
HEADING = re.compile(r"#{1,6}+(?=[ \t])").match
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}+[.)])(?:[ \t]{1,4}+|(?=\n|\Z))").match
DIFF = re.compile(r"@@ |diff --git ").match
MINUS = re.compile(r"--- [^\s-]").match
PLUS = re.compile(r"\+\+\+ \S").match
_ROLES = "user|human|customer|assistant|ai|bot|chatbot|model|agent|system|developer|tool|function"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_FROM = "|".join(
    (
        r"[0-9]{1,7}+ {0,4}+[\t|:]",  # a file with its lines numbered
        rf"[*_\[(<]{{0,4}}+(?:{_ROLES})[*_\])>]{{0,4}}+ {{0,2}}+(?:\([^()\n]{{0,40}}+\) {{0,2}}+)?+[:\uff1a]",
        r"[\[(]?+(?:[0-9]{4}([-/.])[0-9]{2}\1[0-9]{2}|[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4}|[0-9]{1,2}:[0-9]{2})(?![0-9])",
        rf"[\[(]?+(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{{0,6}}+,? )?+(?:{_MONTHS})[a-z]{{0,6}}+ [ 0-9]?[0-9],?"
        r" (?:[0-9]{4},? )?+[0-9]{2}:[0-9]{2}",
    )
)
RECORD = re.compile(_FROM, re.I).match  # a line of a file, a transcript or a log
MOST_ITEMS = 8


def columns(before: int, blanks: str) -> int:
    """The column behind these blanks, which begin in that column. A tab goes on to the next fourth."""
    if "\t" not in blanks:
        return before + len(blanks) - blanks.count("\r")
    return len((" " * before + blanks.replace("\r", "")).expandtabs(4))


def item(text: str, at: int, stop: int) -> re.Match[str] | None:
    """What begins an item of a list."""
    return _ITEM(text, at, stop)
