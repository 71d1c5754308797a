"""Code that several commands use: messages, input files, common options and shell completion."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, BinaryIO, NoReturn, get_type_hints

import msgspec
import typer

from rightcall.cli.layout import console, paragraph
from rightcall.errors import BadFormat, CallerError, FileFailed, NotOurs
from rightcall.formats import discover, find, register
from rightcall.formats.spec import Format
from rightcall.formats.toml import MAX_BYTES
from rightcall.safe_text import visible
from rightcall.tools.toolset import Toolset

# -- messages ----------------------------------------------------------------------------------------------------------


def print_message(message: str) -> None:
    """Print one line on standard error, after `rightcall: `. Control characters are escaped."""
    paragraph(console(stderr=True), visible(message, one_line=True), label="rightcall: ")


def exit_with_usage_error(message: str) -> NoReturn:
    """Report wrong usage in one line on standard error and exit with code 2. Never returns."""
    print_message(message)
    raise typer.Exit(2)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Return a context in which a `CallerError` is reported in one line. Wrong usage exits with code 2.

    A file that cannot be read or written exits with code 1, except a file that rightcall refuses to overwrite, which is
    wrong usage."""
    try:
        yield
    except CallerError as error:
        if isinstance(error, FileFailed) and not isinstance(error, NotOurs):
            print_message(str(error))
            raise typer.Exit(1) from error
        exit_with_usage_error(str(error))


def option_parser(check: Callable[[str], str]) -> Callable[[str], str]:
    """Return a parser for an option of typer, which returns what `check` returns for the option's text; a `CallerError`
    of `check` becomes a usage error (`typer.BadParameter`)."""

    def parse(given: str) -> str:
        """Return the checked value, or raise `typer.BadParameter`."""
        try:
            return check(given)
        except CallerError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


# -- files -------------------------------------------------------------------------------------------------------------

MAX_INPUT = 64_000_000  # bytes: a reply of 16 million characters, four bytes each


def read_bytes(path: str, most: int = MAX_INPUT) -> bytes:
    """Return the bytes of a file, or of standard input for `-`. Exits with a usage error if it is unreadable or too
    large."""
    try:
        if path == "-":
            if sys.stdin.isatty():
                print_message("reading from the terminal; end with Ctrl-D")
            return _read_bounded(sys.stdin.buffer, "standard input", most)
        with open(path, "rb") as file:
            return _read_bounded(file, repr(path), most)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        exit_with_usage_error(f"cannot read {path!r}: {reason}")


def _read_bounded(file: BinaryIO, name: str, most: int) -> bytes:
    """Return all bytes of the open `file`. Exits with a usage error that gives `name` if there are more than `most`."""
    data = file.read(most + 1)
    if len(data) > most:
        exit_with_usage_error(f"{name} is larger than {most:,} bytes, the limit for input")
    return data


def read_text(path: str, most: int = MAX_INPUT) -> str:
    """Return the text of a file, or of standard input for `-`, without a byte order mark.

    Bytes that are not UTF-8 become U+FFFD, with a warning on standard error. Exits as `read_bytes` does.
    """
    data = read_bytes(path, most)
    text = data.decode("utf-8-sig", "replace")
    lost = text.count("\ufffd") - data.count("\ufffd".encode())
    if lost > 0:
        print_message(
            f"{describe_path(path)} is not valid UTF-8: {lost} undecodable sequences were replaced with U+FFFD"
        )
    return text


def describe_path(path: str) -> str:
    """Return how messages name an input: "standard input" for `-`, else the path in quotes."""
    return "standard input" if path == "-" else repr(path)


