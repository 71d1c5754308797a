"""Build the wheel as a release does (from the sdist), install it in a clean venv and use it there.

First it has only its two dependencies: the library is tested, and the command must report the missing extra. Then the
extra of the command is installed.

`make smoke` runs it; pytest does not collect it, because it needs the network and is slow.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REPLY = 'On it.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
CORE = {"rightcall", "msgspec", "jsonschema-rs"}
LIST_PACKAGES = """
import re
from importlib.metadata import distributions
print(*{re.sub("[_.]", "-", each.metadata["Name"].lower()) for each in distributions()} - {"pip", "setuptools"})
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rightcall-smoke-") as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        bin_folder = install(wheel, folder / "venv")
        use_core(bin_folder, folder)
        pip(bin_folder, f"{wheel}[cli]")
        use_command(bin_folder, folder)
    print(f"smoke: {wheel.name} works in a clean venv")


def build(folder: Path) -> Path:
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT), cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "rightcall/py.typed" in names, names
    assert any(name.endswith("/licenses/LICENSE") for name in names), names
    strangers = [name for name in names if not name.startswith(("rightcall/", "rightcall-"))]
    assert not strangers, f"the wheel contains files outside of the package: {strangers}"
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    pip(folder / "bin", str(wheel))
    return folder / "bin"


def pip(bin_folder: Path, what: str) -> None:
    python = str(bin_folder / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what, cwd=bin_folder)


def use_core(bin_folder: Path, cwd: Path) -> None:
    python = str(bin_folder / "python")
    installed = set(run(python, "-I", "-c", LIST_PACKAGES, cwd=cwd).split())
    assert installed == CORE, f"`pip install rightcall` installs {installed}"
    version = run(python, "-I", str(ROOT / "tests" / "support" / "core_alone.py"), cwd=cwd).strip()
    assert version, "rightcall.__version__ is empty"
    lacking = subprocess.run([str(bin_folder / "rightcall"), "formats"], cwd=cwd, capture_output=True, text=True)
    (line,) = lacking.stderr.splitlines()
    assert lacking.returncode == 2 and line.endswith("pip install 'rightcall[cli]'"), lacking


def use_command(bin_folder: Path, cwd: Path) -> None:
    command = str(bin_folder / "rightcall")
    assert "hermes" in json.dumps(json.loads(run(command, "formats", "--json", cwd=cwd)))
    reply = json.loads(run(command, "parse", "-", "--format", "hermes", "--json", cwd=cwd, stdin=REPLY))
    assert "get_weather" in json.dumps(reply), reply


def run(*command: str, cwd: Path, stdin: str = "") -> str:
    """Return stdout of the command. If it fails, exit with all of its output."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"smoke: {' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
