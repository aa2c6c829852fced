"""What limits native kernels: the roofs of this machine, and what their loops say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph.region_plan import KernelPlan
from intarsia.native.machine.isa import Isa
from intarsia.native.peak import measured_peak
from intarsia.native.schedule.schedule_task import work_of
from intarsia.native.te import ComputeOp
from intarsia.native.te.operators.blocked_layout import BLOCKED, WINOGRAD
from intarsia.runtime.profile import ProfileRow

_FLOAT_BYTES: Final = 4
_SHORT: Final = 5e-6
"""Seconds of a kernel up to which beginnings and ends of its loops count, not its work."""
_FULL: Final = 0.85
"""Share of the lanes from which vectors count as full."""
_FEW_USES: Final = 32.0
"""Multiply-adds for each element read or written, up to which loads are as many as multiply-adds of vectors:
a depthwise 3x3 convolution has 4.5, a pointwise one of 64 to 64 channels 32, a 3x3 one of 64 channels 288."""


class Limit(Enum):
    """What limits a kernel; the value ends the sentence "so much is lost in ..."."""

    CONVERSION = "copies into other layouts, which the bound does not count"
    BARRIER = "barriers between threads"
    LATENCY = "sums that are too few to hide the latency of multiply-adds"
    LANES = "vectors that short rows do not fill"
    LOADS = "multiply-adds that wait for loads, as each element is used a few times only"
    SHORT = "kernels of a few microseconds, in which loops begin and end"
    FUNCTIONS = "exponentials, quotients and other functions, which the bound does not count"
    PASSES = "rows that are read several times"
    MOVED = "reads and writes below the bandwidth of the caches"
    ARITHMETIC = "register tiles below the peak: packing, remainders, and loads between multiply-adds"


@dataclass(frozen=True)
class Machine:
    """The roofs of this machine for a number of threads.

    Attributes:
        isa: Instruction set with the machine model.
        threads: Number of threads.
        peak: Operations per second of multiply-adds on all threads.
        hertz: Cycles per second of a core.
    """

    isa: Isa
    threads: int
    peak: float
    hertz: float

    @classmethod
    def measured(cls, threads: int) -> Machine:
        """Time the peak of this machine."""
        isa = Isa.host()
        lanes = isa.vector_bytes // _FLOAT_BYTES
        per_cycle = 2 * lanes * isa.machine.fmas_per_cycle(isa.vector_bytes)
        return cls(isa, threads, measured_peak(isa, threads), measured_peak(isa, 1) / per_cycle)

    def seconds_of_bytes(self, size: float, is_from_memory: bool = False) -> float:
        """Return the least seconds to read or write some bytes from where they are."""
        model, caches = self.isa.machine, self.isa.caches
        if is_from_memory or size > caches.third:
            rate = model.memory_share(self.threads, self.isa.cores)
        elif size > caches.second * self.threads:
            rate = model.third_bandwidth if self.threads == 1 else model.busy_third_bandwidth
        else:
            rate = model.second_bandwidth
        return size / (rate * self.hertz * self.threads)

    def seconds_of_scratch(self, size: float) -> float:
        """Return the least seconds to write and read bytes that need not leave the second-level cache."""
        return size / (self.isa.machine.second_bandwidth * self.hertz * self.threads)

    @property
    def barrier_seconds(self) -> float:
        """Seconds of a barrier; none with one thread."""
        return self.isa.machine.barrier_cycles / self.hertz if self.threads > 1 else 0.0


@dataclass(frozen=True)
class Kernel:
    """A kernel at its place in a model.

    Attributes:
        row: Its work and time.
        plan: Its computation; None if the plan has another one at this place.
        machine: The machine that runs it.
        streams: Whether its weights come from memory.
    """

    row: ProfileRow
    plan: KernelPlan | None
    machine: Machine
    streams: bool

    @property
    def _part(self) -> ComputeDAG | None:
        """The computation of a part of a node, such as a step of an LSTM; None for copies between layouts."""
        is_copy = self.row.kernel.is_conversion or not self.row.kernel.nodes
        return None if self.plan is None or is_copy else self.plan.dag

    @property
    def arithmetic(self) -> float:
        """Least seconds of its multiply-adds."""
        return self._roofs[0]

    @property
    def transfer(self) -> float:
        """Least seconds of its reads and writes."""
        return self._roofs[1]

    @cached_property
    def _roofs(self) -> tuple[float, float]:
        """Least seconds of arithmetic, and of reads and writes, of the algorithm with the lower bound."""
        work, machine = self.row.kernel.work, self.machine
        if work is None and self._part is None:
            return 0.0, 0.0
        if work is None:
            assert self._part is not None
            arithmetic = 2 * _count_sums(self._part) / machine.peak
            return arithmetic, machine.seconds_of_bytes(_count_bytes(self._part))
        weights = min(work.bytes, self.weight_bytes)
        direct = work.flop / machine.peak, self._moved(work.bytes - weights, weights)
        if work.bound is None:
            return direct
        # The bound of the profile counts what Winograd's algorithm leaves, but also bytes.
        least = min(direct[0], work.bound)
        scratch = 0 if self.plan is None else _transformed_bytes(self.plan.dag)
        if not scratch:
            return least, direct[1]
        moved = self._moved(work.bytes - weights, self.weight_bytes) + machine.seconds_of_scratch(scratch)
        return min(direct, (least, moved), key=max)

    def _moved(self, tensors: int, weights: int) -> float:
        """Return the least seconds to read and write tensors, and to read weights, of sizes in bytes."""
        machine = self.machine
        if not self.streams:
            return machine.seconds_of_bytes(tensors + weights)
        return machine.seconds_of_bytes(tensors) + machine.seconds_of_bytes(weights, is_from_memory=True)

    @property
    def weight_bytes(self) -> int:
        """Size of the constants that it reads, in bytes."""
        return 0 if self.plan is None else sum(array.nbytes for array in self.plan.constants.values())

    @property
    def bound(self) -> float:
        """Least seconds of the kernel."""
        return max(self.arithmetic, self.transfer) * self.row.calls

    @property
    def lost(self) -> float:
        """Seconds beyond the bound."""
        return max(0.0, self.row.seconds - self.bound)

    def limit(self) -> Limit:
        """Return what limits the kernel most, by its loops and its work."""
        row = self.row
        if row.kernel.is_conversion or not row.kernel.nodes:
            return Limit.CONVERSION
        if 0 < self.lost <= 2 * self.machine.barrier_seconds * row.calls:
            return Limit.BARRIER
        if self.plan is None:
            return Limit.ARITHMETIC if self.arithmetic >= self.transfer else Limit.MOVED
        if row.seconds <= _SHORT * row.calls:
            return Limit.SHORT
        dag = self.plan.dag
        if row.flop:
            return self._limit_of_sums(dag)
        if _count_functions(dag) and not any(op.combiner for op in _loops(dag)):
            return Limit.FUNCTIONS
        if _reads_again(dag):
            return Limit.FUNCTIONS if _count_functions(dag) > 1 else Limit.PASSES
        return Limit.LANES if _fill(dag, self.machine.isa) < _FULL else Limit.MOVED

    def _limit_of_sums(self, dag: ComputeDAG) -> Limit:
        """Return what limits a kernel with products."""
        isa, anchor = self.machine.isa, _anchor(dag)
        work = self.row.kernel.work
        assert work is not None, "it has multiply-adds"
        lanes = isa.vector_bytes // _FLOAT_BYTES
        sums = math.prod(axis.extent for axis in anchor.axes)
        if sums < isa.independent_sums * lanes * self.machine.threads:
            return Limit.LATENCY
        if self.transfer > self.arithmetic:
            return Limit.MOVED
        if work.flop / 2 * _FLOAT_BYTES < _FEW_USES * (work.bytes - min(work.bytes, self.weight_bytes)):
            return Limit.LOADS
        return Limit.LANES if _fill(dag, isa) < _FULL else Limit.ARITHMETIC


def _count_sums(dag: ComputeDAG) -> int:
    """Return the terms of the sums of a kernel that computes a part of a node."""
    sums = (op for op in _loops(dag) if op.combiner and op.reduce_axes)
    return sum(math.prod(axis.extent for axis in (*op.axes, *op.reduce_axes)) for op in sums)


def _count_bytes(dag: ComputeDAG) -> int:
    """Return the bytes of all that a kernel reads and writes, each tensor once."""
    tensors = (*dag.placeholders, *dag.outputs)
    return sum(math.prod(tensor.shape) * tensor.dtype.numpy.itemsize for tensor in tensors)


def _transformed_bytes(dag: ComputeDAG) -> int:
    """Return the bytes of transformed tiles that Winograd's algorithm writes and then reads."""
    anchors = [op.name for op in _loops(dag) if op.attrs.get(BLOCKED) == WINOGRAD]
    scratch = {f"{name}.{stage}" for name in anchors for stage in ("input", "product")}
    elements = sum(math.prod(op.shape) for op in _loops(dag) if op.name in scratch)
    return 2 * elements * _FLOAT_BYTES


