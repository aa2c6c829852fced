"""Kernels by a schedule log: they are made as it says, and what it does not have is shared with all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from intarsia.build import build
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.native import te
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.kernel_cache import KernelCache
from intarsia.native.schedule import ScheduledDag, ScheduleLog, default_state, with_state
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.artifact_load import load
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.aligned_memory import aligned_array
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain.native.build import build_region
from intarsia.toolchain.native.caches import schedule_folder
from intarsia.toolchain.native.compile import CompiledDag, compile_dags
from intarsia.toolchain.native.generate_kernel import KernelGenerator
from intarsia.toolchain.native.plan import planned_region
from intarsia.toolchain.native.toolchain import Native

pytestmark = pytest.mark.quick_tests(6)

ISA = Isa.host()
SourceOf = Callable[..., KernelSource]
WEIGHT = aligned_array(np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the user that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "intarsia"


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


def plain_loops(dag: ComputeDAG) -> ScheduleLog:
    """A schedule log that leaves the loops of a DAG as they are declared."""
    return ScheduleLog.of_states([LoopState.initial(dag)])


def kept(cache: KernelCache) -> set[Path]:
    return set(cache.folder.rglob("*.kernel"))


def code(compiled: CompiledDag) -> bytes:
    return compiled.kernel.object_code


def test_a_kernel_is_made_as_the_log_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag, cache = product(), KernelCache(tmp_path)
    state = LoopState.initial(dag).split("y", "i", [4]).unroll("y", "i.1").parallel("y", "i.0")
    seen: list[LoopState] = []

    def watched(dag: ComputeDAG, state: LoopState) -> ScheduledDag:
        seen.append(state)
        return with_state(dag, state)

    monkeypatch.setattr("intarsia.native.schedule.with_state", watched)
    compile_dags([dag], ISA, 2, cache, ScheduleLog.of_states([state]))
    assert [str(each) for each in seen] == [str(state)]
    assert code(compile_dags([dag], ISA, 2, cache)[dag]) != code(
        compile_dags([dag], ISA, 2, cache, ScheduleLog.of_states([state]))[dag]
    )
    assert len(seen) == 1
    assert len(kept(cache)) == 2


def test_the_default_state_in_a_log_is_the_same_code(tmp_path: Path) -> None:
    dag, cache = product(), KernelCache(tmp_path)
    log = ScheduleLog.of_states([default_state(dag, ISA, 2)])
    plain, logged = (compile_dags([dag], ISA, 2, cache, each)[dag] for each in (None, log))
    assert code(logged) == code(plain)
    assert (logged.reads, logged.packings) == (plain.reads, plain.packings)


def test_what_a_log_has_is_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag, cache = product(), KernelCache(tmp_path)
    log = plain_loops(dag)
    first = compile_dags([dag], ISA, 1, cache, log)[dag]
    monkeypatch.setattr(KernelGenerator, "prepare", None)
    larger = ScheduleLog.of_states([LoopState.initial(dag), default_state(product(extent=32), ISA, 1)])
    for each in (log, larger):
        assert code(compile_dags([dag], ISA, 1, cache, each)[dag]) == code(first)


def test_what_a_log_does_not_have_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag, cache = product(), KernelCache(tmp_path)
    plain = compile_dags([dag], ISA, 1, cache)[dag]
    monkeypatch.setattr(KernelGenerator, "prepare", None)
    assert code(compile_dags([dag], ISA, 1, cache, plain_loops(product(extent=32)))[dag]) == code(plain)


def test_names_do_not_count(tmp_path: Path) -> None:
    cache, other = KernelCache(tmp_path), product("another ")
    log = plain_loops(product())
    first = compile_dags([product()], ISA, 1, cache, log)
    named = compile_dags([other], ISA, 1, cache, log)[other]
    assert len(kept(cache)) == 1
    assert [code(named)] == [code(each) for each in first.values()]
    assert named.reads == ("another x", "another w")


def test_a_history_that_is_not_possible_gives_the_default_schedule(tmp_path: Path) -> None:
    dag, cache = product(), KernelCache(tmp_path)
    log = ScheduleLog({structural_key(dag): json.dumps([["SP", 9, 0, 32, [4], 1]])})
    plain, logged = (compile_dags([dag], ISA, 1, cache, each)[dag] for each in (None, log))
    assert code(logged) == code(plain)


def chain(source_of: SourceOf, options: str = "-threads=1", x: str = "x") -> KernelSource:
    """The product with one weight, twice, and Tanh."""
    nodes = [
        helper.make_node("MatMul", [x, "w"], ["t"]),
        helper.make_node("MatMul", ["t", "w"], ["u"]),
        helper.make_node("Tanh", ["u"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 32)) for name in (x, "y")]
    return source_of("native", nodes, ports[:1], ports[1:], weights={"w": WEIGHT}, options=options)


def saved_log(source: KernelSource) -> tuple[ScheduleLog, str]:
    """A schedule log that leaves all loops of a source as they are declared; the option that names it."""
    dags = {kernel.dag for kernel in planned_region(source).plan.kernels}
    log = ScheduleLog.of_states(LoopState.initial(dag) for dag in dags)
    log.save(schedule_folder())
    return log, f"-threads=1 -schedules={log.digest}"


def numbers(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def expected(x: Array) -> Array:
    return np.asarray(np.tanh(x @ WEIGHT @ WEIGHT))


def result(source: KernelSource) -> Any:
    return Native().load(source).run([numbers(4, 32)], [None])[0]


@pytest.mark.parametrize("x", ["x", "z"])
def test_a_region_is_built_by_the_log_that_its_target_names(source_of: SourceOf, x: str) -> None:
    plain = chain(source_of)
    _, options = saved_log(plain)
    logged = chain(source_of, options, x)
    codes = [[kernel.object_code for kernel in build_region(each).kernels] for each in (plain, logged)]
    assert len(codes[0]) == len(codes[1])
    assert not set(codes[0]) & set(codes[1])
    for source in (plain, logged):
        np.testing.assert_allclose(result(source), expected(numbers(4, 32)), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("digest", "problem"),
    [("0123456789abcdef", "there is no schedule log "), ("up/../..", "'up/../..' names no schedule log")],
    ids=["missing", "path"],
)
def test_an_unknown_log_is_an_error(digest: str, problem: str) -> None:
    with pytest.raises(CompileError) as caught:
        Native().compile(product_function(), Target(f"cpu -toolchain=native -schedules={digest}"))
    assert caught.value.problem.startswith(problem)
    assert caught.value.help.startswith("make it again with intarsia tune --schedules")


def test_a_source_is_loaded_without_the_log(source_of: SourceOf, own_cache: Path) -> None:
    log, options = saved_log(chain(source_of))
    source = chain(source_of, options)
    blob = Native().load(source).blob()
    assert blob is not None
    (own_cache / "schedules" / f"{log.digest}.json").unlink()
    for given in (blob, blob[:-9], None):
        (found,) = Native().load(source, given).run([numbers(4, 32)], [None])
        np.testing.assert_allclose(np.asarray(found), expected(numbers(4, 32)), rtol=1e-3, atol=1e-3)
    default = [kernel.object_code for kernel in build_region(chain(source_of)).kernels]
    assert [kernel.object_code for kernel in build_region(source).kernels] == default


def product_function() -> Function:
    """A product with a constant, and Relu."""
    x = Var("x", checked_type=TensorType((4, 32), DType.FLOAT32))
    return Function((x,), call("Relu", call("MatMul", x, Constant(WEIGHT))))


def test_an_artifact_needs_no_log(tmp_path: Path, own_cache: Path) -> None:
    module = IRModule.from_expr(product_function())
    plain = partition_whole(module, Target("cpu -toolchain=native -threads=1"))
    with build(plain) as executable:
        (source,) = (kernel.source for kernel in executable.kernels)
    log, options = saved_log(source)
    path = tmp_path / "product.intarsia"
    build(partition_whole(module, Target(f"cpu -toolchain=native {options}"))).save(path)
    (own_cache / "schedules" / f"{log.digest}.json").unlink()
    given = numbers(4, 32)
    with load(path) as executable:
        (found,) = executable.run_flat(given)
    np.testing.assert_allclose(np.asarray(found), np.maximum(given @ WEIGHT, 0), rtol=1e-3, atol=1e-3)
