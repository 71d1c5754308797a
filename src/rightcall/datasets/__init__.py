"""From captured rows to data worth training on: check, label, split, redact, release, export, import.

Everything streams: a command holds one line, or one conversation, and keeps what it must know of the rest on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall.capture.domain import Domain, find_domains
    from rightcall.capture.runner import Capture, Watch
    from rightcall.capture.settings import Settings
    from rightcall.datasets.assembling import assemble
    from rightcall.datasets.deduping import dedupe_files
    from rightcall.datasets.exporting import Unreleased, export
    from rightcall.datasets.forge_rows import write_prompts
    from rightcall.datasets.importing import import_files
    from rightcall.datasets.inspection import statistics, validate
    from rightcall.datasets.label import label_files
    from rightcall.datasets.mutating import mutate_files
    from rightcall.datasets.releasing import redact_files, release_files
    from rightcall.datasets.row_files import BadRows
    from rightcall.datasets.splitting import split

__all__ = [
    "BadRows",
    "Capture",
    "Domain",
    "Settings",
    "Unreleased",
    "Watch",
    "assemble",
    "dedupe_files",
    "export",
    "find_domains",
    "import_files",
    "label_files",
    "mutate_files",
    "redact_files",
    "release_files",
    "split",
    "statistics",
    "validate",
    "write_prompts",
]

__getattr__ = load_lazily(
    __name__,
    {
        "BadRows": "rightcall.datasets.row_files",
        "Capture": "rightcall.capture.runner",
        "Domain": "rightcall.capture.domain",
        "Settings": "rightcall.capture.settings",
        "Unreleased": "rightcall.datasets.exporting",
        "Watch": "rightcall.capture.runner",
        "assemble": "rightcall.datasets.assembling",
        "dedupe_files": "rightcall.datasets.deduping",
        "export": "rightcall.datasets.exporting",
        "find_domains": "rightcall.capture.domain",
        "import_files": "rightcall.datasets.importing",
        "label_files": "rightcall.datasets.label",
        "mutate_files": "rightcall.datasets.mutating",
        "redact_files": "rightcall.datasets.releasing",
        "release_files": "rightcall.datasets.releasing",
        "split": "rightcall.datasets.splitting",
        "statistics": "rightcall.datasets.inspection",
        "validate": "rightcall.datasets.inspection",
        "write_prompts": "rightcall.datasets.forge_rows",
    },
)
