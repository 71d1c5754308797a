"""Values under secret names, in any text: JSON (also as a string in JSON), YAML, TOML, .env, code, tags, options.

    password = "hunter2"      {"db": {"pwd": ["a", 12]}}      <parameter=api_key>...</parameter>      --token abc

The text is scanned once, from name to name. A type in a schema or declaration (`password: string`) is not a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rightcall.redaction.secret_names import is_placeholder, is_secret_name


class FoundSecret(NamedTuple):
    """The position of a secret in a text, and its kind. `number`: it is a JSON number and must be replaced by a
    number."""

    start: int
    end: int
    kind: str
    number: bool = False


# Most texts contain no secret name, and are not searched further.
_MAYBE = re.compile(
    r"(?i)pass|pwd|pw\b|secret|token|key|auth|cookie|cred|bearer|jwt|conn|phrase|code|mnemonic|otp|cv[vc]|sessid|\\u00"
).search
_NAME = re.compile(
    r"(?<![\w.$-])(?P<option>--?)?(?P<name>(?:[A-Za-z_$]|\\u00[0-9a-fA-F]{2})(?:[\w.$-]|\\u00[0-9a-fA-F]{2}){0,100}+)"
    r"(?:(?P<quote>\\{0,15}+[\"'`])?[ \t]{0,40}+(?::=|=>|==|[:=])(?![/=])"
    r"|(?P<tag>\\{0,15}+[\"']?>|</arg_key>(?:\s|\\n){0,8}+<arg_value>)"
    r"|(?(option)[ ](?=[^\s-])|(?!)))",
    re.A,
)
_BLANKS = re.compile(r"(?:[ \t]|[|>][+-]?[ ]{0,4}(?:\r?\n|\\n)[ \t])*+", re.A)
_OPENS = re.compile(r"(\\{0,15}+)(\"\"\"|'''|[\"'`])")
_BARE = re.compile(r"[^\s\"'`\\,;&<>(){}\[\]]{4,4000}+(?![(\[])")
_CREDENTIAL = re.compile(
    r"(?:(?:bearer|basic|token|apikey|api-key|key|negotiate|ntlm)[ ]{1,4})?+"
    r"((?:digest|aws4-hmac-sha256)[ ][^\"\\\r\n]{4,8000}+|[^\s\"'\\,;]{4,8000}+)",
    re.I,
)
_LINE = re.compile(r"([^\"'\\\r\n]{4,8000}+)")
_SCHEME = re.compile(r"(?i:bearer|basic)[ ]{1,4}")
_NUMBER = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][-+]?\d{1,5})?(?![\w.])")
_TAGGED = re.compile(r"(?:\s|\\n)*+([^<]{1,8000}+)(?=</)")
_SCHEMA = re.compile(
    r"\{\s*+\\{0,15}+\"(?:description|title|\$ref|anyOf|oneOf|allOf|enum|const|items|properties|format|default|examples?"
    r"|type\\{0,15}+\"\s*+:\s*+(?:\[|\\{0,15}+\"(?i:string|number|integer|boolean|object|array|null)\\{0,15}+\"))"
)
_TOKEN = re.compile(r"\\{0,15}+\"|[\[\]{}]|-?\d[\d.eE+-]{0,400}+|[^\"\\\[\]{}\d-]++|.", re.S)
_ESCAPE = re.compile(r"\\u00([0-9a-fA-F]{2})")
_LIKELIHOOD = re.compile(r"\\{0,15}+\",\s*+\\{0,15}+\"(?:logprob|bytes)\\{0,15}+\"")  # beside a token that is text
_HEADERS = {"authorization": _CREDENTIAL, "cookie": _LINE}


def find_named_secrets(text: str) -> Iterator[FoundSecret]:
    """Yield the position of each value under a secret name in a text, in order, also of values in a list or an object.
    Placeholders and references to a variable of the same name are no secrets."""
    if not _MAYBE(text):
        return
    at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        if not is_secret_name(_unescape_name(found["name"])):
            at = found.end("name")
            continue
        for each in _find_value(text, found):
            at = max(at, each.end)
            if each.kind:
                yield each


def _unescape_name(name: str) -> str:
    r"""Return a name with its `\u00..` escapes decoded, so that an escaped name is recognized too."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), name) if "\\" in name else name


def _find_text_in_tag(text: str, at: int) -> Iterator[FoundSecret]:
    """Yield the text from the index `at` to the next closing tag as a secret; nothing if it is a placeholder, or there
    is no closing tag."""
    if inner := _TAGGED.match(text, at):
        content = inner[1].rstrip().removesuffix("\\n")
        yield from _yield_unless_placeholder(text, inner.start(1), inner.start(1) + len(content))


