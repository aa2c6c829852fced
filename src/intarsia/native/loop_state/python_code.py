"""Histories as Python code that makes a schedule, as the field writes it."""

from __future__ import annotations

from intarsia.native.loop_state.python_names import PythonNames
from intarsia.native.loop_state.state import LoopState


def print_python_code_from_state(state: LoopState, *, prefixed: bool = True) -> str:
    """The history as calls on a schedule `s` and its tensors.

    C_i, C_j, C_k = tuple(C.op.axis) + tuple(C.op.reduce_axis)
    C_i_o, C_i_i = s[C].split(C_i, factor=16)

    Args:
        state: Whose history is printed.
        prefixed: Whether names of loops begin with the name of their stage. Seed ansor_minimum has them
            without: the loops of two stages then look the same.
    """
    reached = LoopState.initial(state.initial_dag)
    names = PythonNames(reached, prefixed)
    lines = names.declarations()
    for step in state.transform_steps:
        reached = reached.apply(step)
        names.after = reached
        lines += step.python(names)
        names.before = reached
    return "".join(f"{line}\n" for line in lines)
