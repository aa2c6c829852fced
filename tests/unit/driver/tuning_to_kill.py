"""The program that the tests of interrupted tuning kill.

Usage: python -m tests.unit.driver.tuning_to_kill FOLDER
Prints each moment, and at the end what the run has come to, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.interrupted_tuning import Moments, told, tuned


class Spoken(Moments):
    """Moments that are printed."""

    def note(self, kind: str) -> None:
        say(kind)
        super().note(kind)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    found = tuned(Path(sys.argv[1]), Spoken())
    assert found is not None
    say(json.dumps(told(found)))
