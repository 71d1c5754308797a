"""Code fences in text that is still arriving, by the definition of `repairs.loose_json`."""

from __future__ import annotations

from rightcall.parsing.markers import RUN, Pat, Probe, literal, seq
from rightcall.repairs.loose_json import INFO, LABEL

_TICKS, _LINE = literal("```"), literal("\n")

FENCE_BEGIN = Probe(seq(_TICKS, Pat(INFO, INFO, sure=RUN), _LINE))
# With an info string: a fence without one may as well be the end of another.
LABELLED_BEGIN = Probe(seq(_TICKS, Pat(LABEL, f"(?:{LABEL})?+", sure=RUN), _LINE))
FENCE_END = Probe(_TICKS)
