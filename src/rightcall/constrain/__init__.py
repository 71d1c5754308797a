"""One grammar from a format and some tools, for every engine: `build.grammar` makes it, `Grammar` is what it is."""

from rightcall.constrain.book import Bounds
from rightcall.constrain.build import grammar
from rightcall.constrain.grammar import Grammar
from rightcall.constrain.meet import Limit
from rightcall.constrain.model import Rule

__all__ = ["Bounds", "Grammar", "Limit", "Rule", "grammar"]
