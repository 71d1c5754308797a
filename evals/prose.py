"""Check that text without a call gives no call.    python evals/prose.py [--every N]

The texts are this project's documents and docstrings, the questions and descriptions of the leaderboard, the docstrings
of the standard library, and misleading answers. Each is parsed with tools that it mentions, with a known format and
with `auto`. None may give a call. (A reply that is only a call of a declared tool is a call, wherever it was copied
from; such texts are left out.)
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import msgspec
from bfcl_cases import DOCUMENTS, fetch
from misleading import MISLEADING_TOOLS, misleading
from report import PAGE, ROOT, Figure, Section, table

from rightcall import Call, Tool, Toolset, parse
from rightcall.evaluation.leaderboard import LeaderboardData, leaderboard_tools

FORMATS = ("auto", "hermes", "qwen3_coder", "pythonic", "llama3_json", "mistral", "xlam", "harmony", "generic_json")
BARE = ("llama3_json", "xlam", "generic_json")  # these formats have no text before a call
ENDS_WITH_ONE = ("Example: {", "call={")  # cannot be distinguished from `Here it is: {`
_HEADING = re.compile(r"(?m)^(?=#{1,6} )")
_FENCED = re.compile(r"(?ms)^ *(```+|~~~+).*?^ *\1[^\n]*$")


class Prose(msgspec.Struct, frozen=True):
    """A text without a call, and the tools that are declared when it is parsed."""

    source: str
    where: str
    text: str
    tools: Toolset


# -- sources -----------------------------------------------------------------------------------------------------------


def own_documents() -> Iterator[Prose]:
    """Yield whole documents, their sections, and the paragraphs between code blocks."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")]
    for file in sorted([file for file in files if file != PAGE]):
        text = file.read_text("utf-8")
        pieces = [text, *_sections(text), *re.split(r"\n\s*\n", _FENCED.sub("", text))]
        for piece in dict.fromkeys([piece for piece in pieces if piece.strip()]):
            yield Prose("own documents", file.name, piece, MISLEADING_TOOLS)


