"""The official JSON Schema test suite, draft 2020-12, from the source distribution of the package `jsonschema`.

It is fetched once and read as an archive: none of its code runs. A group is a schema with instances, each valid or not.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

CACHE = Path(__file__).resolve().parent / ".cache"
VERSION = "4.26.0"
FOLDER = f"jsonschema-{VERSION}/json/tests/draft2020-12/"


class Instance(msgspec.Struct, frozen=True):
    """One instance of a schema. `name` is its location in the suite."""

    name: str
    schema: Any
    value: Any
    valid: bool


def fetch() -> Path:
    """Return the path of the archive; download it if it is not in the cache."""
    path = CACHE / f"jsonschema-{VERSION}.tar.gz"
    if not path.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run(
            [*command, "--no-binary", ":all:", "--no-build-isolation", "--dest", str(CACHE), f"jsonschema=={VERSION}"],
            check=False,
        )
    if not path.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run(
            [*command, "--no-binary", "jsonschema", "--dest", str(CACHE), f"jsonschema=={VERSION}"], check=True
        )
    return path


def instances(path: Path) -> Iterator[Instance]:
    """Yield the instances of the required tests. Optional tests are about formats and big numbers."""
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            rest = member.name.removeprefix(FOLDER)
            if rest == member.name or "/" in rest or not rest.endswith(".json"):
                continue
            file = archive.extractfile(member)
            assert file is not None
            for group in json.load(file):
                for test in group["tests"]:
                    name = f"{rest.removesuffix('.json')}: {group['description']}: {test['description']}"
                    yield Instance(name, group["schema"], test["data"], test["valid"])
