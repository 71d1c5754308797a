"""The work of `dataset export`: rows set aside by their conversation, and conversations as examples.

map_rows(sources, ConversationWork(public=False), rows)
map_rows([GroupedRows(rows, ROW, ...)], ExampleWork("trl-sft", how), examples)
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from rightcall.capture.captured_rows import FORGE, SCHEMA
from rightcall.datasets.conversations import CapturedConversation, conversation_key
from rightcall.datasets.message_shapes import SHAPES, Found, LeftOut, MessageOptions
from rightcall.datasets.releasing import is_released
from rightcall.datasets.row_files import count_name, digest
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import pack_frame
from rightcall.datasets.rows.sources import RowBatch
from rightcall.datasets.schemas import first_fault
from rightcall.formats.registered import FormatCarrier
from rightcall.storage.jsonl import LineFault, encode_row
from rightcall.types import Json

ROW, UNRELEASED = 0, 1  # tags of frames: a row, and why one may not be public
LONGEST = 1_000  # rows of one conversation; those behind are left out
REASONS = 100  # that are counted apart
LEFT_OUT = "left out: "


class ConversationWork:
    """Sets the rows of a part aside by their conversations. Counts those without a label, and those that may not be
    public where everything must be."""

    def __init__(self, *, public: bool) -> None:
        self.key, self._public = f"conversations {public}", public

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made, frames = RowOutcome(), list[bytes]()
        unlabelled = unreleased = 0
        for number, row in batch.rows():
            made.rows += 1
            fault = first_fault(row, SCHEMA, FORGE)
            if fault or isinstance(row, LineFault):
                made.add_fault(number, fault)
                continue
            unlabelled += "label" not in row
            line, why = batch.line(number), is_released(row) if self._public else ""
            if why:
                unreleased += 1
                frames.append(pack_frame(UNRELEASED, line, why.encode()))
            else:
                frames.append(pack_frame(ROW, line, batch.data(number), digest(conversation_key(row))))
        made.data, made.counts = b"".join(frames), {"unlabelled": unlabelled, "unreleased": unreleased}
        return made


class ExampleWork(FormatCarrier):
    """The examples of conversations, as lines of JSON, or as a table with these `columns`. Counts conversations,
    examples, and reasons why there is none."""

    def __init__(self, to: str, how: MessageOptions, *, keep_system: bool, columns: Json | None = None) -> None:
        self._to, self._how, self._keep_system, self._columns = to, how, keep_system, columns
        self.key = f"export {to} {digest(repr(how)).hex()} {keep_system} {columns is None}"

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made, examples, left_out = RowOutcome(), list[Json](), Counter[str]()
        for _, group in batch.rows():
            assert isinstance(group, dict)
            made.rows += 1
            for example in self._examples(CapturedConversation(group["rows"], keep_system=self._keep_system)):
                if isinstance(example, LeftOut):
                    count_name(left_out, str(example), REASONS)
                else:
                    examples.append(example)
        made.data = self._written(examples)
        made.counts = {"conversations": made.rows, "examples": len(examples)}
        made.counts |= {f"{LEFT_OUT}{reason}": number for reason, number in left_out.items()}
        return made

    def _examples(self, conversation: CapturedConversation) -> Found:
        try:
            yield from SHAPES[self._to].examples(conversation, self._how)
        except LeftOut as reason:
            yield LeftOut(str(reason))

    def _written(self, examples: list[Json]) -> bytes:
        if self._columns is None:
            return b"".join(map(encode_row, examples))
        from rightcall.datasets.parquet import packed_table

        return packed_table(examples, self._columns) if examples else b""


def reasons(counts: Counter[str]) -> Counter[str]:
    """Why there are no examples, of all parts together."""
    found: Counter[str] = Counter()
    for name, number in counts.items():
        if name.startswith(LEFT_OUT):
            reason: Any = name.removeprefix(LEFT_OUT)
            found[reason if reason in found or len(found) < REASONS else "(others)"] += number
    return found
