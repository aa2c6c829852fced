"""Operations and bytes of groups of nodes, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.emulated_cpus import CPUS

from intarsia.native.machine.isa import Isa
from intarsia.native.roofline import Roofline
from intarsia.runtime.kernel import KernelSource
from intarsia.toolchain import source_work
from intarsia.toolchain.source_graph import EngineKernel
from intarsia.toolchain.source_work import describe_kernels

SourceOf = Callable[..., KernelSource]
MACHINE = Roofline(peak=1e9, bandwidth=1e6, cached_bytes=0)
WEIGHT = np.ones((32, 16), np.float32)


def value(name: str, *shape: int) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def product(source_of: SourceOf) -> KernelSource:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Relu", ["p"], ["r"], name="relu"),
        helper.make_node("Neg", ["r"], ["y"], name="neg"),
    ]
    return source_of("native", nodes, [value("x", 4, 32)], [value("y", 4, 16)], weights={"w": WEIGHT})


def kernel(name: str, *nodes: str) -> EngineKernel:
    return EngineKernel(name, frozenset(nodes))


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_work, "_roofline", lambda threads: MACHINE)


def test_a_fused_product(source_of: SourceOf) -> None:
    first, second = describe_kernels(product(source_of), [kernel("a", "product", "relu"), kernel("b", "neg")])
    assert first.work is not None
    assert second.work is not None
    assert first.anchor is not None
    assert (first.anchor.name, first.anchor.operator) == ("product", "MatMul")
    assert first.work.flop == 2 * 4 * 32 * 16
    # x, the weight and the result of Relu; the product itself stays inside
    assert first.work.bytes == 4 * (4 * 32 + 32 * 16 + 4 * 16)
    assert second.work.flop == 0
    assert second.work.bytes == 4 * 2 * 4 * 16
    assert second.work.bound == pytest.approx(second.work.bytes / MACHINE.bandwidth)


def test_a_value_that_is_read_outside_too_leaves_the_kernel(source_of: SourceOf) -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], name="exp"),
        helper.make_node("Relu", ["e"], ["r"], name="relu"),
        helper.make_node("Add", ["e", "r"], ["y"], name="sum"),
    ]
    source = source_of("native", nodes, [value("x", 8)], [value("y", 8)])
    first, _ = describe_kernels(source, [kernel("a", "exp", "relu"), kernel("b", "sum")])
    assert first.work is not None
    assert first.work.bytes == 3 * 8 * 4  # x, the exponential, and Relu


def test_rounding_to_integers_is_bound_by_its_bytes(source_of: SourceOf) -> None:
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale"], ["y"], name="quantize")]
    output = helper.make_tensor_value_info("y", TensorProto.UINT8, [8])
    source = source_of("native", nodes, [value("x", 8)], [output], inline={"scale": np.float32(1)})
    (only,) = describe_kernels(source, [kernel("a", "quantize")])
    assert only.work is not None
    assert only.work.bound == pytest.approx(8 * (4 + 1) / MACHINE.bandwidth, rel=0.1)  # and the scale


def test_products_of_integers_are_bound_by_dot_instructions(
    source_of: SourceOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s"], ["a"], name="left"),
        helper.make_node("DequantizeLinear", ["w", "s"], ["b"], name="right"),
        helper.make_node("MatMul", ["a", "b"], ["y"], name="product"),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.UINT8, [64, 64])
    weight = np.ones((64, 32), np.int8)
    inline = {"s": np.float32(1)}
    source = source_of("native", nodes, [given], [value("y", 64, 32)], weights={"w": weight}, inline=inline)
    monkeypatch.setattr(source_work, "_roofline", lambda threads: Roofline(1e6, 1e12, 0))
    bounds, moved = {}, 0
    for name in ("znver3", "znver4"):
        monkeypatch.setattr(Isa, "host", partial(CPUS.__getitem__, name))
        (only,) = describe_kernels(source, [kernel("a", "left", "product")])
        assert only.work is not None
        bounds[name], moved = only.work.bound, only.work.bytes
    flop = 2 * 64 * 64 * 32
    assert bounds == {"znver3": pytest.approx(flop / 2e6), "znver4": pytest.approx(flop / 4e6)}
    assert moved == 64 * 64 + 64 * 32 + 4 * 64 * 32 + 2 * 4  # x, the weight, y, and two scales


def test_a_kernel_without_nodes_has_no_work(source_of: SourceOf) -> None:
    _, second = describe_kernels(
        product(source_of), [kernel("a", "product", "relu", "neg"), EngineKernel("b", is_conversion=True)]
    )
    assert (second.work, second.anchor, second.is_conversion) == (None, None, True)


def test_of_a_node_that_several_kernels_share_no_part_of_the_work_is_known(source_of: SourceOf) -> None:
    kernels = describe_kernels(
        product(source_of), [kernel("a", "product"), kernel("b", "product", "relu", "neg")]
    )
    assert [item.work for item in kernels] == [None, None]
    assert [item.anchor.name for item in kernels if item.anchor is not None] == ["product", "product"]


def test_of_shapes_that_are_known_at_run_time_only_no_work_is_known(source_of: SourceOf) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy"]
    (only,) = describe_kernels(source_of("onnxruntime", nodes, infos[:1], infos[1:]), [kernel("a", "relu")])
    assert only.work is None
