"""Whole models of real exporters: native beside the engines, in interleaved fresh processes.

A name is a model of the corpus, which `make corpus` has built, with its own inputs; without names, all models
of floats. As in the sweep, each is run by five processes: native, and both engines with their default and one
more setting, of which the faster counts. The ratio is the faster engine's median over native's: above 1,
native is ahead.

Usage: python -m benchmarks.corpus_models [NAME ...] [--threads 1] [--rounds 8] [--cpu NAME] [--record FILE]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.native_kernels import format_table
from benchmarks.records import Records
from benchmarks.sweep.contest import CONTENDERS, NATIVE, Contender, Turns, measure_model
from corpus.model_cache import Entry, entry_of
from corpus.recipe import recipes
from corpus.verdict import computes_floats

HEADER = (
    "model",
    "native ms",
    "engine over native",
    "least over least",
    "engine",
    "error",
    "native builds in",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.03, help="seconds of each turn (0.03)")
    parser.add_argument("--cpu", default="", choices=("haswell", "znver3"), help="limit native and oneDNN")
    parser.add_argument("--record", type=Path, help="file of measured models: an interrupted run resumes")
    given = parser.parse_args()
    turns = Turns(given.rounds, given.seconds, given.threads, given.cpu)
    rows, ratios = [], []
    for name, record in _measured(_entries(given.names), turns, Records(given.record)):
        rows.append((name, *_columns(record)))
        ratios += [record["ratio"]] if record["ratio"] else []
        print(" ".join(rows[-1]), flush=True)
    print(format_table(HEADER, rows, markdown=False))
    if ratios:
        mean, behind = statistics.geometric_mean(ratios), sum(ratio < 1 for ratio in ratios)
        print(f"{len(ratios)} compared: geometric mean {mean:.3f}, least {min(ratios):.3f}, {behind} behind")


def _entries(names: list[str]) -> dict[str, Entry]:
    """Return the built models of these names; without names, all that compute floats."""
    entries = {
        name: entry_of(recipe, None) for name, recipe in recipes().items() if name in (names or recipes())
    }
    built = {name: entry for name, entry in entries.items() if entry.is_built}
    return {name: entry for name, entry in built.items() if names or computes_floats(entry.record())}


def _measured(
    entries: dict[str, Entry], turns: Turns, records: Records
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the record of each model."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corpus-")))
        contenders = [stack.enter_context(Contender(*names, turns.cpu)) for names in CONTENDERS]
        for name, entry in entries.items():
            yield (
                name,
                records.load_or_measure(
                    {"model": entry.folder.name, **asdict(turns)},
                    lambda entry=entry: measure_model(entry.model, entry.inputs, contenders, turns, folder),  # type: ignore[misc]  # mypy cannot infer lambdas with defaults
                ),
            )


def _columns(record: dict[str, Any]) -> tuple[str, ...]:
    """Return the columns behind the name of a model."""
    if record["ratio"] is None:
        reason = next(iter(record["errors"].values()), "no engine runs it").splitlines()[0]
        return ("-", "-", "-", "-", "-", reason)
    low, high = record["range"]
    engines = {name: seconds for name, seconds in record["seconds"].items() if name != NATIVE}
    fastest = min(engines, key=engines.__getitem__)
    native = f"{NATIVE}, {record['settings'][NATIVE]}"
    return (
        f"{1e3 * record['seconds'][NATIVE]:.3f}",
        f"{record['ratio']:.2f} ({low:.2f} to {high:.2f})",
        f"{record['least_ratio']:.2f}",
        f"{fastest}, {record['settings'][fastest]}",
        "-" if record["error"] is None else f"{record['error']:.0e}",
        f"{record['build_seconds'][native]:.1f} s",
    )


if __name__ == "__main__":
    main()
