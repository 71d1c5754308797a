"""The options of `rightcall capture`; those of every command that asks a model are in `endpoint.py`."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
import typer

from rightcall.capture.catalogue import DEFAULT
from rightcall.capture.settings import SYSTEM, Settings
from rightcall.cli.completing import domain_names
from rightcall.cli.endpoint import GuardName, MaxTokens, ModeName, Temperature
from rightcall.cli.inputs import read_text

DEFAULT_DOMAINS = ",".join(DEFAULT)
DEFAULT_OUTPUT = "target/dataset/capture.jsonl"


def _value(text: str | None) -> str | None:
    """A flag in the place of a value means that the value was forgotten."""
    if text is not None and text.startswith("--"):
        raise typer.BadParameter(f"a value is missing before {text}")
    return text


def _values(texts: list[str]) -> list[str]:
    for text in texts:
        if not (_value(text) or "").strip():
            raise typer.BadParameter("the model's name is blank")
    return texts


def _domains(text: str) -> str:
    if not [name for name in (_value(text) or "").split(",") if name.strip()]:
        raise typer.BadParameter("name at least one domain")
    return text


Models = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        callback=_values,
        help="The model; several times for several, one after the other.",
        rich_help_panel="The server",
    ),
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", callback=_value, help="JSON lines; rows are appended.")
]
Domains = Annotated[
    str,
    typer.Option(
        metavar="NAME,...",
        callback=_domains,
        autocompletion=domain_names,
        help="Domains by name, or .toml files of your own, or all.",
    ),
]
Replay = Annotated[
    str | None,
    typer.Option(metavar="CASSETTE", help="Answers come from this recording.", rich_help_panel="The server"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run that this file was last used for.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of single scenarios and rows.")]


class CaptureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How often each scenario is run, and how the model is asked in it."""

    guard: Annotated[
        GuardName,
        typer.Option(help="What stands between the model and the tools: nothing, or parse with its repairs."),
    ] = GuardName.parse
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="How often each scenario is run.")] = 1
    max_turns: Annotated[int, typer.Option(min=1, metavar="N", help="Answers of the model in one scenario.")] = 4
    max_scenario_errors: Annotated[
        int, typer.Option(min=0, metavar="N", help="More failed scenarios than that end the run; 0: the first does.")
    ] = 25
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Scenarios that are run at a time.")] = 1
    examples: Annotated[
        int, typer.Option(min=0, metavar="N", help="Solved scenarios of the same domain that the model is shown first.")
    ] = 0
    required: Annotated[bool, typer.Option("--required", help="The first answer must be a call.")] = False
    temperature: Temperature = None
    max_tokens: MaxTokens = None
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="For the same answers again, if the server can; run I has seed N+I.")
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="A call that cannot be read fails its scenario.")] = False
    forge_compat: Annotated[
        bool, typer.Option("--forge-compat", help="Send a result's status as _forge, which other servers may refuse.")
    ] = False

    system: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|FILE",
            callback=_value,
            help="What the model is told first, instead of that it is tested with stub tools.",
        ),
    ] = None

    def settings(self, models: tuple[str, ...], mode: ModeName) -> Settings:
        """As the run takes them. Raises `CallerError`."""
        same = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _TOLD_APART}
        return Settings(
            models=models,
            mode=mode.value,
            guard=self.guard.value,
            choice="required" if self.required else "auto",
            system=SYSTEM if self.system is None else _text_of(self.system),
            **same,
        )


_TOLD_APART = ("guard", "required", "system")


def _text_of(given: str) -> str:
    """What a file of this name holds, if there is one; else the text itself."""
    is_file = len(given) < 4_000 and "\n" not in given and os.path.isfile(given)
    return read_text(given).strip() if is_file else given


class ToolSource(msgspec.Struct, frozen=True, kw_only=True):
    """Real tools in the place of the stubs, and who allows them to be run."""

    tools: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE[:NAME]",
            callback=_value,
            help="Run the tools of this Python module or file instead of stubs. Its code is run.",
            rich_help_panel="Real tools",
        ),
    ] = None
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND|URL",
            help="Run the tools of this MCP server; repeatable.",
            rich_help_panel="Real tools",
        ),
    ] = None
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Run every call without asking; otherwise only tools that are marked as reading run unasked.",
            rich_help_panel="Real tools",
        ),
    ] = False

    @property
    def is_real(self) -> bool:
        return bool(self.tools or self.mcp)
