"""Builds the wheel as a release would (from the sdist), installs it in a clean venv and uses it there.

Run by `make smoke`, not collected by pytest: it needs the network and takes a while.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPLY = 'On it.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
PROGRAM = f"""
import rightcall
reply = rightcall.parse({REPLY!r}, format="hermes")
assert [(call.name, call.arguments) for call in reply.attempts] == [("get_weather", {{"city": "Oslo"}})], reply
assert reply.content == "On it.", reply
print(rightcall.__version__)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rightcall-smoke-") as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        bin_folder = install(wheel, folder / "venv")
        use(bin_folder, folder)
    print(f"smoke: {wheel.name} works in a clean venv")


def build(folder: Path) -> Path:
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT), cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "rightcall/py.typed" in names, names
    assert any(name.endswith("/licenses/LICENSE") for name in names), names
    strangers = [name for name in names if not name.startswith(("rightcall/", "rightcall-"))]
    assert not strangers, f"the wheel holds files that are not ours to install: {strangers}"
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel), cwd=folder)
    return folder / "bin"


def use(bin_folder: Path, cwd: Path) -> None:
    version = run(str(bin_folder / "python"), "-I", "-c", PROGRAM, cwd=cwd).strip()
    assert version, "rightcall.__version__ is empty"
    command = str(bin_folder / "rightcall")
    assert "hermes" in json.dumps(json.loads(run(command, "formats", "--json", cwd=cwd)))
    reply = json.loads(run(command, "parse", "-", "--format", "hermes", "--json", cwd=cwd, stdin=REPLY))
    assert "get_weather" in json.dumps(reply), reply


def run(*command: str, cwd: Path, stdin: str = "") -> str:
    """stdout of the command; when it fails, everything it said."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"smoke: {' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
