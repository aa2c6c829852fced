"""Scheduled DAGs: a DAG with a loop state, and constants packed in the order of the loops."""

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
from intarsia.target.cache_sizes import CacheSizes


@dataclass(frozen=True)
class ScheduledDag:
    """A DAG and the state of its loops, ready for `lower`.

    Attributes:
        dag: DAG whose packed placeholders have the packed shape.
        state: State of the DAG's loops.
        packings: Packings to apply to constants before a call, at most one for each placeholder.
    """

    dag: ComputeDAG
    state: LoopState
    packings: tuple[Packing, ...]

    def lowered(self, caches: CacheSizes | None = None, vector_bytes: int = 0) -> PrimFunc:
        """Lower to a loop function in which a product and a sum may become an FMA (attribute `contract`).

        The attribute `streamed` names buffers that are prefetched.

        Args:
            caches: Sizes of a core's caches; those of a small machine if not given.
            vector_bytes: Size of a vector; 0 if it is not known.
        """
        function = lower(self.dag, self.state)
        streamed = streamed_names(self.dag, caches or CacheSizes(), vector_bytes)
        attrs = function.attrs.updated(contract=True, streamed=streamed or None)
        return with_prim_func_fields(function, attrs=attrs)


def scheduled(dag: ComputeDAG, isa: Isa, threads: int) -> ScheduledDag:
    """Return a DAG with its default state; constants in `layout_free_placeholders` may be packed.

    Args:
        dag: DAG before any step.
        isa: Instruction set of the machine, with its caches.
        threads: Number of threads.
    """
    return with_state(dag, default_state(dag, isa, threads))


def with_state(
    dag: ComputeDAG,
    state: LoopState,
    option: LayoutRewriteOption = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
) -> ScheduledDag:
    """Return a DAG with a state of its loops, and free placeholders packed in the order of the loops.

    Args:
        dag: DAG before any step.
        state: State of the DAG's loops.
        option: Treatment of the placeholders in `layout_free_placeholders`.

    Raises:
        IllegalStepError: The state puts a stage in an impossible position.
    """
    ranged = infer_bound(dag, state)
    rewritten = rewrite_layout(ranged, option)
    if rewritten.state is ranged:
        return ScheduledDag(dag, state, ())
    return ScheduledDag(rewritten.state.initial_dag, rewritten.state, rewritten.packings)
