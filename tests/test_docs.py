"""The documents are correct: their code runs and prints the shown output, and their links have targets.

    ```python                        is run; all blocks of a document share a namespace
    ```text or ```output             directly below a Python block: the output of that block
    ```console, ```sh                lines `$ rightcall ...` are run; the lines below are their output
    <!-- not run: reason -->         directly above a block: the block is skipped
    <!-- file: NAME -->              directly above a block: a file that the commands of this document can read

A line `...` in shown output stands for any lines. Everything runs in an empty folder that has a copy of examples/.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.command import run

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md") if (ROOT / name).exists()),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples" / "train").glob("*.md")),
]
LINKED = sorted({*ROOT.glob("*.md"), *DOCUMENTS, *(ROOT / "examples").rglob("*.md")})

FENCE = re.compile(r"\s*(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
FILE = re.compile(r"<!-- file: (?P<name>[\w.-]+) -->")
LINK = re.compile(r"(?m)\]\((?P<inline><[^>]*>|[^)\s]+)(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s+(?P<reference>\S+)")
WEB = re.compile(r"[a-z][\w+.-]*:")
COMMAND = re.compile(r"(?:^|\|\s*)(?:rightcall|cat|echo|printf)(?:\s|$)")

PYTHON = {"python", "py", "python3"}
OUTPUT = {"text", "output"}
CONSOLE = {"console", "sh", "bash", "shell"}
SHELL = re.compile(r"[|&;<>$`*]")  # syntax that only a shell understands
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "GITHUB_ACTIONS")


class Block(NamedTuple):
    language: str
    body: str
    line: int  # the first line of the body, counted from 1
    above: str  # the nearest line above that is not blank
    follows: bool  # whether only blank lines are between the previous block and this one


class Mismatch(AssertionError):
    """A document shows something other than what happens."""


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a Markdown text, in order."""
    lines = iter(enumerate(text.splitlines(), start=1))
    above, follows = "", False
    for number, line in lines:
        if not (fence := FENCE.match(line)):
            if line.strip():
                above, follows = line.strip(), False
            continue
        ticks, body = fence["ticks"], []
        for _, inner in lines:
            if inner.strip().startswith(ticks) and not inner.strip().strip(ticks[0]):
                break
            body.append(inner)
        yield Block(fence["language"], textwrap.dedent("\n".join(body)) + "\n", number + 1, above, follows)
        above, follows = "", True


def run_document(path: Path, folder: Path) -> None:
    """Run every block of the document in the folder; raise Mismatch where the document is wrong."""
    module = types.ModuleType("document")  # a real module, because type hints in the blocks are resolved in it
    sys.modules["document"] = module
    printed: str | None = None  # output of the Python block directly above
    try:
        for block in blocks(path.read_text("utf-8")):
            where = f"{path.name}:{block.line}"
            if file := FILE.fullmatch(block.above):
                (folder / file["name"]).write_text(block.body, "utf-8")
            if block.language in OUTPUT and block.follows and printed is not None:
                compare(block.body, printed, where)
            printed = None
            if NOT_RUN.fullmatch(block.above):
                continue
            if block.language in PYTHON:
                printed = run_python(block, path, module)
            elif block.language in CONSOLE:
                run_console(block, where, folder)
    finally:
        del sys.modules["document"]


def run_python(block: Block, path: Path, module: types.ModuleType) -> str:
    code = compile("\n" * (block.line - 1) + block.body, str(path), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, module.__dict__)
    return printed.getvalue()


def run_console(block: Block, where: str, folder: Path) -> None:
    for command, shown in commands(block.body):
        if not COMMAND.search(command):
            continue
        status, printed = run_command(command, folder)
        if shown.strip():
            compare(shown, printed, f"{where}: {command}")
        elif status:
            raise Mismatch(f"{where}: {command}\nended with {status}:\n{printed}")


