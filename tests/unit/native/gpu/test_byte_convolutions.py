"""Convolutions of bytes on tensor cores: exact sums on each level of proof, with quantised epilogues."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.effort import examples
from tests.gpu_on_cpu.fake_gpu import fake_context, fake_image
from tests.gpu_on_cpu.fake_machine import machine_with_gpus
from tests.gpu_on_cpu.kernel_checks import interpreted, on_this_cpu
from tests.gpu_on_cpu.program_dags import dags_of
from tests.gpu_on_cpu.ptxas_checks import assert_resources, needs_ptxas
from tests.properties.test_quantised_graphs import programs
from tests.tir_checks import in_module
from tests.unit.native.gpu.test_default_gpu_state import kernel_count, with_each_fault

import intarsia as ia
from intarsia.ir import DType
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import generate_ptx
from intarsia.native.graph.integer_steps import packed_channels
from intarsia.native.te import placeholder
from intarsia.native.te.operators.integer_sums import convolution_of_words
from intarsia.native.te.operators.windows import Window
from intarsia.native.tir import SplitAtBarriers
from intarsia.support.errors import ExecutionError
from intarsia.toolchain.native.gpu.compile_program import compile_program
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram

Array = npt.NDArray[Any]
INSTRUCTION = "llvm.nvvm.mma.m16n8k32.row.col.s8.u8"


def windows(size: tuple[int, int], taps: int, stride: int, dilation: int, pad: int) -> list[Window]:
    counts = [(extent + 2 * pad - (taps - 1) * dilation - 1) // stride + 1 for extent in size]
    return [
        Window(extent, count, taps, stride, dilation, pad, pad)
        for extent, count in zip(size, counts, strict=True)
    ]


def convolution(x: Array, w: Array, sliding: list[Window], zero: int) -> ComputeDAG:
    """The sums of bytes (N, C, H, W) by signed bytes (M, C, taps, taps)."""
    of_x, of_w = (
        placeholder(x.shape, DType.UINT8, "x"),
        placeholder(packed_channels(w).shape, DType.INT32, "w"),
    )
    return ComputeDAG((convolution_of_words(of_x, of_w, sliding, zero, "y"),))


def exact(x: Array, w: Array, sliding: list[Window], zero: int) -> Array:
    """The sums, by NumPy."""
    down, along = sliding
    pad = down.begin
    padded = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=zero)
    total = np.zeros((x.shape[0], w.shape[0], down.count, along.count), np.int64)
    for i in range(down.taps):
        for j in range(along.taps):
            rows = i * down.dilation + np.arange(down.count) * down.stride
            columns = j * along.dilation + np.arange(along.count) * along.stride
            total += np.einsum(
                "nchw,mc->nmhw", padded[:, :, rows][..., columns], w[..., i, j].astype(np.int64)
            )
    return total.astype(np.int32)


def drawn(channels: tuple[int, int], size: tuple[int, int], taps: int, batch: int = 1) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (batch, channels[0], *size)).astype(np.uint8)
    return x, rng.integers(-128, 128, (channels[1], channels[0], taps, taps)).astype(np.int8)


def check(dag: ComputeDAG, inputs: dict[str, Array], expected: Array) -> None:
    """Fail unless kernels on tensor cores compute a result exactly, on each level."""
    function = gpu_kernels(dag)
    verify(in_module(function))
    assert INSTRUCTION in emit_kernels(function, "k", "sm_80").text
    split = SplitAtBarriers()(in_module(function)).prim_func("f")
    in_order = [on_this_cpu(function, inputs, is_descending=is_descending) for is_descending in (False, True)]
    for (result,) in (
        each.values() for each in (interpreted(function, inputs), interpreted(split, inputs), *in_order)
    ):
        np.testing.assert_array_equal(result, expected)


@settings(max_examples=examples(40, 2), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.tuples(st.integers(4, 21), st.integers(16, 40)),
    st.tuples(st.integers(5, 9), st.integers(5, 9)),
    st.sampled_from(((3, 1, 1, 1), (3, 1, 2, 2), (2, 1, 1, 0), (1, 1, 1, 0), (3, 1, 1, 2))),
    st.sampled_from((0, 1, 128, 255)),
    st.integers(1, 2),
)
def test_sums_are_exact(
    channels: tuple[int, int],
    size: tuple[int, int],
    form: tuple[int, int, int, int],
    zero: int,
    batch: int,
) -> None:
    taps, *_ = form
    channels = (max(channels[0], 16), channels[1]) if taps == 1 else channels
    x, w = drawn(channels, size, taps, batch)
    sliding = windows(size, *form)
    check(convolution(x, w, sliding, zero), {"x": x, "w": packed_channels(w)}, exact(x, w, sliding, zero))


def test_strides_of_two() -> None:
    x, w = drawn((8, 20), (11, 10), 3)
    sliding = windows((11, 10), 3, 2, 1, 1)
    check(convolution(x, w, sliding, 7), {"x": x, "w": packed_channels(w)}, exact(x, w, sliding, 7))


def test_every_planted_missing_barrier_and_wait_is_found() -> None:
    x, w = drawn((8, 16), (6, 6), 3)  # two steps
    sliding = windows((6, 6), 3, 1, 1, 1)
    faulty = list(with_each_fault(gpu_kernels(convolution(x, w, sliding, 3))))
    assert faulty
    for candidate in faulty:
        with pytest.raises(ExecutionError, match="race for element"):
            interpreted(candidate, {"x": x, "w": packed_channels(w)})


def quantised(dtype: int, zero: int, channels: tuple[int, int], size: int) -> onnx.ModelProto:
    """A convolution between bytes, with its bias and its positive part."""
    rng = np.random.default_rng(1)
    numbers = np.uint8 if dtype == TensorProto.UINT8 else np.int8
    scales = (2.0 ** rng.integers(-9, -5, channels[1])).astype(np.float32)
    held = {
        "w": rng.integers(-128, 128, (channels[1], channels[0], 3, 3)).astype(np.int8),
        "b": rng.integers(-900, 900, channels[1]).astype(np.int32),
        "of_x": np.float32(0.25),
        "zero": numbers(zero),
        "of_w": scales,
        "of_b": scales * np.float32(0.25),
        "of_y": np.float32(0.5),
        "middle": numbers(5),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "of_x", "zero"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "of_w"], ["wf"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "of_b"], ["bf"], axis=0),
        helper.make_node("Conv", ["xf", "wf", "bf"], ["c"], pads=[1, 1, 1, 1], strides=[1, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "of_y", "middle"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", dtype, (1, channels[0], size, size))
    y = helper.make_tensor_value_info("y", dtype, (1, channels[1], size, -(-size // 2)))
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)


def test_a_quantised_epilogue_is_computed_from_the_sums() -> None:
    model = quantised(TensorProto.UINT8, 3, (5, 24), 8)
    (dag,) = dags_of(ia.from_onnx(model))
    function = gpu_kernels(dag)
    assert kernel_count(function) == 2  # one packs channels in words
    assert "mma sums" in str(in_module(function))


@pytest.mark.parametrize(("dtype", "zero"), [(TensorProto.UINT8, 3), (TensorProto.INT8, -7)])
def test_bytes_between_layers_are_those_of_the_reference(dtype: int, zero: int) -> None:
    model = quantised(dtype, zero, (5, 24), 8)
    kind = np.uint8 if dtype == TensorProto.UINT8 else np.int8
    lowest = np.iinfo(kind).min
    x = np.random.default_rng(2).integers(lowest, lowest + 256, (1, 5, 8, 8)).astype(kind)
    check_program(model, x)


def check_program(model: onnx.ModelProto, x: Array) -> None:
    """Fail unless a program on a fake GPU gives what ONNX's reference does, in every bit."""
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    (kernel,) = ia.build(ia.from_onnx(model), "cpu -toolchain=native -threads=1").kernels
    context = fake_context()
    loaded = LoadedProgram(context, compile_program(kernel.source, "sm_80", fake_image))
    for result, wanted in zip(loaded.run([x]), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)
    loaded.close()
    context.close()


