"""Every model of the zoo, divided between toolchains: against the best of them alone, and a second time.

Usage: python benchmarks/collage_models.py [NAME ...] [--budget 60s] [--target T ...] [--results FILE]

Each model is tuned twice by the command line, with a database of its own that is new at the first run.
Results are kept in FILE, a line of JSON a model; models that are in it are not run again.
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


def tuned(name: str, budget: str, targets: list[str], folder: Path) -> dict[str, Any]:
    """What the command line prints as JSON, and how long it took."""
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
    """What the table tells of a model."""
    whole = [each for each in first["candidates"] if each["is_whole"] and each["latency_seconds"]]
    alone = min(whole, key=lambda each: each["latency_seconds"])
    winner = next(each for each in first["candidates"] if each["chosen"])
    return {
        "model": name,
        "alone": alone["toolchain"],
        "alone_seconds": alone["latency_seconds"],
        "winner": winner["toolchain"],
        "ratio": alone["ratio"],
        "ratio_interval": alone["ratio_interval"],
        "next": _runner_up(first["candidates"]),
        "losses": first["losses"],
        "search": first["search"],
        "measured_again": 0 if second["finished_at"] else (second["search"] or {}).get("measured", 0),
        "same_winner": first["chosen"] == second["chosen"],
        "first_run": first["seconds_of_the_command"],
        "second_run": second["seconds_of_the_command"],
    }


def _runner_up(candidates: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The best of the others that raced with the winner."""
    raced = [each for each in candidates if each["ratio"] is not None and not each["chosen"]]
    return min(raced, key=lambda each: float(each["ratio"]), default=None)


def ratio_text(found: dict[str, Any]) -> str:
    """How many times as long the toolchain alone takes as the winner."""
    is_same = found["winner"] == found["alone"] or found["ratio"] is None
    return "-" if is_same else interval_text(found["ratio"], found["ratio_interval"])


def next_text(found: dict[str, Any]) -> str:
    """Who was next, and how many times as long it takes."""
    other = found["next"]
    return (
        "-"
        if other is None
        else f"{other['toolchain']} {interval_text(other['ratio'], other['ratio_interval'])}"
    )


def interval_text(ratio: float, interval: list[float]) -> str:
    """A ratio with its interval."""
    low, high = interval
    return f"{ratio:.3f} ({low:.3f} to {high:.3f})"


def row(found: dict[str, Any]) -> tuple[str, ...]:
    """A line of the table."""
    losses, search = found["losses"], found["search"] or {}
    again = f"{found['second_run']:.1f} s ({found['second_run'] / found['first_run']:.0%})"
    return (
        found["model"],
        f"{found['alone']} {found['alone_seconds'] * 1e3:.3f}",
        found["winner"],
        ratio_text(found),
        next_text(found),
        f"{losses['additive_error'] / losses['measured']:+.1%}" if losses else "-",
        str(search.get("candidates", "-")),
        str(search.get("measured", "-")),
        f"{search['seconds']:.1f} s" if search else "-",
        f"{found['first_run']:.1f} s",
        again + ("" if not found["measured_again"] else f", {found['measured_again']} measured again"),
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
    known: dict[str, dict[str, Any]] = {}
    if options.results and options.results.exists():
        lines = options.results.read_text().splitlines()
        known = {each["model"]: each for each in map(json.loads, lines)}
    print(" | ".join(HEADER))
    print(" | ".join("---" for _ in HEADER), flush=True)
    for name in options.names:
        if name not in known:
            with TemporaryDirectory() as folder:
                first, second = (tuned(name, options.budget, options.targets, Path(folder)) for _ in range(2))
            known[name] = summary(name, first, second)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(known[name]) + "\n")
        print(" | ".join(row(known[name])), flush=True)


if __name__ == "__main__":
    main()
