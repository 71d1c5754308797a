"""Generate the cases of every class and every format that it applies to, from a seed; read and write their file."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec

from classes import bare, envelopes, markers, openers, runs, tags, thoughts, values
from classes.case import KITS, Case
from classes.wire import Wire, wires

FILE = Path(__file__).resolve().parent.parent / "classes.jsonl.gz"
SEED = 12

Maker = Callable[[Wire, Random, str], Iterator[Case]]
MAKERS: tuple[Maker, ...] = (
    tags.value_swallows,
    tags.one_character_less,
    tags.closed_by_another,
    tags.no_line_break,
    tags.own_closers_in_value,
    tags.abandoned,
    runs.shown_to_the_user,
    runs.too_big_a_number,
    runs.only_those_that_may_run,
    runs.bad_neighbour,
    runs.imperfect_tools,
    thoughts.in_open_reasoning,
    thoughts.in_closed_reasoning,
    thoughts.second_opener,
    thoughts.in_own_channel,
    thoughts.shown_in_own_channel,
    openers.blanks_in_markers,
    openers.no_name,
    openers.broken_blocks,
    openers.no_section,
    openers.ends_in_opener,
    openers.ends_in_inner_opener,
    openers.opened_twice,
    openers.header_again,
    openers.one_object,
    bare.named_finds_no_less,
    bare.whole_reply_is_bare,
    bare.nearly_calls,
    bare.shown_calls,
    markers.stray_markers,
    markers.of_one_format,
    values.exact_strings,
    values.of_one_format,
    values.unquoted,
    values.all_that_is_missing,
    envelopes.blank_names,
    envelopes.strangers,
    envelopes.doubled_keys,
    envelopes.live_repairs,
)


def generate_cases(seed: int = SEED) -> list[Case]:
    """Return all cases. The same seed and formats give the same cases on every machine."""
    return list({msgspec.json.encode(case, enc_hook=str): case for case in _generate(seed)}.values())


def _generate(seed: int) -> Iterator[Case]:
    for maker in MAKERS:
        for wire in wires():
            dice = Random(f"{seed} {maker.__module__}.{maker.__name__} {wire.name}")
            yield from maker(wire, dice, dice.choice(sorted(KITS)))


def encode_lines(cases: list[Case]) -> bytes:
    encode = msgspec.json.Encoder(enc_hook=str).encode
    return b"".join([encode(case) + b"\n" for case in cases])


def write_cases(path: Path = FILE) -> int:
    cases = generate_cases()
    path.write_bytes(gzip.compress(encode_lines(cases), 9, mtime=0))
    return len(cases)


def read_cases(path: Path = FILE) -> list[Case]:
    """Return the cases of the file."""
    decode = msgspec.json.Decoder(Case).decode
    return [decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