def test_a_batch_of_any_size_is_that_of_the_reference() -> None:
    model = quantised(TensorProto.UINT8, 3, (5, 16), 6)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    evaluator = ReferenceEvaluator(model)
    with machine_with_gpus():
        executable = ia.build(ia.from_onnx(model), "cuda -toolchain=native")
        for number in (3, 1):
            x = np.random.default_rng(number).integers(0, 256, (number, 5, 6, 6)).astype(np.uint8)
            np.testing.assert_array_equal(executable(x), evaluator.run(None, {"x": x})[0])


@settings(max_examples=examples(60, 1), deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 2**32 - 1))
def test_drawn_quantised_programs_are_the_reference(model: onnx.ModelProto, seed: int) -> None:
    shape = tuple(item.dim_value for item in model.graph.input[0].type.tensor_type.shape.dim)
    check_program(model, np.random.default_rng(seed).integers(-40, 40, shape).astype(np.float32) / 4)


@needs_ptxas
@pytest.mark.parametrize("model", ["sm_80", "sm_90a", "sm_120"])
def test_ptxas_counts_few_registers_and_no_spills(model: str) -> None:
    x, w = drawn((64, 64), (28, 28), 3)
    dag = convolution(x, w, windows((28, 28), 3, 1, 1, 1), 3)
    ptx = generate_ptx(emit_kernels(gpu_kernels(dag), "k", model).text, model)
    assert "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32" in ptx
    assert_resources(ptx, model, 128)
