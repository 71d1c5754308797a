"""Are the declarations TypeScript?    python evals/typescript.py [--cases N] [--seed N]

The judge is the TypeScript compiler itself, installed by npm into evals/.cache/typescript. It is asked two things of
tools that hypothesis makes, with hostile names, texts and enums: does every declaration compile, and do arguments that
pass `check` have the declared type? All cases go to the compiler in one file. Status 1 when it finds an error;
the first few are shown with the schema that caused them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from rightcall.contracts.typescript import declarations, is_identifier, is_reserved  # noqa: E402
from support.made_schemas import Case, tools  # noqa: E402

VERSION = "5.9.3"
FOLDER = HERE / ".cache" / "typescript"
COMPILER = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"
OPTIONS = ["--strict", "--noEmit", "--target", "es2022", "--pretty", "false"]
ERROR = re.compile(r"cases\.ts\((\d+),\d+\): (error .*)")


def install() -> None:
    if not COMPILER.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(FOLDER), f"typescript@{VERSION}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def made(count: int, start: int) -> list[Case]:
    found: list[Case] = []

    @seed(start)
    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(tools())
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found


def program(case: Case, number: int) -> str:
    """The declaration in a namespace of its own, and the arguments as a value of the declared type."""
    name = case.tool.name
    plain = is_identifier(name) and not is_reserved(name)
    args = f"Parameters<{f'typeof {name}' if plain else f'Tools[{json.dumps(name)}]'}>[0]"
    value = f"const value: {args} = {json.dumps(case.arguments)};" if case.fits else ""
    return f"namespace case{number} {{\n{declarations([case.tool])}{value}\n}}\n"


def judge(cases: list[Case]) -> list[tuple[Case, str]]:
    """The cases that the compiler does not like, each with its first error."""
    starts: list[int] = []
    texts: list[str] = []
    line = 1
    for number, case in enumerate(cases):
        texts.append(program(case, number))
        starts.append(line)
        line += texts[-1].count("\n")
    file = FOLDER / "cases.ts"
    file.write_text("".join(texts), "utf-8", newline="\n")
    done = subprocess.run(["node", str(COMPILER), *OPTIONS, str(file)], capture_output=True, encoding="utf-8")
    wrong: dict[int, str] = {}
    for at, error in ERROR.findall(done.stdout):
        wrong.setdefault(max(n for n, start in enumerate(starts) if start <= int(at)), error)
    if done.returncode and not wrong:
        raise SystemExit(f"the compiler failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [(cases[number], error) for number, error in wrong.items()]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--cases", type=int, default=1_500)
    options.add_argument("--seed", type=int, default=0)
    given_options = options.parse_args()
    install()
    cases = made(given_options.cases, given_options.seed)
    wrong = judge(cases)
    for case, error in wrong[:5]:
        print(error)
        print(f"    {json.dumps(case.tool.name)} {json.dumps(case.tool.parameters)}")
        print(f"    {json.dumps(case.arguments)}\n    {declarations([case.tool])}")
    fitting = sum(case.fits for case in cases)
    print(f"{len(cases)} declarations, {fitting} with arguments that pass check: {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
