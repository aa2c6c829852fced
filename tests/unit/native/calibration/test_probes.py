"""Probes of this machine: they run, and do as much as they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intarsia.native.calibration import ProbeKind, machine_probes
from intarsia.native.calibration.barrier_probe import PARALLEL_LOOPS, parallel_loops
from intarsia.native.calibration.probe_text import probe_text
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.target.cache_sizes import CacheSizes

ONE_CORE = frozenset(ProbeKind) - {
    *(ProbeKind.BUSY_TICK, ProbeKind.BUSY_THIRD, ProbeKind.BUSY_MEMORY),
    *(ProbeKind.SERIAL, ProbeKind.PARALLEL),
}
PAGES = {ProbeKind.SMALL_PAGES, ProbeKind.HUGE_PAGES}


def host(cores: int) -> Isa:
    isa = Isa.host()
    caches = CacheSizes(
        32 << 10, 512 << 10, 8 << 20
    )  # buffers by a large last-level cache take a second to fill
    return replace(isa, cores=cores, machine=replace(isa.machine, caches=caches))


def test_every_probe_runs() -> None:
    with machine_probes(host(2)) as probes:
        assert {*probes} >= {*ProbeKind} - PAGES
        assert all(probe.amount > 0 for probe in probes.values())
        for probe in probes.values():
            probe.run()


def test_one_core_is_not_compared_with_others() -> None:
    with machine_probes(host(1)) as probes:
        assert {*probes} - PAGES == ONE_CORE - PAGES


@pytest.mark.parametrize(
    "isa",
    [
        Isa("x86_64", "x86-64", ()),
        Isa("x86_64", "x86-64-v3", ("avx", "avx2", "fma")),
        Isa("x86_64", "x86-64-v4", ("avx", "avx2", "fma", "avx512f")),
        Isa("aarch64", "generic", ("neon",)),
    ],
    ids=str,
)
def test_the_text_is_code_for_every_instruction_set(isa: Isa) -> None:
    text = probe_text(isa)
    assert ("llvm.fma" in text) == isa.has_fma
    assert generate_object_code(text, isa)


@pytest.mark.parametrize("threads", [1, 2])
def test_parallel_loops_compute(threads: int) -> None:
    isa = host(threads)
    table = parallel_loops(isa)
    assert len(table.calls) == PARALLEL_LOOPS
    with ThreadPool(threads) as pool:
        table.run(pool)
    written = table.calls[0].buffers[1]
    assert (written == 1.0).all()  # type: ignore[union-attr]  # it is an array
