"""Public module for messages: histories that a server accepts, and the messages for a model without native tools.

The latter are results, declarations, and the task list (ledger) that gates "done".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall.contracts.ledger import Deliverable, Ledger, LedgerState
    from rightcall.contracts.protocol import result_text, violations
    from rightcall.contracts.typescript import declarations
    from rightcall.providers.history_checks import HISTORY_PROFILES, HistoryProfile, history_faults
    from rightcall.providers.history_messages import chat_messages
    from rightcall.providers.history_sanitizer import HistoryChange, KeptFields, SaneHistory, kept_of, sane

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

__getattr__ = load_lazily(
    __name__,
    {
        "chat_messages": "rightcall.providers.history_messages",
        "HISTORY_PROFILES": "rightcall.providers.history_checks",
        "HistoryProfile": "rightcall.providers.history_checks",
        "HistoryChange": "rightcall.providers.history_sanitizer",
        "KeptFields": "rightcall.providers.history_sanitizer",
        "SaneHistory": "rightcall.providers.history_sanitizer",
        "kept_of": "rightcall.providers.history_sanitizer",
        "sane": "rightcall.providers.history_sanitizer",
        "history_faults": "rightcall.providers.history_checks",
        "Deliverable": "rightcall.contracts.ledger",
        "Ledger": "rightcall.contracts.ledger",
        "LedgerState": "rightcall.contracts.ledger",
        "declarations": "rightcall.contracts.typescript",
        "result_text": "rightcall.contracts.protocol",
        "violations": "rightcall.contracts.protocol",
    },
)
