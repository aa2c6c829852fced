"""Fuzz everything that reads what others wrote.

Models, artifacts, manifests with right digests, compiled kernels, object files, passes as text, programs as
text, plans, records of schedules, databases, and tensors of HTTP requests are changed at random. Inputs that
were findings once are in checks/fuzz/corpus, and run first. The same seed gives the same runs. With --guided
coverage leads the changes (atheris, extra "fuzz"): one kind, until --seconds are over.

    python -m checks.fuzz [--kind NAME ...] [--runs 2000] [--seed 0]
    python -m checks.fuzz --guided models --seconds 60

The exit code is 1 if there are findings.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from checks.fuzz.guided import instrumented, run_guided

CORPUS: Final = Path(__file__).parent / "corpus"


def main() -> None:
    """Run the fuzzers, print counts and findings, and save new findings in the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kind", nargs="+", help="kinds to fuzz; all by default")
    parser.add_argument("--runs", type=int, default=2000, help="mutations of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guided", metavar="KIND", help="let coverage lead the changes")
    parser.add_argument("--seconds", type=int, default=60, help="time of --guided")
    options = parser.parse_args()
    with instrumented() if options.guided else nullcontext():  # what is imported here is watched
        from checks.fuzz.kinds import make_kinds, without_llvm
        from checks.fuzz.run import fuzz
    without_llvm()
    with tempfile.TemporaryDirectory() as folder:
        kinds = make_kinds(Path(folder))
        if options.guided:
            run_guided(kinds[options.guided], Path(folder), options.seconds, options.seed)
        count = 0
        for name in options.kind or kinds:
            start = time.monotonic()
            kept = [file.read_bytes() for file in sorted((CORPUS / name).glob("*"))]
            findings = fuzz(name, kinds[name], options.runs, options.seed, kept)
            count += len(findings)
            seconds = time.monotonic() - start
            print(
                f"{name:10} {options.runs:8} runs {len(kept):4} kept "
                f"{len(findings):4} findings {seconds:7.1f} s"
            )
            for finding in findings:
                print(f"  run {finding.number}: {finding.problem}")
                print(f"    saved as {finding.save(CORPUS)}", flush=True)
    sys.exit(bool(count))


if __name__ == "__main__":
    main()