def read_json_file(path: str) -> Any:
    """Return the JSON value in a file, or in standard input for `-`. Exits with a usage error if it is invalid."""
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        exit_with_usage_error(
            f"{describe_path(path)} is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        )
    except (ValueError, RecursionError) as error:  # a number that is too long, or nesting that is too deep
        exit_with_usage_error(f"cannot read {describe_path(path)} as JSON: {error}")


def write_text(text: str) -> None:
    """Write text to standard output: unchanged to a file or a pipe, escaped and wrapped to a terminal.

    Exits with code 1 if it cannot be encoded as UTF-8.
    """
    if sys.stdout.isatty():
        paragraph(console(), visible(text), hang=2)
        return
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        print_message(
            "the text has a lone surrogate, which UTF-8 cannot encode; write it as an escape in JSON arguments"
        )
        raise typer.Exit(1) from None
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


# -- formats and tools -------------------------------------------------------------------------------------------------


def choose_format(name: str, file: str | None) -> Format | str:
    """Return the format called `name`, or the one that the TOML `file` defines; "auto" is returned as a text.

    Registers the formats that the user has installed. Raises `CallerError` for an unknown or invalid format; exits with
    a usage error if a name and a file are given."""
    register_own_formats()
    if file is not None:
        if name != "auto":
            exit_with_usage_error("--format and --format-file exclude each other; give one of them")
        return read_format_file(file)
    return name if name == "auto" else find(name)


def choose_format_name(name: str, file: str | None) -> str:
    """Return the name of the format that `choose_format` returns for these values, or "auto", for records and other
    processes. A format from a file is registered, so that it can be found by this name."""
    chosen = choose_format(name, file)
    if isinstance(chosen, Format) and file is not None:
        register(chosen)
    return chosen.name if isinstance(chosen, Format) else chosen


def register_own_formats() -> None:
    """Register the formats that the user has installed. A faulty one is reported on standard error and left out."""
    for fault in discover():
        print_message(f"{fault}; this format is left out")


def read_format_file(path: str) -> Format:
    """Return the format that a TOML file defines. Raises `BadFormat`, with the name of the file, if it is invalid."""
    try:
        return Format.from_toml(read_text(path, MAX_BYTES))
    except BadFormat as error:
        raise BadFormat(f"{describe_path(path)}: {error}") from None


def read_tools(path: str | None) -> Toolset | None:
    """Return the tools in a JSON file: a list of definitions, one definition, or an object with a list under "tools".

    Returns None for None. Exits with a usage error if the file cannot be read or a definition is invalid."""
    if path is None:
        return None
    data = read_json_file(path)
    if isinstance(data, dict) and isinstance(data.get("tools"), list):
        data = data["tools"]
    if not isinstance(data, (list, dict)):
        exit_with_usage_error(
            f"{describe_path(path)} holds no tools: expected a list of definitions, found {type(data).__name__}"
        )
    try:
        return Toolset(data)  # strict: the user can correct the file
    except CallerError as error:
        exit_with_usage_error(f"{describe_path(path)}: {error}")


# -- shell completion --------------------------------------------------------------------------------------------------

# A completion: the word and its description. Completion functions never raise: a shell cannot show the error.
Offer = tuple[str, str]


def format_names(incomplete: str) -> list[Offer]:
    """Return the shell completions of this text that are names of formats, each with its description; aliases are among
    them once something is typed."""
    from rightcall.formats import discover, known_formats

    discover()
    known = known_formats().formats.values()
    names = [(format.name, format.models) for format in known]
    aliases = [(alias, format.models) for format in known for alias in format.aliases if incomplete]
    return _matching_offers(incomplete, [*names, *aliases])


def read_format_names(incomplete: str) -> list[Offer]:
    """Return the shell completions of this text that are names of formats, or "auto", each with its description."""
    return [
        *_matching_offers(incomplete, [("auto", "the format that the text is written in")]),
        *format_names(incomplete),
    ]


def domain_names(incomplete: str) -> list[Offer]:
    """Return the shell completions of a comma-separated list of domains: for each stub domain that completes the last
    name, the whole list and the domain's description."""
    from rightcall.capture.domain import built_in_names, find_domains

    before, comma, last = incomplete.rpartition(",")
    known = [(domain.name, domain.about) for domain in find_domains(built_in_names())]
    return [(f"{before}{comma}{name}", about) for name, about in _matching_offers(last, known)]


def model_names(incomplete: str) -> list[Offer]:
    """Return the shell completions of this text that are names of local models, each with its description."""
    from rightcall.backends.models import MODELS

    return _matching_offers(incomplete, [(model.name, model.about) for model in MODELS.values()])


def suite_names(incomplete: str) -> list[Offer]:
    """Return the shell completions of this text that are names of suites of `rightcall eval`, or "compare", each with
    its description."""
    from rightcall.evaluation.suites import SUITES

    known = [(name, suite.about) for name, suite in SUITES.items()]
    return _matching_offers(incomplete, [*known, ("compare", "two files of raw rows")])


def configuration_names(incomplete: str) -> list[Offer]:
    """Return the shell completions of a comma-separated list of configurations: for each that completes the last name,
    the whole list and the configuration's description."""
    from rightcall.evaluation.case_run import CONFIGURATIONS

    before, comma, last = incomplete.rpartition(",")
    known = [(name, each.about) for name, each in CONFIGURATIONS.items()]
    return [(f"{before}{comma}{name}", about) for name, about in _matching_offers(last, known)]


def code_names(incomplete: str) -> list[Offer]:
    """Return the shell completions of this text that `rightcall explain` can explain, each with a sentence."""
    from rightcall.cli.explain_command import summaries

    return _matching_offers(incomplete, [(name, what) for name, (_, what) in summaries().items()])


def _matching_offers(incomplete: str, offers: Iterable[Offer]) -> list[Offer]:
    """Return those of `offers`, pairs of a word and its description, whose word begins with `incomplete`."""
    return [(word, about) for word, about in offers if word.startswith(incomplete)]


# -- options -----------------------------------------------------------------------------------------------------------

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
    typer.Option("--format-file", metavar="FILE", help="A TOML file that defines the format, instead of --format."),
]
ToolsFile = Annotated[
    str | None, typer.Option("--tools", "-t", metavar="FILE", help="JSON file with tool definitions of any provider.")
]


