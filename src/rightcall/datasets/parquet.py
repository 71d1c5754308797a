"""Exports as Parquet, zstd-compressed. Arguments and tools are JSON text in the file, so that no two of them can
disagree on a type; `datasets` gives them back as objects, because the file says what they are. Needs the extra
`parquet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from rightcall.errors import FileFailed
from rightcall.extras import needs
from rightcall.files.file_kinds import failed
from rightcall.files.whole_files import WholeFile
from rightcall.types import Json

_BATCH = 1_000
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

# The columns of each shape, as the feature types of `datasets`.
COLUMNS: dict[str, Json] = {
    "openai-sft": {"messages": _list(_message(_TEXT, weight=_COUNT)), "tools": _TOOLS, "parallel_tool_calls": _FLAG},
    "trl-sft": {"messages": _SAID, "tools": _TOOLS},
    "trl-turns": {"prompt": _SAID, "completion": _SAID, "tools": _TOOLS},
    "trl-preference": {"prompt": _SAID, "chosen": _SAID, "rejected": _SAID, "tools": _TOOLS},
    "trl-kto": {"prompt": _SAID, "completion": _SAID, "label": _FLAG, "tools": _TOOLS},
    "sharegpt": {"conversations": _list({"from": _TEXT, "value": _TEXT}), "system": _TEXT, "tools": _TEXT},
    "forge-capture": {
        **dict.fromkeys(("schema_version", "kind", "example_group_id", "source_bucket", "user_request"), _TEXT),
        **dict.fromkeys(("workflow_state", "candidate_call", "tool_result", "proxy_trace", "metadata"), _JSON),
        "available_tools": _TOOLS,
    },
    "verifier": {"schema_version": _TEXT, "input": _INPUT, "label": _TEXT, "review": _JSON},
    "text": {"prompt": _PLAIN, "completion": _TEXT, "format": _TEXT, "tools": _TOOLS},
}


class ParquetRows:
    """The rows of an `Output` that is open, in Parquet: gathered, and written a thousand at a time."""

    def __init__(self, out: WholeFile, *, shape: str, public: bool) -> None:
        self._columns = COLUMNS[shape]
        self._marks = {
            "huggingface": json.dumps({"info": {"features": self._columns}}),
            "rightcall": json.dumps({"private": not public, "shape": shape}),
        }
        self._out = out
        self._rows: list[Json] = []
        self.rows = 0

    def __enter__(self) -> ParquetRows:
        arrow, parquet = _pyarrow()
        fields = [arrow.field(name, _type(arrow, feature)) for name, feature in self._columns.items()]
        self._schema = arrow.schema(fields, metadata=self._marks)
        self._writer = parquet.ParquetWriter(self._out.file, self._schema, compression="zstd")
        return self

    def write(self, row: Json) -> None:
        self._rows.append({name: _stored(row.get(name), feature) for name, feature in self._columns.items()})
        self.rows += 1
        if len(self._rows) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        arrow, _ = _pyarrow()
        if self._rows:
            columns = [_column(arrow, [row[field.name] for row in self._rows], field.type) for field in self._schema]
            with self._told():
                self._writer.write_table(arrow.Table.from_arrays(columns, schema=self._schema))
            self._rows.clear()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self._flush()
            with self._told():
                self._writer.close()
        else:
            with suppress(OSError):
                self._writer.close()  # of a file that is given up too: its end would be written later otherwise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FileFailed(failed("write", self._out.path, error)) from error


def _pyarrow() -> tuple[Any, Any]:
    needs("parquet")
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    return pyarrow, pyarrow.parquet


def _type(arrow: Any, feature: Json) -> Any:
    kind = feature.get("_type")
    if kind == "List":
        return arrow.list_(_type(arrow, feature["feature"]))
    if kind == "Value":
        return {"string": arrow.string(), "bool": arrow.bool_(), "int64": arrow.int64()}[feature["dtype"]]
    if kind == "Json":  # text that says it is JSON; a pyarrow that does not know it reads it as text
        return arrow.json_(arrow.string()) if hasattr(arrow, "json_") else arrow.string()
    return arrow.struct([arrow.field(name, _type(arrow, inner)) for name, inner in feature.items()])


def _column(arrow: Any, values: list[Any], wanted: Any) -> Any:
    return _marked(arrow, arrow.array(values, _storage(arrow, wanted)), wanted)


def _storage(arrow: Any, kind: Any) -> Any:
    """The same type with plain text where JSON is: arrays can be made of that from values."""
    if arrow.types.is_list(kind):
        return arrow.list_(_storage(arrow, kind.value_type))
    if arrow.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return arrow.struct([arrow.field(field.name, _storage(arrow, field.type)) for field in fields])
    return getattr(kind, "storage_type", kind)


def _marked(arrow: Any, array: Any, kind: Any) -> Any:
    """The array with its JSON marked as such."""
    if array.type == kind:
        return array
    if arrow.types.is_list(kind):
        inner = _marked(arrow, array.values, kind.value_type)
        return arrow.ListArray.from_arrays(array.offsets, inner, type=kind, mask=array.is_null())
    if arrow.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        children = [_marked(arrow, array.field(at), field.type) for at, field in enumerate(fields)]
        return arrow.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    return arrow.ExtensionArray.from_storage(kind, array)


def _stored(value: Any, feature: Json) -> Any:
    """The value as its column holds it. A lone surrogate, which Parquet's text cannot hold, becomes U+FFFD."""
    kind = feature.get("_type")
    if value is None:
        return None
    if kind == "Json":
        return json.dumps(value)
    if kind == "List":
        return [_stored(each, feature["feature"]) for each in value]
    if kind == "Value":
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    return {name: _stored(value.get(name), inner) for name, inner in feature.items()}
