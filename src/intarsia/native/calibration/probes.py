"""Probes of this machine: compiled code, its buffers, and how much each run of it does."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.native.calibration.barrier_probe import PARALLEL_LOOPS, parallel_loops
from intarsia.native.calibration.probe_text import (
    CHAIN,
    CHAIN_STEPS,
    READ,
    READ_VECTORS,
    SUM_STEPS,
    SUMS,
    TICK,
    TICKS,
    probe_text,
    sum_count,
)
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.native.object_code.object_code import LoadedCode, load_object_code
from intarsia.support.aligned_memory import allocate_aligned
from intarsia.support.machine_memory import machine_memory

_Bytes: TypeAlias = npt.NDArray[Any]

_ROUNDS: Final = 1 << 13
"""Number of rounds of the probes without memory: a fifth of a millisecond."""
_LONG: Final = 16
"""Factor of the rounds that all cores run: a few milliseconds, as long as they read from memory."""
_CACHED_BYTES: Final = 1 << 23
"""Bytes that a run of a read from a cache of one core loads: over 40 us from the fastest one."""
_SHARED_BYTES: Final = 1 << 24
"""Bytes that a run loads from the last-level cache: a few hundred us."""
_MANY: Final = 4
"""Factor of the bytes that all cores load, each on a Python thread that starts late."""
_MEMORY_SHARE: Final = 16
"""Divisor of the machine's memory that limits the buffer which is read from memory."""
_LEAST_MEMORY: Final = 1 << 26
_MOST_MEMORY: Final = 1 << 28


class ProbeKind(Enum):
    """What a probe measures."""

    TICK = "cycles"
    BUSY_TICK = "cycles of all cores"
    CHAIN = "dependent multiply-adds"
    SUMS = "independent multiply-adds"
    FIRST = "bytes from the first-level cache"
    SECOND = "bytes from the second-level cache"
    THIRD = "bytes from the last-level cache"
    BUSY_THIRD = "bytes from the last-level cache, all cores"
    MEMORY = "bytes from memory"
    BUSY_MEMORY = "bytes from memory, all cores"
    SMALL_PAGES = "bytes from memory in small pages"
    HUGE_PAGES = "bytes from memory in huge pages"
    SERIAL = "loops on one thread"
    PARALLEL = "loops on all cores"


@dataclass(frozen=True, slots=True)
class Probe:
    """A piece of work whose time says something about the machine.

    Attributes:
        run: Function that does the work.
        amount: Amount of work of a run, in the unit that `ProbeKind` names.
    """

    run: Callable[[], object]
    amount: float


@contextmanager
def machine_probes(isa: Isa) -> Iterator[Mapping[ProbeKind, Probe]]:
    """Yield the probes of this machine; what it does not allow, such as huge pages, is left out.

    The buffers together take four times the last-level cache, 1 GiB at most; threads end with the context.

    Args:
        isa: Instruction set of this machine, with its caches and cores.

    Raises:
        CompileError: There is no llvmlite.
    """
    code = _Code(isa)
    with ExitStack() as stack:
        yield {
            ProbeKind.TICK: Probe(partial(code.tick, _ROUNDS, 3, 5), _ROUNDS * TICKS),
            ProbeKind.CHAIN: Probe(partial(code.chain, _ROUNDS, code.data), _ROUNDS * CHAIN_STEPS),
            ProbeKind.SUMS: Probe(
                partial(code.sums, _ROUNDS, code.data), _ROUNDS * SUM_STEPS * sum_count(isa)
            ),
            **_busy_probe(code, isa, stack),
            **_cache_probes(code, isa, stack),
            **_memory_probes(code, isa, stack),
            **_barrier_probes(isa, stack),
        }


