"""How many tokens a request has, about, where no server counts them."""

from __future__ import annotations

from rightcall.apis.sdk_view import dumps
from rightcall.serve.client_request import ClientRequest

_BYTES_A_TOKEN = 3.6  # of English, code and JSON, over the tokenizers in use; other scripts have more tokens
_IMAGE = 1500


def estimate_tokens(request: ClientRequest) -> int:
    """An estimate from the length of what a model would be shown: messages, tools, and so much for each image."""
    images = 0
    size = 0
    for message in request.messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        images += sum([isinstance(part, dict) and part.get("type") == "image_url" for part in parts])
        size += 8 + sum([len(dumps(part)) for part in parts if not _is_image(part)])
        size += len(dumps(message.get("tool_calls") or ""))
    size += sum([len(dumps(each.tool.parameters)) + len(each.tool.description) + 40 for each in request.tools or ()])
    return max(1, int(size / _BYTES_A_TOKEN) + images * _IMAGE)


def _is_image(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "image_url"
