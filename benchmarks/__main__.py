"""`python -m benchmarks NAME [options]`: run one benchmark, print its table, and write JSON and SVG where asked."""

import argparse
import importlib
import sys
from pathlib import Path

BENCHMARKS = {
    "allocators": "nanoseconds and bytes per block, beside what Python offers otherwise",
    "arena": "cached cursor and start against the same arena through its chunk",
}


def prefer_installed() -> None:
    """Import what is installed, which may be compiled, rather than the sources that stand beside this folder."""
    root = Path(__file__).parent.parent
    sys.path.sort(key=lambda entry: Path(entry or ".").resolve() == root)


def main() -> int:
    prefer_installed()
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("name", choices=BENCHMARKS, metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}")
    parser.add_argument("--rounds", type=int, default=10, help="interleaved rounds, of which the median counts")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, to see that it runs")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write NAME.json and NAME.svg there")
    options = parser.parse_args()
    benchmark = importlib.import_module(f"benchmarks.{options.name}_benchmark")
    benchmark.run(rounds=options.rounds, scale=0.1 if options.quick else 1.0, output=options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
