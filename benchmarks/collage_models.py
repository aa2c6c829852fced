"""Tune every model of the zoo with Collage, compare with the best single toolchain, and tune it again.

Usage: python -m benchmarks.collage_models [NAME ...] [--budget 60s] [--target T ...] [--results FILE]

Each model is tuned twice by the command line. It has a database of its own, which is empty at the first
run. Results are kept in FILE, one line of JSON for each model; models in it are not run again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from intarsia.frontend.zoo import zoo

HEADER = (
    "model",
    "best alone, ms",
    "winner",
    "alone / winner (95 %)",
    "next / winner (95 %)",
    "additive error",
    "candidates",
    "measured",
    "searched in",
    "first run",
    "second run",
)


TARGETS = ("onnxruntime", "openvino", "reference")


def tune_model(name: str, budget: str, targets: list[str], folder: Path) -> dict[str, Any]:
    """Run `intarsia tune`, and return its JSON document with the seconds that the command took."""
    begun = time.perf_counter()
    done = subprocess.run(
        (
            *(sys.executable, "-m", "intarsia", "tune", f"zoo:{name}", "--json", "--budget", budget),
            *(word for target in targets for word in ("--target", target)),
            *("--database", str(folder / "measurements.db"), "--output", str(folder / "model.intarsia")),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{name}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    return {**document, "seconds_of_the_command": time.perf_counter() - begun}


def summary(name: str, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return what the table shows of a model."""
    candidates = first["candidates"]
    whole = [candidate for candidate in candidates if candidate["is_whole"] and candidate["latency_seconds"]]
    alone = min(whole, key=lambda candidate: candidate["latency_seconds"])
    winner = next(candidate for candidate in candidates if candidate["chosen"])
    return {
        "model": name,
        "alone": alone["toolchain"],
        "alone_seconds": alone["latency_seconds"],
        "winner": winner["toolchain"],
        "ratio": alone["ratio"],
        "ratio_interval": alone["ratio_interval"],
        "next": _runner_up(candidates),
        "losses": first["losses"],
        "search": first["search"],
        "measured_again": 0 if second["finished_at"] else (second["search"] or {}).get("measured", 0),
        "same_winner": first["chosen"] == second["chosen"],
        "first_run": first["seconds_of_the_command"],
        "second_run": second["seconds_of_the_command"],
    }


def _runner_up(candidates: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The best candidate besides the winner that was in the final race."""
    raced = [item for item in candidates if item["ratio"] is not None and not item["chosen"]]
    return min(raced, key=lambda item: float(item["ratio"]), default=None)


def ratio_text(record: dict[str, Any]) -> str:
    """Ratio of the best single toolchain's time to the winner's, as text."""
    is_same = record["winner"] == record["alone"] or record["ratio"] is None
    return "-" if is_same else interval_text(record["ratio"], record["ratio_interval"])


def next_text(record: dict[str, Any]) -> str:
    """The runner-up, and the ratio of its time to the winner's, as text."""
    other = record["next"]
    return (
        "-"
        if other is None
        else f"{other['toolchain']} {interval_text(other['ratio'], other['ratio_interval'])}"
    )


def interval_text(ratio: float, interval: list[float]) -> str:
    """A ratio with its 95 % interval, as text."""
    low, high = interval
    return f"{ratio:.3f} ({low:.3f} to {high:.3f})"


def row(record: dict[str, Any]) -> tuple[str, ...]:
    """Cells of a row of the table."""
    losses, search = record["losses"], record["search"] or {}
    again = f"{record['second_run']:.1f} s ({record['second_run'] / record['first_run']:.0%})"
    return (
        record["model"],
        f"{record['alone']} {record['alone_seconds'] * 1e3:.3f}",
        record["winner"],
        ratio_text(record),
        next_text(record),
        f"{losses['additive_error'] / losses['measured']:+.1%}" if losses else "-",
        str(search.get("candidates", "-")),
        str(search.get("measured", "-")),
        f"{search['seconds']:.1f} s" if search else "-",
        f"{record['first_run']:.1f} s",
        again + ("" if not record["measured_again"] else f", {record['measured_again']} measured again"),
    )


def main() -> None:
    """Tune each model twice, and print a row for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--target", dest="targets", action="append")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    options.targets = options.targets or list(TARGETS)
    records: dict[str, dict[str, Any]] = {}
    if options.results and options.results.exists():
        lines = options.results.read_text().splitlines()
        records = {record["model"]: record for record in map(json.loads, lines)}
    print(" | ".join(HEADER))
    print(" | ".join("---" for _ in HEADER), flush=True)
    for name in options.names:
        if name not in records:
            with TemporaryDirectory() as folder:
                first, second = (
                    tune_model(name, options.budget, options.targets, Path(folder)) for _ in range(2)
                )
            records[name] = summary(name, first, second)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(records[name]) + "\n")
        print(" | ".join(row(records[name])), flush=True)


if __name__ == "__main__":
    main()