def run_command(command: str, folder: Path) -> tuple[int, str]:
    """Run a command; return its exit status and its output.

    Only what needs a shell starts a process, and `--rows`, which writes to the file descriptor of standard output.
    """
    words = shlex.split(command)
    if words[0] == "rightcall" and "--rows" not in words and not SHELL.search(command):
        result = run(*words[1:], env={**TERMINAL, **dict.fromkeys(COLOURS)})
        return result.exit_code, result.output
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
    )
    return done.returncode, done.stdout


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Yield (command, shown output) for each `$` line; a backslash at its end continues a command."""
    for piece in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", " ", piece).partition("\n")
        yield command.strip(), shown


def environment() -> dict[str, str]:
    """Return the environment with our rightcall first on the path, without colours or the width of this terminal."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    inherited = {key: value for key, value in os.environ.items() if key not in COLOURS}
    return {**inherited, **TERMINAL, "PATH": path, "PYTHONUTF8": "1"}


def compare(shown: str, printed: str, where: str) -> None:
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in normalized_lines(shown))
    if not re.fullmatch(pattern, "".join(line + "\n" for line in normalized_lines(printed))):
        raise Mismatch(f"{where}\nshows:\n{shown}\nbut this is printed:\n{printed}")


def normalized_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").rstrip().splitlines()]


def links(text: str) -> Iterator[str]:
    """Yield the targets of the links outside code."""
    prose, inside = [], ""
    for line in text.splitlines():
        if fence := FENCE.match(line):
            inside = "" if inside and line.strip().startswith(inside) else inside or fence["ticks"]
        elif not inside:
            prose.append(re.sub(r"`[^`]*`", "``", line))
    for link in LINK.finditer("\n".join(prose)):
        yield (link["inline"] or link["reference"]).strip("<>")


