"""Products of bytes: `dp4a` on NVIDIA's GPUs, with exact sums in int32 on each level of proof."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tests.effort import examples
from tests.gpu_on_cpu.cpu_kernels import Array
from tests.gpu_on_cpu.kernel_checks import interpreted, on_this_cpu
from tests.gpu_on_cpu.program_dags import dags_of
from tests.gpu_on_cpu.ptxas_checks import assert_resources, needs_ptxas
from tests.gpu_schedules import drawn_schedules

import intarsia as ia
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.amdgpu_form import amdgpu_form
from intarsia.native.gpu.default_gpu_state import gpu_kernels, lower_to_kernels
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import generate_amdgpu, generate_ptx
from intarsia.native.lowering import lower_naive


def product_of_bytes(rows: int, columns: int, depth: int) -> ComputeDAG:
    """An integer product by constant weights, as it is planned for a GPU."""
    weights = np.random.default_rng(0).integers(-128, 128, (depth, columns)).astype(np.int8)
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, (rows, depth))
    y = helper.make_tensor_value_info("y", TensorProto.INT32, (rows, columns))
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    (dag,) = dags_of(ia.from_onnx(model))
    return dag


def words(dag: ComputeDAG) -> dict[str, Array]:
    """Random bits for each placeholder."""
    rng = np.random.default_rng(1)
    return {
        tensor.buffer.name: rng.integers(0, 256, (*tensor.shape, tensor.dtype.numpy.itemsize), np.uint8)
        .view(tensor.dtype.numpy)
        .reshape(tensor.shape)
        for tensor in dag.placeholders
    }


@settings(max_examples=examples(30, 2), deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 90))
def test_sums_are_exact(rows: int, columns: int, depth: int) -> None:
    dag = product_of_bytes(rows, columns, depth)
    function, inputs = gpu_kernels(dag), words(dag)
    expected = interpreted(lower_naive(dag.outputs), inputs)
    results = [on_this_cpu(function, inputs, is_descending=is_descending) for is_descending in (False, True)]
    for result in (interpreted(function, inputs), *results):
        for name, array in expected.items():
            np.testing.assert_array_equal(result[name], array)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("rows", "columns", "depth"), [(40, 70, 130), (8, 1, 4), (129, 33, 40)])
def test_products_of_many_rows_run_on_tensor_cores(rows: int, columns: int, depth: int) -> None:
    dag = product_of_bytes(rows, columns, depth)
    kernels = emit_kernels(gpu_kernels(dag), "k", "sm_80")
    assert "llvm.nvvm.mma.m16n8k32.row.col.u8.s8" in kernels.text
    inputs = words(dag)
    (expected,) = interpreted(lower_naive(dag.outputs), inputs).values()
    for is_descending in (False, True):
        (result,) = on_this_cpu(gpu_kernels(dag), inputs, is_descending=is_descending).values()
        np.testing.assert_array_equal(result, expected)


@pytest.mark.slow  # draws schedules
@pytest.mark.parametrize("seed", [6, 11])
def test_masked_loads_of_words_have_code(seed: int) -> None:
    loads = []
    for task, state in drawn_schedules("product of bytes", seed):
        text = emit_kernels(lower_to_kernels(task.dag, state), "k", "sm_80").text
        loads += [line for line in text.splitlines() if "call" in line and "llvm.masked.load" in line]
        assert ".entry k_0" in generate_ptx(text, "sm_80")
    assert loads
    assert all("poison)" in line for line in loads)


def test_tiles_of_warps_that_no_instruction_has_are_not_drawn() -> None:
    """Seed 119 once moved a factor out of a tile of 16 columns of which only 3 exist."""
    for task, state in drawn_schedules("product of bytes", 119):
        assert lower_to_kernels(task.dag, state)


def test_other_gpus_compute_them_without_the_instruction() -> None:
    kernels = emit_kernels(gpu_kernels(product_of_bytes(32, 32, 64), is_portable=True), "k", "sm_80")
    assembly = generate_amdgpu(amdgpu_form(kernels.text, kernels.launches), "gfx90a")
    assert all(f".amdhsa_kernel {launch.name}" in assembly for launch in kernels.launches)


@needs_ptxas
@pytest.mark.parametrize(
    ("rows", "instruction", "most"),
    [(4, "dp4a.u32.s32", 80), (512, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", 128)],
)
def test_ptxas_counts_few_registers(rows: int, instruction: str, most: int) -> None:
    text = emit_kernels(gpu_kernels(product_of_bytes(rows, 512, 512)), "k", "sm_80").text
    ptx = generate_ptx(text, "sm_80")
    assert instruction in ptx
    assert len(assert_resources(ptx, "sm_80", most)) == 1
