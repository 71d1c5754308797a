"""Calls that are wrong, made of calls that are right: what a verifier must learn to refuse.

truth.py            a row that may be learned from, and how a negative is written as a row
other_values.py     another value that fits a schema
wrong_calls.py      another tool, other arguments
uncalled_for.py     a call that was made already, one that nobody asked for, one that had to ask first
broken_wires.py     a call whose text is broken, in any wire format

`KINDS` has a function for each kind: it is given a `Truth` and dice, and gives a `Negative`, or None where the row
cannot be made wrong in this way. Every negative is looked at before it is given: it differs from the truth, `check`
says of it what its label says, and where a scenario is known it is not what the scenario accepts.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from rightcall.datasets.mutations.broken_wires import broken_syntax
from rightcall.datasets.mutations.truth import Negative, Truth
from rightcall.datasets.mutations.uncalled_for import ask_back, not_needed
from rightcall.datasets.mutations.wrong_calls import wrong_arguments, wrong_tool

KINDS: dict[str, Callable[[Truth, random.Random], Negative | None]] = {
    "wrong_tool": wrong_tool,
    "wrong_arguments": wrong_arguments,
    "not_needed": not_needed,
    "ask_back": ask_back,
    "broken_syntax": broken_syntax,
}
