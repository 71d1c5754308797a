"""Structural tags, the documents that vLLM and SGLang pass to xgrammar, interpreted from their public documentation.

    judge = Tag({"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "content": {...}, "end": "</a>"}})
    judge.accepts("<a>{}</a>")      judge.draw(Random(0), value)

A format matches a chunk of text; here it gives every place at which such a chunk may end. Nothing of rightcall is used:
JSON is parsed by `json`, a schema is checked by `jsonschema`, a grammar by `ebnf.py`. Two rules are more lenient than
in xgrammar, which requires the declared order of members and no undeclared ones: everything that xgrammar accepts is
accepted here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from support.ebnf import Ebnf

Json = dict[str, Any]
_FIELDS = {
    "const_string": {"value"},
    "json_schema": {"json_schema"},
    "grammar": {"grammar"},
    "any_text": {"excludes"},
    "sequence": {"elements"},
    "or": {"elements"},
    "tag": {"begin", "content", "end"},
    "triggered_tags": {"triggers", "tags", "at_least_one", "stop_after_first", "excludes"},
    "tags_with_separator": {"tags", "separator", "at_least_one", "stop_after_first"},
}


class Tag:
    """One document. Raise AssertionError for a document that the documentation does not describe."""

    def __init__(self, document: Json) -> None:
        assert set(document) == {"type", "format"} and document["type"] == "structural_tag"
        self.format = document["format"]
        self.grammars: dict[str, Ebnf] = {}
        self._verify(self.format)

    def _verify(self, format: Json) -> None:
        kind = format["type"]
        assert set(format) - {"type"} <= _FIELDS[kind], format
        if kind == "grammar":
            self.grammars[format["grammar"]] = Ebnf(format["grammar"])
        if kind == "json_schema":
            jsonschema.Draft202012Validator.check_schema(format["json_schema"])
        for tag in format.get("tags", ()):
            assert tag["type"] == "tag" and isinstance(tag["begin"], str)
        if kind == "triggered_tags":
            for tag in format["tags"]:
                fitting = [one for one in format["triggers"] if tag["begin"].startswith(one)]
                assert len(fitting) == 1, f"{tag['begin']!r} is begun by {fitting}, it takes exactly one trigger"
        for inner in (*format.get("elements", ()), *format.get("tags", ()), format.get("content")):
            if inner is not None:
                self._verify(inner)

    def accepts(self, text: str) -> bool:
        return len(text) in self.ends(self.format, text, 0)

    def ends(self, format: Json, text: str, at: int) -> set[int]:
        kinds: dict[str, Callable[[Json, str, int], set[int]]] = {
            "const_string": lambda one, text, at: _literal(one["value"], text, at),
            "json_schema": lambda one, text, at: _json(one["json_schema"], text, at),
            "grammar": lambda one, text, at: set(self.grammars[one["grammar"]].ends(text, at)),
            "any_text": lambda one, text, at: _free(text, at, one.get("excludes", ())),
            "sequence": self._sequence,
            "or": lambda one, text, at: _union(self.ends(part, text, at) for part in one["elements"]),
            "tag": self._tag,
            "triggered_tags": self._triggered,
            "tags_with_separator": self._separated,
        }
        return kinds[format["type"]](format, text, at)

    def _sequence(self, format: Json, text: str, at: int) -> set[int]:
        places = {at}
        for part in format["elements"]:
            places = _union(self.ends(part, text, place) for place in places)
        return places

    def _tag(self, tag: Json, text: str, at: int) -> set[int]:
        starts = _literal(tag["begin"], text, at)
        content = tag["content"]
        if content["type"] == "any_text":  # the end marker is not part of the text before it
            content = {**content, "excludes": [*content.get("excludes", ()), tag["end"]]}
        content_ends = _union(self.ends(content, text, place) for place in starts)
        return _union(_literal(tag["end"], text, place) for place in content_ends)

    def _tags(self, format: Json, text: str, places: Iterable[int]) -> set[int]:
        return _union(self._tag(tag, text, place) for place in places for tag in format["tags"])

    def _triggered(self, format: Json, text: str, at: int) -> set[int]:
        """Match free text up to a trigger, a tag that it begins, and so on. `at_least_one`: a tag comes first."""
        once, required = format.get("stop_after_first"), format.get("at_least_one")
        excluded = [*format["triggers"], *format.get("excludes", ())]
        found: set[int] = set()
        done: set[int] = set()
        places = {at}
        if required:
            places = self._tags(format, text, places)
            if once:
                return places
        while places - done:
            done |= places
            free = _union(_free(text, place, excluded) for place in places)
            found |= free
            begins = {place for place in free if any(text.startswith(one, place) for one in format["triggers"])}
            places = self._tags(format, text, begins)
            if once:
                return found | places
        return found

    def _separated(self, format: Json, text: str, at: int) -> set[int]:
        found: set[int] = set() if format.get("at_least_one") else {at}
        places = self._tags(format, text, {at})
        while places - found:
            found |= places
            if format.get("stop_after_first"):
                break
            after_separators = _union(_literal(format["separator"], text, place) for place in places)
            places = self._tags(format, text, after_separators)
        return found

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, dice: Random, value: Callable[[Json], str]) -> str:
        """Return a random text that it accepts. `value` writes the JSON of a schema, accepted only if it fits."""
        return self._draw(self.format, dice, value)

    def _draw(self, format: Json, dice: Random, value: Callable[[Json], str]) -> str:
        def many(tags: list[Json], between: Callable[[], str]) -> str:
            count = 1 if format.get("stop_after_first") else dice.randint(1, 2)
            parts = [self._draw(dice.choice(tags), dice, value) for _ in range(count)]
            return "".join([piece for part in parts for piece in (between(), part)][1:])

        kind = format["type"]
        if kind == "const_string":
            return str(format["value"])
        if kind == "json_schema":
            return value(format["json_schema"])
        if kind == "grammar":
            return self.grammars[format["grammar"]].draw(dice, dice.choice([0, 20, 60]))
        if kind == "tag":
            return str(format["begin"]) + self._draw(format["content"], dice, value) + str(format["end"])
        if kind == "triggered_tags":
            words = ["", "", " ", "\n", "Well. ", "A\n\nb: "]
            before = "" if format.get("at_least_one") else dice.choice(words)
            return before + many(format["tags"], lambda: dice.choice(words))
        if kind == "tags_with_separator":
            return many(format["tags"], lambda: str(format["separator"]))
        elements = [dice.choice(format["elements"])] if kind == "or" else format["elements"]
        return "".join([self._draw(one, dice, value) for one in elements])


def _union(sets: Iterable[set[int]]) -> set[int]:
    return {place for one in sets for place in one}


def _literal(value: str, text: str, at: int) -> set[int]:
    return {at + len(value)} if text.startswith(value, at) else set()


def _free(text: str, at: int, excluded: Iterable[str]) -> set[int]:
    """Return every end of free text without these texts."""
    ends = [place + len(one) for one in excluded if (place := text.find(one, at)) >= 0]
    return set(range(at, min(ends) if ends else len(text) + 1))


class _NotStrict(ValueError):
    pass


def _json(schema: Json, text: str, at: int) -> set[int]:
    """Return the end of the JSON value that begins here, if it fits. A number may end earlier."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except ValueError:
        return set()
    ends = range(at + 1, end + 1) if isinstance(value, (int, float)) and not isinstance(value, bool) else [end]
    return {end for end in ends if _fits(schema, text[at:end])}


def _fits(schema: Json, text: str) -> bool:
    try:
        value = _DECODER.decode(text)
    except ValueError:
        return False
    return not any(jsonschema.Draft202012Validator(schema).iter_errors(value))


def _members(pairs: list[tuple[str, Any]]) -> Json:
    if len(dict(pairs)) < len(pairs):
        raise _NotStrict("a duplicate member")
    return dict(pairs)


def _reject_constant(word: str) -> Any:
    raise _NotStrict(f"{word} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_reject_constant, strict=True)
