"""Messages beside the calls: histories made fit for a server, and what a model without native tools is told (results,
declarations, the ledger behind "done")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import on_first_use

if TYPE_CHECKING:
    from rightcall.contracts.ledger import Deliverable, Ledger, LedgerState
    from rightcall.contracts.protocol import violations
    from rightcall.contracts.results import result_text
    from rightcall.contracts.typescript import declarations
    from rightcall.providers.chat_shape import chat_messages
    from rightcall.providers.histories.history_faults import history_faults
    from rightcall.providers.histories.history_profiles import HISTORY_PROFILES, HistoryProfile
    from rightcall.providers.histories.history_work import HistoryChange, KeptFields
    from rightcall.providers.histories.sanitiser import SaneHistory, kept_of, sane

__all__ = [
    "HISTORY_PROFILES",
    "HistoryChange",
    "Deliverable",
    "HistoryProfile",
    "KeptFields",
    "Ledger",
    "LedgerState",
    "SaneHistory",
    "chat_messages",
    "declarations",
    "history_faults",
    "kept_of",
    "result_text",
    "sane",
    "violations",
]

__getattr__ = on_first_use(
    __name__,
    {
        "chat_messages": "rightcall.providers.chat_shape",
        "HISTORY_PROFILES": "rightcall.providers.histories.history_profiles",
        "HistoryProfile": "rightcall.providers.histories.history_profiles",
        "HistoryChange": "rightcall.providers.histories.history_work",
        "KeptFields": "rightcall.providers.histories.history_work",
        "SaneHistory": "rightcall.providers.histories.sanitiser",
        "kept_of": "rightcall.providers.histories.sanitiser",
        "sane": "rightcall.providers.histories.sanitiser",
        "history_faults": "rightcall.providers.histories.history_faults",
        "Deliverable": "rightcall.contracts.ledger",
        "Ledger": "rightcall.contracts.ledger",
        "LedgerState": "rightcall.contracts.ledger",
        "declarations": "rightcall.contracts.typescript",
        "result_text": "rightcall.contracts.results",
        "violations": "rightcall.contracts.protocol",
    },
)
