"""Parts of a message, in Chat's words, as each of the other dialects has them: text, images, files, audio.

A part that is none of these goes out as it came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.types import Json

PartWriter = Callable[[Json], Json]


def image_urls(content: Any) -> list[str]:
    """The addresses of the images among the parts."""
    found = [obj(part.get("image_url")) or {"url": part.get("image_url")} for part in objects(content)]
    return [text(each.get("url")) for each in found if text(each.get("url"))]


def _parts(content: Any, writers: dict[str, PartWriter]) -> Any:
    """Text as it is; parts in the dialect's words."""
    if not isinstance(content, list):
        return content
    return [_part(each, writers) for each in content]


def _part(part: Any, writers: dict[str, PartWriter]) -> Any:
    found = {"type": "text", "text": part} if isinstance(part, str) else obj(part)
    if found is None:
        return part
    kind = "image_url" if image_urls([found]) else text(found.get("type"))
    write = writers.get(kind)
    return found if write is None else write(found)


def _data_url(url: str) -> tuple[str, str] | None:
    """Kind and data of an address that is the thing itself."""
    media, found, data = url.removeprefix("data:").partition(";base64,")
    return (media, data) if url.startswith("data:") and found else None


def _file(part: Json) -> Json:
    return obj(part.get("file")) or {}


def _audio(part: Json) -> tuple[str, str]:
    found = obj(part.get("input_audio")) or {}
    return f"audio/{text(found.get('format')) or 'wav'}", text(found.get("data"))


# -- Responses ---------------------------------------------------------------------------------------------------------


def responses_parts(content: Any) -> Any:
    return _parts(content, _RESPONSES)


def _responses_text(part: Json) -> Json:
    return {**part, "type": "input_text"}


def _responses_image(part: Json) -> Json:
    detail = text((obj(part.get("image_url")) or {}).get("detail"))
    made: Json = {"type": "input_image", "image_url": image_urls([part])[0]}
    return {**made, "detail": detail} if detail else made


def _responses_file(part: Json) -> Json:
    return {"type": "input_file", **_file(part)}


_RESPONSES: dict[str, PartWriter] = {
    "text": _responses_text,
    "image_url": _responses_image,
    "file": _responses_file,
}


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def anthropic_parts(content: Any) -> Any:
    return _parts(content, _ANTHROPIC)


def _source(url: str) -> Json:
    inline = _data_url(url)
    if inline is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": inline[0], "data": inline[1]}


def _anthropic_image(part: Json) -> Json:
    return {"type": "image", "source": _source(image_urls([part])[0])}


def _anthropic_file(part: Json) -> Json:
    found = _file(part)
    url, name = text(found.get("file_data")) or text(found.get("file_url")), text(found.get("filename"))
    source = _source(url) if url else {"type": "file", "file_id": text(found.get("file_id"))}
    return {"type": "document", "source": source, **({"title": name} if name else {})}


_ANTHROPIC: dict[str, PartWriter] = {"image_url": _anthropic_image, "file": _anthropic_file}


# -- Gemini ------------------------------------------------------------------------------------------------------------


def gemini_parts(content: Any) -> list[Json]:
    if not isinstance(content, list):
        return [{"text": text(content)}]
    return _parts(content, _GEMINI) or [{"text": ""}]


def _gemini_text(part: Json) -> Json:
    return {"text": text(part.get("text"))}


def _gemini_data(url: str, media: str, name: str = "") -> Json:
    inline, shown = _data_url(url), {"displayName": name} if name else {}
    if inline is None:
        return {"fileData": {"mimeType": media, "fileUri": url, **shown}}
    return {"inlineData": {"mimeType": inline[0], "data": inline[1], **shown}}


def _gemini_image(part: Json) -> Json:
    return _gemini_data(image_urls([part])[0], "image/*")


def _gemini_file(part: Json) -> Json:
    found = _file(part)
    url = text(found.get("file_data")) or text(found.get("file_url")) or text(found.get("file_id"))
    return _gemini_data(url, "application/pdf", text(found.get("filename")))


def _gemini_audio(part: Json) -> Json:
    media, data = _audio(part)
    return {"inlineData": {"mimeType": media, "data": data}}


_GEMINI: dict[str, PartWriter] = {
    "text": _gemini_text,
    "image_url": _gemini_image,
    "file": _gemini_file,
    "input_audio": _gemini_audio,
}
