"""Install each server into its own environment, once, and convert the model to the folder that most of them need."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from report import ROOT

from real_servers.kinds import RealServer
from rightcall.backends.models import MODELS, cached_model_file, find_model_file

HOME = ROOT / "target" / "servers"
HERE = Path(__file__).resolve().parent
TEMPLATE = HERE / "tools.jinja"
UNPACKING = ("gguf", "safetensors")


def install_server(server: RealServer) -> Path:
    """Install the server if necessary, and return the folder of its programs."""
    folder = _environment(server.name, server.packages)
    stamp = HOME / server.name / ".mended"
    if server.patch is not None and not stamp.exists():
        server.patch(next((HOME / server.name / "lib").glob("python*/site-packages")))
        stamp.touch()
    return folder


def model_folder() -> Path:
    """Return the model as transformers, vLLM and MLX need it; convert it again when the template is newer."""
    folder = HOME / "smollm2"
    template_copy = folder / "chat_template.jinja"
    if not template_copy.exists() or template_copy.read_bytes() != TEMPLATE.read_bytes():
        python = _environment("unpacking", UNPACKING) / "python"
        subprocess.run([python, HERE / "unpack_gguf.py", model_file(), TEMPLATE, folder], check=True)
    return folder


def model_file() -> Path:
    return find_model_file("smollm2")


def adapter_file() -> Path:
    """Return the adapter that calls tools. If it is not downloaded, no server uses it."""
    return cached_model_file(MODELS["smollm2-tools"])


def version(server: RealServer) -> str:
    ask = f"from importlib.metadata import version; print(version({server.version_of!r}))"
    return subprocess.run(
        [HOME / server.name / "bin" / "python", "-c", ask], check=True, capture_output=True, text=True
    ).stdout.strip()


def _environment(name: str, packages: tuple[str, ...]) -> Path:
    folder = HOME / name
    if not (stamp := folder / ".installed").exists():
        print(f"installing {' '.join(packages)} into {folder.relative_to(ROOT)}", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
            check=True,
        )
        stamp.touch()
    return folder / "bin"
