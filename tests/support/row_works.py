"""Row functions that tests pass to engines; in a separate module, so that worker processes can import it."""

import os
import signal
from pathlib import Path

from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sources import RowBatch
from rightcall.storage.jsonl import LineFault, encode_row


class Numbered:
    """Add the number of characters to every row; report malformed rows."""

    key = "numbered"

    def __call__(self, batch: RowBatch) -> RowOutcome:
        outcome = RowOutcome()
        lines = []
        for line, row in batch.rows():
            outcome.rows += 1
            if isinstance(row, LineFault):
                outcome.add_fault(line, row.message)
            else:
                lines.append(encode_row({**row, "size": len(row["text"])}))
        outcome.data = b"".join(lines)
        return outcome


class KillsOnce(Numbered):
    """Kill its own process, once for each mark file in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, batch: RowBatch) -> RowOutcome:
        for mark in self._folder.glob("kill*"):
            mark.unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)


class KillsAlways(Numbered):
    def __call__(self, batch: RowBatch) -> RowOutcome:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)


class Raises(Numbered):
    def __call__(self, batch: RowBatch) -> RowOutcome:
        raise LookupError("a fault of the work")
