"""Convolutions on tensor cores: which ones are, and each level of proof that needs no GPU."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.gpu_on_cpu.kernel_checks import interpreted, on_this_cpu
from tests.gpu_on_cpu.program_dags import dags_of, normal_numbers, relative_error
from tests.gpu_on_cpu.ptxas_checks import assert_text_resources, needs_ptxas
from tests.tir_checks import in_module
from tests.unit.native.gpu.test_default_gpu_state import kernel_count, with_each_fault

from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.tensor_core_convolution import with_convolutions
from intarsia.native.gpu.tensor_core_product import TILINGS
from intarsia.native.lowering import lower_naive
from intarsia.native.te import ExternOp
from intarsia.support.errors import ExecutionError

pytestmark = pytest.mark.quick_tests(2)


def convolution(
    channels: tuple[int, int],
    size: tuple[int, int],
    window: tuple[int, int],
    options: str,
    dtype: str = "float16",
    batch: int = 1,
) -> ComputeDAG:
    """A convolution with a bias, and its positive part."""
    given_channels, new_channels = channels
    x = f"%x: Tensor[({batch}, {given_channels}, {size[0]}, {size[1]}), {dtype}]"
    w = f"%w: Tensor[({new_channels}, {given_channels}, {window[0]}, {window[1]}), {dtype}]"
    call = f"Relu(Conv(%x, %w, %b{options}))"
    (dag,) = dags_of(f"def @main({x}, {w}, %b: Tensor[({new_channels},), {dtype}]) {{ {call} }}")
    return dag


def is_on_tensor_cores(dag: ComputeDAG) -> bool:
    return any(isinstance(op, ExternOp) for op in with_convolutions(dag, TILINGS[-1]).ops)


PADDED = ", pads=[1, 1, 1, 1], strides=[2, 2]"


def check(dag: ComputeDAG, most: float = 3e-3) -> None:
    """Fail unless the kernel computes what the loops as declared do."""
    function, inputs = gpu_kernels(dag), normal_numbers(dag)
    verify(in_module(function))
    expected = interpreted(lower_naive(dag.outputs), inputs)
    for is_descending in (False, True):
        assert relative_error(on_this_cpu(function, inputs, is_descending=is_descending), expected) < most
    assert relative_error(interpreted(function, inputs), expected) < most


@pytest.mark.parametrize(("dtype", "most"), [("float16", 3e-3), ("bfloat16", 2e-2)])
def test_a_convolution_with_its_epilogue_is_one_kernel(dtype: str, most: float) -> None:
    dag = convolution((3, 20), (8, 8), (3, 3), PADDED, dtype)
    function = gpu_kernels(dag)
    assert kernel_count(function) == 1
    assert "mma sums" in str(in_module(function))
    check(dag, most)


@settings(max_examples=examples(30, 1), deadline=None)
@given(
    st.tuples(st.integers(4, 20), st.integers(16, 40)),
    st.tuples(st.integers(6, 10), st.integers(6, 10)),
    st.tuples(st.integers(1, 3), st.integers(2, 3)),
    st.sampled_from((", pads=[1, 0, 1, 1]", ", dilations=[1, 2]", ", pads=[2, 2, 2, 2], strides=[1, 2]")),
)
def test_any_convolution_computes_the_same(
    channels: tuple[int, int], size: tuple[int, int], window: tuple[int, int], options: str
) -> None:
    check(convolution(channels, size, window, options, batch=2))


def test_what_is_no_product_of_matrices_stays() -> None:
    assert is_on_tensor_cores(convolution((3, 20), (8, 8), (3, 3), PADDED))
    assert not is_on_tensor_cores(convolution((3, 20), (8, 8), (3, 3), PADDED, "float32"))
    assert not is_on_tensor_cores(convolution((5, 8), (9, 9), (3, 3), PADDED))
    x, w = "%x: Tensor[(1, 32, 9, 9), float16]", "%w: Tensor[(32, 16, 3, 3), float16]"
    (grouped,) = dags_of(f"def @main({x}, {w}) {{ Conv(%x, %w, group=2) }}")
    assert not is_on_tensor_cores(grouped)


def test_every_planted_missing_barrier_is_found() -> None:
    dag = convolution((5, 20), (8, 8), (3, 3), PADDED)  # two steps
    inputs = normal_numbers(dag)
    faulty = list(with_each_fault(gpu_kernels(dag)))
    assert faulty
    for candidate in faulty:
        with pytest.raises(ExecutionError, match="race for element"):
            interpreted(candidate, inputs)


@needs_ptxas
def test_the_kernel_spills_none() -> None:
    dag = convolution((64, 64), (56, 56), (3, 3), ", pads=[1, 1, 1, 1]")
    kernels = emit_kernels(gpu_kernels(dag), "k", "sm_80")
    assert len(assert_text_resources(kernels.text, "sm_80", 128)) == 1
