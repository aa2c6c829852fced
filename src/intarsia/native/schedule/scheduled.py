"""A DAG as it is compiled: with a state of its loops, and with constants laid out as these read them."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import PrimFunc, with_prim_func_fields
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption, rewrite_layout
from intarsia.native.lowering import infer_bound, lower
from intarsia.native.machine.isa import Isa
from intarsia.native.packing import Packing
from intarsia.native.schedule.default_schedule import default_state
from intarsia.native.schedule.streamed import streamed_names


@dataclass(frozen=True)
class ScheduledDag:
    """What `lower(dag, state)` compiles.

    Attributes:
        dag: What is computed; its placeholders that are packed have the packed shape.
        state: Of its loops.
        packings: What has to be done to constants before they are passed, at most one for each placeholder.
    """

    dag: ComputeDAG
    state: LoopState
    packings: tuple[Packing, ...]

    def lowered(self) -> PrimFunc:
        """The loop function, in which products and sums may be one operation (attribute `contract`).

        The attribute `streamed` names buffers that are asked for before they are read.
        """
        function = lower(self.dag, self.state)
        attrs = function.attrs.updated(contract=True, streamed=streamed_names(self.dag) or None)
        return with_prim_func_fields(function, attrs=attrs)


def scheduled(dag: ComputeDAG, isa: Isa, threads: int) -> ScheduledDag:
    """A DAG with its default state; constants listed as `layout_free_placeholders` may be packed.

    Args:
        dag: What is computed.
        isa: The vectors and registers of the machine.
        threads: How many there are.
    """
    return with_state(dag, default_state(dag, isa, threads))


def with_state(
    dag: ComputeDAG,
    state: LoopState,
    option: LayoutRewriteOption = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
) -> ScheduledDag:
    """A DAG with a state of its loops, the placeholders whose layout is free as the loops read them.

    Args:
        dag: What is computed.
        state: Of the DAG's loops.
        option: What happens to placeholders listed as `layout_free_placeholders`.

    Raises:
        IllegalStepError: The state places a stage where it cannot be.
    """
    known = infer_bound(dag, state)
    rewritten = rewrite_layout(known, option)
    if rewritten.state is known:
        return ScheduledDag(dag, state, ())
    return ScheduledDag(rewritten.state.initial_dag, rewritten.state, rewritten.packings)
