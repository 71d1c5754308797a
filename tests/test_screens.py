"""Every command fits the terminal at 60, 80 and 120 columns: no word is broken, and continuation lines are indented.

The tests take the commands from the application; a command without an example fails.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.cells import cell_len

from rightcall.cli.app import HelpedCommand
from support.command import MINE, commands
from support.format_sample import selected
from support.terminal import TerminalOutput, run_on_terminal

WIDTHS = (60, 80, 120)
REPLY = (
    "I will look at the weather of the next days in Oslo and in Rome, and then I will write down what I have found.\n"
    '<tool_call>\n{"name": "get_wether", "arguments": {"city": "Oslo", "days": "3", "reason": "because somebody asked '
    'for the weather of the next days, and wants to know"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome", "days": "3"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os'
)
TOOLS = [
    {
        "name": "get_weather",
        "description": "The weather of the next days in a city: temperature, wind, rain and whether to take a coat.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "pattern": "^(?!x)[A-Z]"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    }
]
CALLS = [{"name": "get_wether", "arguments": {"city": "Oslo"}}, {"name": "get_weather", "arguments": {"days": "x"}}]
TEMPLATE = (
    "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>\n'
    "{% endfor %}{% endfor %}"
)


class Files(NamedTuple):
    """The input files of the examples, and the output path."""

    folder: Path
    cassette: Path

    def __call__(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    @property
    def tools(self) -> str:
        return self("tools.json", json.dumps(TOOLS))

    @property
    def rows(self) -> str:
        captured = sorted((Path(__file__).parent.parent / "evals" / "captures").glob("*.jsonl"))
        lines = captured[0].read_text().splitlines()[:40] if captured else []
        return self("rows.jsonl", "".join([f"{line}\n" for line in lines]))

    @property
    def out(self) -> str:
        return str(self.folder / "out.jsonl")


def evaluation_rows(is_right: bool) -> str:
    """Return raw rows of an evaluation of eight cases, all correct or all wrong."""
    head = {"schema_version": "rightcall-eval/v1", "kind": "run", "run": {}, "made": {}}
    row = dict(head, kind="case", suite="questions", category="get_weather", run=0, configuration="+grammar")
    row |= {"ended": "done", "turns": 1, "seconds": 0.5, "prompt_tokens": 1, "completion_tokens": 2}
    row |= {"verdict": {"valid": True, "right_arguments": is_right}}
    return "".join([json.dumps(each) + "\n" for each in [head, *[{**row, "case": f"c{at}"} for at in range(8)]]])


Example = Callable[[Files], list[str]]
EXAMPLES: dict[str, Example] = {
    "parse": lambda at: [at("reply.txt", REPLY), "-f", "hermes", "-t", at.tools, "--explain"],
    "check": lambda at: [at("calls.json", json.dumps(CALLS)), "-t", at.tools],
    "repair": lambda at: ["--rules"],
    "call": lambda at: [
        "get_weather",
        '{"city": 1}',
        "--from",
        at("own_weather.py", "def get_weather(city: str): ..."),
    ],
    "tools": lambda at: [at.tools],
    "contract": lambda at: ["-t", at.tools],
    "render": lambda at: [at("calls.json", json.dumps(CALLS)), "-f", "hermes"],
    "grammar": lambda at: ["-t", at.tools],
    "detect": lambda at: [at("reply.txt", REPLY)],
    "formats show": lambda at: ["harmony"],
    "formats check": lambda at: [at("mine.toml", MINE), "--samples", "2"],
    "formats detect": lambda at: [at("chat.jinja", TEMPLATE)],
    "explain": lambda at: ["ambiguous_end"],
    "replay": lambda at: [str(at.folder / "no.jsonl")],
    "serve": lambda at: ["--upstream", "http://127.0.0.1:9/v1", "--check"],
    "doctor": lambda at: ["http://127.0.0.1:9/v1", "-m", "any"],
    "demo": lambda at: ["--recorded"],
    "chat": lambda at: ["--base-url", "http://127.0.0.1:9/v1", "--retries", "0", "-m", "any"],
    "run": lambda at: ["--replay", str(Path(__file__).parent.parent / "examples" / "run.jsonl")],
    "capture": lambda at: [*("-m", "any", "--replay", str(at.cassette), "-o", at.out), "--domains", "shopping"],
    "eval": lambda at: ["compare", at("old.jsonl", evaluation_rows(False)), at("new.jsonl", evaluation_rows(True))],
    "domains": lambda at: ["shopping"],
    "report": lambda at: [at("log.jsonl", json.dumps({"id": "1", "model": "a", "text": REPLY}) + "\n")],
    "model pull": lambda at: ["no_such_model_of_this_name"],
    "model list": lambda at: [],
    "model rm": lambda at: ["smollm2"],
    "model serve": lambda at: [str(at.folder / "no.gguf")],
    "mcp tools": lambda at: ["no-such-command-to-start-a-server"],
    "mcp serve": lambda at: [],
    "dataset validate": lambda at: [at.rows],
    "dataset stats": lambda at: [at.rows],
    "dataset prompts": lambda at: ["-o", at.out],
    "dataset label": lambda at: [at.rows, "-o", at.out],
    "dataset assemble": lambda at: [at.rows, "-o", str(at.folder / "assembled")],
    "dataset split": lambda at: [at.rows, "-o", str(at.folder / "split")],
    "dataset redact": lambda at: [at.rows, "-o", at.out],
    "dataset release": lambda at: [at.rows, "-o", at.out, "--by", "me"],
    "dataset dedupe": lambda at: [at.rows, "-o", at.out],
    "dataset mutate": lambda at: [at.rows, "-o", at.out],
    "dataset export": lambda at: [at.rows, "-o", at.out, "--to", "trl-kto"],
    "dataset import": lambda at: [at("log.jsonl", '{"no": "conversation"}\n'), "-o", at.out],
}
MORE: dict[str, tuple[str, Example]] = {
    "all formats": ("formats", lambda at: []),
    "a format as TOML": ("formats show", lambda at: ["harmony", "--toml"]),
    "all codes": ("check", lambda at: ["--codes"]),
    "all that can be explained": ("explain", lambda at: []),
    "all domains": ("domains", lambda at: []),
    "the demo": ("demo", lambda at: []),
    "an unknown code": ("explain", lambda at: ["truncat"]),
    "an unknown option": ("parse", lambda at: ["--no-such-option"]),
    "TypeScript": ("tools", lambda at: [at.tools, "--to", "typescript"]),
}


@pytest.fixture
def at(tmp_path: Path, cassette: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RIGHTCALL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    question = tmp_path / "question.txt"
    question.write_text("How is the weather?\n")
    with question.open() as asked:
        monkeypatch.setattr("sys.stdin", asked)
        yield Files(tmp_path, cassette)


def fitting_lines(shown: TerminalOutput, width: int) -> list[str]:
    """Return the lines without progress bars, and check that none is too wide."""
    lines = [line for line in (*shown.lines, *shown.stderr_lines) if "━" not in line]
    assert [line for line in lines if cell_len(line) > width] == []
    assert not any("Traceback" in line for line in lines), lines
    return lines


def joined_words(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def test_every_command_has_an_example_and_the_custom_help() -> None:
    assert set(EXAMPLES) >= set(commands())
    assert all(isinstance(command, HelpedCommand) for command in commands().values())


@pytest.mark.parametrize("name", selected([*commands(), *MORE], kept=[*commands(), *MORE][::2]))
def test_a_command_fits_the_width_and_breaks_no_word(name: str, at: Files) -> None:
    path, example = MORE.get(name) or (name, EXAMPLES[name])
    args = [*path.split(), *example(at)]
    seen: list[set[str]] = []
    for width in WIDTHS:
        for output_name in ("out.jsonl", "assembled", "split"):
            shutil.rmtree(at.folder / output_name, ignore_errors=True)
        sys.stdin.seek(0)
        lines = fitting_lines(run_on_terminal(*args, *(["--force"] if "-o" in args else []), width=width), width)
        assert lines, "nothing was drawn"
        seen.append({word for word in joined_words(lines).split() if len(word) <= 30})
    # A word broken in a narrow terminal is whole in a wide terminal, where its halves do not occur.
    lost = {word for word in seen[2] - seen[0] if word.isalpha() and len(word) > 3}
    assert not {word for word in lost if any(word.startswith(half) for half in seen[0] - seen[2] if len(half) > 2)}


@pytest.mark.parametrize("name", ["", "formats", "dataset", "model", "mcp", *commands()])
def test_help_fits_the_width_shows_the_defaults_and_indents(name: str) -> None:
    texts = []
    for width in WIDTHS:
        shown = run_on_terminal(*name.split(), "--help", width=width)
        lines = fitting_lines(shown, width)
        assert shown.code == 0 and lines[0].startswith(f"Usage: rightcall {name}".rstrip())
        assert all(
            line.startswith("  ") or line.endswith(":") for line in lines[1:] if line and "Usage" not in line[:40]
        )
        texts.append(joined_words(lines).replace(" | ", "|"))
    assert texts[0] == texts[1] == texts[2]
    assert "range" not in texts[0] and "<" not in texts[0]


def test_the_verdict_is_on_the_line_of_the_call(at: Files) -> None:
    lines = run_on_terminal("parse", at("reply.txt", REPLY), "-f", "hermes", "-t", at.tools, width=120).lines
    calls = [line for line in lines if line.startswith("call ")]
    assert [line.split()[1] for line in calls] == ["1", "2", "3"]
    assert "rejected: there is no tool 'get_wether'" in calls[0] and calls[1].endswith("get_weather  runnable")
    assert "rejected: the text ended before the call did" in calls[2] and "(truncated)" in calls[2]


def test_a_rejected_call_is_red(at: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.command import process

    done = process("parse", at("reply.txt", REPLY), "-f", "hermes", "-t", at.tools, FORCE_COLOR="1", NO_COLOR="")
    calls = [line for line in done.stdout.decode().splitlines() if "call " in line[:12]]
    red, green = "[31m", "[32m"
    assert [red in line.replace("1;", "") for line in calls] == [True, False, True]
    assert [green in line.replace("1;", "") for line in calls] == [False, True, False]
