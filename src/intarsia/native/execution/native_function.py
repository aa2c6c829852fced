"""A kernel in memory, callable with NumPy arrays."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.execution.checked_run import run_checked
from intarsia.native.execution.driver_records import CallRecord
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.object_code.object_code import LoadedCode, load_object_code
from intarsia.support.errors import ArtifactError, InputError


@dataclass(frozen=True, eq=False)
class NativeFunction:
    """A loaded kernel, `void kernel(ptr arguments, ptr runtime)`, which keeps its code loaded.

    Attributes:
        name: Symbol of the kernel in the object code.
        parameters: Array parameters of the kernel, in order.
        scratch_bytes: Scratch memory that the kernel needs in each thread, in bytes.
        address: Address of its code.
        code: Loaded object code that contains it.
        checks: Description of each index check of bounds-checked code, which runs on one thread; else empty.
    """

    name: str
    parameters: tuple[ArrayParameter, ...]
    scratch_bytes: int
    address: int
    code: LoadedCode = field(repr=False)
    checks: tuple[str, ...] = ()

    @classmethod
    def load(
        cls,
        object_code: bytes,
        name: str,
        parameters: Sequence[ArrayParameter],
        scratch_bytes: int = 0,
        symbols: Mapping[str, int] | None = None,
        checks: Sequence[str] = (),
    ) -> NativeFunction:
        """Load object code and return one kernel of it.

        Args:
            object_code: Object code from `generate_object_code`.
            name: Symbol of the kernel.
            parameters: Array parameters of the kernel, in order.
            scratch_bytes: Scratch memory that the kernel needs in each thread, in bytes.
            symbols: Addresses of functions that it calls besides those of the C library, by name.
            checks: Description of each index check, if the code is bounds-checked.

        Raises:
            ArtifactError: The object code is damaged, for another architecture, or has no such kernel.
        """
        return cls.of_code(load_object_code(object_code, symbols), name, parameters, scratch_bytes, checks)

    @classmethod
    def of_code(
        cls,
        code: LoadedCode,
        name: str,
        parameters: Sequence[ArrayParameter],
        scratch_bytes: int = 0,
        checks: Sequence[str] = (),
    ) -> NativeFunction:
        """Return a kernel of loaded code.

        Raises:
            ArtifactError: The code has no such kernel.
        """
        if name not in code.addresses:
            raise ArtifactError(
                f"this object code has no kernel {name!r}; it has: "
                f"{', '.join(sorted(code.addresses)) or 'none'}"
            )
        return cls(name, tuple(parameters), scratch_bytes, code.addresses[name], code, tuple(checks))

    def __call__(self, *arrays: np.ndarray[Any, Any], pool: ThreadPool | None = None) -> None:
        """Run the kernel, which writes into the arrays that are its outputs.

        Args:
            arrays: Arrays, one for each parameter; a written array must not overlap another.
            pool: Thread pool that runs the kernel; the calling thread alone if not given.

        Raises:
            InputError: An array does not fit, or the arrays overlap.
            ExecutionError: Bounds-checked code found an index out of bounds.
        """
        if len(arrays) != len(self.parameters):
            raise InputError(
                f"kernel {self.name!r} was given {len(arrays)} arrays, expected {len(self.parameters)}"
            )
        addresses = [
            parameter.address_of(array) for parameter, array in zip(self.parameters, arrays, strict=True)
        ]
        self._refuse_overlap(arrays, addresses)
        arguments = _pointers(len(addresses))(*addresses)
        call = CallRecord(self.address, ctypes.addressof(arguments))
        if self.checks:
            run_checked(ctypes.addressof(call), self.name, self.checks, self.scratch_bytes)
        else:
            (pool or _calling_thread()).run(ctypes.addressof(call), 1, self.scratch_bytes)

    def _refuse_overlap(self, arrays: Sequence[np.ndarray[Any, Any]], addresses: Sequence[int]) -> None:
        spans = sorted(
            (address, address + array.nbytes, number)
            for number, (array, address) in enumerate(zip(arrays, addresses, strict=True))
            if array.nbytes
        )
        # Spans are sorted by begin: it suffices to compare each with the one that ends last among those
        # before it.
        last_end, last = 0, -1
        written_end, written = 0, -1
        for begin, end, number in spans:
            is_written = self.parameters[number].is_written
            other = written if begin < written_end else last if is_written and begin < last_end else -1
            if other >= 0:
                names = (self.parameters[other].name, self.parameters[number].name)
                raise InputError(f"arrays {names[0]!r} and {names[1]!r} of a native kernel overlap")
            if end > last_end:
                last_end, last = end, number
            if is_written and end > written_end:
                written_end, written = end, number


@functools.cache
def _pointers(count: int) -> type[ctypes.Array[ctypes.c_void_p]]:
    """Return the type of an array of addresses; cached, because ctypes would build it again for each call."""
    return ctypes.c_void_p * count


@functools.cache
def _calling_thread() -> ThreadPool:
    return ThreadPool(1)
