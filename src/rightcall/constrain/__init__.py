"""One grammar from a format and some tools, for every engine: `build.grammar` makes it, `Grammar` is what it is."""

from rightcall.constrain.build import grammar
from rightcall.constrain.grammar_value import Grammar
from rightcall.shapes.builder import GrammarBounds
from rightcall.shapes.intersect import Relaxation
from rightcall.shapes.productions import Rule

__all__ = ["GrammarBounds", "Grammar", "Relaxation", "Rule", "grammar"]