def _sections(text: str) -> list[str]:
    """Split a document at its headings. A line in a code block is no heading."""
    sample_count = _FENCED.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    starts = [0, *(found.start() for found in _HEADING.finditer(sample_count)), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def own_docstrings() -> Iterator[Prose]:
    for folder in ("src", "tests", "benchmarks", "evals", "fuzz"):
        for file in sorted([file for file in (ROOT / folder).rglob("*.py") if ".cache" not in file.parts]):
            for where, text in docstrings(file):
                yield Prose("own docstrings", f"{file.name} {where}", text, MISLEADING_TOOLS)


def library_docstrings() -> Iterator[Prose]:
    """Yield the docstrings of the standard library, with tools named like the functions of the same module."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(root.rglob("*.py")):
        if {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo"} & set(file.parts):
            continue
        docstrings_found = list(docstrings(file))
        tools = functions(file) if docstrings_found else Toolset([])
        for where, text in docstrings_found:
            yield Prose("standard library", f"{file.relative_to(root)} {where}", text, tools)


def leaderboard(wheel: LeaderboardData) -> Iterator[Prose]:
    """Yield questions with the tools of their case, and descriptions with the tool they describe."""
    seen: set[str] = set()
    documents = {name: wheel.rows(f"multi_turn_func_doc/{file}") for name, file in DOCUMENTS.items()}
    for name in wheel.names():
        for row in wheel.rows(name):
            definitions = row.get("function", [row] if "parameters" in row else None)
            if definitions is None:
                definitions = [tool for part in row.get("involved_classes", ()) for tool in documents.get(part, ())]
            texts = [
                *_contents(row.get("question", ())),
                *[text for tool in definitions for text in _descriptions(tool)],
            ]
            fresh = [text for text in texts if text not in seen]
            seen.update(fresh)
            tools = _lenient(definitions) if fresh else Toolset([])
            for text in fresh:
                yield Prose("leaderboard", str(row.get("id", name)), text, tools)


def _contents(turns: Any) -> Iterator[str]:
    if isinstance(turns, dict):
        yield str(turns.get("content", ""))
    elif isinstance(turns, (list, tuple)):
        for turn in turns:
            yield from _contents(turn)


def _descriptions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("description"), str):
            yield value["description"]
        for inner in value.values():
            yield from _descriptions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _descriptions(inner)


def _lenient(definitions: list[dict[str, Any]]) -> Toolset:
    return leaderboard_tools([function for function in definitions if "parameters" in function and "name" in function])


def docstrings(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), text


def functions(file: Path) -> Toolset:
    """Return a tool for each function of a file: the same name, the same arguments, any value."""
    tools: dict[str, Tool] = {}
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in tools:
            names = [a.arg for a in [*node.args.args, *node.args.kwonlyargs] if a.arg not in ("self", "cls")]
            schema = {"type": "object", "properties": {name: {} for name in names}}
            tools[node.name] = Tool(name=node.name, parameters=schema)
    return Toolset(list(tools.values()))


@cache
def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text("utf-8"))
    except (SyntaxError, UnicodeDecodeError):  # some files of the library are invalid on purpose
        return ast.Module([], [])


def misleading_texts() -> Iterator[Prose]:
    for kind, text in misleading():
        yield Prose("made up to mislead", kind, text, MISLEADING_TOOLS)


# -- results -----------------------------------------------------------------------------------------------------------


def calls(prose: Prose, format: str) -> tuple[Call, ...]:
    """Return the runnable calls.

    Two cases are exempt: a JSON fence at the beginning for xlam, because that is its own syntax; and, for a format
    without text before a call, a text that ends with an unquoted call.
    """
    if format == "xlam" and prose.text.startswith("```json"):
        return ()
    if format in BARE and any(mark in prose.text for mark in ENDS_WITH_ONE) and prose.text.rstrip().endswith("}}"):
        return ()
    return parse(prose.text, tools=prose.tools, format=format).calls


def is_a_call(prose: Prose) -> bool:
    """Return whether the text is only a Python call of one of its tools, and therefore no prose."""
    try:
        node = ast.parse(prose.text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return isinstance(node, ast.Call) and ast.unparse(node.func) in prose.tools


def measure_prose(wheel: LeaderboardData, every: int) -> Section:
    texts: Counter[str] = Counter()
    fired: Counter[str] = Counter()
    sample_count: Counter[str] = Counter()
    for source in (own_documents(), own_docstrings(), leaderboard(wheel), library_docstrings(), misleading_texts()):
        for prose in islice(source, 0, None, every):
            hits = [format for format in FORMATS if calls(prose, format)]
            if hits and is_a_call(prose):
                continue
            texts[prose.source] += 1
            fired[prose.source] += bool(hits)
            sample_count[prose.source] += bool(hits)
            if hits and sample_count[prose.source] <= 5:
                print(f"  {prose.source}, {prose.where}, {', '.join(hits)}: {prose.text[:200]!r}", file=sys.stderr)
    # Rounded, because every change of a document or of the library changes the numbers a little.
    rows = [(source, f"over {(count - 1) // 100 * 100:,}", f"{fired[source]:,}") for source, count in texts.items()]
    text = (
        "Texts that hold no call, read with tools declared that they talk about, the format unknown (`auto`) and known "
    )
    text += f"({', '.join([f'`{name}`' for name in FORMATS[1:]])}).\n\n" + table(("source", "texts", "calls"), rows)
    text += (
        "\n\nLeft out, because they are calls by rule: a text that is nothing but a call of a declared tool, and for "
    )
    text += (
        "`xlam` a reply that begins with a JSON fence; for formats that write nothing before a call a text that ends "
    )
    text += "with one that nothing shows."
    return Section(
        "Text is left alone", text, (Figure("text that became a call", fired.total(), texts.total(), at_most=0),)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="parse only every Nth text")
    section = measure_prose(fetch(), parser.parse_args().every)
    print(section.text)
    return int(section.figures[0].is_missed)


if __name__ == "__main__":
    sys.exit(main())
