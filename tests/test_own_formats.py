"""Custom formats: registered in Python, found in folders and packages, and available to `auto` and every command."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rightcall import Format, detect, formats, parse, parse_many, render
from rightcall.errors import BadFormat, UnknownFormat
from support.command import MINE, commands, run

TEXT = 'Hi. <c>{"name": "f", "arguments": {"x": 1}}</c>'
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}]


@pytest.fixture(autouse=True)
def isolated_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the formats of the user who runs the tests, and unregister the formats of each test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("RIGHTCALL_FORMATS", raising=False)
    yield
    for name in set(formats.known_formats().formats) - set(formats.FORMATS):
        formats.unregister(name)


def write_format(folder: Path, text: str = MINE, name: str = "mine.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def call_names(text: str, **options: str) -> list[str]:
    return [call.name for call in parse(text, tools=TOOLS, **options).calls]  # type: ignore[arg-type]


def test_a_registered_format_is_available_by_name_and_to_auto() -> None:
    assert call_names(TEXT) == []
    formats.register(Format.from_toml(MINE))
    assert parse(TEXT, tools=TOOLS).format == "mine" and detect(TEXT, tools=TOOLS)[0] == "mine"
    assert call_names(TEXT) == call_names(TEXT, format="mine") == ["f"]
    assert call_names(render(parse(TEXT, format="mine").calls, format="mine")) == ["f"]
    formats.unregister("mine")
    assert call_names(TEXT) == []
    with pytest.raises(UnknownFormat):
        parse(TEXT, format="mine")


def test_registered_formats_are_available_in_worker_processes() -> None:
    formats.register(Format.from_toml(MINE))
    assert [reply.format for reply in parse_many([TEXT] * 3, tools=TOOLS, jobs=2)] == ["mine"] * 3


def test_a_used_format_name_cannot_be_registered_again() -> None:
    own = Format.from_toml(MINE)
    for name in ("hermes", "qwen", "auto"):
        with pytest.raises(BadFormat, match="built in"):
            formats.register(formats.replace(own, name=name))
        with pytest.raises(BadFormat, match="built in"):
            formats.register(formats.replace(own, aliases=(name,)))
    formats.register(own)
    formats.register(own)  # registering an equal format again is allowed
    with pytest.raises(BadFormat, match="is that of the format 'mine'"):
        formats.register(formats.replace(own, call=("<d>", "</d>")))
    with pytest.raises(BadFormat, match="is that of the format 'mine'"):
        formats.register(formats.replace(own, name="other", aliases=("mine",)))
    with pytest.raises(UnknownFormat):
        formats.unregister("hermes")
    with pytest.raises(BadFormat, match="marker"):
        formats.register(formats.replace(own, name="worse", call=(" ", "</c>")))


def format_folder(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if kind == "variable":
        monkeypatch.setenv("RIGHTCALL_FORMATS", str(tmp_path / "elsewhere"))
        return tmp_path / "elsewhere"
    if kind == "pyproject":
        (tmp_path / "pyproject.toml").write_text('[tool.rightcall]\nformats = ["kept"]\n')
        return tmp_path / "kept"
    if kind == "rightcall.toml":
        (tmp_path / "rightcall.toml").write_text('formats = "kept"\n')
        return tmp_path / "kept"
    return tmp_path / (".rightcall/formats" if kind == "project" else "config/rightcall/formats")


@pytest.mark.parametrize("kind", ["variable", "project", "pyproject", "rightcall.toml", "user"])
def test_formats_in_a_folder_are_registered(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_format(format_folder(kind, tmp_path, monkeypatch))
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    result = run("parse", "--json", stdin=TEXT)
    assert json.loads(result.stdout)["format"] == "mine" and result.stderr == ""
    assert "mine" in [entry["name"] for entry in json.loads(run("formats", "--json").stdout)]
    assert run("detect", stdin=TEXT).stdout.splitlines()[0] == "mine"
    assert run("formats", "check", "mine", "--samples", "3").exit_code == 0
    assert formats.discover() == []


def test_the_format_folder_of_an_outer_project_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_format(tmp_path / ".rightcall" / "formats")
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "inner")
    assert formats.discover() == [] and "mine" not in formats.known_formats().formats


BAD = {
    "not TOML": ("name = ", "it is no valid TOML"),
    "an unknown key": (MINE + 'boddy = "x"\n', "did you mean 'body'?"),
    "a built-in name": (MINE.replace('"mine"', '"hermes"'), "'hermes' is built in and cannot be replaced"),
    "not text": ("\udcff", "UnicodeDecodeError"),
    "code": (MINE.replace('"</c>"', "__import__('os').system('touch owned')"), "it is no valid TOML"),
    "huge": (MINE + "#" * 70_000, "longer than 64 KB"),
    "huge, with a byte order mark": ("\ufeff" + MINE + "#" * 70_000, "longer than 64 KB"),
    "huge, in characters of three bytes": (MINE + "#" + "\u20ac" * 30_000, "longer than 64 KB"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_format_file_is_reported_and_the_others_are_registered(kind: str, tmp_path: Path) -> None:
    text, cause = BAD[kind]
    folder = write_format(tmp_path / ".rightcall" / "formats")
    (folder / "bad.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    result = run("parse", "--json", stdin=TEXT)
    (line,) = result.stderr.splitlines()
    assert line.startswith("rightcall: ") and "bad.toml" in line and cause in line
    assert json.loads(result.stdout)["format"] == "mine"
    assert run("tools", "-", stdin="[]").stderr == "" and not (tmp_path / "owned").exists()
    checked = run("formats", "check", str(folder / "bad.toml"))
    assert checked.exit_code == 2 and "bad.toml" in checked.stderr.splitlines()[-1]


def test_a_missing_folder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHTCALL_FORMATS", "no/such/folder")
    (fault,) = formats.discover()
    assert "no/such/folder" in str(fault) and "RIGHTCALL_FORMATS" in str(fault)


def test_a_package_registers_formats_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"from rightcall import Format\nMINE = Format.from_toml({MINE!r})\nNONE = 3\n"
    (tmp_path / "a_plugin.py").write_text(code)
    info = tmp_path / "a_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1.0\n")
    points = "[rightcall.formats]\nmine = a_plugin:MINE\nother = a_plugin:NONE\nzero = a_plugin:LOST\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    faults = [str(fault) for fault in formats.discover()]
    sys.modules.pop("a_plugin", None)
    assert call_names(TEXT) == ["f"]
    assert len(faults) == 2 and all("of the package a-plugin" in fault for fault in faults)
    assert "give a Format" in faults[0] and "LOST" in faults[1]


def test_every_command_with_a_format_option_accepts_a_format_file() -> None:
    options = {path: {opt for param in each.params for opt in param.opts} for path, each in commands().items()}
    with_format = {path for path, words in options.items() if "--format" in words}
    assert with_format >= {"parse", "render", "chat", "grammar", "contract", "dataset import"}
    assert {path for path in with_format if "--format-file" not in options[path]} == set()
