"""Load a kernel's computation in the process that runs it: its arrays and its reference result."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.judge.difference import is_surely_within, sure_limit
from intarsia.measure.judge.gate import Gate
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.schedules.kernel_folder import KernelFolder
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.packing import Packing
from intarsia.native.te import ComputeOp
from intarsia.support.aligned_memory import ALIGNMENT, aligned_array, allocate_aligned

Array = npt.NDArray[Any]

_KEPT_TASKS: Final = 4
_KEPT_PACKED: Final = 8
_MOST_COPIES: Final = 64
GUARD: Final = 64 * ALIGNMENT
"""Bytes of a guard around an output."""
_GUARD_BYTE: Final = 0xA5


@dataclass(frozen=True, slots=True, eq=False)
class GuardedOutput:
    """Memory for an output between two guards, and the contents that it gets before a run.

    Attributes:
        array: Array that kernels write.
        memory: Memory of the array with the guards around it.
        spoilt: Array with a value other than the expected for every element, so that none is right by chance.
    """

    array: Array
    memory: npt.NDArray[np.uint8]
    spoilt: Array

    @classmethod
    def of(cls, expected: Array) -> Self:
        """Allocate memory for an output with the given reference result."""
        memory = allocate_aligned(expected.nbytes + 2 * GUARD)
        inner = memory[GUARD : GUARD + expected.nbytes]
        return cls(inner.view(expected.dtype).reshape(expected.shape), memory, _unlike(expected))

    def spoil(self) -> None:
        """Fill the array with wrong values, and write the guards."""
        self.memory[:GUARD] = self.memory[GUARD + self.array.nbytes :] = _GUARD_BYTE
        np.copyto(self.array, self.spoilt)

    @property
    def is_guarded(self) -> bool:
        """Whether the guards around the output are intact."""
        around = self.memory[:GUARD], self.memory[GUARD + self.array.nbytes :]
        return all(bool((guard == _GUARD_BYTE).all()) for guard in around)


@dataclass(frozen=True, slots=True, eq=False)
class LoadedTask:
    """A computation with its arrays.

    Attributes:
        contents: Aligned contents of the placeholders by name.
        outputs: Memory that kernels write, by name, in the order of the DAG's outputs.
        gate: Reference result with its tolerances.
        pool: Threads that run kernels.
        packed: Packed contents that were used last.
        copies: Copies of operands that were used last, by the address of the operand.
        limits: Differences up to which an output is right for sure; None for an output without such a limit.
        is_divisible: Whether a part of the loops can run alone: no computed value is an integer, which could
            be an index into memory.
    """

    contents: dict[str, Array]
    outputs: dict[str, GuardedOutput]
    gate: Gate
    pool: ThreadPool
    packed: dict[Packing, Array] = field(default_factory=dict)
    copies: dict[int, list[Array]] = field(default_factory=dict)
    limits: tuple[float | None, ...] = ()
    is_divisible: bool = False

    @classmethod
    def of_folder(cls, folder: KernelFolder, threads: int) -> Self:
        """Load the computation of a folder that has a reference result, to run on a number of threads."""
        gate = folder.gate()
        contents = {name: aligned_array(np.array(array)) for name, array in folder.contents().items()}
        pairs = zip(gate.names, gate.expected, strict=True)
        outputs = {name: GuardedOutput.of(expected) for name, expected in pairs}
        limits = tuple(
            None if tolerance is None else sure_limit(array, tolerance)
            for array, tolerance in zip(gate.expected, gate.tolerances, strict=True)
        )
        program = folder.program()
        is_divisible = all(
            dtype.is_float for op in program.dag.ops if isinstance(op, ComputeOp) for dtype in op.dtypes
        )
        return cls(contents, outputs, gate, _pool(threads), limits=limits, is_divisible=is_divisible)

    def packed_contents(self, packing: Packing) -> Array:
        """Return the contents of a placeholder in the packed layout that a schedule reads."""
        if packing not in self.packed:
            while len(self.packed) >= _KEPT_PACKED:
                del self.packed[next(iter(self.packed))]
            self.packed[packing] = packing.pack(self.contents[packing.tensor_name])
        return self.packed[packing]

    def operand_sets(self, operands: tuple[Array, ...], size: int) -> list[tuple[Array, ...]]:
        """Return the operands and copies of them, enough to take at least `size` bytes together, 64 at most.

        Calls that cycle through them find none of them in a cache of that size, as in a model, where other
        kernels run in between.
        """
        count = min(_MOST_COPIES, -(-size // max(1, sum(array.nbytes for array in operands))))
        columns = [self._copies(array, max(1, count)) for array in operands]
        return list(zip(*columns, strict=True)) or [()]

    def _copies(self, array: Array, count: int) -> list[Array]:
        """Return an array and count - 1 copies of it; the copies used last are kept."""
        key = array.ctypes.data
        copies = self.copies.pop(key, [])
        if not copies or copies[0] is not array:  # an earlier array had this address
            copies = [array]
        while len(copies) < count:
            copy: Array = allocate_aligned(array.nbytes).view(array.dtype).reshape(array.shape)
            np.copyto(copy, array)
            copies.append(copy)
        while len(self.copies) >= _KEPT_PACKED:
            del self.copies[next(iter(self.copies))]
        self.copies[key] = copies
        return copies[:count]

    def spoil_outputs(self) -> None:
        """Overwrite the outputs before a checked run, so that nothing of an earlier result is left."""
        for output in self.outputs.values():
            output.spoil()

    def check_outputs(self) -> Outcome:
        """Compare the outputs with the reference, and check that their guards are intact."""
        for name, output in self.outputs.items():
            if not output.is_guarded:
                return Outcome(MeasureError.WRONG_ANSWER, f'memory around output "{name}" was written')
        if self._is_surely_right():
            return Outcome()
        report = self.gate.check([output.array for output in self.outputs.values()])
        return Outcome() if report.passed else Outcome(MeasureError.WRONG_ANSWER, report.message)

    def _is_surely_right(self) -> bool:
        """Whether every output is within the limit that needs no full check; the gate's check is slower."""
        rows = zip(self.outputs.values(), self.gate.expected, self.limits, strict=False)
        return len(self.limits) == len(self.outputs) and all(
            limit is not None and is_surely_within(output.array, expected, limit)
            for output, expected, limit in rows
        )


@functools.lru_cache(_KEPT_TASKS)
def loaded_task(path: Path, threads: int) -> LoadedTask:
    """Return the computation of a folder, to run on a number of threads; it is read once in each process."""
    return LoadedTask.of_folder(KernelFolder(path), threads)


@functools.cache
def _pool(threads: int) -> ThreadPool:
    return ThreadPool(threads)


def _unlike(expected: Array) -> Array:
    """Return an array with every bit of every element inverted, which no rounding error does."""
    if expected.dtype == np.bool_:
        return np.asarray(~expected)
    flat = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
    return np.asarray(~flat).view(expected.dtype).reshape(expected.shape)
