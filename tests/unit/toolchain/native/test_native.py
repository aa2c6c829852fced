"""The toolchain native: what it offers, what it keeps, and that loading needs no compiler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import intarsia as ia
from intarsia.ir import Call, Constant, DType, Function, IRModule, SymbolicDim, TensorType, Var
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.aligned_memory import ALIGNMENT, aligned_array, allocate_aligned
from intarsia.support.errors import (
    ArtifactError,
    CompileError,
    ExecutionError,
    MissingToolchainError,
    UsageError,
)
from intarsia.target import Target
from intarsia.toolchain.native.blob import read_blob, write_blob
from intarsia.toolchain.native.build import build_region
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.native.version import own_sources
from intarsia.toolchain.protocol import Available, Unavailable

pytestmark = pytest.mark.quick_tests(
    13,
    also=[
        "test_a_damaged_blob_is_refused_and_the_source_compiled[weight]",
        "test_offers_what_has_a_rule_and_a_static_shape",
        "test_refuses_other_shapes_and_types",
        "test_without_llvmlite_a_source_is_not_compiled",
    ],
)

SourceOf = Callable[..., KernelSource]
WEIGHT = aligned_array(np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32))


def value(name: str, *shape: int) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def chain(source_of: SourceOf, count: int = 3, threads: int = 2) -> KernelSource:
    """The product with one weight, `count` times."""
    names = ["x", *(f"t{n}" for n in range(1, count)), "y"]
    nodes = [helper.make_node("MatMul", [names[n], "w"], [names[n + 1]]) for n in range(count)]
    shape = (4, 32)
    return source_of(
        "native",
        nodes,
        [value("x", *shape)],
        [value("y", *shape)],
        weights={"w": WEIGHT},
        options=f"-threads={threads}",
    )


def numbers(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def var(name: str, *shape: int | SymbolicDim) -> Var:
    return Var(name, checked_type=TensorType(shape, DType.FLOAT32))


def test_the_version_covers_what_plans_and_saves_regions() -> None:
    names = {path.name for path in own_sources()}
    assert {"blob.py", "build.py", "kernel.py", "token_source.py", "image_plan.py"} <= names


def test_offers_what_has_a_rule_and_a_static_shape() -> None:
    native = Native()
    assert native.supports(call("Relu", var("x", 2, 3)))
    assert not native.supports(call("Relu", var("x", SymbolicDim("n"), 3)))
    assert native.supports(call("NonZero", var("x", 3)))
    assert not native.supports(call("NonZero", var("x")))
    assert not native.supports(call("NonZero", var("x", SymbolicDim("n"))))
    assert not native.supports(call("Unique", var("x", 3)))
    assert not native.supports(Call(Function((var("x", 2),), var("x", 2)), (var("y", 2),)))


def test_refuses_a_batch_whose_items_depend_on_each_other() -> None:
    x = var("x", SymbolicDim("n"))
    function = Function((x,), call("CumSum", x, Constant(np.array(0))))
    with pytest.raises(CompileError, match=r"^native cannot compile this: .*CumSum.* mixes items"):
        Native().compile(function, Target("cpu -toolchain=native"))


def test_each_call_is_timed(source_of: SourceOf) -> None:
    kernel = Native().load(chain(source_of, count=5))
    assert isinstance(kernel, NativeKernel)
    x = numbers(4, 32)
    before = np.array(kernel.run([x], [None])[0])
    seconds = kernel.call_seconds([x], repeats=3)
    assert len(seconds) == 5
    assert all(each > 0 for each in seconds)
    np.testing.assert_array_equal(kernel.run([x], [None])[0], before)
    kernel.close()
    with pytest.raises(UsageError, match="closed"):
        kernel.call_seconds([x])


def test_refuses_to_switch_optimisations_off() -> None:
    x = var("x", 3)
    with pytest.raises(CompileError, match="cannot switch its optimisations off"):
        Native().compile(Function((x,), call("Relu", x)), Target("cpu -toolchain=native -optimize=0"))


def test_without_llvmlite_it_compiles_nothing_and_still_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    found = Native().availability()
    assert isinstance(found, Unavailable)
    assert found.help.startswith("pip install 'intarsia[native]'")
    assert isinstance(Native().loading_availability(), Available)


def test_without_llvmlite_a_source_is_not_compiled(
    source_of: SourceOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = chain(source_of)
    blob = Native().load(source).blob()
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    with pytest.raises(MissingToolchainError, match="toolchain 'native' is not usable here"):
        Native().load(source)
    x = numbers(4, 32)
    close(Native().load(source, blob).run([x], [None])[0], x @ WEIGHT @ WEIGHT @ WEIGHT)


def test_on_another_system_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Plan9")
    assert Native().availability() == Unavailable("no native kernels on Plan9: they need Linux")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_computes_with_so_many_threads(source_of: SourceOf, threads: int) -> None:
    kernel = Native().load(chain(source_of, threads=threads))
    x = numbers(4, 32)
    close(kernel.run([x], [None])[0], x @ WEIGHT @ WEIGHT @ WEIGHT)


def test_equal_kernels_are_compiled_once_and_weights_are_not_copied(source_of: SourceOf) -> None:
    source = chain(source_of, count=5)
    region = build_region(source)
    assert len(region.calls) == 5
    assert len(region.kernels) == 1
    assert len(region.constants) == 1
    (constant,) = region.constants
    assert constant.weight == "w"
    assert constant.packing is not None or np.shares_memory(constant.array, WEIGHT)


def test_a_blob_has_no_weights_and_gives_the_same_region(source_of: SourceOf) -> None:
    source = chain(source_of)
    region = build_region(source)
    blob = write_blob(region)
    assert WEIGHT[0].tobytes() not in blob
    again = read_blob(blob, source.weights)
    assert write_blob(again) == blob
    assert (again.calls, again.kernels, again.isa) == (region.calls, region.kernels, region.isa)
    x = numbers(4, 32)
    first, second = (
        NativeKernel(source, each, Native().describe_calls).run([x], [None])[0] for each in (region, again)
    )
    assert np.array_equal(np.asarray(first), np.asarray(second))


def test_a_blob_for_another_cpu_is_refused(source_of: SourceOf) -> None:
    blob = write_blob(build_region(chain(source_of)))
    strange = blob.replace(b'"isa":"', b'"isa":"s390x ', 1)
    with pytest.raises(ArtifactError, match="not an instruction set"):
        read_blob(strange, {"w": WEIGHT})
    line = blob.partition(b"\n")[0]
    other = line.replace(b" +", b" +avx9999 +", 1)
    with pytest.raises(ArtifactError, match="this machine has no avx9999"):
        read_blob(other + blob[len(line) :], {"w": WEIGHT})


@pytest.mark.parametrize("damage", ["cut", "json", "version", "weight"])
def test_a_damaged_blob_is_refused_and_the_source_compiled(source_of: SourceOf, damage: str) -> None:
    source = chain(source_of)
    blob = write_blob(build_region(source))
    weights = {} if damage == "weight" else source.weights
    match damage:
        case "cut":
            blob = blob[: len(blob) // 2]
        case "json":
            blob = blob[1:]
        case "version":
            blob = blob.replace(b"native region 4", b"native region 0", 1)
    with pytest.raises(ArtifactError):
        read_blob(blob, weights)
    if weights:
        x = numbers(4, 32)
        (found,) = Native().load(source, blob).run([x], [None])
        close(found, x @ WEIGHT @ WEIGHT @ WEIGHT)


def test_arrays_at_odd_addresses_are_copied(source_of: SourceOf) -> None:
    kernel = Native().load(chain(source_of, count=1))
    x = numbers(4, 32)
    memory = np.zeros(2 * x.nbytes + 2, np.uint8)
    odd = memory[1 : 1 + x.nbytes].view(np.float32).reshape(x.shape)
    into = memory[x.nbytes + 1 : -1].view(np.float32).reshape(x.shape)
    odd[...] = x
    for _ in range(2):
        (found,) = kernel.run([odd], [into])
        assert found is into
        close(into, x @ WEIGHT)


def test_refuses_other_shapes_and_types(source_of: SourceOf) -> None:
    kernel = Native().load(chain(source_of))
    with pytest.raises(ExecutionError, match=r"'x' needs the shape \(4, 32\), found \(5, 32\)"):
        kernel.run([numbers(5, 32)], [None])
    with pytest.raises(ExecutionError, match="'x' needs a contiguous float32 array, found float64 array"):
        kernel.run([numbers(4, 32).astype(np.float64)], [None])


def test_a_closed_kernel_has_no_blob(source_of: SourceOf) -> None:
    kernel = build_region(chain(source_of))
    closed = NativeKernel(chain(source_of), kernel, Native().describe_calls)
    closed.close()
    with pytest.raises(UsageError, match="the kernel is closed"):
        closed.blob()


def test_kernels_are_kept_in_the_users_cache(
    source_of: SourceOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build_region(chain(source_of))
    kept = {path: path.stat().st_ino for path in (tmp_path / "intarsia" / "kernels").rglob("*.kernel")}
    assert len(kept) == 1
    build_region(chain(source_of, count=2))
    assert {path: path.stat().st_ino for path in tmp_path.rglob("*.kernel")} == kept


def normalized_convolution(weight: Array) -> Function:
    x, channels = var("x", 1, weight.shape[1], 8, 8), weight.shape[0]
    conv = call("Conv", x, Constant(weight))
    facts = [Constant(np.abs(numbers(channels)) + 1) for _ in range(4)]
    return Function((x,), call("BatchNormalization", conv, *facts))


def test_batch_normalization_goes_into_the_weights_that_kernels_read() -> None:
    weight = numbers(64, 32, 3, 3)
    function = normalized_convolution(weight)
    kernel = Native().compile(function, Target("cpu -toolchain=native -threads=1"))
    (expected,) = ia.build(IRModule.from_expr(function)).run_flat(numbers(1, 32, 8, 8))
    (found,) = kernel.run([numbers(1, 32, 8, 8)], [None])
    close(found, expected)
    assert any(np.shares_memory(given, weight) for given in kernel.source.weights.values())
    plain = Function(function.params, call("Conv", function.params[0], Constant(weight)))
    alone = Native().compile(plain, Target("cpu -toolchain=native -threads=1"))
    regions = [build_region(each.source) for each in (kernel, alone)]
    assert len(regions[0].calls) == len(regions[1].calls)
    assert all(constant.weight is None for constant in regions[0].constants)


def test_constants_of_a_blob_are_not_copied() -> None:
    function = normalized_convolution(numbers(64, 32, 3, 3))
    kernel = Native().compile(function, Target("cpu -toolchain=native -threads=1"))
    given = kernel.blob()
    assert given is not None
    memory = allocate_aligned(len(given))
    memory[...] = np.frombuffer(given, np.uint8)
    region = read_blob(memory.data, kernel.source.weights)
    assert all(np.shares_memory(constant.array, memory) for constant in region.constants)
    assert all(constant.array.ctypes.data % ALIGNMENT == 0 for constant in region.constants)
    x = numbers(1, 32, 8, 8)
    (found,), (expected,) = (
        NativeKernel(kernel.source, region, Native().describe_calls).run([x], [None]),
        kernel.run([x], [None]),
    )
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_an_artifact_runs_without_the_compiler(tmp_path: Path) -> None:
    x = var("x", 4, 32)
    w = Constant(WEIGHT)
    function = Function((x,), call("Relu", call("MatMul", x, w)))
    module = partition_whole(IRModule.from_expr(function), Target("cpu -toolchain=native -threads=2"))
    path = tmp_path / "product.intarsia"
    ia.build(module).save(path)
    given = numbers(4, 32)
    np.save(tmp_path / "x.npy", given)
    program = (
        "import sys\n"
        "for name in ('llvmlite', 'onnx', 'intarsia.native.te', 'intarsia.native.lowering'):\n"
        "    sys.modules[name] = None\n"
        "import numpy as np\n"
        "from intarsia.runtime.artifact_load import load\n"
        "(found,) = load(sys.argv[1]).run_flat(np.load(sys.argv[2]))\n"
        "np.save(sys.argv[3], found)\n"
    )
    files = [str(path), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    subprocess.run([sys.executable, "-c", program, *files], check=True)
    close(np.load(tmp_path / "y.npy"), np.maximum(given @ WEIGHT, 0))


def test_compiling_imports_no_tuning() -> None:
    """Looking up passes imported every package of passes: a second in each process that compiles."""
    program = (
        "import sys\n"
        "import intarsia as ia\n"
        "from intarsia.ir import Function, IRModule, TensorType, DType, Var\n"
        "from intarsia.op import call\n"
        "from intarsia.passes import partition_whole\n"
        "from intarsia.target import Target\n"
        "x = Var('x', checked_type=TensorType((4,), DType.FLOAT32))\n"
        "module = IRModule.from_expr(Function((x,), call('Relu', x)))\n"
        "ia.build(partition_whole(module, Target('cpu -toolchain=native')))\n"
        "tuning = ('intarsia.tune.', 'intarsia.collage.')\n"
        "imported = [name for name in sys.modules if name.startswith(tuning)]\n"
        "assert not imported, sorted(imported)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