def dead_links(path: Path, root: Path) -> list[str]:
    """Return the relative links that point to a missing file or out of the project."""
    relative = [link.partition("#")[0] for link in links(path.read_text("utf-8")) if not WEB.match(link)]
    targets = {link: (path.parent / link).resolve() for link in relative if link}
    return [link for link, target in targets.items() if not (target.exists() and target.is_relative_to(root))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_documents_contain_python_code() -> None:
    assert ROOT / "README.md" in DOCUMENTS
    assert any(block.language in PYTHON for path in DOCUMENTS for block in blocks(path.read_text("utf-8")))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_the_code_of_a_document_prints_what_the_document_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    run_document(path, tmp_path)


@pytest.mark.parametrize("path", LINKED, ids=name_of)
def test_relative_links_point_to_existing_files(path: Path) -> None:
    assert dead_links(path, ROOT) == []


def write_document(folder: Path, text: str) -> Path:
    """Write a document for testing the functions above. `~~~` stands for a fence, so that this file stays readable."""
    path = folder / "document.md"
    path.write_text(textwrap.dedent(text).replace("~~~", "```"), "utf-8")
    return path


TRUE_DOCUMENTS = {
    "blocks share a namespace": """
        ~~~python
        x = 20
        ~~~
        and
        ~~~python
        print(x + 1)
        ~~~

        ~~~text
        21
        ~~~
        """,
    "text that is not below code": """
        ~~~python
        print(1)
        ~~~
        A reply looks like this:
        ~~~text
        hello
        ~~~
        """,
    "a block that is not run": """
        <!-- not run: needs a model server -->
        ~~~python
        raise SystemExit
        ~~~
        """,
    "a gap in the output": """
        ~~~python
        print("a", "b", "c", "d", sep="\\n")
        ~~~
        ~~~output
        a
        ...
        d
        ~~~
        """,
    "commands and their output": """
        <!-- file: note.txt -->
        ~~~json
        {"x": 1}
        ~~~
        ~~~console
        $ cat note.txt
        {"x": 1}
        $ echo one \\
            two
        one two
        $ make a-target-that-does-not-exist
        ~~~
        """,
}

FALSE_DOCUMENTS = {
    "other output": "~~~python\nprint(1)\n~~~\n~~~text\n2\n~~~\n",
    "more output than shown": "~~~python\nprint('1\\n2')\n~~~\n~~~text\n1\n~~~\n",
    "code that fails": "~~~python\nassert False\n~~~\n",
    "indented code that fails": "1. Do this:\n\n   ~~~python\n   assert False\n   ~~~\n",
    "a reason that is missing": "<!-- not run: -->\n~~~python\nassert False\n~~~\n",
    "other output of a command": "~~~console\n$ echo one\ntwo\n~~~\n",
    "a command that fails": "~~~sh\n$ cat no-such-file\n~~~\n",
}


@pytest.mark.parametrize("text", TRUE_DOCUMENTS.values(), ids=TRUE_DOCUMENTS)
def test_a_correct_document_passes(text: str, tmp_path: Path) -> None:
    run_document(write_document(tmp_path, text), tmp_path)


@pytest.mark.parametrize("text", FALSE_DOCUMENTS.values(), ids=FALSE_DOCUMENTS)
def test_an_incorrect_document_fails(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_document(write_document(tmp_path, text), tmp_path)


def test_dead_links_are_reported_outside_code_only(tmp_path: Path) -> None:
    text = """
        [self](document.md#top) [web](https://example.org/x) [gone](gone.md) ![out](../out.png) `[code](code.md)`
        ~~~text
        [fenced](fenced.md)
        ~~~
        [ref]: also-gone.md
        """
    assert dead_links(write_document(tmp_path, text), tmp_path) == ["gone.md", "../out.png", "also-gone.md"]


NAMED_FILE = re.compile(r"`((?:[\w-]+/)*(?!_[a-z])[\w-]+\.py)(?:::\w+)*`")
PLACEHOLDERS = {"providers/NAME.py", "src/rightcall/formats/lighthouse.py"}  # files of the reader's own


def missing_files(path: Path, root: Path) -> list[str]:
    """Return the Python files that a document names and that exist nowhere. A bare file name may be in any folder."""
    named = NAMED_FILE.findall(path.read_text("utf-8"))
    folders = [root, *(root / name for name in ("src/rightcall", "tests"))]
    stems = {
        file.name for folder in ("src", "tests", "tools", "evals", "fuzz") for file in (root / folder).rglob("*.py")
    }
    exists = {name: any((folder / name).exists() for folder in folders) or name in stems for name in named}
    return [name for name in named if not exists[name] and name not in PLACEHOLDERS]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_files_that_a_document_names_exist(path: Path) -> None:
    assert missing_files(path, ROOT) == []


def test_a_named_file_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    (tmp_path / "src" / "rightcall" / "parsing").mkdir(parents=True)
    (tmp_path / "src" / "rightcall" / "parsing" / "machine.py").touch()
    text = "`machine.py`, `parsing/machine.py`, `wire/machine.py`, `tests/test_x.py::test_y` and `providers/NAME.py`"
    assert missing_files(write_document(tmp_path, text), tmp_path) == ["wire/machine.py", "tests/test_x.py"]


def test_the_map_of_the_tree_names_every_package_and_module() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = text.partition("## How the tree is laid out")[2].partition("\n## ")[0]
    package = ROOT / "src" / "rightcall"
    packages = [f"`{path.parent.name}/`" for path in package.glob("*/__init__.py")]
    modules = [path.name for path in package.glob("*.py") if not path.name.startswith("__")]
    assert [name for name in [*packages, *modules] if name not in rows] == []
    present = {"test_layers.py", *(path.name for path in package.rglob("*.py"))}
    assert [name for name in re.findall(r"`(?:\w+/)*(\w+\.py)`", rows) if name not in present] == []


def test_the_contributor_guide_mentions_every_make_target() -> None:
    targets = re.findall(r"(?m)^([a-z]+):.*## ", (ROOT / "Makefile").read_text("utf-8"))
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert [name for name in targets if f"make {name}`" not in guide and name not in ("help", "venv", "clean")] == []


def test_decisions_are_numbered_without_gaps_and_all_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    names = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [int(name[:3]) for name in names] == list(range(1, len(names) + 1))
    listed = re.findall(r"\]\((\d\d\d-[\w-]+\.md)\)", (folder / "README.md").read_text("utf-8"))
    assert listed == names
