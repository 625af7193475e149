"""`python -m benchmarks NAME [options]`: run one benchmark, print its table, and write JSON and SVG where asked."""

import argparse
import importlib
import sys
from pathlib import Path

BENCHMARKS = {
    "allocators": "nanoseconds and bytes per block, beside what Python offers otherwise",
    "containers": "nanoseconds per item, from Python and from compiled code, beside list, array, dict and numpy",
    "arena": "cached cursor and start against the same arena through its chunk",
    "languages": "garden's engines beside Lua, JavaScript, Python and C, on nine workloads",
    "startup": "how long an empty program takes to start, beside Python and other languages",
    "spill": "the interpreter's spill stack as a vector, on the stack of the process, and elsewhere",
    "superinstructions": "the interpreter with and without superinstructions, on programs they were not chosen on",
    "compile": "lines per second of each stage, and bytes per node, beside CPython and pycparser",
}


def prefer_installed() -> None:
    """Import what is installed, which may be compiled, rather than the sources that stand beside this folder."""
    root = Path(__file__).parent.parent
    sys.path.sort(key=lambda entry: Path(entry or ".").resolve() == root)


def main() -> int:
    prefer_installed()
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--rounds", type=int, default=10, help="interleaved rounds, of which the median counts")
    common.add_argument("--quick", action="store_true", help="a tenth of the work, to see that it runs")
    common.add_argument("--output", type=Path, metavar="DIR", help="write NAME.json and NAME.svg there")
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for name, text in BENCHMARKS.items():
        names.add_parser(name, parents=[common], help=text, description=text)
    languages = names.choices["languages"]
    languages.add_argument("--workloads", nargs="+", metavar="NAME", help="only these")
    languages.add_argument(
        "--runtimes", nargs="+", metavar="NAME", help="only these; garden-reference must be asked for"
    )
    names.choices["superinstructions"].add_argument(
        "--programs", type=int, default=2, metavar="N", help="in cross-validation, choose what N programs share"
    )
    options = vars(parser.parse_args())
    benchmark = importlib.import_module(f"benchmarks.{options.pop('name')}_benchmark")
    benchmark.run(scale=0.1 if options.pop("quick") else 1.0, **options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
