"""Check the TypeScript declarations of tools.    python evals/typescript.py [--cases N] [--seed N]

The TypeScript compiler, installed by npm into evals/.cache/typescript, checks tools that hypothesis generates, with
hostile names, texts and enums. Every declaration must compile, and arguments that pass `check` must have the declared
type. All cases go to the compiler in one file. The exit status is 1 when the compiler finds an error; the first errors
are printed with their schemas.
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


def generate_cases(count: int, start: int) -> list[Case]:
    cases: list[Case] = []

    @seed(start)
    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(tools())
    def collect(case: Case) -> None:
        cases.append(case)

    collect()
    return cases


def program(case: Case, number: int) -> str:
    """Return the declaration in its own namespace, and the arguments as a value of the declared type."""
    name = case.tool.name
    plain = is_identifier(name) and not is_reserved(name)
    args = f"Parameters<{f'typeof {name}' if plain else f'Tools[{json.dumps(name)}]'}>[0]"
    value = f"const value: {args} = {json.dumps(case.arguments)};" if case.fits else ""
    return f"namespace case{number} {{\n{declarations([case.tool])}{value}\n}}\n"


def find_errors(cases: list[Case]) -> list[tuple[Case, str]]:
    """Compile the cases. Return those with an error, each with its first error."""
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
    errors: dict[int, str] = {}
    for at, error in ERROR.findall(done.stdout):
        errors.setdefault(max(n for n, start in enumerate(starts) if start <= int(at)), error)
    if done.returncode and not errors:
        raise SystemExit(f"the compiler failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [(cases[number], error) for number, error in errors.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=1_500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    install()
    cases = generate_cases(arguments.cases, arguments.seed)
    errors = find_errors(cases)
    for case, error in errors[:5]:
        print(error)
        print(f"    {json.dumps(case.tool.name)} {json.dumps(case.tool.parameters)}")
        print(f"    {json.dumps(case.arguments)}\n    {declarations([case.tool])}")
    fitting = sum(case.fits for case in cases)
    print(f"{len(cases)} declarations, {fitting} with arguments that pass check: {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