class Policy(StrEnum):
    """How calls are repaired."""

    off = "off"
    safe = "safe"
    lenient = "lenient"


POLICIES = "off: change nothing; safe: guess for read-only tools only; lenient: guess for all tools."
RepairPolicy = Annotated[Policy, typer.Option("--repair", help=f"How calls are repaired. {POLICIES}")]


class Rescue(StrEnum):
    """Whether calls outside the format are accepted."""

    off = "off"
    safe = "safe"


RescuePolicy = Annotated[
    Rescue,
    typer.Option(
        "--rescue",
        help="Calls that are not written in the format. off: keep them as text; safe: accept them if the reply has no "
        "other content.",
    ),
]


class ReasoningCalls(StrEnum):
    """Whether calls in the reasoning are accepted."""

    never = "never"
    safe = "safe"


ReasoningCallsPolicy = Annotated[
    ReasoningCalls,
    typer.Option(
        "--reasoning-calls",
        help="Calls in the reasoning. never: keep them as reasoning; safe: accept those at the end of a reply without "
        "other content.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file, even if rightcall did not write it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class ReadingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for parsing replies: format, tools, and how much is repaired."""

    format: FormatName = "auto"
    format_file: FormatFile = None
    tools: ToolsFile = None
    repair: RepairPolicy = Policy.safe
    rescue: RescuePolicy = Rescue.safe
    reasoning_calls: ReasoningCallsPolicy = ReasoningCalls.safe


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its struct parameters flattened: each field becomes an option, in the order written.

    class Endpoint(msgspec.Struct):
        timeout: Annotated[float, typer.Option(...)] = 60.0

    @grouped
    def chat(*, endpoint: Endpoint, system: Annotated[str, typer.Option(...)] = "") -> None: ...
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if _is_group(hint)}

    @wraps(command)
    def flat(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{field: options.pop(field) for field in group.__struct_fields__})
        command(**options)

    parameters = [
        each for known in inspect.signature(command).parameters.values() for each in _option_parameters(known, hints)
    ]
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _is_group(hint: Any) -> bool:
    """Return whether the type of a parameter is a struct whose fields are options."""
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _option_parameters(known: Parameter, hints: dict[str, Any]) -> Iterator[Parameter]:
    """Yield the parameter `known` itself, or, if its type is a struct, a keyword parameter for each field of the
    struct. `hints` has the types of all parameters by name."""
    hint = hints[known.name]
    if not _is_group(hint):
        yield known.replace(annotation=hint)
        return
    annotations = get_type_hints(hint, include_extras=True)
    for field in msgspec.structs.fields(hint):
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotations[field.name])
