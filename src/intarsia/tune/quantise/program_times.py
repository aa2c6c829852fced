"""Times of whole programs on one target, measured interleaved in this process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.measure.whole_run import run_arrays
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target

Array = npt.NDArray[Any]

_SECONDS: Final = 0.5
"""Seconds in which one program is called again and again, if that is 5 to 40 times."""
_LEAST_CALLS, _MOST_CALLS = 5, 40


def program_times(
    mods: Sequence[IRModule],
    target: Target,
    inputs: Mapping[str, Array],
    rounds: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the shortest time of each program in interleaved calls: other work only ever adds time.

    A program that the target does not run has an infinite time.

    Args:
        mods: Programs without marked toolchains.
        target: Target that runs them.
        inputs: Arrays by parameter name.
        rounds: Number of timed calls of each; by the time that they take if not given.
        clock: Function that returns seconds.
    """
    with ExitStack() as stack:
        running = [_first_run(stack, mod, target, inputs) for mod in mods]
        best = [math.inf] * len(mods)
        turn, count = 0, rounds or _LEAST_CALLS
        while turn < count:
            for number, executable in enumerate(running):
                if executable is not None:
                    start = clock()
                    run_arrays(executable, inputs)
                    best[number] = min(best[number], clock() - start)
            turn += 1
            longest = max((seconds for seconds in best if seconds < math.inf), default=0.0)
            if rounds is None and turn == 1 and longest > 0:
                count = int(min(_MOST_CALLS, max(_LEAST_CALLS, _SECONDS / longest)))
        return best


def _first_run(
    stack: ExitStack, mod: IRModule, target: Target, inputs: Mapping[str, Array]
) -> Executable | None:
    """Build a program and call it once; None if the target does not run it."""
    try:
        executable = stack.enter_context(build(partition_whole(mod, target)))
        run_arrays(executable, inputs)
    except IntarsiaError:
        return None
    # Engines are foreign code: they raise what they like, such as RuntimeError.
    except Exception:
        return None
    return executable
