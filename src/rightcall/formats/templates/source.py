"""Find chat templates in a file: .jinja, tokenizer_config.json, or the header of a GGUF file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.formats.templates import gguf
from rightcall.formats.templates.template_faults import BadTemplate

MAX_BYTES = 64_000_000
MAX_TEMPLATES = 16
_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


class TemplateSource(msgspec.Struct, frozen=True):
    """Templates by name, and the special tokens that they may use."""

    templates: dict[str, str]
    tokens: dict[str, str] = {}


def read_source(read: Callable[[int], bytes]) -> TemplateSource:
    """Return the templates in a file, GGUF, JSON or a template itself. `read` returns up to that many of the next
    bytes, like `read` of an open file. Raises `BadTemplate` if there is none, or a limit is exceeded."""
    first = read(len(gguf.MAGIC))
    if first == gguf.MAGIC:
        found = TemplateSource(gguf.chat_templates(_with_first_bytes(first, read)))
    else:
        data = first + read(MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise BadTemplate(f"the file is larger than {MAX_BYTES:,} bytes; no template is that long")
        found = _read_text(data)
    return _check_source(found)


def _with_first_bytes(first: bytes, read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """Return a `read` whose first call returns the bytes `first`, whatever size it asks for; later calls go to
    `read`."""
    waiting = [first]
    return lambda size: waiting.pop() if waiting else read(size)


def _read_text(data: bytes) -> TemplateSource:
    """Return the templates of a text file: its `chat_template` if it is a JSON object, else the whole text as
    "default". Raises `BadTemplate` if it is not UTF-8."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadTemplate(f"the file is neither GGUF nor UTF-8 text: byte {error.start} is no text") from None
    config = _parse_config(text)
    if config is None:
        return TemplateSource({"default": text})
    tokens = {name: token for name in _TOKENS if (token := _token_text(config.get(name)))}
    return TemplateSource(_read_templates(config.get("chat_template")), tokens)


def _parse_config(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text; None if the text is a template or anything else."""
    if not text.lstrip().startswith("{") or text.lstrip().startswith(("{{", "{%", "{#")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read_templates(found: Any) -> dict[str, str]:
    """Return the templates by name in a value of `chat_template`: a string ("default"), an object, or a list of named
    entries; {} for anything else."""
    if isinstance(found, str):
        return {"default": found}
    if isinstance(found, dict):
        return {str(name): text for name, text in found.items() if isinstance(text, str)}
    entries = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    return {str(entry.get("name", "default")): entry["template"] for entry in entries if _is_template(entry)}


def _is_template(entry: dict[str, Any]) -> bool:
    """Return whether an entry of a list of templates has a template text."""
    return isinstance(entry.get("template"), str)


def _token_text(found: Any) -> str:
    """Return the text of a token, given as a text or an object with `content`; "" for anything else."""
    found = found.get("content") if isinstance(found, dict) else found
    return found if isinstance(found, str) else ""


def _check_source(source: TemplateSource) -> TemplateSource:
    """Return the source unchanged. Raises `BadTemplate` if it has no template, too many, or a too long one."""
    if not any(text.strip() for text in source.templates.values()):
        raise BadTemplate('there is no chat template in this file: it has no "chat_template", or an empty one')
    if len(source.templates) > MAX_TEMPLATES:
        raise BadTemplate(
            f"there are {len(source.templates)} templates in this file; at most {MAX_TEMPLATES} are tried"
        )
    for name, text in source.templates.items():
        if len(text) > gguf.MAX_TEMPLATE:
            raise BadTemplate(
                f"the template {name!r} has {len(text):,} characters; at most {gguf.MAX_TEMPLATE:,} are read"
            )
    return source
