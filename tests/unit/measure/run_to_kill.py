"""The program that the tests of resuming kill: measures candidates of planted costs in a folder.

Usage: python -m tests.unit.measure.run_to_kill FOLDER
Prints after each candidate how many have a result, and at the end which is the best.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.unit.measure.hazards import bad_to_run
from tests.unit.measure.quick_testbed import as_input, quick_testbed

from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate
from intarsia.measure.measurer import Measurer

COUNT, BEST = 40, 27


def candidates(folder: Path) -> list[Candidate]:
    """Each call takes 8 to 12 ms, of the best one 3 ms; each fifth candidate fails."""
    log = str(folder / "log")
    return [
        bad_to_run(
            number,
            "segfault" if number % 5 == 4 else None,
            seconds=0.003 if number == BEST else 0.008 + 0.0001 * number,
            log=log,
        )
        for number in range(COUNT)
    ]


def main(folder: Path) -> None:
    (folder / "log").mkdir(exist_ok=True)
    inputs = [as_input(candidate) for candidate in candidates(folder)]
    with Database.open(folder / "measurements.db") as database, quick_testbed(folder / "tmp") as testbed:
        measurer = Measurer(testbed, database, on_progress=lambda progress: say(progress.done))
        costs = [result.cost for result in measurer.measure(inputs) if result is not None]
    say("best", costs.index(min(costs)), "of", len(costs))


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
