"""Install clients from the registries, each package in its own folder under target/clients."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from clients.client import Package

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = ROOT / "target" / "clients"
PROGRAMS = Path(__file__).resolve().parent / "programs"
NODE = Package("npm", "node", ("node@24",))  # several clients need a newer version than Debian has


class NotInstalled(Exception):
    """A registry did not provide the requested package."""


def folder_of(package: Package) -> Path:
    return TARGET / package.registry / package.folder


def is_installed(package: Package) -> bool:
    return (folder_of(package) / ".installed").exists()


def programs_of(package: Package) -> Path:
    """Return the folder in which a library's program is started: Node finds packages only next to the program."""
    return PROGRAMS if package.registry == "pip" else folder_of(package)


def search_path(package: Package) -> str:
    own = folder_of(package) / ("bin" if package.registry == "pip" else "node_modules/.bin")
    return os.pathsep.join(
        [str(own), str(folder_of(NODE) / "node_modules" / ".bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    )


def install(packages: Iterable[Package]) -> dict[Package, str]:
    """Install the missing packages. Return those that failed, with the reason."""
    failed: dict[Package, str] = {}
    for package in dict.fromkeys([NODE, *packages]):
        try:
            _install(package)
        except NotInstalled as why:
            failed[package] = str(why)
    return failed


def _install(package: Package) -> None:
    folder = folder_of(package)
    if not is_installed(package):
        print(f"installing {' '.join(package.names)}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        (_npm if package.registry == "npm" else _pip)(package, folder)
        (folder / ".installed").touch()
    if package.registry == "npm":
        for program in PROGRAMS.glob("*.mjs"):
            shutil.copyfile(program, folder / program.name)


def _npm(package: Package, folder: Path) -> None:
    (folder / "package.json").write_text('{"private": true}', "utf-8")
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
    path = f"{search_path(NODE)}{os.pathsep}{os.environ['PATH']}"
    _run([*command, *package.names], env={**os.environ, "PATH": path}, cwd=folder)


def _pip(package: Package, folder: Path) -> None:
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *package.names])


def _run(command: list[str], env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True)
    except FileNotFoundError:
        raise NotInstalled(f"the command {command[0]} is not installed") from None
    if done.returncode:
        raise NotInstalled((done.stderr or done.stdout).strip()[-300:])


@cache
def version(package: Package) -> str:
    """Return the version of the first name of the package."""
    name = package.names[0].partition("[")[0]
    if package.registry == "npm":
        name = "@".join(name.split("@")[:2]) if name.startswith("@") else name.partition("@")[0]
        described = folder_of(package) / "node_modules" / name / "package.json"
        return str(json.loads(described.read_text("utf-8"))["version"])
    script = f"import importlib.metadata as m; print(m.version({name!r}))"
    return subprocess.run(
        [str(folder_of(package) / "bin" / "python"), "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()
