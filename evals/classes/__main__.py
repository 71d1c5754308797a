"""Check every text, print the pass rate of each class, fail if a text is parsed wrongly.

python -m classes [--write] [--only KIND] [--format NAME] [--show N]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict

from classes.judge import Fault, find_fault
from classes.made import FILE, generate_cases, read_cases, write_cases


def main() -> int:
    options = _options()
    if options.write:
        print(f"{write_cases():,} texts written to {FILE.name}")
    if generate_cases() != read_cases():
        print(f"{FILE.name} differs from what the generator makes: run with --write and review the changes")
        return 1
    cases = [
        case
        for case in read_cases()
        if (not options.only or case.kind in options.only.split(","))
        and (not options.format or case.format == options.format)
    ]
    faults = [fault for case in cases if (fault := find_fault(case)) is not None]
    _table(Counter([case.kind for case in cases]), faults)
    _samples(faults, options.show)
    print(f"{len(cases) - len(faults):,} of {len(cases):,} texts are parsed correctly")
    return 1 if faults or not cases else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="generate the file of texts again first")
    parser.add_argument("--only", default="", help="only these classes, for example A1,B4")
    parser.add_argument("--format", default="", help="only this format")
    parser.add_argument("--show", type=int, default=1, help="number of faults to print for each class and shape")
    return parser.parse_args()


def _table(count: Counter[str], faults: list[Fault]) -> None:
    failed = Counter([fault.case.kind for fault in faults])
    for kind in sorted(count):
        wrong = failed[kind]
        where = Counter([fault.case.format for fault in faults if fault.case.kind == kind])
        rate = 100 * (count[kind] - wrong) / count[kind]
        names = " ".join([f"{name}:{times}" for name, times in sorted(where.items())])
        print(f"{kind:4} {rate:6.1f} %  {count[kind] - wrong:5,} of {count[kind]:5,}  {names}")


def _samples(faults: list[Fault], most: int) -> None:
    faults_by_shape: defaultdict[tuple[str, str], list[Fault]] = defaultdict(list)
    for fault in faults:
        faults_by_shape[fault.case.kind, fault.case.shape].append(fault)
    for (kind, shape), some in sorted(faults_by_shape.items()):
        formats = sorted({fault.case.format for fault in some})
        print(f"\n{kind} {shape}: {len(some)} ({', '.join(formats[:6])}{', ...' if len(formats) > 6 else ''})")
        for fault in some[:most]:
            print(f"  {fault.case.format} {fault.case.options or ''} {fault.how}: {fault.what[:200]}")
            print(f"  {fault.case.text[:240]!r}")
    print()


if __name__ == "__main__":
    sys.exit(main())
