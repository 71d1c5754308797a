"""Exports as Parquet, zstd-compressed. Arguments and tools are JSON text in the file, so that no two of them can
disagree on a type; `datasets` gives them back as objects, because the file says what they are. Needs the extra
`parquet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from rightcall.errors import FileFailed
from rightcall.extras import require_extra
from rightcall.storage.file_kinds import failed
from rightcall.storage.whole_files import WholeFile
from rightcall.types import Json

_BATCH = 1_000  # rows of a group, at least


def pack_table(rows: list[Json], columns: Json) -> bytes:
    """Return rows as a serialized Arrow table, to send to the writing process."""
    arrow, _ = _pyarrow()
    stored = [{name: _stored(row.get(name), feature) for name, feature in columns.items()} for row in rows]
    schema = _schema(arrow, columns)
    arrays = [_column(arrow, [row[field.name] for row in stored], field.type) for field in schema]
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, schema) as writer:
        writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
    return bytes(sink.getvalue())


def write_tables(
    tables: Iterable[bytes], out: WholeFile, *, shape: str, turns: bool, columns: Json, public: bool
) -> None:
    """Write tables as one Parquet file, with at least a thousand rows in a group."""
    arrow, parquet = _pyarrow()
    marks = {
        "huggingface": json.dumps({"info": {"features": columns}}),
        "rightcall": json.dumps({"private": not public, "shape": shape, "turns": turns}),
    }
    schema = _schema(arrow, columns).with_metadata(marks)
    try:
        writer = parquet.ParquetWriter(out.file, schema, compression="zstd")
        try:
            for group in _groups(arrow, tables):
                writer.write_table(group.replace_schema_metadata(marks))
        except BaseException:
            with suppress(OSError):
                writer.close()  # of a file that is given up too: its end would be written later otherwise
            raise
        writer.close()
    except OSError as error:
        raise FileFailed(failed("write", out.path, error)) from error


def _groups(arrow: Any, tables: Iterable[bytes]) -> Iterator[Any]:
    waiting: list[Any] = []
    rows = 0
    for data in tables:
        if data:
            waiting.append(arrow.ipc.open_stream(data).read_all())
            rows += waiting[-1].num_rows
        if rows >= _BATCH:
            yield arrow.concat_tables(waiting)
            waiting, rows = [], 0
    if waiting:
        yield arrow.concat_tables(waiting)


def _schema(arrow: Any, columns: Json) -> Any:
    return arrow.schema([arrow.field(name, _type(arrow, feature)) for name, feature in columns.items()])


def _pyarrow() -> tuple[Any, Any]:
    require_extra("parquet")
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
    """Return the type with plain text instead of JSON: Arrow can make arrays of it from values."""
    if arrow.types.is_list(kind):
        return arrow.list_(_storage(arrow, kind.value_type))
    if arrow.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return arrow.struct([arrow.field(field.name, _storage(arrow, field.type)) for field in fields])
    return getattr(kind, "storage_type", kind)


def _marked(arrow: Any, array: Any, kind: Any) -> Any:
    """Return the array with its JSON columns typed as JSON."""
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
    """Return a value as its column stores it. A lone surrogate, which Parquet cannot store, becomes U+FFFD."""
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
