"""Histories as Python code that builds a schedule, in TVM's format."""

from __future__ import annotations

from intarsia.native.loop_state.python_names import PythonNames
from intarsia.native.loop_state.state import LoopState


def print_python_code_from_state(state: LoopState, *, prefixed: bool = True) -> str:
    """Return the history as calls on a schedule `s` and its tensors.

    C_i, C_j, C_k = tuple(C.op.axis) + tuple(C.op.reduce_axis)
    C_i_o, C_i_i = s[C].split(C_i, factor=16)

    Args:
        state: State with the history to print.
        prefixed: Whether names of loops begin with the name of their stage. Seed ansor_minimum omits it, so
            that loops of two stages may have the same name.
    """
    replayed = LoopState.initial(state.initial_dag)
    names = PythonNames(replayed, prefixed)
    lines = names.declarations()
    for step in state.transform_steps:
        replayed = replayed.apply(step)
        names.after = replayed
        lines += step.print_python(names)
        names.before = replayed
    return "".join(f"{line}\n" for line in lines)
