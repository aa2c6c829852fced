"""Fuzz everything that reads what others wrote.

Models, artifacts, manifests and files of artifacts with right digests, compiled kernels, object files,
passes, targets and programs as text, plans, records of schedules, databases and their exports, and tensors of
HTTP requests are changed at random: their bytes, or values, tokens, cells and nodes, so that they stay well
formed.
Inputs that were findings once are in checks/fuzz/corpus, and run first. The same seed gives the same runs.
With --guided coverage leads the changes (atheris, extra "fuzz"): one kind, until --seconds are over.

    python -m checks.fuzz [--kind NAME ...] [--runs 2000] [--seed 0] [--jobs 1]
    python -m checks.fuzz --guided models --seconds 60

The exit code is 1 if there are findings.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from checks.fuzz.guided import instrumented, run_guided

if TYPE_CHECKING:
    from checks.fuzz.kinds import Kind

CORPUS: Final = Path(__file__).parent / "corpus"
MEMORY_FOLDER: Final = Path("/dev/shm")
"""Folder of a file system in memory, on Linux: elsewhere databases wait for the disk at each transaction."""


def main() -> None:
    """Run the fuzzers, print counts and findings, and save new findings in the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kind", nargs="+", help="kinds to fuzz; all by default")
    parser.add_argument("--runs", type=int, default=2000, help="mutations of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="kinds that are fuzzed at a time")
    parser.add_argument("--guided", metavar="KIND", help="let coverage lead the changes")
    parser.add_argument("--seconds", type=int, default=60, help="time of --guided")
    options = parser.parse_args()
    with instrumented() if options.guided else nullcontext():  # what is imported here is watched
        from checks.fuzz.kinds import make_kinds, without_llvm
    without_llvm()
    with _folder() as folder:
        kinds = make_kinds(folder)
        if options.guided:
            run_guided(kinds[options.guided], folder, options.seconds, options.seed)
        names = options.kind or list(kinds)
        if options.jobs > 1:
            sys.exit(_run_jobs(names, options))
        count = sum(_fuzz_kind(name, kinds[name], options.runs, options.seed) for name in names)
    sys.exit(bool(count))


def _fuzz_kind(name: str, kind: Kind, runs: int, seed: int) -> int:
    """Fuzz a kind, print the counts, and return the number of findings."""
    from checks.fuzz.run import fuzz

    start = time.monotonic()
    kept = [file.read_bytes() for file in sorted((CORPUS / name).glob("*"))]
    findings = fuzz(name, kind, runs, seed, kept)
    seconds = time.monotonic() - start
    print(
        f"{name:10} {runs:8} runs {len(kept):4} kept {len(findings):4} findings "
        f"{seconds:8.1f} s {runs / seconds:8.0f} runs/s",
        flush=True,
    )
    for finding in findings:
        print(f"  run {finding.number}: {finding.problem}")
        print(f"    saved as {finding.save(CORPUS)}", flush=True)
    return len(findings)


def _run_jobs(names: list[str], options: argparse.Namespace) -> int:
    """Fuzz several kinds at a time, each in a process with a folder of its own; return the exit code."""

    def run(name: str) -> subprocess.CompletedProcess[str]:
        given = ("--kind", name, "--runs", str(options.runs), "--seed", str(options.seed))
        done = subprocess.run(
            (sys.executable, "-m", "checks.fuzz", *given), stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout, end="", flush=True)
        return done

    with ThreadPoolExecutor(options.jobs) as executor:
        return int(any(done.returncode for done in executor.map(run, names)))


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None) as folder:
        yield Path(folder)


if __name__ == "__main__":
    main()
