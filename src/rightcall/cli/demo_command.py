"""`rightcall demo`: one screen that shows what rightcall does; more scenes with --all, a model with --live."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rightcall.cli.demo_dispatch import RunScene, run_as_json, show_run
from rightcall.cli.demo_scenes import ALL_SCENES, AnyScene, HeldScene, Scene, ToldScene
from rightcall.cli.demo_screen import screen_json, show_screen
from rightcall.cli.inputs import AsJson, Force, usage_errors
from rightcall.cli.layout import console, heading, row
from rightcall.cli.safe import json_text, visible
from rightcall.cli.show import show_reply
from rightcall.types import to_json


def demo(
    everything: Annotated[bool, typer.Option("--all", help="Every scene, those with a model too.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Run a small model here, in three ways; its calls become rows to train on.")
    ] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="The same, but recordings of it answer.")] = False,
    folder: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where the rows of --live are written. [default: a new temporary folder]"),
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Show what models write, what becomes of it elsewhere, and what you get here.

    Without options it is one screen and asks nothing of the machine. The model of --live is the one that `rightcall
    model pull smollm2` fetches; where it is not here, a recording answers, and the demo says so.
    """
    from rightcall.cli import demo_capture

    place = None if folder is None else Path(folder)
    wants_model = live or recorded or everything or place is not None
    with usage_errors():
        demo_capture.check_folder(place, force=force)
        if json:
            typer.echo(json_text(_told(place, everything, wants_model, recorded=recorded, force=force)))
            return
        _play(place, everything, wants_model, recorded=recorded, force=force)


def _told(place: Path | None, everything: bool, wants_model: bool, *, recorded: bool, force: bool) -> dict[str, Any]:
    from rightcall.cli import demo_capture

    told = screen_json()
    if everything:
        told["scenes"] = [_as_json(number, scene) for number, scene in _numbered(recorded)]
    if wants_model:
        told["live"] = demo_capture.as_json(demo_capture.captured(place, recorded=recorded, force=force))
    return told


def _play(place: Path | None, everything: bool, wants_model: bool, *, recorded: bool, force: bool) -> None:
    from rightcall.cli import demo_capture

    out = console()
    if everything:
        for number, scene in _numbered(recorded):
            _show_scene(out, number, scene)
    if wants_model:
        demo_capture.show(out, demo_capture.captured(place, recorded=recorded, force=force))
    else:
        show_screen(out)


def _numbered(recorded: bool) -> Iterator[tuple[int, AnyScene]]:
    """The model's scene is made last, so that nobody waits for the others."""
    yield from enumerate(ALL_SCENES, 1)
    from rightcall.cli.demo_model import model_scene

    yield len(ALL_SCENES) + 1, model_scene(recorded=recorded)


def _show_scene(out: Console, number: int, scene: AnyScene) -> None:
    heading(out, f"{number}. {scene.title}")
    if isinstance(scene, ToldScene):
        _show_told(out, scene)
    elif isinstance(scene, HeldScene):
        _show_held(out, scene)
    else:
        _show_reply(out, scene)
    out.print()


def _show_told(out: Console, scene: ToldScene) -> None:
    row(out, "elsewhere", scene.elsewhere, "yellow")
    row(out, "told", visible(scene.shown()), "green")
    row(out, "tokens", f"about {scene.play().stats.tokens} for the whole contract")


def _show_held(out: Console, scene: HeldScene) -> None:
    made = scene.play()
    row(out, "elsewhere", scene.elsewhere, "yellow")
    row(out, "held", f"{len(made.names)} tools: {', '.join(made.names)}", "green")
    for limit in made.relaxations:
        row(out, "relaxed", visible(f"{limit.tool} {limit.path}: {limit.allows}"), "yellow")


def _show_reply(out: Console, scene: Scene | RunScene) -> None:
    if scene.source:
        row(out, "source", visible(scene.source, one_line=True), "dim")
    row(out, "raw", visible(scene.text), "dim")
    row(out, "elsewhere", scene.elsewhere, "yellow")
    if isinstance(scene, RunScene):
        show_run(out, scene.play())
    else:
        show_reply(out, scene.play())


def _as_json(number: int, scene: AnyScene) -> dict[str, Any]:
    head = {"number": number, "title": scene.title, "elsewhere": scene.elsewhere}
    if isinstance(scene, ToldScene):
        made = scene.play()
        return {**head, "told": made.text, "stats": to_json(made.stats)}
    if isinstance(scene, HeldScene):
        held = scene.play()
        return {**head, "tools": held.names, "relaxations": [to_json(limit) for limit in held.relaxations]}
    played = run_as_json(scene.play()) if isinstance(scene, RunScene) else {"reply": to_json(scene.play())}
    return {**head, "source": scene.source, "raw": scene.text, **played}