class _Code:
    """The compiled probes.

    Attributes:
        tick: See `probe_text`, like the others.
        chain: Dependent multiply-adds.
        sums: Independent multiply-adds.
        read: Reads of a buffer.
        data: Address of factors and results.
    """

    def __init__(self, isa: Isa) -> None:
        self._loaded: LoadedCode = load_object_code(generate_object_code(probe_text(isa), isa))
        address, word = self._loaded.addresses, ctypes.c_int64
        self.tick = ctypes.CFUNCTYPE(word, word, word, word)(address[TICK])
        self.chain = ctypes.CFUNCTYPE(None, word, ctypes.c_void_p)(address[CHAIN])
        self.sums = ctypes.CFUNCTYPE(None, word, ctypes.c_void_p)(address[SUMS])
        pointers = (ctypes.c_void_p, ctypes.c_void_p, word, ctypes.c_void_p)
        self.read = ctypes.CFUNCTYPE(None, *pointers)(address[READ])
        self._data = allocate_aligned(4 * isa.vector_bytes)
        # Factors whose products stay normal numbers, which no CPU computes slower.
        self._data.view(np.float32)[:] = 1e-3
        self.data = self._data.ctypes.data
        self.block = READ_VECTORS * isa.vector_bytes

    def reads(self, buffer: _Bytes, repeats: int = 1) -> Probe:
        """Return the probe that reads a buffer again and again."""
        begin = buffer.ctypes.data
        run = partial(self.read, begin, begin + buffer.nbytes, repeats, self.data)
        return Probe(partial(_call_with, run, buffer), buffer.nbytes * repeats)

    def reads_by_all(self, buffers: Sequence[_Bytes], repeats: int, stack: ExitStack) -> Probe:
        """Return the probe that reads buffers at the same time, each on a thread of its own."""
        pool = stack.enter_context(ThreadPoolExecutor(len(buffers)))
        probes = [self.reads(buffer, repeats) for buffer in buffers]
        run = partial(_run_all, pool, [probe.run for probe in probes])
        return Probe(run, sum(probe.amount for probe in probes))

    def filled(self, size: int) -> _Bytes:
        """Return a buffer of about `size` bytes whose pages are all there."""
        buffer = allocate_aligned(-(-size // self.block) * self.block)
        buffer.fill(1)  # pages that are never written are one page of zeros
        return buffer


def _call_with(run: Callable[[], object], _kept: object) -> None:
    """Call a function that reads the memory of another argument, which is thereby kept."""
    run()


def _busy_probe(code: _Code, isa: Isa, stack: ExitStack) -> dict[ProbeKind, Probe]:
    """Return cycles that all cores count at the same time, which shows whether they are free."""
    if isa.cores == 1:
        return {}
    pool, rounds = stack.enter_context(ThreadPoolExecutor(isa.cores)), _LONG * _ROUNDS
    run = partial(_run_all, pool, [partial(code.tick, rounds, 3, 5)] * isa.cores)
    return {ProbeKind.BUSY_TICK: Probe(run, isa.cores * rounds * TICKS)}


def _run_all(pool: ThreadPoolExecutor, functions: Sequence[Callable[[], object]]) -> None:
    """Call functions at the same time, each on a thread of its own, and wait for all of them."""
    for running in [pool.submit(function) for function in functions]:
        running.result()


def _cache_probes(code: _Code, isa: Isa, stack: ExitStack) -> dict[ProbeKind, Probe]:
    """Return reads of buffers that fit well into one cache, and not at all into the one before it."""
    caches = isa.caches
    first, second = code.filled(caches.first // 2), code.filled(caches.second // 2)
    size = max(2 * caches.second, min(4 * caches.second, caches.third // 4))
    third = [code.filled(size) for _ in range(min(isa.cores, max(1, caches.third // 2 // size)))]
    repeats = max(1, _SHARED_BYTES // size)
    probes = {
        ProbeKind.FIRST: code.reads(first, max(1, _CACHED_BYTES // first.nbytes)),
        ProbeKind.SECOND: code.reads(second, max(1, _CACHED_BYTES // second.nbytes)),
        ProbeKind.THIRD: code.reads(third[0], repeats),
    }
    if isa.cores > 1 and len(third) == isa.cores:
        probes[ProbeKind.BUSY_THIRD] = code.reads_by_all(third, _MANY * repeats, stack)
    return probes


def _memory_probes(code: _Code, isa: Isa, stack: ExitStack) -> dict[ProbeKind, Probe]:
    """Return reads of a buffer that is larger than all caches: as a whole, by threads, and in huge pages."""
    size = max(_LEAST_MEMORY, min(2 * isa.caches.third, _MOST_MEMORY, machine_memory() // _MEMORY_SHARE))
    buffer = code.filled(size)
    probes = {ProbeKind.MEMORY: code.reads(buffer)}
    if isa.cores > 1:
        share = buffer.nbytes // isa.cores // code.block * code.block
        parts = [buffer[number * share : (number + 1) * share] for number in range(isa.cores)]
        probes[ProbeKind.BUSY_MEMORY] = code.reads_by_all(parts, 1, stack)
    for kind, advice in (
        (ProbeKind.SMALL_PAGES, getattr(mmap, "MADV_NOHUGEPAGE", None)),
        (ProbeKind.HUGE_PAGES, getattr(mmap, "MADV_HUGEPAGE", None)),
    ):
        pages = None if advice is None else _advised(size, advice)
        if pages is not None:
            probes[kind] = code.reads(pages[: size // code.block * code.block])
    return probes


def _advised(size: int, advice: int) -> _Bytes | None:
    """Return filled memory with advice on its pages; None where the system takes none."""
    mapped = mmap.mmap(-1, size)
    try:
        mapped.madvise(advice)
    except OSError:
        return None
    buffer: _Bytes = np.frombuffer(mapped, np.uint8)
    buffer.fill(1)
    return buffer


def _barrier_probes(isa: Isa, stack: ExitStack) -> dict[ProbeKind, Probe]:
    """Return loops that do nothing, on one thread and on all cores."""
    if isa.cores == 1:
        return {}
    alone, together = (stack.enter_context(ThreadPool(count)) for count in (1, isa.cores))
    table = parallel_loops(isa)
    return {
        ProbeKind.SERIAL: Probe(partial(table.run, alone), PARALLEL_LOOPS),
        ProbeKind.PARALLEL: Probe(partial(table.run, together), PARALLEL_LOOPS),
    }
