"""`dataset redact` and `dataset release`: no row becomes public by accident."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import parse
from rightcall.capture.captured_rows import read_rows
from rightcall.datasets.conversations import CapturedConversation
from rightcall.datasets.exporting import Unreleased, export
from rightcall.datasets.releasing import (
    PERSONAL,
    Redactor,
    explain_not_public,
    explain_not_releasable,
    redact_files,
    release_files,
)
from rightcall.datasets.row_files import BadRows
from rightcall.datasets.schemas import faults
from rightcall.errors import CallerError
from rightcall.types import Json
from support.captured import RIGHT, conversation, rows, write

SECRETS = [
    ("private-key", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/=\n-----END RSA PRIVATE KEY-----"),
    ("token", "sk-proj-abcdefghijklmnop1234"),
    ("token", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("token", "AKIAIOSFODNN7EXAMPLE"),
    ("token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
    ("bearer", "Authorization: Bearer abcdef0123456789"),
    ("password", "password=hunter22"),
    ("password", '"api_key": "0123456789"'),
    ("credentials", "https://ann:s3cret@host.test/x"),
    ("email", "ann.lee+shop@mail.example.org"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("card", "4111 1111 1111 1111"),
    ("phone", "+44 20 7946 0958"),
    ("address", "10.20.30.40"),
    ("home", "/home/annlee/notes.txt"),
    ("home", "C:\\Users\\annlee\\notes.txt"),
]
HARMLESS = [
    "SKU-HEADPHONES-1 costs 149",
    "capture_call_0_0",
    "1763200000000",
    "4111 1111 1111 1112",
    "DE00 3704 0044 0532 0130 00",
    "127.0.0.1",
    "version 1.2.3",
    "a@b",
    "2026-06-05",
]


@pytest.mark.parametrize(("name", "secret"), SECRETS)
def test_text_that_looks_like_a_secret_is_replaced(name: str, secret: str) -> None:
    redactor = Redactor()
    cleaned = redactor.text(f"see {secret} there")
    assert redactor.counts == {name: 1}
    assert secret not in cleaned
    assert cleaned.startswith("see ") and cleaned.endswith(" there")
    assert "annlee" not in cleaned and "s3cret" not in cleaned and "hunter22" not in cleaned


def test_every_rule_for_personal_data_has_a_sample() -> None:
    assert PERSONAL.keys() <= {name for name, _ in SECRETS}


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_that_resembles_a_secret_is_kept(text: str) -> None:
    assert Redactor().text(text) == text


@given(st.lists(st.sampled_from([secret for _, secret in SECRETS]) | st.text(max_size=10), max_size=6))
def test_redaction_is_idempotent(pieces: list[str]) -> None:
    redactor = Redactor()
    once = redactor.text(" ".join(pieces))
    again = Redactor()
    assert again.text(once) == once
    assert not again.counts


def test_a_replaced_telephone_number_is_not_replaced_as_a_card_number() -> None:
    replacements = ["+0000000" + str(number) for number in range(17_006_100, 17_006_200)]  # ten pass Luhn's test
    assert [Redactor().text(text) for text in replacements] == replacements


def test_placeholders_are_equal_within_a_run_and_differ_between_runs() -> None:
    one, other = Redactor(), Redactor()
    assert one.text("a@mail.test b@mail.test a@mail.test").split()[0] == one.text("a@mail.test")
    assert one.text("a@mail.test") != one.text("b@mail.test")
    assert one.text("a@mail.test") != other.text("a@mail.test")


def test_user_defined_terms_are_redacted() -> None:
    redactor = Redactor(["Project Dawn", "Ann"])
    assert "dawn" not in redactor.text("Ann works on project dawn").lower()
    assert redactor.counts == {"term": 2}
    with pytest.raises(CallerError, match="at least three characters"):
        Redactor(["a"])


def test_every_value_under_a_secret_name_is_redacted() -> None:
    row = {**rows("right")[0], "extra": {"password": "blue", "user_token": "t", "number": 4111111111111111}}
    cleaned = Redactor().redact(row)
    assert cleaned["extra"]["password"].startswith("redacted-password-")
    assert cleaned["extra"]["user_token"].startswith("redacted-password-")
    assert cleaned["extra"]["number"] == 10**15


@pytest.mark.parametrize("before", ["", "line\\n", "\\\\", '\\"', "caf\\u00e9", "a\\tb "])
@pytest.mark.parametrize("secret", ["ann.lee@mail.test", "4111111111111111", "+44 20 7946 0958", "ghp_" + "a1" * 15])
def test_a_redacted_call_matches_its_redacted_text(before: str, secret: str) -> None:
    text = RIGHT.replace("SKU-DOCK-1", f'{before}{secret} said \\"x\\"')
    cleaned = Redactor().redact(next(conversation("g", (text, "Done."))))
    call = CapturedConversation([cleaned]).turns[0].calls[0]
    assert json.loads(call.json) == call.arguments == cleaned["candidate_call"]["arguments"]
    if (
        "@" not in secret or "u00e9" not in before
    ):  # Letters of any language are part of an address, their escapes are not.
        assert parse(cleaned["reply"], format="hermes").attempts[0].arguments == call.arguments
    assert secret not in json.dumps(cleaned)
    assert faults(cleaned) == []


def test_hostile_text_is_redacted_in_linear_time() -> None:
    import time

    for piece in ("-----BEGIN PRIVATE KEY-----", "a@", "+1", "4 ", "://a:", "eyJ.", "1.", "/home/", "password="):
        text = piece * 40_000
        start = time.process_time()
        Redactor().text(text)
        assert time.process_time() - start < 20, piece


# -- release -----------------------------------------------------------------------------------------------------------


def release_rows(tmp_path: Path, entries: list[Json]) -> Path:
    source = write(tmp_path / "a.jsonl", entries)
    redact_files([source], tmp_path / "redacted.jsonl")
    release_files([tmp_path / "redacted.jsonl"], tmp_path / "out.jsonl", by="Ann", refused=_fail)
    return tmp_path / "out.jsonl"


def _fail(where: object, why: str) -> None:
    raise AssertionError(f"{where} {why}")


def test_released_rows_are_sound_and_public(tmp_path: Path) -> None:
    path = release_rows(tmp_path, rows())
    found = [row for _, row in read_rows(path) if isinstance(row, dict)]
    assert len(found) == 13
    assert all(explain_not_public(row) == "" and faults(row) == [] for row in found)
    assert found[0]["metadata"]["release"]["by"] == "Ann"
    made = export([path], tmp_path / "public.jsonl", to="trl-sft", public=True)
    assert made.public
    assert Path(made.path).stat().st_mode & 0o777 == 0o644
    assert json.loads(Path(made.manifest).read_text())["private"] is False


def test_a_row_that_is_not_redacted_or_was_changed_since_is_rejected(tmp_path: Path) -> None:
    first, second, *_ = rows("right")
    redacted = Redactor().redact(second)
    changed = {**redacted, "user_request": "mail me at ann@mail.test"}
    source = write(tmp_path / "a.jsonl", [first, changed, redacted])
    refused: list[tuple[int, str]] = []
    counts = release_files(
        [source], tmp_path / "out.jsonl", by="Ann", refused=lambda where, why: refused.append((where.number, why))
    )
    assert counts == (1, 2)
    assert [number for number, _ in refused] == [1, 2]
    assert "not redacted" in refused[0][1] and "has changed" in refused[1][1]


def test_a_public_export_of_unreleased_rows_names_them_and_writes_nothing(tmp_path: Path) -> None:
    path = release_rows(tmp_path, rows("right"))
    forged = rows("repaired")[0]
    forged["metadata"] = {"public_export_allowed": True, "private_agent_log": False, "release": {"by": "me"}}
    mixed = write(tmp_path / "mixed.jsonl", [*rows("parallel"), forged])
    with pytest.raises(Unreleased) as caught:
        export([path, mixed], tmp_path / "public.jsonl", to="trl-sft", public=True)
    assert [where.number for where, _ in caught.value.rows] == [1, 2, 3, 4]
    assert {where.path for where, _ in caught.value.rows} == {str(mixed)}
    assert not list(tmp_path.glob("*public*"))


def test_exports_are_private_and_marked_by_default(tmp_path: Path) -> None:
    made = export([write(tmp_path / "a.jsonl", rows())], tmp_path / "out.jsonl", to="openai-sft")
    assert not made.public
    assert Path(made.path).stat().st_mode & 0o777 == 0o600
    assert json.loads(Path(made.manifest).read_text())["private"] is True


def test_redacting_again_revokes_a_release() -> None:
    row = Redactor().redact(rows("right")[0])
    assert explain_not_releasable(row) == ""
    public = {**row["metadata"], "private_agent_log": False, "public_export_allowed": True, "release": {"by": "x"}}
    again = Redactor().redact({**row, "metadata": public})
    assert again["metadata"]["private_agent_log"] is True and "release" not in again["metadata"]


def test_a_release_needs_a_responsible_person(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", rows("right"))
    with pytest.raises(CallerError, match="--by"):
        release_files([source], tmp_path / "out.jsonl", by=" ", refused=_fail)


def test_rows_without_marks_cannot_be_redacted(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text(
        '{"schema_version": "forge-dataset-assemble-conflict/v1", "scorer_input": "x", "kept": {}, "conflict": {}}\n'
    )
    with pytest.raises(BadRows, match="metadata"):
        redact_files([source], tmp_path / "out.jsonl")
