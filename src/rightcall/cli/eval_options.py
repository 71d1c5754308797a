"""The options of `rightcall eval`; those of every command that asks a model are in `endpoint.py`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from rightcall.backends.request import Mode
from rightcall.cli.completing import configuration_names, suite_names
from rightcall.cli.endpoint import MaxTokens, Temperature
from rightcall.evaluation.configurations import CONFIGURATIONS, find_configurations
from rightcall.evaluation.evaluation_run import EvalSettings

_BUDGET = "The budget"

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SUITES] | compare A B",
        help="questions, bfcl, domains, tasks, with parts of one as in bfcl:simple_python,multiple; or .jsonl rows of "
        "your own. After compare: two files of raw rows.",
        autocompletion=suite_names,
    ),
]


class EvalAsking(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, how often and how."""

    configurations: Annotated[
        str,
        typer.Option(
            "--configurations",
            "-c",
            metavar="NAME,...",
            autocompletion=configuration_names,
            help=f"Some of {', '.join(CONFIGURATIONS)}; a + may be left out. [default: all]",
        ),
    ] = ""
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="How often each case is asked.")] = 1
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="So many cases of each suite, from all its categories.")
    ] = None
    max_turns: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Answers in one case. [default: 3; domains 6, tasks 16]", show_default=False
        ),
    ] = None
    required: Annotated[bool, typer.Option("--required", help="The first answer must be a call.")] = False
    one_call: Annotated[bool, typer.Option("--one-call", help="One call at a time.")] = False
    shots: Annotated[
        int, typer.Option("--shots", min=0, metavar="N", help="Solved examples before a question, scenario or task.")
    ] = 0
    temperature: Temperature = None
    max_tokens: MaxTokens = None
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="For the same answers again, if the server can; run I has seed N+I.")
    ] = None
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Cases that are asked at a time.")] = 1
    max_errors: Annotated[
        int, typer.Option(min=0, metavar="N", help="More failed cases than that end the run; 0: the first does.")
    ] = 25
    max_requests: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Requests, then it ends.", rich_help_panel=_BUDGET)
    ] = None
    max_total_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Tokens in and out, then it ends.", rich_help_panel=_BUDGET)
    ] = None
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="SECONDS", help="Time, then it ends.", rich_help_panel=_BUDGET),
    ] = None

    def settings(self, model: str, mode: Mode) -> EvalSettings:
        """As the run takes them. Raises `CallerError`."""
        return EvalSettings(
            model=model,
            configurations=tuple(find_configurations(self.configurations.split(","))),
            mode=mode,
            seconds=self.max_seconds,
            **{name: getattr(self, name) for name in self.__struct_fields__ if name not in _TOLD_APART},
        )


_TOLD_APART = ("configurations", "limit", "shots", "max_seconds")
