"""Models are downloaded by the real pip from local folders and kept only if they match their hashes."""

import hashlib
import io
import json
import os
import re
import time
import tomllib
import zipfile
from pathlib import Path

import msgspec
import pytest

from rightcall.backends import models
from rightcall.backends.models import (
    MODELS,
    Model,
    ModelUnavailable,
    UnknownModel,
    cached_model_file,
    find_model_file,
    is_cached,
    pull_model,
    remove_model,
    with_adapter,
)
from rightcall.cli.model_command import _progress_bar
from rightcall.errors import CallerError
from support.command import failed, run

GGUF = b"GGUF" + bytes(range(256)) * 40


def wheel(folder: Path, data: bytes = GGUF, member: str = "tiny_model/tiny.gguf") -> Path:
    """Build a wheel like one of an index, with the model and with code that must never run."""
    folder.mkdir(exist_ok=True)
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, data)
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('this must not run')")
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return path


def model_of(path: Path) -> Model:
    return Model(
        name="tiny",
        about="a few bytes",
        licence="Apache-2.0",
        package="tiny-model",
        version="1.0",
        wheel_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        wheel_size=path.stat().st_size,
        member="tiny_model/tiny.gguf",
        sha256=hashlib.sha256(GGUF).hexdigest(),
        size=len(GGUF),
    )


@pytest.fixture(autouse=True)
def isolated_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip use only the folder `index` and keep models in `cache`."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("RIGHTCALL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    model = model_of(wheel(tmp_path / "index"))
    monkeypatch.setitem(MODELS, "tiny", model)
    return model


# -- pull --------------------------------------------------------------------------------------------------------------


