"""Exports as Parquet, zstd-compressed. Arguments and tools are JSON text in the file, so that no two of them can
disagree on a type; the library `datasets` returns them as objects, because the file's metadata names their types.
Needs the extra `parquet`."""

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
    """Return rows as a serialized Arrow table with these columns (feature types by name), to send to the process that
    writes the file. A missing value is null. Raises `MissingExtra`."""
    arrow, _ = _import_pyarrow()
    stored = [{name: _convert_value(row.get(name), feature) for name, feature in columns.items()} for row in rows]
    schema = _arrow_schema(arrow, columns)
    arrays = [_make_column(arrow, [row[field.name] for row in stored], field.type) for field in schema]
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, schema) as writer:
        writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
    return bytes(sink.getvalue())


def write_tables(
    tables: Iterable[bytes], out: WholeFile, *, shape: str, turns: bool, columns: Json, public: bool
) -> None:
    """Write tables from `pack_table` as one Parquet file, with at least a thousand rows in a group, and shape, turns
    and privacy in its metadata. Raises `FileFailed` if it cannot be written, and `MissingExtra`."""
    arrow, parquet = _import_pyarrow()
    metadata = {
        "huggingface": json.dumps({"info": {"features": columns}}),
        "rightcall": json.dumps({"private": not public, "shape": shape, "turns": turns}),
    }
    schema = _arrow_schema(arrow, columns).with_metadata(metadata)
    try:
        writer = parquet.ParquetWriter(out.file, schema, compression="zstd")
        try:
            for group in _group_tables(arrow, tables):
                writer.write_table(group.replace_schema_metadata(metadata))
        except BaseException:
            with suppress(OSError):
                writer.close()  # also after an error: otherwise its footer would be written later
            raise
        writer.close()
    except OSError as error:
        raise FileFailed(failed("write", out.path, error)) from error


def _group_tables(arrow: Any, tables: Iterable[bytes]) -> Iterator[Any]:
    """Yield the serialized tables joined to Arrow tables of at least a thousand rows, the last one of any size; empty
    bytes are skipped."""
    pending: list[Any] = []
    rows = 0
    for data in tables:
        if data:
            pending.append(arrow.ipc.open_stream(data).read_all())
            rows += pending[-1].num_rows
        if rows >= _BATCH:
            yield arrow.concat_tables(pending)
            pending, rows = [], 0
    if pending:
        yield arrow.concat_tables(pending)


def _arrow_schema(arrow: Any, columns: Json) -> Any:
    """Return the Arrow schema of these columns, given as feature types of the library `datasets`."""
    return arrow.schema([arrow.field(name, _arrow_type(arrow, feature)) for name, feature in columns.items()])


def _import_pyarrow() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`. Raises `MissingExtra` if the extra is not installed."""
    require_extra("parquet")
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    return pyarrow, pyarrow.parquet


def _arrow_type(arrow: Any, feature: Json) -> Any:
    """Return the Arrow type of a feature type of the library `datasets`."""
    kind = feature.get("_type")
    if kind == "List":
        return arrow.list_(_arrow_type(arrow, feature["feature"]))
    if kind == "Value":
        return {"string": arrow.string(), "bool": arrow.bool_(), "int64": arrow.int64()}[feature["dtype"]]
    if kind == "Json":  # text marked as JSON; versions of pyarrow without this type read it as text
        return arrow.json_(arrow.string()) if hasattr(arrow, "json_") else arrow.string()
    return arrow.struct([arrow.field(name, _arrow_type(arrow, inner)) for name, inner in feature.items()])


def _make_column(arrow: Any, values: list[Any], wanted: Any) -> Any:
    """Return an Arrow array of these values with the type `wanted`, in which texts may be typed as JSON."""
    return _restore_json_types(arrow, arrow.array(values, _storage_type(arrow, wanted)), wanted)


def _storage_type(arrow: Any, kind: Any) -> Any:
    """Return an Arrow type with plain text in place of JSON, also inside lists and structs, because Arrow cannot make
    JSON arrays from values. Any other type is returned unchanged."""
    if arrow.types.is_list(kind):
        return arrow.list_(_storage_type(arrow, kind.value_type))
    if arrow.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return arrow.struct([arrow.field(field.name, _storage_type(arrow, field.type)) for field in fields])
    return getattr(kind, "storage_type", kind)


def _restore_json_types(arrow: Any, array: Any, kind: Any) -> Any:
    """Return an array of plain text as the type `kind`, whose texts may be typed as JSON, also inside lists and
    structs. `array` has the storage type of `kind`."""
    if array.type == kind:
        return array
    if arrow.types.is_list(kind):
        inner = _restore_json_types(arrow, array.values, kind.value_type)
        return arrow.ListArray.from_arrays(array.offsets, inner, type=kind, mask=array.is_null())
    if arrow.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        children = [_restore_json_types(arrow, array.field(at), field.type) for at, field in enumerate(fields)]
        return arrow.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    return arrow.ExtensionArray.from_storage(kind, array)


def _convert_value(value: Any, feature: Json) -> Any:
    """Return a value as its column stores it: JSON as text, missing fields as None. A lone surrogate, which Parquet
    cannot store, is replaced."""
    kind = feature.get("_type")
    if value is None:
        return None
    if kind == "Json":
        return json.dumps(value)
    if kind == "List":
        return [_convert_value(each, feature["feature"]) for each in value]
    if kind == "Value":
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    return {name: _convert_value(value.get(name), inner) for name, inner in feature.items()}