def _header_pattern(name: str) -> re.Pattern[str] | None:
    """Return the pattern for the value of a header with a secret; None for other headers."""
    return next((_HEADERS[each] for each in _HEADERS if name.lower().endswith(each)), None)


def _find_value(text: str, found: re.Match[str]) -> Iterator[FoundSecret]:
    """Yield the secrets in the value that follows a secret name, which `found` matched: in quotes, brackets, a tag or
    bare. A last entry with an empty `kind` only marks how far a list or an object was searched."""
    if found["tag"]:
        yield from _find_text_in_tag(text, found.end())
        return
    at = _BLANKS.match(text, found.end()).end()  # type: ignore[union-attr]
    opened = _OPENS.match(text, at)
    if opened is not None:
        yield from _find_in_quotes(text, opened, is_text=found["name"] == "token")
    elif text[at : at + 1] in ("[", "{"):
        if found["quote"] and not _SCHEMA.match(text, at):
            yield from _find_in_container(text, at)
    elif found["quote"] and (number := _NUMBER.match(text, at)):
        yield FoundSecret(at, number.end(), "password", True)
    elif header := _header_pattern(found["name"]):
        if line := header.match(text, at):
            yield from _yield_unless_placeholder(text, line.start(1), line.end(1), "bearer")
    elif not found["quote"]:
        yield from _find_unquoted_value(text, found, at)


def _find_unquoted_value(text: str, found: re.Match[str], at: int) -> Iterator[FoundSecret]:
    """Yield the unquoted word at the index `at` as a secret; nothing if it is short, a placeholder, or a reference to a
    variable of the name that `found` matched: `password=self.password`."""
    word = _BARE.match(text, at)
    if word is not None and word[0].rpartition(".")[2].lower() != found["name"].rpartition(".")[2].lower():
        yield from _yield_unless_placeholder(text, at, word.end())


def _yield_unless_placeholder(text: str, start: int, end: int, kind: str = "password") -> Iterator[FoundSecret]:
    """Yield the span from `start` to `end` of the text as one secret; nothing if it is empty or a placeholder."""
    if end > start and not is_placeholder(text[start:end]):
        yield FoundSecret(start, end, kind)


def _find_in_quotes(text: str, opened: re.Match[str], *, is_text: bool) -> Iterator[FoundSecret]:
    """Yield the content of the string whose quote `opened` matched as a secret, without a leading `Bearer` or `Basic`.
    Nothing for a placeholder; with `is_text`, nothing for a string that a log probability follows, since it is a text
    token."""
    end = _find_closing_quote(text, opened.end(), opened[2], len(opened[1]))
    if is_text and _LIKELIHOOD.match(text, end):
        return
    scheme = _SCHEME.match(text, opened.end(), end)
    yield from _yield_unless_placeholder(
        text, scheme.end() if scheme else opened.end(), end, "bearer" if scheme else "password"
    )


def _find_closing_quote(text: str, at: int, quote: str, level: int) -> int:
    """Return the index at which the content of a string ends; the end of the text if it is not closed. `at` is the
    index after its opening quote, `level` the number of backslashes before that. At level 0 the content ends before the
    first `quote` after an even number of backslashes; otherwise before the backslashes of the first `quote` with at
    most `level` of them (fewer end the enclosing string)."""
    while (end := text.find(quote, at)) >= 0:
        slashes = 0
        while end - slashes - 1 >= at and text[end - slashes - 1] == "\\":
            slashes += 1
        if level and slashes <= level:
            return end - slashes
        if not level and slashes % 2 == 0:
            return end
        at = end + len(quote)
    return len(text)


def _find_in_container(text: str, at: int) -> Iterator[FoundSecret]:
    """Yield every string and number of the JSON list or object that begins at the index `at`, but no keys and
    placeholders. An unclosed container extends to the end of the text. The last entry has an empty `kind` and marks the
    end of the searched text."""
    depth = 0
    while token := _TOKEN.match(text, at):
        at = token.end()
        part = token[0]
        if part in ("[", "{"):
            depth += 1
        elif part in ("]", "}"):
            depth -= 1
            if not depth:
                break
        elif part.endswith('"'):
            end = _find_closing_quote(text, at, '"', len(part) - 1)
            closer = min(end + len(part), len(text))
            if not text[closer : closer + 8].lstrip().startswith(":"):
                yield from _yield_unless_placeholder(text, at, end)
            at = closer
        elif part[0].isdigit() or (part[:1] == "-" and len(part) > 1):
            yield FoundSecret(token.start(), at, "password", True)
    yield FoundSecret(at, at, "")  # the end of the searched text, also if nothing was found
