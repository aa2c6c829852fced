"""Decisions on single kernels in native's targets: compiled regions, and their results."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from intarsia.build import build
from intarsia.build.kernel_requests import kernel_requests
from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.toolchain.native.blob import read_blob, write_blob
from intarsia.toolchain.native.build import build_region
from intarsia.toolchain.native.plan import planned_region
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.onnx_compile import newest_opset, onnx_kernel_source

pytestmark = pytest.mark.quick_tests(2)

SHAPE = (1, 24, 40, 40)


def weight(*shape: int) -> Constant:
    scale = np.prod(shape[1:]) ** 0.5
    return Constant((np.random.default_rng(sum(shape)).standard_normal(shape) / scale).astype(np.float32))


def program() -> IRModule:
    """Convolutions of several kinds, a pool and a product, whose loops are parallel by rule."""
    x = Var("x", checked_type=TensorType.of(np.zeros(SHAPE, np.float32)))
    found: Expr = call("Relu", call("Conv", x, weight(24, 24, 3, 3), pads=(1, 1, 1, 1)))
    found = call("Relu", call("Conv", found, weight(24, 1, 3, 3), pads=(1, 1, 1, 1), group=24))
    found = call("Add", call("Conv", found, weight(24, 24, 1, 1)), x)
    found = call("Conv", found, weight(24, 12, 3, 3), pads=(1, 1, 1, 1), strides=(2, 2), group=2)
    found = call("MaxPool", found, kernel_shape=(2, 2), strides=(2, 2))
    flat = call("Reshape", found, Constant(np.array([24, 100], np.int64)))
    return IRModule.from_expr(Function((x,), call("Tanh", call("MatMul", flat, weight(100, 64)))))


def source(target: Target) -> KernelSource:
    native = Native()
    (request,) = kernel_requests(partition_whole(program(), target))
    return onnx_kernel_source(native, request.function, target, request.module, newest_opset(native))


def target(decisions: str = "") -> Target:
    options = {"decisions": decisions} if decisions else {}
    return Target.for_toolchain("native", threads=2, **options)


def rule_groups() -> list[str]:
    kernels = planned_region(source(target())).plan.kernels
    return list(dict.fromkeys(kernel.rule_group for kernel in kernels if kernel.rule_group))


def decided(setting: str) -> Target:
    return target(",".join(f"{key}:{setting}" for key in rule_groups()))


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "setting", ["lanes=0", "lanes=4", "lanes=16", "threads=1", "borders=0+1", "lanes=4:threads=1:borders=0"]
)
def test_every_decision_computes_the_same(setting: str) -> None:
    data = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    (expected,) = build(program()).run_flat(data)
    with build(partition_whole(program(), decided(setting))) as executable:
        (found,) = executable.run_flat(data)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-4)


def test_decisions_on_other_kernels_leave_the_compiled_region_as_it_is() -> None:
    plain = write_blob(build_region(source(target())))
    assert write_blob(build_region(source(target("0123456789ab:lanes=0:threads=1:borders=0")))) == plain


def test_a_kernel_on_one_thread_is_compiled_beside_its_equal_on_all() -> None:
    threads = Counter(kernel.threads for kernel in planned_region(source(decided("threads=1"))).plan.kernels)
    assert set(threads) == {1}
    key = rule_groups()[0]
    kernels = planned_region(source(target(f"{key}:threads=1"))).plan.kernels
    assert {kernel.threads for kernel in kernels if kernel.group == key} == {1}
    assert {kernel.threads for kernel in kernels if kernel.group != key} == {None}
    region = build_region(source(target(f"{key}:threads=1")))
    assert len(region.calls) == len(kernels)
    assert read_blob(write_blob(region), source(target()).weights).calls == region.calls


def test_malformed_decisions_are_refused() -> None:
    for text in (
        "x",
        "0123456789ab",
        "0123456789ab:lanes=3",
        "0123456789ab:threads=2",
        "0123456789ab:tiles=1",
        "0123456789ab:form=dense",
        "0123456789ab:packing=both",
        "0123456789ab:merge=false",
    ):
        with pytest.raises(UsageError, match="target option -decisions is"):
            target(text)
