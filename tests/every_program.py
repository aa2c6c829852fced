"""All programs that a sketch has: every way in which its rules may draw."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from intarsia.autoschedule.population import sample_program
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState


class ScriptedRandom(Random):
    """Draws what a script says, then always the first; keeps how many there were to draw from."""

    def __init__(self, script: Sequence[int]) -> None:
        super().__init__(0)
        self.sizes: list[int] = []
        self._script = script

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """A number below the first argument; nobody here gives more."""
        assert stop is None
        assert step == 1
        place = len(self.sizes)
        self.sizes.append(start)
        return self._script[place] if place < len(self._script) else 0

    def randint(self, a: int, b: int) -> int:
        """From one number to another."""
        return a + self.randrange(b - a + 1)

    def choice(self, seq: Any) -> Any:
        """One of several."""
        return seq[self.randrange(len(seq))]


def every_program(
    task: SearchTask, sketches: Sequence[LoopState], space: SpaceOptions
) -> dict[str, LoopState]:
    """All programs of sketches by their text."""
    found: dict[str, LoopState] = {}
    for sketch in sketches:
        script: list[int] | None = []
        while script is not None:
            rng = ScriptedRandom(script)
            state = sample_program(task, sketch, rng, space)
            if state is not None:
                found[state.text] = state
            script = _next(script, rng.sizes)
    return found


def _next(script: Sequence[int], sizes: Sequence[int]) -> list[int] | None:
    """The script that comes next, as numbers are counted; None after the last one."""
    digits = [*script, *[0] * (len(sizes) - len(script))][: len(sizes)]
    while digits and digits[-1] + 1 >= sizes[len(digits) - 1]:
        digits.pop()
    return [*digits[:-1], digits[-1] + 1] if digits else None
