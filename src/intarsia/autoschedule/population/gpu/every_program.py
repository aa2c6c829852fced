"""All programs of a sketch for a GPU, for spaces that are small enough."""

from __future__ import annotations

from collections.abc import Iterator

from intarsia.autoschedule.population.gpu.legality import is_launchable
from intarsia.autoschedule.population.gpu.thread_sizes import Lengths, ThreadSizes
from intarsia.autoschedule.population.replay import replay_program
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.native.loop_state import LoopState


def every_history(task: SearchTask, sketch: LoopState) -> Iterator[tuple[Lengths, ...]]:
    """Yield the lengths of the splits of each program of a sketch, also of those that no GPU launches."""
    yield from _from(ThreadSizes(sketch, task.hardware), ())


def every_program(task: SearchTask, sketch: LoopState) -> Iterator[LoopState]:
    """Yield each program of a sketch that a GPU launches, with the ranges of all loops, without pragmas."""
    sizes = ThreadSizes(sketch, task.hardware)
    for chosen in every_history(task, sketch):
        program = replay_program(task.dag, sizes.steps(chosen))
        if program is not None and is_launchable(task, program):
            yield program


def _from(sizes: ThreadSizes, chosen: tuple[Lengths, ...]) -> Iterator[tuple[Lengths, ...]]:
    if len(chosen) == len(sizes.splits):
        yield chosen
        return
    for lengths in sizes.choices(len(chosen), chosen):
        yield from _from(sizes, (*chosen, lengths))
