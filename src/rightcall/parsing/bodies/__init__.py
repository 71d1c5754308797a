"""The readers of bodies: one for each body kind. A kind is written and checked in `formats.body_kinds`."""

from rightcall.formats.spec import Body, Braced, Envelope, NameThenJson, Params, Pythonic, TsCall
from rightcall.parsing.bodies.body_reader import BodyReader
from rightcall.parsing.bodies.braced import BracedReader
from rightcall.parsing.bodies.envelope import EnvelopeReader
from rightcall.parsing.bodies.name_then_json import NameThenJsonReader
from rightcall.parsing.bodies.params import ParamsReader
from rightcall.parsing.bodies.pythonic import PythonicReader
from rightcall.parsing.bodies.ts_call import TsCallReader

READERS: dict[type[Body], type[BodyReader]] = {
    Envelope: EnvelopeReader,
    NameThenJson: NameThenJsonReader,
    Params: ParamsReader,
    Pythonic: PythonicReader,
    Braced: BracedReader,
    TsCall: TsCallReader,
}
