"""`rightcall formats detect TEMPLATE`: which formats read what a model's chat template writes."""

from __future__ import annotations

import typer

from rightcall.cli.inputs import refuse, say, usage_errors
from rightcall.cli.layout import console, row
from rightcall.cli.safe import brief, json_text, visible
from rightcall.formats.templates.format_of_template import Detection, detect_template
from rightcall.formats.templates.source import Source, read_source
from rightcall.formats.templates.template_faults import BadTemplate


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
        drafted = any(each.draft for each in found.values())
        more = "save the draft as a file and try it" if drafted else "write one of your own and try it"
        say(f"no format reads what this template writes; {more}: `rightcall formats check FILE`, docs/formats.md")
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
    draft = {"draft": found.draft} if found.draft else {}
    return {"formats": list(found.formats), "shows": found.shows, "text": found.text, **draft}


def _show(name: str, found: Detection) -> None:
    out = console()
    row(out, "template", brief(name), "bold")
    row(out, "writes", visible(found.text.strip("\n")) or "(nothing)", "dim")
    if found.formats:
        row(out, "recovered", found.shows)
    if found.draft:
        row(out, "draft", visible(found.draft.strip()), "green")
    row(out, "formats", "\n".join(found.formats) or "none", "green" if found.formats else "red")
