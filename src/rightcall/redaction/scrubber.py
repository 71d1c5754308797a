"""`Scrubber`: replace secrets in text and JSON data.

    Scrubber().value({"db": {"password": "hunter2"}, "note": "AKIAIOSFODNN7EXAMPLE"})
    -> {"db": {"password": "[key]"}, "note": "[key]"}

Scrubbing again changes nothing. JSON stays JSON of the same shape: under a secret name a string stays a string, and a
number becomes 0. A schema is not a value, so the names and schemas of properties are kept.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from rightcall.redaction.members import FoundSecret, find_named_secrets
from rightcall.redaction.secret_names import HOLDS_SCHEMAS, is_placeholder, is_schema, is_secret_name
from rightcall.redaction.secret_shapes import RULES, SecretShape
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode

KEY = "[key]"
_LEAST = 4  # characters of a known secret: shorter ones occur everywhere by chance
_PERCENT = re.compile(r"%[0-9A-F]{2}")
_SAMPLES = frozenset(("default", "const", "example", "examples"))
StandIn = Callable[[str, str], str]


def _constant_replacement(kind: str, found_text: str) -> str:
    """Return `[key]` for any secret: the default replacement."""
    return KEY


class Scrubber:
    """Replaces secrets in text and JSON data.

    - `own`: known secrets; they are replaced in every spelling.
    - `stand_in`: returns the replacement of a secret, given its kind and text.
    - `more`: further rules."""

    def __init__(
        self,
        own: Iterable[str] = (),
        *,
        stand_in: StandIn = _constant_replacement,
        more: Mapping[str, SecretShape] | None = None,
    ) -> None:
        spelled = {each for secret in own if len(secret) >= _LEAST for each in spellings(secret)}
        longest_first = sorted(spelled, key=lambda each: (-len(each), each))
        self._own = re.compile("|".join(map(re.escape, longest_first))) if spelled else None
        self._stand_in = stand_in
        self._rules = {**RULES, **(more or {})}

    # -- text ----------------------------------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """Return the `text` without secrets. A text that is a JSON object or list is scrubbed as JSON, so that no
        escape hides a secret, and written again only if it has a secret."""
        if text[:1] in ("{", "["):
            value = decode(text, MAX_DEPTH)
            if not isinstance(value, Undecodable):
                cleaned = self.value(value)
                return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)
        return self.replace_secrets(text, self.find_secrets(text))

    def replace_secrets(self, text: str, found: Iterable[FoundSecret]) -> str:
        """Return the text with the secrets at these positions, which are in order and do not overlap, each replaced."""
        pieces: list[str] = []
        at = 0
        for each in found:
            pieces += [text[at : each.start], self.replacement_for(text, each)]
            at = each.end
        return "".join([*pieces, text[at:]]) if pieces else text

    def replacement_for(self, text: str, found: FoundSecret) -> str:
        """Return the text that replaces a secret: "0" for a number, so that JSON stays valid, else the result of
        `stand_in` for its kind and unescaped text (`[key]` by default)."""
        found_text = text[found.start : found.end]
        return "0" if found.number else self._stand_in(found.kind, _unescape(found_text))

    def find_secrets(self, text: str) -> list[FoundSecret]:
        """Return the positions of all secrets in the text, in order; overlapping ones are merged. The text is not
        parsed as JSON."""
        all_found = [*self._find_own_secrets(text), *find_named_secrets(text), *self._find_by_pattern(text)]
        all_found.sort(key=lambda each: each.start)
        apart: list[FoundSecret] = []
        for each in all_found:
            if apart and each.start < apart[-1].end:
                apart[-1] = apart[-1]._replace(end=max(each.end, apart[-1].end))
            elif each.end > each.start:
                apart.append(each)
        return apart

    def _find_own_secrets(self, text: str) -> list[FoundSecret]:
        """Return the positions of the known secrets (`own`) in the text, in any of their spellings."""
        return (
            [FoundSecret(*each.span(), "token") for each in self._own.finditer(text)] if self._own is not None else []
        )

    def _find_by_pattern(self, text: str) -> list[FoundSecret]:
        """Return the positions of texts that match one of the rules, by rule and not by position; overlaps are
        possible. Texts that the check of the rule rejects, and those that `is_kept` excludes, are left out."""
        lowered = text.lower()
        found: list[FoundSecret] = []
        for kind, rule in self._rules.items():
            if not rule.hints or any(hint in lowered for hint in rule.hints):
                found += [
                    FoundSecret(*each.span(rule.part), kind)
                    for each in rule.pattern.finditer(text)
                    if rule.sure(each[rule.part]) and not self.is_kept(kind, each[rule.part])
                ]
        return found

    def is_kept(self, kind: str, found_text: str) -> bool:
        """Return whether a text that matches the rule `kind` is not replaced: it is a placeholder. Subclasses may
        exclude more."""
        return is_placeholder(found_text)

    # -- JSON ----------------------------------------------------------------------------------------------------------

    def value(self, value: Any) -> Any:
        """Return JSON data without secrets, as a copy: a string is scrubbed as text, and a member of an object by its
        name too. Objects and lists keep their shape."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self._scrub_key(name): self._scrub_member(name, each, value) for name, each in value.items()}
        return self.number(value)

    def number(self, value: Any) -> Any:
        """Return a number, boolean or null outside secret names unchanged. Subclasses may replace it."""
        return value

    def _scrub_key(self, name: Any) -> Any:
        """Return a key of an object without secrets in its text; a key that is no text is returned unchanged."""
        return self.text(name) if isinstance(name, str) else name

    def _scrub_member(self, name: Any, value: Any, around: dict[Any, Any]) -> Any:
        """Return the value of the member `name` of the object `around` without secrets. Under a secret name every
        string and number is replaced, unless the value is a schema or a text token; schemas of properties and other
        values are scrubbed."""
        if name in HOLDS_SCHEMAS and isinstance(value, dict):
            return {self._scrub_key(each): self._scrub_property(each, schema) for each, schema in value.items()}
        if not isinstance(name, str) or not is_secret_name(name) or ("logprob" in around and name == "token"):
            return self.value(value)
        return self._scrub_property(name, value) if is_schema(value) else self.hide(value)

    def _scrub_property(self, name: Any, schema: Any) -> Any:
        """Return the schema of the property `name` without secrets. Under a secret name the values of `default`,
        `const`, `example` and `examples` are replaced; everything else, and a schema under another name, is scrubbed as
        any value."""
        if not isinstance(schema, dict) or not isinstance(name, str) or not is_secret_name(name):
            return self.value(schema)
        return {
            self._scrub_key(each): self.hide(value) if each in _SAMPLES else self._scrub_member(each, value, schema)
            for each, value in schema.items()
        }

    def hide(self, value: Any) -> Any:
        """Return a value with each string replaced by the replacement of a password and each number by 0, also
        inside lists and objects, whose keys are scrubbed. Booleans, null and placeholders are kept."""
        if isinstance(value, str):
            return value if is_placeholder(value) else self._stand_in("password", value)
        if isinstance(value, list):
            return [self.hide(each) for each in value]
        if isinstance(value, dict):
            return {self._scrub_key(name): self.hide(each) for name, each in value.items()}
        return value if isinstance(value, bool) or value is None or value == 0 else 0


