"""What a message holds, in any dialect, as the parts that Chat has for it: text, images, files, audio.

    {"type": "image", "source": {"type": "url", "url": U}}   ->   {"type": "image_url", "image_url": {"url": U}}

A part that Chat has no word for stays as it came: a server of its own dialect knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import compact_json, obj, objects, text
from rightcall.types import Json

Parts = list[Json]


def text_part(said: str) -> Json:
    return {"type": "text", "text": said}


def image_part(url: str, detail: Any = None) -> Json:
    return {"type": "image_url", "image_url": {"url": url, **({"detail": detail} if text(detail) else {})}}


def content_of(parts: Parts) -> Any:
    """Parts as the content of a message: one text is that text, none is no text."""
    if not parts:
        return ""
    only = parts[0]
    return only["text"] if len(parts) == 1 and only.keys() == {"type", "text"} and only["type"] == "text" else parts


def joined_text(parts: Parts, between: str = "\n\n") -> str:
    """The text among the parts."""
    return between.join([said for part in parts if (said := text(part.get("text")))])


def _file(data: str, name: Any = None, **beside: str) -> Json:
    given = {"file_data": data, "filename": text(name), **beside}
    return {"type": "file", "file": {key: value for key, value in given.items() if value}}


def data_part(media: str, data: str, name: Any = None) -> Json:
    """Data of some kind, in base64, as the part that carries it."""
    kind, _, form = media.partition("/")
    if kind == "image":
        return image_part(f"data:{media};base64,{data}")
    if kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    return _file(f"data:{media or 'application/octet-stream'};base64,{data}", name)


# -- Responses ---------------------------------------------------------------------------------------------------------

_TEXTS = frozenset("text input_text output_text summary_text reasoning_text".split())


def responses_parts(content: Any) -> Parts:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [_responses_part(part) for part in objects(content)]


def _responses_part(part: Json) -> Json:
    kind = text(part.get("type"))
    if kind in _TEXTS:
        return text_part(text(part.get("text")))
    if kind == "refusal":
        return text_part(text(part.get("refusal")))
    if kind == "input_image":
        given = part.get("image_url")
        url = text(given) or text((obj(given) or {}).get("url"))
        return image_part(url, part.get("detail")) if url else part
    if kind == "input_file":
        beside = {key: text(part.get(key)) for key in ("file_id", "file_url")}
        return _file(text(part.get("file_data")), part.get("filename"), **beside)
    return part


# -- Messages ----------------------------------------------------------------------------------------------------------


def messages_parts(content: Any) -> Parts:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [made for block in objects(content) for made in messages_part(block)]


def messages_part(block: Json) -> Parts:
    read = _BLOCKS.get(text(block.get("type")))
    return [block] if read is None else read(block)


def _block_text(block: Json) -> Parts:
    said = text(block.get("text"))
    return [text_part(said)] if said else []


def _block_image(block: Json) -> Parts:
    source = obj(block.get("source")) or {}
    if text(source.get("url")):
        return [image_part(text(source["url"]))]
    data = text(source.get("data"))
    return [data_part(text(source.get("media_type")) or "image/png", data)] if data else [block]


def _block_document(block: Json) -> Parts:
    source = obj(block.get("source")) or {}
    kind, data, name = text(source.get("type")), text(source.get("data")), block.get("title")
    if kind == "text":
        return [text_part(data)] if data else []
    if kind == "content":
        return messages_parts(source.get("content"))
    if text(source.get("url")):
        return [_file("", name, file_url=text(source["url"]))]
    return [data_part(text(source.get("media_type")) or "application/pdf", data, name)] if data else [block]


def _block_reference(block: Json) -> Parts:
    return [text_part(f"The tool {text(block.get('tool_name'))} is loaded now and can be called.")]


def _block_search_result(block: Json) -> Parts:
    head = " ".join([said for key in ("title", "source") if (said := text(block.get(key)))])
    return [*([text_part(head)] if head else []), *messages_parts(block.get("content"))]


_BLOCKS: dict[str, Callable[[Json], Parts]] = {
    "text": _block_text,
    "image": _block_image,
    "document": _block_document,
    "tool_reference": _block_reference,
    "search_result": _block_search_result,
}


# -- Gemini ------------------------------------------------------------------------------------------------------------


def gemini_part(part: Json) -> Parts:
    if said := text(part.get("text")):
        return [text_part(said)]
    if (inline := obj(field(part, "inlineData"))) is not None:
        media = text(field(inline, "mimeType"))
        return [data_part(media, text(inline.get("data")), field(inline, "displayName"))]
    if (stored := obj(field(part, "fileData"))) is not None:
        url = text(field(stored, "fileUri"))
        is_image = text(field(stored, "mimeType")).startswith("image/")
        return [image_part(url) if is_image else _file("", field(stored, "displayName"), file_url=url)]
    for name, key in (("executableCode", "code"), ("codeExecutionResult", "output")):
        if (found := obj(field(part, name))) is not None:
            return [text_part(f"```\n{text(found.get(key)) or compact_json(found)}\n```")]
    return []
