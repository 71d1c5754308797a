"""The demo scene with a real model: the model runs if it is present, otherwise the recording answers."""

from pathlib import Path

import pytest

from rightcall.backends.models import MODELS, cached_model_file
from rightcall.cli import demo_model
from rightcall.cli.demo_model import RECORDING, model_scene
from support.stand_in_llama import DIES, model_file, write_package


def test_without_the_model_the_recording_answers_and_names_the_download_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIGHTCALL_CACHE", str(tmp_path))
    scene = model_scene()
    assert scene.source.startswith("a recording of smollm2 (") and "rightcall model pull smollm2" in scene.source
    reply = scene.play()
    assert [call.name for call in reply.refused] == ["get_directions"]
    assert [(problem.code, problem.blocking) for problem in reply.problems] == [
        ("uncertain", True),
        ("unknown_key", False),
    ]
    assert [repair.rule for repair in reply.attempts[0].repairs] == ["extra_closer"]


def test_a_downloaded_model_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(write_package(tmp_path / "packages")))
    monkeypatch.setattr(demo_model, "MODEL", model_file(tmp_path))
    scene = model_scene()
    assert scene.source.endswith("run on this machine just now")
    assert (
        scene.text == "How do I get from Central Station to the museum by walk?"
    )  # the stand-in model repeats the request


def test_the_recording_answers_if_the_model_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(write_package(tmp_path / "packages", DIES.format("SIGILL"))))
    monkeypatch.setattr(demo_model, "MODEL", model_file(tmp_path))
    assert "processor lacks" in model_scene().source


def test_the_recording_answers_if_the_model_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHTCALL_CACHE", str(tmp_path))
    cached_model_file(MODELS["smollm2"]).parent.mkdir()
    cached_model_file(MODELS["smollm2"]).write_bytes(b"GGUF")
    assert "is damaged" in model_scene().source


def test_the_recording_is_in_the_package() -> None:
    assert RECORDING.parent.name == "cli" and RECORDING.stat().st_size < 10_000
