"""Grammars for constrained decoding: one grammar from a format and some tools, emitted for every engine.

JSON Schema becomes shapes of values, shapes become nodes as the format writes them, and each engine has an emitter. The
public names are imported on first use, so that modules of this package may be imported on their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall.constrain.builder import GrammarBounds
    from rightcall.constrain.display import Rule
    from rightcall.constrain.grammars import Grammar, grammar
    from rightcall.constrain.intersect import Relaxation

__all__ = ["Grammar", "GrammarBounds", "Relaxation", "Rule", "grammar"]

__getattr__ = load_lazily(
    __name__,
    {
        "Grammar": "rightcall.constrain.grammars",
        "GrammarBounds": "rightcall.constrain.builder",
        "Relaxation": "rightcall.constrain.intersect",
        "Rule": "rightcall.constrain.display",
        "grammar": "rightcall.constrain.grammars",
    },
)
