"""The body kinds: the only place that knows how arguments are written. A new kind is one file, and one line here."""

from typing import Any

from rightcall.formats.spec import Body, Braced, Envelope, NameThenJson, Params, Pythonic, TsCall
from rightcall.parsing.bodies.braced import BracedKind
from rightcall.parsing.bodies.envelope import EnvelopeKind
from rightcall.parsing.bodies.kind import BodyKind
from rightcall.parsing.bodies.name_then_json import NameThenJsonKind
from rightcall.parsing.bodies.params import ParamsKind
from rightcall.parsing.bodies.pythonic import PythonicKind
from rightcall.parsing.bodies.ts_call import TsCallKind

BODIES: dict[type[Body], BodyKind[Any]] = {
    Envelope: EnvelopeKind(),
    NameThenJson: NameThenJsonKind(),
    Params: ParamsKind(),
    Pythonic: PythonicKind(),
    Braced: BracedKind(),
    TsCall: TsCallKind(),
}