def _unescape(found_text: str) -> str:
    """Return the content of a JSON string with its escapes decoded; unchanged if it is no valid content of a JSON
    string."""
    if "\\" not in found_text:
        return found_text
    value = decode(f'"{found_text}"', 1)
    return value if isinstance(value, str) else found_text


def spellings(secret: str) -> set[str]:
    """Return the ways in which a secret may occur in a text: as it is, as JSON and URLs spell it, and the middle of its
    base64 at each of the three offsets; base64 texts that are too short are left out."""
    written = json.dumps(secret)[1:-1]
    found = {secret, written, json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(written)[1:-1]}
    found |= {each.replace("/", "\\/") for each in found}
    percent = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    found |= percent | {_PERCENT.sub(lambda each: each[0].lower(), text) for text in percent}
    data = secret.encode("utf-8", "surrogatepass")
    return found | {
        each for before in range(3) for each in _encode_base64_inner(data, before) if len(each) >= 2 * _LEAST
    }


def _encode_base64_inner(data: bytes, before: int) -> tuple[str, str]:
    """Return the base64 characters, in the standard and the URL-safe alphabet, that depend on `data` alone if
    `before` bytes precede it."""
    whole = base64.b64encode(b"\0" * before + data).decode("ascii").rstrip("=")
    first = (before * 8 + 5) // 6
    last = (before + len(data)) * 8 // 6
    inner = whole[first:last]
    return inner, inner.replace("+", "-").replace("/", "_")