def test_pulling_a_model_extracts_its_file_and_leaves_no_other_file(tiny: Model, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    path = pull_model(tiny, progress=lambda *step: steps.append(step))
    assert path.read_bytes() == GGUF and find_model_file("tiny") == path
    assert [file.name for file in (tmp_path / "cache").rglob("*") if file.is_file()] == ["tiny.gguf"]
    assert [file.name for file in path.parent.iterdir()] == ["tiny.gguf"]
    assert steps[-1] == ("unpacking", tiny.size, tiny.size) and ("fetching", tiny.wheel_size, tiny.wheel_size) in steps
    assert all(0 <= done <= total for _, done, total in steps)


def test_a_cached_model_is_not_downloaded_again(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pull_model(tiny)
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert pull_model(tiny) == path


def test_a_damaged_model_is_detected_and_downloaded_again(tiny: Model) -> None:
    path = pull_model(tiny)
    path.write_bytes(GGUF[:-1] + b"!")
    assert not is_cached(tiny)
    with pytest.raises(ModelUnavailable, match=r"is damaged.*`rightcall model pull tiny` fetches it again"):
        find_model_file("tiny")
    assert pull_model(tiny).read_bytes() == GGUF


def test_a_wheel_with_another_hash_is_rejected(tiny: Model, tmp_path: Path) -> None:
    wheel(tmp_path / "index", GGUF + b"more")
    with pytest.raises(ModelUnavailable, match="the downloaded file is not the pinned file and was deleted"):
        pull_model(tiny)
    assert list(cached_model_file(tiny).parent.iterdir()) == []


def test_a_model_file_with_another_hash_is_rejected(tmp_path: Path) -> None:
    model = model_of(wheel(tmp_path / "index", GGUF[:-1] + b"!"))
    with pytest.raises(ModelUnavailable, match="is not the pinned one: its SHA-256 is"):
        pull_model(model)
    assert list(cached_model_file(model).parent.iterdir()) == []


def test_a_model_larger_than_pinned_is_not_unpacked(tmp_path: Path) -> None:
    model = model_of(wheel(tmp_path / "index", GGUF + bytes(8 << 20)))
    unpacked: list[int] = []
    with pytest.raises(ModelUnavailable, match="not the pinned one"):
        pull_model(model, progress=lambda stage, done, total: unpacked.append(done) if stage == "unpacking" else None)
    assert unpacked == []


def test_a_wheel_without_the_model_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"does not hold tiny_model/tiny.gguf"):
        pull_model(model_of(wheel(tmp_path / "index", member="tiny_model/other.gguf")))


def test_a_failed_download_is_reported_with_cause_and_cure(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelUnavailable) as caught:
        pull_model(tiny)
    assert "cannot fetch tiny-model 1.0: pip could not download it" in str(caught.value)
    assert "check the network" in str(caught.value) and "secret" not in str(caught.value)


def test_a_missing_pip_is_reported_with_the_cure(tiny: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    bare.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(bare))
    with pytest.raises(ModelUnavailable, match=r"this Python has no pip.*ensurepip"):
        pull_model(tiny)


def test_a_model_larger_than_the_free_space_is_not_downloaded(tiny: Model) -> None:
    huge = msgspec.structs.replace(tiny, size=10**18)
    with pytest.raises(ModelUnavailable, match=r"no room for tiny: fetching it needs .* make room"):
        pull_model(huge)


def test_a_disk_that_becomes_full_is_a_clear_error(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ModelUnavailable, match=r"cannot keep tiny in .*No space left on device; RIGHTCALL_CACHE names"):
        pull_model(tiny)
    assert list(cached_model_file(tiny).parent.iterdir()) == []


def test_a_cache_folder_that_cannot_be_created_is_a_clear_error(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RIGHTCALL_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelUnavailable, match="RIGHTCALL_CACHE names another folder"):
        pull_model(tiny)


def test_files_of_killed_pulls_are_deleted_after_a_day(tiny: Model) -> None:
    old, new = cached_model_file(tiny).parent / ".pull-old", cached_model_file(tiny).parent / ".pull-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "half.whl").write_text("")
    os.utime(old, (time.time() - 90_000,) * 2)
    pull_model(tiny)
    assert not old.exists() and new.exists()


def test_a_removed_model_is_not_in_the_cache(tiny: Model) -> None:
    pull_model(tiny)
    assert remove_model(tiny) and not remove_model(tiny)
    with pytest.raises(ModelUnavailable, match="tiny is not in the cache: `rightcall model pull tiny` downloads it"):
        find_model_file("tiny")


# -- cache folder and model paths --------------------------------------------------------------------------------------


def test_the_cache_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RIGHTCALL_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert models.cache_folder() == tmp_path / ".cache" / "rightcall"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert models.cache_folder() == tmp_path / "xdg" / "rightcall"
    monkeypatch.setattr("sys.platform", "darwin")
    assert models.cache_folder() == tmp_path / "Library" / "Caches" / "rightcall"


def test_any_gguf_file_can_be_given_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(GGUF)
    assert find_model_file(str(path)) == path
    path.write_bytes(b"PK\3\4")
    with pytest.raises(CallerError, match="is not a GGUF file"):
        find_model_file(str(path))
    with pytest.raises(CallerError, match="No such file"):
        find_model_file(str(tmp_path / "gone.gguf"))
    with pytest.raises(CallerError, match="null"):
        find_model_file("a\0b.gguf")


def test_a_path_to_a_model_does_not_need_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(GGUF)
    assert find_model_file(str(path)) == path


def test_an_unknown_model_is_rejected_with_the_nearest_name() -> None:
    with pytest.raises(UnknownModel, match=r"no model 'smolm2'; did you mean 'smollm2'\?"):
        find_model_file("smolm2")
    with pytest.raises(UnknownModel, match="there is smollm2"):
        find_model_file("gpt")


def test_every_model_is_pinned() -> None:
    for name, model in MODELS.items():
        assert model.name == name and model.file.endswith(".gguf") and model.version
        pins = [model.sha256] if model.base else [model.sha256, model.wheel_sha256]
        assert all(len(digest) == 64 and int(digest, 16) for digest in pins)
        assert model.base in ("", *MODELS)


# -- adapters ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def adapter(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Declare an adapter of the tiny model in the same wheel; the hash of the wheel is not pinned."""
    adapter_model = msgspec.structs.replace(tiny, name="tiny-tools", base="tiny", wheel_sha256="")
    monkeypatch.setitem(MODELS, "tiny-tools", adapter_model)
    return adapter_model


def test_an_adapter_is_pulled_with_its_model_and_checked_by_its_hash(adapter: Model, tiny: Model) -> None:
    path = pull_model(adapter)
    assert with_adapter("tiny-tools") == (cached_model_file(tiny), path) == with_adapter("tiny", "tiny-tools")
    assert with_adapter("tiny") == (cached_model_file(tiny), None)
    with pytest.raises(CallerError, match="tiny-tools is an adapter of tiny; one at a time"):
        with_adapter("tiny-tools", "other.gguf")


def test_an_adapter_in_the_source_tree_is_used_if_its_hash_is_the_pinned_one(
    adapter: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull_model(MODELS["tiny"]).rename(tmp_path / "kept")  # both files have one name here
    monkeypatch.setitem(MODELS, "tiny", msgspec.structs.replace(adapter, name="tiny", base=""))
    file = tmp_path / "tree" / adapter.name / adapter.member
    file.parent.mkdir(parents=True)
    file.write_bytes(GGUF)
    monkeypatch.setattr(models, "_TREE", tmp_path / "tree")
    (tmp_path / "kept").rename(cached_model_file(adapter).with_name("base.gguf"))
    monkeypatch.setitem(MODELS, "tiny", msgspec.structs.replace(MODELS["tiny"], member="tiny_model/base.gguf"))
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert pull_model(adapter).read_bytes() == GGUF
    remove_model(adapter)
    file.write_bytes(GGUF[:-1])
    with pytest.raises(ModelUnavailable, match="pip could not download it"):
        pull_model(adapter)


def test_the_adapter_in_the_source_tree_is_small_and_pinned() -> None:
    adapter_model = MODELS["smollm2-tools"]
    file = models._TREE / adapter_model.name / adapter_model.member
    assert file.stat().st_size == adapter_model.size < 5_000_000
    assert hashlib.sha256(file.read_bytes()).hexdigest() == adapter_model.sha256
    project = tomllib.loads((models._TREE / adapter_model.name / "pyproject.toml").read_text("utf-8"))["project"]
    assert (project["name"], project["version"], project["license"]) == (
        adapter_model.package,
        adapter_model.version,
        adapter_model.licence,
    )


# -- the commands ------------------------------------------------------------------------------------------------------


def test_the_commands_pull_list_and_remove(tiny: Model) -> None:
    assert re.search(r"tiny +not here", run("model", "list").stdout)
    pulled = run("model", "pull", "tiny")
    assert pulled.exit_code == 0 and str(cached_model_file(tiny)) in pulled.stdout and pulled.stderr == ""
    (row,) = [row for row in json.loads(run("model", "list", "--json").stdout) if row["name"] == "tiny"]
    assert row["state"] == "here" and row["path"] == str(cached_model_file(tiny)) and row["sha256"] == tiny.sha256
    cached_model_file(tiny).write_bytes(b"GGUF")
    assert re.search(r"tiny +damaged", run("model", "list").stdout)
    assert run("model", "rm", "tiny").stdout == "tiny was removed\n"
    assert run("model", "rm", "tiny").stdout == "tiny was not in the cache\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_only_in_a_terminal(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, pipe = Terminal(), io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    for stream in (terminal, pipe):
        monkeypatch.setattr("sys.stderr", stream)
        with _progress_bar(tiny) as report:
            (report or models._ignore_progress)("fetching", 1, 2)
    assert "fetching tiny" in terminal.getvalue() and pipe.getvalue() == ""


def test_an_unavailable_model_is_a_one_line_error_with_exit_code_1(tiny: Model, tmp_path: Path) -> None:
    wheel(tmp_path / "index", b"other")
    assert "not the pinned file" in failed(run("model", "pull", "tiny"), 1)
    assert "is not in the cache" in failed(run("model", "serve", "tiny"), 1)


def test_an_unknown_model_is_a_usage_error() -> None:
    for command in ("pull", "rm", "serve"):
        assert "no model 'gpt'" in failed(run("model", command, "gpt"))
