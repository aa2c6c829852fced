"""Epsilon-greedy choice of the programs to measure."""

from __future__ import annotations

from collections.abc import Container, Sequence

from intarsia.native.loop_state import LoopState


def pick(
    best: Sequence[LoopState],
    drawn: Sequence[LoopState],
    count: int,
    eps_greedy: float,
    measured: Container[str],
) -> tuple[LoopState, ...]:
    """Pick the best programs and a few random ones, all unmeasured (epsilon-greedy; Ansor, SketchPolicy).

    The first `count - int(eps_greedy * count)` are the best, the rest is random; where one kind runs out,
    the other one fills up.

    Args:
        best: Programs by model score, best first.
        drawn: Random programs.
        count: Maximum number of programs.
        eps_greedy: Share of random programs, from 0 to 1.
        measured: Texts of programs that are never picked.
    """
    greedy = count - int(eps_greedy * count)
    queues = [_unmeasured(best, measured), _unmeasured(drawn, measured)]
    picked: dict[str, LoopState] = {}
    while len(picked) < count and any(queues):
        first, second = queues if len(picked) < greedy else reversed(queues)
        state = (first or second).pop()
        picked.setdefault(state.text, state)
    return tuple(picked.values())


def _unmeasured(states: Sequence[LoopState], measured: Container[str]) -> list[LoopState]:
    """Return the unmeasured programs in reverse order, as a stack."""
    return [state for state in reversed(states) if state.text not in measured]
