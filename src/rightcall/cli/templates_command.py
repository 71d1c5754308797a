"""`rightcall formats detect TEMPLATE`: which formats read what a model's chat template writes."""

from __future__ import annotations

import typer

from rightcall.cli.inputs import refuse, say, usage_errors
from rightcall.cli.layout import console, row
from rightcall.cli.safe import brief, json_text, visible
from rightcall.templates.format_of_template import Detection, detect_template
from rightcall.templates.source import Source, read_source
from rightcall.templates.template_faults import BadTemplate


def detect_formats(file: str, *, json: bool) -> None:
    """Tries every template of the file. Ends with exit code 1 if no format reads what any of them writes."""
    if not file:
        refuse(
            "say which file: `rightcall formats detect chat_template.jinja` (or tokenizer_config.json, or a GGUF file)"
        )
    with usage_errors():
        source = _read(file)
        found = {name: detect_template(text, source.tokens) for name, text in source.templates.items()}
    if json:
        typer.echo(json_text({name: _as_json(each) for name, each in found.items()}))
    else:
        for name, each in found.items():
            _show(name, each)
    if not any(each.formats for each in found.values()):
        say("no format reads what this template writes; `rightcall formats check` helps to write one of your own")
        raise typer.Exit(1)


def _read(file: str) -> Source:
    try:
        with open(file, "rb") as opened:
            return read_source(opened.read)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        refuse(f"cannot read {file!r}: {reason}")
    except BadTemplate as error:
        refuse(f"{file!r}: {error}")


def _as_json(found: Detection) -> dict[str, object]:
    return {"formats": list(found.formats), "shows": found.shows, "text": found.text}


def _show(name: str, found: Detection) -> None:
    out = console()
    row(out, "template", brief(name), "bold")
    row(out, "writes", visible(found.text.strip("\n")) or "(nothing)", "dim")
    if found.formats:
        row(out, "recovered", found.shows)
    row(out, "formats", "\n".join(found.formats) or "none", "green" if found.formats else "red")
