"""`dataset redact` and `dataset release`: make private rows public.

Redaction replaces what looks like a secret (`rightcall.redaction`) or a person's data: e-mail addresses, telephone and
card numbers, bank accounts, network addresses, home folders, and the terms you name. The same value gets the same
replacement everywhere in a run, under a random key that is not stored. Only patterns are found: a name in a sentence
stays, so read the rows before you release them. Release marks redacted rows as public, with the name of the responsible
person, and refuses rows that were not redacted or were changed since.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from rightcall.capture.captured_rows import LineFault, unix_ms
from rightcall.datasets.row_files import REDACTED, RELEASED, BadRows, Seen, Where, read_row_files
from rightcall.datasets.schemas import faults
from rightcall.errors import CallerError
from rightcall.redaction.scrubber import Scrubber
from rightcall.redaction.secret_shapes import SecretShape, start_pattern
from rightcall.storage.whole_files import WholeFile
from rightcall.types import Json

VERSION = "rightcall-redaction/v2"
_MOST_KEPT = 5_000


def _passes_luhn(text: str) -> bool:
    """Return whether the digits of a text are a card number: 14 to 19 of them, with a valid Luhn checksum."""
    digits = [int(char) for char in text if char.isdigit()]
    doubled = [digit if at % 2 else sum(divmod(digit * 2, 10)) for at, digit in enumerate(reversed(digits), 1)]
    return 14 <= len(digits) <= 19 and sum(doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    """Return whether a text, of letters, digits and blanks, is an international bank account number: 15 to 34
    characters with a valid checksum."""
    plain = text.replace(" ", "").upper()
    number = "".join([str(int(char, 36)) for char in plain[4:] + plain[:4]])
    return 15 <= len(plain) <= 34 and int(number) % 97 == 1


# Personal data: redacted in addition to secrets.
PERSONAL: dict[str, SecretShape] = {
    "email": SecretShape(
        re.compile(
            start_pattern(r"\w.+%-") + r"[\w.+%-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
        ),
        ("@",),
    ),
    "iban": SecretShape(
        re.compile(
            start_pattern("A-Za-z0-9_") + r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
        ),
        sure=_is_iban,
    ),
    "card": SecretShape(
        re.compile(start_pattern("A-Za-z0-9_.-") + r"\d(?:[ -]?\d){13,18}(?![\w-])"), sure=_passes_luhn
    ),
    "phone": SecretShape(
        re.compile(start_pattern("A-Za-z0-9_.+") + r"\+\d{1,3}[ ()./-]{0,2}\d(?:[ ()./-]{0,2}\d){6,12}(?!\w)"), ("+",)
    ),
    "address": SecretShape(
        re.compile(
            start_pattern("A-Za-z0-9_.")
            + r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![A-Za-z0-9]|\.\d)"
        ),
        (".",),
    ),
    "home": SecretShape(
        re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\{1,4}Users\\{1,4})([^\s/\\\"':<>|]{1,64})"),
        ("/home/", "users"),
        part=1,
    ),
}
_STAYS = {"127.0.0.1", "0.0.0.0", "255.255.255.255", "user", "example"}
# Replacements that redaction writes: a second run must not replace them. The digits of a telephone number's
# replacement may pass for a card number.
_OURS = re.compile(
    r"redacted-[a-z-]+-[0-9a-f]{8}(?:@.{1,300})?|user-[0-9a-f]{8}@example\.com|\+?0000000\d{0,8}|10{12,18}"
).fullmatch


class Redactor(Scrubber):
    """Replaces secrets, personal data and the given terms in one pass. Two runs replace equally only with the same
    `key`; without one, it is random. Raises `CallerError` for a term of less than three characters."""

    def __init__(self, terms: Iterable[str] = (), *, key: bytes | None = None) -> None:
        named = sorted({term for term in terms if term.strip()}, key=lambda term: (-len(term), term))
        if short := [term for term in named if len(term) < 3]:
            raise CallerError(f"a term to redact must have at least three characters; leave out {short[0]!r}")
        own = {"term": SecretShape(re.compile("|".join(map(re.escape, named)), re.I))} if named else {}
        super().__init__(stand_in=self._count_and_replace, more={**PERSONAL, **own})
        self._key = key or secrets.token_bytes(32)
        self._clean: set[str] = set()
        self.counts: Counter[str] = Counter()

    def redact(self, row: Json) -> Json:
        """Return the row without secrets, personal data and terms, marked as private and redacted so that
        `release_files` accepts it. Earlier marks of redaction and release are removed; findings are added to
        `counts`."""
        before = self.counts.copy()
        cleaned: Json = self.value(
            {key: value for key, value in row.items() if key not in ("schema_version", "metadata")}
        )
        marks = {key: row["metadata"][key] for key in row["metadata"] if key not in ("release", "redaction")}
        marks = {**self.value(marks), "private_agent_log": True, "public_export_allowed": False}
        redacted: Json = {"schema_version": row["schema_version"], **cleaned, "metadata": marks}
        found = dict(sorted((self.counts - before).items()))
        redacted["metadata"]["redaction"] = {"version": VERSION, "found": found, "sha256": redaction_digest(redacted)}
        return redacted

    def number(self, value: Any) -> Any:
        """Return 1 and zeros of the same length for an integer of 15 or 16 digits that is a card number, and count it;
        any other value unchanged."""
        if type(value) is int and 10**14 <= value < 10**16 and _passes_luhn(str(value)):
            self.counts["card"] += 1
            return 10 ** (len(str(value)) - 1)
        return value

    def text(self, text: str) -> str:
        """Return the text redacted. Short texts in which nothing was found are cached, because keys and short texts
        recur often."""
        if text in self._clean:
            return text
        cleaned = super().text(text)
        if len(text) <= 200 and cleaned == text:
            if len(self._clean) >= _MOST_KEPT:
                self._clean.clear()
            self._clean.add(text)
        return cleaned

    def is_kept(self, kind: str, found_text: str) -> bool:
        """Return whether a match is not replaced: a placeholder, a local address, an example, or a replacement by an
        earlier run."""
        return found_text in _STAYS or _OURS(found_text) is not None or super().is_kept(kind, found_text)

    def _count_and_replace(self, kind: str, found_text: str) -> str:
        """Count a finding of this kind and return its replacement."""
        self.counts[kind] += 1
        return self._make_pseudonym(kind, found_text)

    def _make_pseudonym(self, name: str, found_text: str) -> str:
        """Return the replacement of a finding of the kind `name`: equal texts get equal ones under one key. A card
        number becomes 1 and zeros, so that JSON stays valid."""
        tag = blake2b(
            found_text.casefold().encode("utf-8", "surrogatepass"), key=self._key[:64], digest_size=4
        ).hexdigest()
        if name == "card":
            return "1" + "0" * (sum(char.isdigit() for char in found_text) - 1)
        if name == "phone":
            return "+0000000" + str(int(tag, 16) % 10**8)
        return f"user-{tag}@example.com" if name == "email" else f"redacted-{name}-{tag}"


def redaction_digest(row: Json) -> str:
    """Return the SHA-256 of a row without its marks of redaction, release and privacy, in hexadecimal. It differs if
    the row was changed after its redaction."""
    marks = ("redaction", "release", "private_agent_log", "public_export_allowed")
    kept = {key: value for key, value in row["metadata"].items() if key not in marks}
    plain = json.dumps({**row, "metadata": kept}, sort_keys=True, separators=(",", ":"))
    return sha256(plain.encode()).hexdigest()


def explain_not_releasable(row: Json) -> str:
    """Return why this row must not be released: it was not redacted, or was changed since; "" if it may be."""
    mark = row["metadata"].get("redaction")
    if not isinstance(mark, dict) or mark.get("version") != VERSION:
        return "it was not redacted; run `rightcall dataset redact` first"
    if mark.get("sha256") != redaction_digest(row):
        return "it has changed since it was redacted; redact it again"
    return ""


def explain_not_public(row: Json) -> str:
    """Return why this row may not be exported publicly: it was not released, is marked private, or was changed; ""
    if it may be."""
    marks = row.get("metadata")
    if not isinstance(marks, dict) or not isinstance(marks.get("release"), dict):
        return "it was not released; run `rightcall dataset redact`, then `rightcall dataset release`"
    if marks.get("public_export_allowed") is not True or marks.get("private_agent_log") is not False:
        return "its marks say that it is private"
    return explain_not_releasable(row)


# -- files -------------------------------------------------------------------------------------------------------------


def redact_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    terms: Iterable[str] = (),
    seen: Seen | None = None,
    force: bool = False,
) -> tuple[int, Counter[str]]:
    """Write the rows without secrets and personal data (addresses, numbers, home folders). A value is replaced by the
    same word everywhere. Patterns are found, not meaning: a name in a sentence remains. Return the number of rows, and
    how often each kind was found.

    - `paths`: captures.
    - `output`: the file.
    - `terms`: further words to replace.
    - `seen`, `force`: as in `export`.

    Raises `BadRows` for rows with faults, and `CallerError` for a term of less than three characters; nothing is
    written then."""
    redactor, files = Redactor(terms), list(paths)
    with WholeFile(output, REDACTED, sources=files, force=force) as out:
        for where, row in read_row_files(files, seen=seen):
            try:
                out.write(redactor.redact(_require_capture_row(where, row)))
            except RecursionError as error:
                raise BadRows(f"{where} is nested too deeply to be redacted; leave the row out") from error
    return out.rows, redactor.counts


def release_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    by: str,
    note: str = "",
    refused: Callable[[Where, str], None],
    seen: Seen | None = None,
    force: bool = False,
) -> tuple[int, int]:
    """Write the rows that may be released, marked public: those that were redacted and not changed afterwards. Return
    the numbers of released and of refused rows.

    - `paths`: redacted captures.
    - `output`: the file.
    - `by`: who is responsible for the release.
    - `note`: the reason, for readers of the rows.
    - `refused`: is called for each refused row, with its place and the reason.
    - `seen`, `force`: as in `export`.

    Raises `BadRows` for rows with faults, and `CallerError` without a name; nothing is written then."""
    if not by.strip():
        raise CallerError("name who is responsible for the release: --by NAME")
    mark = {"by": by, "note": note, "at_unix_ms": unix_ms()}
    refused_rows, files = 0, list(paths)
    with WholeFile(output, RELEASED, sources=files, force=force) as out:
        for where, row in read_row_files(files, seen=seen):
            why = explain_not_releasable(_require_capture_row(where, row))
            if why:
                refused_rows += 1
                refused(where, why)
                continue
            assert not isinstance(row, LineFault)
            marks = {**row["metadata"], "private_agent_log": False, "public_export_allowed": True, "release": mark}
            out.write({**row, "metadata": marks})
    return out.rows, refused_rows


def _require_capture_row(where: Where, row: Json | LineFault) -> Json:
    """Return the row if it is a valid row with `metadata`. Raises `BadRows` with its place otherwise."""
    found = [row.message] if isinstance(row, LineFault) else faults(row)
    if not found and not isinstance(row, LineFault) and not isinstance(row.get("metadata"), dict):
        found = ["is no row of a capture: it has no `metadata`"]
    if found or isinstance(row, LineFault):
        raise BadRows(f"{where} {found[0]}; `rightcall dataset validate` lists every fault")
    return row
