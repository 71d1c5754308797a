"""Parts of a message in the words of OpenAI's Chat: text and images under one name, everything else as it came."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import items, obj, text
from rightcall.types import Json

_TEXTS = ("text", "input_text", "output_text")
_TEXT_KEYS = {"type", "text"}


def chat_content(content: Any) -> Any:
    """Content as Chat has it: text, or a list of parts. One part that is nothing but text is that text."""
    if not isinstance(content, list | tuple):
        return "" if content is None else content
    parts = [_part(each) for each in items(content)]
    if len(parts) == 1 and parts[0].keys() <= _TEXT_KEYS and parts[0].get("type") == "text":
        return text(parts[0].get("text"))
    return parts


def _part(given: Any) -> Json:
    part = obj(given)
    if part is None:
        return {"type": "text", "text": text(given)}
    kind = text(part.get("type"))
    if kind in _TEXTS or (not kind and isinstance(part.get("text"), str)):
        return {**part, "type": "text"}
    url = _image(part, kind)
    return {"type": "image_url", "image_url": {"url": url}} if url else part


def _image(part: Json, kind: str) -> str:
    """The address of an image, or the image itself as one."""
    if kind == "input_image":
        return text(part.get("image_url"))
    source = obj(part.get("source")) if kind == "image" else None
    if source is not None:
        return text(source.get("url")) or _data(source.get("media_type"), source.get("data"))
    inline = obj(part.get("inlineData", part.get("inline_data"))) or {}
    return _data(inline.get("mimeType", inline.get("mime_type")), inline.get("data"))


def _data(kind: Any, data: Any) -> str:
    return f"data:{text(kind)};base64,{data}" if text(kind).startswith("image/") and text(data) else ""
