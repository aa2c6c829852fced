"""Kernels for GPUs of AMD: LLVM assembles them, and their LLVM IR differs from NVIDIA's in names."""

import pytest
from tests.gpu_on_cpu.kernel_checks import check_kernels
from tests.gpu_on_cpu.program_dags import dags_of
from tests.tir_checks import parsed
from tests.unit.ir.test_kernel_verify import HEAD

from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.amdgpu_form import AMD_MODELS, amdgpu_form
from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import generate_amdgpu
from intarsia.support.errors import CompileError

pytestmark = pytest.mark.quick_tests(4)

PROGRAMS = {
    "softmax": "def @main(%x: Tensor[(3, 300), float32]) { Softmax(%x, axis=-1) }",
    "product of halves": (
        "def @main(%x: Tensor[(20, 40), float16], %y: Tensor[(40, 24), float16]) { Relu(MatMul(%x, %y)) }"
    ),
    "attention": (
        "def @main(%q: Tensor[(1, 2, 9, 8), float16], %k: Tensor[(1, 2, 20, 8), float16], "
        "%v: Tensor[(1, 2, 20, 8), float16]) { Attention(%q, %k, %v) }"
    ),
    "convolution": (
        "def @main(%x: Tensor[(1, 8, 9, 9), float32], %w: Tensor[(8, 8, 3, 3), float32]) "
        "{ Tanh(Conv(%x, %w, pads=[1, 1, 1, 1])) }"
    ),
}


def dag_of(name: str) -> ComputeDAG:
    *_, dag = dags_of(PROGRAMS[name])
    return dag


@pytest.mark.parametrize("model", AMD_MODELS)
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_llvm_assembles_the_kernels(name: str, model: str) -> None:
    kernels = emit_kernels(gpu_kernels(dag_of(name), is_portable=True), "k", "sm_80")
    assembly = generate_amdgpu(amdgpu_form(kernels.text, kernels.launches), model)
    for launch in kernels.launches:
        assert f".amdhsa_kernel {launch.name}" in assembly
    # LLVM leaves barriers out where a block is one wave of 64 threads.
    needs_barriers = any(launch.has_barriers and launch.threads > 64 for launch in kernels.launches)
    assert "s_barrier" in assembly or not needs_barriers


def test_portable_kernels_compute_the_same() -> None:
    check_kernels(dag_of("softmax"), gpu_kernels(dag_of("softmax"), is_portable=True))
    check_kernels(dag_of("convolution"), gpu_kernels(dag_of("convolution"), is_portable=True))


def test_what_only_nvidia_has_is_refused() -> None:
    kernels = emit_kernels(gpu_kernels(dag_of("product of halves")), "k", "sm_80")
    with pytest.raises(CompileError, match=r"GPUs of AMD have no llvm\.nvvm"):
        amdgpu_form(kernels.text, kernels.launches)


def test_too_much_shared_memory_is_refused() -> None:
    body = (
        "for block b in 4 { alloc s: Buffer[(20000,), float32, shared] { for thread t in 8 "
        "{ s[t] = x[b, t]; barrier; y[b, t] = s[7 - t]; } } }"
    )
    kernels = emit_kernels(parsed(f"{HEAD} {body} }}"), "k", "sm_80")
    with pytest.raises(CompileError, match="80000 bytes of shared memory; expected at most 65536"):
        amdgpu_form(kernels.text, kernels.launches)
