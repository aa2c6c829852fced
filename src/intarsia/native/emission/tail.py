"""Masked remainders of vectorised loops: the iterations after the last whole vector, as one masked vector.

Machines whose loads and stores take masks do that at little cost; others use narrower vectors.
"""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import Allocate, Block, For, Intrinsic, Load, LoopVar, Scalar, Statement, Store
from intarsia.native.emission.arithmetic import constant_mask
from intarsia.native.emission.state import FunctionState
from intarsia.native.emission.strided_vectors import is_shuffled
from intarsia.native.emission.transposed_rows import unrolled_across
from intarsia.native.emission.types import Value, stored_bytes

_LEAST_BYTES: Final = 4
"""Minimum size in bytes of elements that are read with a mask where there is no AVX-512BW."""


def tail_mask(state: FunctionState, loop: For, width: int) -> Value | None:
    """Return the mask of a loop's remainder; None if narrower vectors are better or necessary.

    Args:
        state: State of the function at the loop.
        loop: Vectorised loop.
        width: Number of lanes of the machine's widest vectors for the loop.
    """
    rest = loop.extent % width
    if not rest or state.mask is not None or not state.kernel.has_masks:
        return None
    inside = _scalars(loop.body)
    # Vectors of one width everywhere: others would take the registers apart in each iteration.
    contents = state.kernel.facts.contents(loop.body)
    held = (contents.stores | contents.loads) & state.kernel.facts.registers
    # As many elements as a narrower vector has take one, unless they call functions for whole vectors.
    is_called = any(map(_is_call, inside)) or any(_is_in_calls(state, name) for name in held)
    if rest.bit_count() == 1 and not is_called:
        return None
    if not _is_row(state, loop, inside, width):
        return None
    if not all(_has_rows_only(state, name, width) for name in held):
        return None
    return constant_mask(tuple(lane < rest for lane in range(width)))


def _is_call(scalar: Scalar) -> bool:
    return isinstance(scalar, Intrinsic)


def _is_in_calls(state: FunctionState, name: str) -> bool:
    """Return whether a vectorised loop that accesses a buffer in registers calls a function."""
    facts = state.kernel.facts
    if name not in facts.called_buffers:
        loops = facts.vector_loops_of(name)
        facts.called_buffers[name] = any(_is_call(scalar) for loop in loops for scalar in _scalars(loop.body))
    return facts.called_buffers[name]


def _has_rows_only(state: FunctionState, name: str, width: int) -> bool:
    """Return whether all vectorised loops that access a buffer in registers are rows."""
    facts = state.kernel.facts
    if (name, width) not in facts.row_buffers:
        facts.row_buffers[name, width] = all(
            _is_row(state, loop, _scalars(loop.body), width) for loop in facts.vector_loops_of(name)
        )
    return facts.row_buffers[name, width]


def _is_row(state: FunctionState, loop: For, inside: list[Scalar], width: int) -> bool:
    """Return whether a loop only stores contiguous elements, computed from contiguous or shared ones.

    Scalars that are allocated inside are vectors of lanes, whose lanes that are off nothing reads.
    """
    statements = [visit.statement for visit in walk(loop.body) if visit.event is Event.ENTER]
    registers = state.kernel.facts.registers
    allocated = [statement.buffer for statement in statements if isinstance(statement, Allocate)]
    private = {buffer.name for buffer in allocated if not buffer.shape and buffer.name in registers}
    accesses = [
        part
        for part in (*statements, *inside)
        if isinstance(part, (Load, Store)) and part.buffer.name not in private
    ]
    return (
        len(private) == len(allocated)
        and all(isinstance(statement, (Store, Allocate, Block)) for statement in statements)
        and all(_is_near(state, access, loop.var.name, width) for access in accesses)
    )


def _is_near(state: FunctionState, access: Load | Store, var: str, width: int) -> bool:
    plan, buffer = state.kernel.facts.plan(access), access.buffer
    if plan is None:  # the quotient of a counter, for one
        return isinstance(access, Load) and not any(
            isinstance(part, LoopVar) and part.name == var for part in inner_scalars(access)
        )
    step = dict(plan.terms).get(var, 0)
    if step == 0:
        return isinstance(access, Load)
    is_held = buffer.name in state.kernel.facts.registers
    if is_held and prod(buffer.shape[:-1]) != 1 and buffer.shape[-1] % width:
        return False  # lanes that are off would take the next row apart
    is_near = step == 1
    if isinstance(access, Load) and not is_held:
        is_near = is_near or is_shuffled(step, width) or unrolled_across(state, access) is not None
    return is_near and (stored_bytes(buffer.dtype) >= _LEAST_BYTES or _masks_small_elements(state, access))


def _masks_small_elements(state: FunctionState, access: Load | Store) -> bool:
    """Return whether an access to elements of one or two bytes takes a mask, or is cut in few parts."""
    isa = state.kernel.isa
    is_cut = isinstance(access, Store) and "avx512vl" not in isa.features and isa.architecture == "x86_64"
    return is_cut or "avx512bw" in isa.features


def _scalars(body: Statement) -> list[Scalar]:
    return [
        scalar
        for visit in walk(body)
        if visit.event is Event.ENTER
        for root in scalars(visit.statement)
        for scalar in inner_scalars(root)
    ]
