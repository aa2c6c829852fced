"""The table of ONNX's backend tests: every case in every column.

python -m tests.backend.report [--json] [--columns auto,openvino] [--workers 2] [test_relu ...]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from tests.backend.pool import Heard
from tests.backend.suite import run_suite
from tests.backend.verdict import Column, Verdict


def main() -> None:
    """Print the table and what did not pass."""
    options = _arguments()
    report = run_suite(options.columns, options.cases, options.workers, _progress())
    text = f"{report.table()}\n\n{report.listing()}"
    sys.stdout.write((json.dumps(report.to_json(), indent=1) if options.json else text) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.backend.report", description=__doc__)
    parser.add_argument("cases", nargs="*", help="names of tests; all if none is given")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--workers", type=int, help="number of processes")
    parser.add_argument("--columns", type=lambda text: [Column(item) for item in text.split(",")])
    return parser.parse_args()


def _progress() -> Heard:
    counts: Counter[Column] = Counter()

    def heard(verdict: Verdict) -> None:
        counts[verdict.column] += 1
        if counts[verdict.column] % 200 == 0:
            sys.stderr.write(f"{verdict.column}: {counts[verdict.column]}\n")

    return heard


if __name__ == "__main__":
    main()
