"""From what kernels compute to the kernels: each is made once, and the cache gives what was made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.kernel_cache import KernelCache
from intarsia.support.version import VERSION
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel
from intarsia.toolchain.native import compile as native_compile
from intarsia.toolchain.native.compile import CompiledDag, compile_dags
from intarsia.toolchain.native.generate_kernel import KernelGenerator
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.native.version import native_version
from intarsia.toolchain.protocol import Available

ISA = Isa.host()


def product(prefix: str = "", extent: int = 64) -> ComputeDAG:
    """A matrix product whose right side may be packed, with names of its own."""
    x = te.placeholder((32, extent), DType.FLOAT32, f"{prefix}x")
    w = te.placeholder((extent, 128), DType.FLOAT32, f"{prefix}w", {"constant": 1})
    k = te.reduce_axis(extent, "k")
    y = te.compute(
        (32, 128),
        lambda i, j: te.sum(x[i, k] * w[k, j], k),
        f"{prefix}y",
        attrs={"layout_free_placeholders": (f"{prefix}w",)},
    )
    return ComputeDAG((x, w, y))


def facts(compiled: CompiledDag) -> tuple[Any, ...]:
    kernel = compiled.kernel
    return kernel.object_code, kernel.parameters, kernel.scratch_bytes, compiled.reads, compiled.packings


def test_what_the_cache_has_is_not_decided_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag, cache = product(), KernelCache(tmp_path)
    made = compile_dags([dag, dag], ISA, 2, cache)
    assert list(made) == [dag]
    monkeypatch.setattr(KernelGenerator, "prepare", None)
    assert facts(compile_dags([dag], ISA, 2, cache)[dag]) == facts(made[dag])


def test_equal_kernels_with_other_names_are_one(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    dags = [product(), product("other ")]
    plain, named = (compile_dags([dag], ISA, 2, cache)[dag] for dag in dags)
    assert len(list(tmp_path.rglob("*.kernel"))) == 1
    assert named.kernel.object_code == plain.kernel.object_code
    assert [each.name for each in named.kernel.parameters] == ["other x", "other w", "other y"]
    assert named.reads == ("other x", "other w")
    assert [(name, each.tensor_name) for name, each in named.packings.items()] == [("other w", "other w")]
    assert [each.parts for each in named.packings.values()] == [
        each.parts for each in plain.packings.values()
    ]


def test_other_caches_and_numbers_of_threads_have_other_kernels(tmp_path: Path) -> None:
    cache, dag = KernelCache(tmp_path), product()
    small = replace(ISA, machine=MachineModel(caches=CacheSizes(1 << 14, 1 << 17, 1 << 20)))
    for isa, threads in ((ISA, 1), (ISA, 2), (small, 2), (replace(ISA), 2)):
        compile_dags([dag], isa, threads, cache)
    assert len(list(tmp_path.rglob("*.kernel"))) == 3


def test_several_kernels_come_in_the_order_of_what_is_computed(tmp_path: Path) -> None:
    cache, dags = KernelCache(tmp_path), [product(extent=extent) for extent in (32, 64, 96)]
    compile_dags(dags[1:2], ISA, 1, cache)
    assert list(compile_dags(dags, ISA, 1, cache)) == dags


def test_kernels_of_another_generator_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, dag = KernelCache(tmp_path), product()
    compile_dags([dag], ISA, 1, cache)
    monkeypatch.setattr(native_compile, "native_version", lambda: f"{VERSION}+another")
    compile_dags([dag], ISA, 1, cache)
    assert len(list(tmp_path.rglob("*.kernel"))) == 2


def test_an_entry_holds_no_names(tmp_path: Path) -> None:
    compile_dags([product("secret ")], ISA, 1, KernelCache(tmp_path))
    (path,) = tmp_path.rglob("*.kernel")
    head = json.loads(path.read_bytes().partition(b"\n")[0])
    assert "secret" not in head["facts"]


def test_the_version_says_which_sources_make_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Native().loading_availability()
    assert found == Available(native_version())
    assert native_version().startswith(f"{VERSION}+")
    monkeypatch.setattr("intarsia.toolchain.native.version.generator_digest", lambda: "of other sources")
    native_version.cache_clear()
    try:
        assert Native().loading_availability() != found
    finally:
        native_version.cache_clear()
