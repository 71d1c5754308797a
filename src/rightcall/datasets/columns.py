"""The columns of each shape in Parquet, as the feature types of `datasets` say them."""

from __future__ import annotations

from rightcall.types import Json

_TEXT: Json = {"dtype": "string", "_type": "Value"}
_FLAG: Json = {"dtype": "bool", "_type": "Value"}
_COUNT: Json = {"dtype": "int64", "_type": "Value"}
_JSON: Json = {"_type": "Json"}


def _list(feature: Json) -> Json:
    return {"_type": "List", "feature": feature}


def _message(arguments: Json, **more: Json) -> Json:
    function = {"name": _TEXT, "arguments": arguments}
    calls = _list({"id": _TEXT, "type": _TEXT, "function": function})
    return {"role": _TEXT, "content": _TEXT, "tool_calls": calls, "tool_call_id": _TEXT, **more}


_SAID = _list(_message(_JSON, name=_TEXT, reasoning_content=_TEXT))
_TOOLS = _list(_JSON)
_PLAIN = _list({"role": _TEXT, "content": _TEXT})
_INPUT: Json = {"schema_version": _TEXT, "user_request": _TEXT, "workflow_state": _JSON, "available_tools": _TOOLS}
_INPUT |= {"candidate_call": {"name": _TEXT, "arguments": _JSON}, "metadata": _JSON}

OPENAI: Json = {
    "messages": _list(_message(_TEXT, weight=_COUNT)),
    "tools": _TOOLS,
    "parallel_tool_calls": _FLAG,
}
SFT: Json = {"messages": _SAID, "tools": _TOOLS}
PROMPTED: Json = {"prompt": _SAID, "completion": _SAID, "tools": _TOOLS}
PAIRS: Json = {"prompt": _SAID, "chosen": _SAID, "rejected": _SAID, "tools": _TOOLS}
JUDGED: Json = {"prompt": _SAID, "completion": _SAID, "label": _FLAG, "tools": _TOOLS}
SHAREGPT: Json = {"conversations": _list({"from": _TEXT, "value": _TEXT}), "system": _TEXT, "tools": _TEXT}
FORGED: Json = {
    **dict.fromkeys(("schema_version", "kind", "example_group_id", "source_bucket", "user_request"), _TEXT),
    **dict.fromkeys(("workflow_state", "candidate_call", "tool_result", "proxy_trace", "metadata"), _JSON),
    "available_tools": _TOOLS,
}
VERIFIER: Json = {"schema_version": _TEXT, "input": _INPUT, "label": _TEXT, "review": _JSON}
WRITTEN: Json = {"prompt": _PLAIN, "completion": _TEXT, "format": _TEXT, "tools": _TOOLS}
