"""Check the same laws with atheris, which mutates texts guided by coverage. Started by `run.py`.

python fuzz/guided.py -max_total_time=60 [--format=hermes]      (other options are libFuzzer's)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]

import atheris  # noqa: E402

# Named one by one: `import rightcall` alone imports none of them, and only instrumented modules guide the search.
with atheris.instrument_imports(include=["rightcall.parsing", "rightcall.parsing.values", "rightcall.repairs"]):
    import rightcall.parsing.parser
    import rightcall.parsing.rendering
    import rightcall.repairs.whole_call
    import rightcall.testing.laws

from rightcall.formats import FORMATS  # noqa: E402
from support.hostile import check_laws, markers, places  # noqa: E402

FORMAT_OPTIONS = [a.partition("=")[2] for a in sys.argv[1:] if a.startswith("--format=")]
NAMES = [rightcall.formats.find(name).name for name in FORMAT_OPTIONS] or list(FORMATS)


def check_input(data: bytes) -> None:
    """Check one input: the first byte selects the format, the second the cut, the remainder is the text."""
    if len(data) < 3:
        return
    format = NAMES[data[0] % len(NAMES)]
    text = data[2:].decode("utf-8", "replace")
    check_laws(text, format, [list(range(1, len(text))), [data[1] % (len(text) + 1)]])


def write_seeds(folder: Path) -> None:
    for name in NAMES:
        for i, (before, after) in enumerate(places(name).values()):
            (folder / f"{name}_{i}").write_bytes(bytes([NAMES.index(name), 7]) + f"{before}a{after}".encode())


def write_words(path: Path) -> None:
    words = {marker.encode() for name in NAMES for marker in markers(name)}
    path.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in sorted(words)))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        (folder / "seeds").mkdir()
        write_seeds(folder / "seeds")
        write_words(folder / "words")
        options = [a for a in sys.argv[1:] if not a.startswith("--format=")]
        crash = f"-artifact_prefix={folder}/"
        atheris.Setup(
            [sys.argv[0], f"-dict={folder}/words", "-max_len=400", crash, *options, str(folder / "seeds")], check_input
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
