"""What the commands are given: files, formats, tools. Whatever cannot be used ends in one line and exit code 2.

And what they give back where it must be exact: `write_text`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any, BinaryIO, NoReturn

import typer

from rightcall.cli.completing import read_format_names
from rightcall.cli.layout import console, paragraph
from rightcall.cli.safe import visible
from rightcall.errors import BadFormat, CallerError, FileFailed, NotOurs
from rightcall.formats import discover, find, register
from rightcall.formats.spec import Format
from rightcall.formats.toml import MAX_BYTES
from rightcall.tools.toolset import Toolset

MAX_INPUT = 64_000_000  # bytes: a reply of 16 million characters, four bytes each

File = Annotated[str, typer.Argument(metavar="FILE|-", help="The file to read; - is standard input.")]
Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE|-", help="The file to read; - is standard input. With --rows: logs, and globs."),
]
FormatName = Annotated[
    str,
    typer.Option(
        "--format", "-f", metavar="NAME", help="Name or alias of the format.", autocompletion=read_format_names
    ),
]
FormatFile = Annotated[
    str | None,
    typer.Option("--format-file", metavar="FILE", help="A format of your own, as TOML, instead of --format."),
]
ToolsFile = Annotated[
    str | None, typer.Option("--tools", "-t", metavar="FILE", help="JSON file with tool definitions of any provider.")
]


class Policy(StrEnum):
    off = "off"
    safe = "safe"
    lenient = "lenient"


POLICIES = "off: change nothing; safe: guess for read-only tools only; lenient: guess."
RepairPolicy = Annotated[Policy, typer.Option("--repair", help=f"How calls are put right. {POLICIES}")]


class Rescue(StrEnum):
    off = "off"
    safe = "safe"


class ReasoningCalls(StrEnum):
    never = "never"
    safe = "safe"


RescuePolicy = Annotated[
    Rescue,
    typer.Option(
        "--rescue",
        help="Calls that are not written in the format. off: they are text; safe: they count where the reply is "
        "nothing else.",
    ),
]
ReasoningCallsPolicy = Annotated[
    ReasoningCalls,
    typer.Option(
        "--reasoning-calls",
        help="Calls in the reasoning. never: they are thought; safe: those count that end a reply of nothing else.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there, even if rightcall did not write it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def say(message: str) -> None:
    """One line on standard error."""
    paragraph(console(stderr=True), visible(message, one_line=True), label="rightcall: ")


def refuse(message: str) -> NoReturn:
    """Wrong usage: one line, exit code 2."""
    say(message)
    raise typer.Exit(2)


@contextmanager
def usage_errors() -> Iterator[None]:
    """What the caller got wrong becomes one line and exit code 2, never a traceback; a file that cannot be read or
    written, but for one that is not ours to write over, is one line and exit code 1."""
    try:
        yield
    except CallerError as error:
        if isinstance(error, FileFailed) and not isinstance(error, NotOurs):
            say(str(error))
            raise typer.Exit(1) from error
        refuse(str(error))


def checked(check: Callable[[str], str]) -> Callable[[str], str]:
    """An option's parser: the word that `check` makes of what was given, or a usage error."""

    def parse(given: str) -> str:
        try:
            return check(given)
        except CallerError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


def read_bytes(path: str, most: int = MAX_INPUT) -> bytes:
    """The bytes of a file, or of standard input for `-`."""
    try:
        if path == "-":
            if sys.stdin.isatty():
                say("reading from the terminal; end with Ctrl-D")
            return _bounded(sys.stdin.buffer, "standard input", most)
        with open(path, "rb") as file:
            return _bounded(file, repr(path), most)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        refuse(f"cannot read {path!r}: {reason}")


def _bounded(file: BinaryIO, name: str, most: int) -> bytes:
    data = file.read(most + 1)
    if len(data) > most:
        refuse(f"{name} is larger than {most:,} bytes; nothing that long is read")
    return data


def read_text(path: str, most: int = MAX_INPUT) -> str:
    """The text of a file. Bytes that are not UTF-8 become U+FFFD, and a line on standard error says so."""
    data = read_bytes(path, most)
    text = data.decode("utf-8-sig", "replace")
    lost = text.count("\ufffd") - data.count("\ufffd".encode())
    if lost > 0:
        say(f"{named(path)} is not all UTF-8: U+FFFD stands for what could not be read, in {lost} places")
    return text


def named(path: str) -> str:
    """A file as a message calls it."""
    return "standard input" if path == "-" else repr(path)


def read_json(path: str) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        refuse(f"{named(path)} is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except (ValueError, RecursionError) as error:  # a number too long, nested too deeply
        refuse(f"{named(path)} cannot be read as JSON: {error}")


def choose_format(name: str, file: str | None) -> Format | str:
    """The format of that name, or the one in the file; "auto" stays. Raises what the caller got wrong. Formats of
    one's own are known from then on."""
    own_formats()
    if file is not None:
        if name != "auto":
            refuse("--format and --format-file both say what the format is; give one of them")
        return read_format(file)
    return name if name == "auto" else find(name)


def choose_format_name(name: str, file: str | None) -> str:
    """The same as a name, for what is written down or goes to other processes; the one in the file is registered."""
    chosen = choose_format(name, file)
    if isinstance(chosen, Format) and file is not None:
        register(chosen)
    return chosen.name if isinstance(chosen, Format) else chosen


def own_formats() -> None:
    """Makes formats of one's own known. What cannot be used is told, and stops nothing."""
    for fault in discover():
        say(f"{fault}; it is left out")


def read_format(path: str) -> Format:
    """The format that a TOML file defines. Raises `BadFormat`, which names the file."""
    try:
        return Format.from_toml(read_text(path, MAX_BYTES))
    except BadFormat as error:
        raise BadFormat(f"{named(path)}: {error}") from None


def read_tools(path: str | None) -> Toolset | None:
    """The tools of a file: a list of definitions, one definition, or an object with a list under "tools"."""
    if path is None:
        return None
    data = read_json(path)
    if isinstance(data, dict) and isinstance(data.get("tools"), list):
        data = data["tools"]
    if not isinstance(data, (list, dict)):
        refuse(f"{named(path)} holds no tools: expected a list of definitions, found {type(data).__name__}")
    try:
        return Toolset(data)  # the caller's own file: what cannot be used is to be mended there
    except CallerError as error:
        refuse(f"{named(path)}: {error}")


def write_text(text: str) -> None:
    """Text as it is, to a file or a pipe; on a terminal what cannot be seen is shown as escapes, and lines are broken
    between words."""
    if sys.stdout.isatty():
        paragraph(console(), visible(text), hang=2)
        return
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        say("the text has a lone surrogate, which UTF-8 cannot say; write it as an escape in JSON arguments")
        raise typer.Exit(1) from None
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