def _loops(dag: ComputeDAG) -> list[ComputeOp]:
    return [op for op in dag.ops if isinstance(op, ComputeOp)]


def _anchor(dag: ComputeDAG) -> ComputeOp:
    """Return the operation with the most work."""
    return max(_loops(dag), key=lambda op: work_of([op]))


def _fill(dag: ComputeDAG, isa: Isa) -> float:
    """Return the share of the lanes that rows of the operation with the most work fill."""
    op, lanes = _anchor(dag), isa.vector_bytes // _FLOAT_BYTES
    extent = max((axis.extent for axis in (*op.axes[-1:], *op.reduce_axes[-1:])), default=1)
    return extent / (-(-extent // lanes) * lanes)


def _count_functions(dag: ComputeDAG) -> int:
    """Return the number of functions and quotients in elements that are computed for whole tensors."""
    ops = _loops(dag)
    most = max((work_of([op]) for op in ops), default=0)
    return sum(
        isinstance(part, Intrinsic) or (isinstance(part, Arith) and part.op is ArithOp.DIV)
        for op in ops
        if 2 * work_of([op]) >= most
        for body in op.bodies
        for part, _ in scalar_post_order(body)
    )


def _reads_again(dag: ComputeDAG) -> bool:
    """Return whether a reduction and another operation read the same tensor."""
    readers = (dag.readers[op] for op in dag.ops)
    return any(
        len(reading) > 1 and any(isinstance(op, ComputeOp) and op.combiner for op in reading)
        for reading in readers
    )
