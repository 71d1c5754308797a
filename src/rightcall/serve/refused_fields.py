"""Fields of a request that a server refuses and can do without: found in its words, and left out from then on.

refused_fields(error, body)         {"strict"} for "tools.0.function.strict: Extra inputs are not permitted"
refused_fields(error, body)         {"x"} for "Unexpected fields in the request: {'x'}"
without_fields(body, {"strict"})    the body without it, at its top and in its tools; schemas stay as they are
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rightcall.errors import BackendError, StatusError
from rightcall.providers.sdk_view import objects
from rightcall.types import Json

# What only asks for something that the server need not do. Words that refusals use for other things are not among them.
_SPARE = frozenset(
    "strict parallel_tool_calls stream_options service_tier reasoning_effort prompt_cache_key prompt_cache_retention "
    "safety_identifier logprobs top_logprobs client_metadata eager_input_streaming defer_loading allowed_callers "
    "cache_control context_management output_config input_examples store metadata verbosity".split()
)
# What says what is asked for, and what the model is held to: without it the answer would be another one.
_ASKS = frozenset(
    "model messages input prompt suffix contents system instructions tools tool_choice functions function_call stream "
    "n max_tokens max_completion_tokens max_output_tokens temperature top_p top_k min_p stop stop_sequences seed "
    "logit_bias presence_penalty frequency_penalty response_format text reasoning thinking think modalities audio "
    "format options previous_response_id conversation thread generationConfig systemInstruction toolConfig "
    "grammar grammar_lazy grammar_triggers preserved_tokens structured_outputs json_schema structural_tag ebnf regex "
    "guided_json guided_regex guided_choice guided_grammar chat_template_kwargs skip_special_tokens".split()
)
_UNKNOWN = re.compile(
    r"(?i)unexpected|unknown|unrecogni[sz]ed|unsupported|extra (?:input|field)|not (?:permitted|known)"
)
_NAMES = re.compile(r"[A-Za-z_][A-Za-z_0-9]*+")


def refused_fields(error: BackendError, body: Json) -> set[str]:
    """The fields of this body that the refusal is about, among those that can be left out."""
    if not isinstance(error, StatusError) or error.status not in (400, 422):
        return set()
    named = set(_NAMES.findall(error.body))
    spare = named & _SPARE & _fields(body)
    return spare | (named & set(body)) - _ASKS if _UNKNOWN.search(error.body) else spare


def without_fields(body: Json, names: Collection[str]) -> Json:
    """The body without these fields."""
    if not names:
        return body
    kept = _without(body, names)
    if isinstance(kept.get("tools"), list):
        kept["tools"] = [_tool(each, names) if isinstance(each, dict) else each for each in kept["tools"]]
    return kept


def _tool(entry: Json, names: Collection[str]) -> Json:
    kept = _without(entry, names)
    if isinstance(kept.get("function"), dict):
        kept["function"] = _without(kept["function"], names)
    return kept


def _without(fields: Json, names: Collection[str]) -> Json:
    return {name: value for name, value in fields.items() if name not in names}


def _fields(body: Json) -> set[str]:
    found = set(body)
    for entry in objects(body.get("tools")):
        function = entry.get("function")
        found |= set(entry) | (set(function) if isinstance(function, dict) else set())
    return found
