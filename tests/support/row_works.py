"""Work on rows that tests hand to engines; in a module of its own, so that workers elsewhere can import it."""

import os
import signal
from pathlib import Path

from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sources import RowBatch
from rightcall.storage.jsonl import LineFault, encode_row


class Numbered:
    """Every row with how many characters it has; what is no row is told."""

    key = "numbered"

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made = RowOutcome()
        lines = []
        for line, row in batch.rows():
            made.rows += 1
            if isinstance(row, LineFault):
                made.add_fault(line, row.message)
            else:
                lines.append(encode_row({**row, "size": len(row["text"])}))
        made.data = b"".join(lines)
        return made


class KillsOnce(Numbered):
    """Kills the process that it runs in, once for each mark in the folder."""

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
