"""How many tokens a request has, about, where no server counts them."""

from __future__ import annotations

from rightcall.providers.sdk_view import compact_json
from rightcall.serve.client_request import ClientRequest

_BYTES_A_TOKEN = 3.6  # of English, code and JSON, over the tokenizers in use; other scripts have more tokens
_IMAGE = 1500
_LOST = 3.0  # an estimate may be off by half; a prompt that was counted as a third of it was not read whole
_SHORT = 2000  # tokens of a prompt that no server cuts


def estimate_tokens(request: ClientRequest) -> int:
    """An estimate from the length of what a model would be shown: messages, tools, and so much for each image."""
    images = 0
    size = 0
    for message in request.messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        images += sum([isinstance(part, dict) and part.get("type") == "image_url" for part in parts])
        size += 8 + sum([len(compact_json(part)) for part in parts if not _is_image(part)])
        size += len(compact_json(message.get("tool_calls") or ""))
    size += sum(
        [len(compact_json(each.tool.parameters)) + len(each.tool.description) + 40 for each in request.tools or ()]
    )
    return max(1, int(size / _BYTES_A_TOKEN) + images * _IMAGE)


def cut_prompt(request: ClientRequest, size: int, counted: int | None) -> str:
    """What to say of a prompt that the server seems not to have read whole, by the tokens it counted; empty if it has.
    `size` is that of the request in bytes: most need not be estimated."""
    if not counted or size < counted * _BYTES_A_TOKEN * _LOST:
        return ""
    sent = estimate_tokens(request)
    if sent < max(_SHORT, counted * _LOST):
        return ""
    return f"the server counted {counted} tokens of about {sent}: it may have cut the prompt; give it a larger context"


def _is_image(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "image_url"
