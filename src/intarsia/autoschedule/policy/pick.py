"""Which of the found programs are measured."""

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
    """Mostly the best programs, and a few random ones, all of them new (epsilon-greedy; Ansor, SketchPolicy).

    The first `count - int(eps_greedy * count)` are of the best, the rest is random; where one kind has no
    more, the other one goes on.

    Args:
        best: By a model, best first.
        drawn: Random ones.
        count: How many are picked, at most.
        eps_greedy: Share of random ones.
        measured: Texts of programs that are never picked.
    """
    greedy = count - int(eps_greedy * count)
    queues = [_new(best, measured), _new(drawn, measured)]
    found: dict[str, LoopState] = {}
    while len(found) < count and any(queues):
        first, second = queues if len(found) < greedy else reversed(queues)
        state = (first or second).pop()
        found.setdefault(state.text, state)
    return tuple(found.values())


def _new(states: Sequence[LoopState], measured: Container[str]) -> list[LoopState]:
    """Those that were not measured, the first one last."""
    return [state for state in reversed(states) if state.text not in measured]
