"""Where chat templates are kept: a .jinja file, a tokenizer_config.json, the header of a GGUF file."""

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
    """The templates by name, and the special tokens they may use."""

    templates: dict[str, str]
    tokens: dict[str, str] = {}


def read_source(read: Callable[[int], bytes]) -> TemplateSource:
    """The templates in a file. `read` gives at most so many of its next bytes, as `read` of an open file does."""
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
    waiting = [first]
    return lambda size: waiting.pop() if waiting else read(size)


def _read_text(data: bytes) -> TemplateSource:
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
    """The object that a JSON text holds; None if it is no JSON: then it is a template."""
    if not text.lstrip().startswith("{") or text.lstrip().startswith(("{{", "{%", "{#")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read_templates(found: Any) -> dict[str, str]:
    if isinstance(found, str):
        return {"default": found}
    if isinstance(found, dict):
        return {str(name): text for name, text in found.items() if isinstance(text, str)}
    entries = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    return {str(entry.get("name", "default")): entry["template"] for entry in entries if _is_template(entry)}


def _is_template(entry: dict[str, Any]) -> bool:
    return isinstance(entry.get("template"), str)


def _token_text(found: Any) -> str:
    found = found.get("content") if isinstance(found, dict) else found
    return found if isinstance(found, str) else ""


def _check_source(source: TemplateSource) -> TemplateSource:
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
