"""What a model without native tools is told beside the contract: results, declarations, the ledger behind "done"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import on_first_use

if TYPE_CHECKING:
    from rightcall.contracts.ledger import Deliverable, Ledger, LedgerState
    from rightcall.contracts.protocol import violations
    from rightcall.contracts.results import result_text
    from rightcall.contracts.typescript import declarations

__all__ = [
    "Deliverable",
    "Ledger",
    "LedgerState",
    "declarations",
    "result_text",
    "violations",
]

__getattr__ = on_first_use(
    __name__,
    {
        "Deliverable": "rightcall.contracts.ledger",
        "Ledger": "rightcall.contracts.ledger",
        "LedgerState": "rightcall.contracts.ledger",
        "declarations": "rightcall.contracts.typescript",
        "result_text": "rightcall.contracts.results",
        "violations": "rightcall.contracts.protocol",
    },
)
