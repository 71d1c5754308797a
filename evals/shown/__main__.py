"""Parse every text by name and by `auto`, whole and cut; fail if a quoted call runs or a real one is lost.

python -m shown [--format NAME] [--texts N] [--show N]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from rightcall.formats import FORMATS
from shown.judge import check_format

TEXTS = 2_000


def main() -> int:
    options = _options()
    names = [options.format] if options.format else sorted(FORMATS)
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(check_format, names, [options.texts] * len(names), [options.texts // 5] * len(names)))
    texts = sum([count for count, _ in found])
    faults = [fault for _, some in found for fault in some]
    for (what, kind), count in sorted(Counter([(fault.what, fault.kind) for fault in faults]).items()):
        some = [fault for fault in faults if (fault.what, fault.kind) == (what, kind)]
        print(f"{what} {kind}: {count} ({', '.join(sorted({fault.format for fault in some}))})")
        for fault in some[: options.show]:
            print(f"  {fault.format} as {fault.how}: {fault.text[:400]!r}")
    print(f"{texts:,} texts of {len(names)} formats, {len(faults):,} parsed wrongly")
    return 1 if faults or not texts else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", default="", help="only this format")
    parser.add_argument("--texts", type=int, default=TEXTS, help="number of texts with quoted calls of each format")
    parser.add_argument("--show", type=int, default=1, help="number of faults to print for each kind")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
