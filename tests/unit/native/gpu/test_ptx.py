"""PTX of kernels: LLVM and ptxas accept it for every model, with few registers and without spills."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.gpu_on_cpu.kernel_checks import assert_close, on_this_cpu, whole_numbers
from tests.gpu_on_cpu.ptxas_checks import assert_resources, assert_text_resources, needs_ptxas
from tests.gpu_schedules import batched_product, check_schedule, gpu_task
from tests.native_workloads import (
    Tensors,
    conv2d_nchw_bn_relu,
    depthwise_conv2d,
    layer_norm,
    matmul,
    softmax_nm,
)
from tests.tir_checks import parsed
from tests.unit.ir.test_kernel_verify import HEAD, REVERSED_ROWS

from intarsia.autoschedule.population import replay_program
from intarsia.autoschedule.population.gpu import ThreadSizes, is_launchable
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu import ptxas
from intarsia.native.gpu.default_gpu_state import default_gpu_state, lower_to_kernels
from intarsia.native.gpu.emit_kernels import EmittedKernels, emit_kernels
from intarsia.native.gpu.generate_ptx import MODELS, generate_ptx
from intarsia.native.gpu.kernel_list import DECLARED_SHARED_BYTES, MOST_SHARED_BYTES, list_kernels
from intarsia.native.gpu.ptxas import assemble, find_ptxas
from intarsia.support.errors import CompileError, MissingToolchainError

# Most registers of a thread; found with ptxas 13.0: at most 80 leave room for three blocks of 256 threads.
REGISTERS: dict[str, tuple[Callable[[], Tensors], int]] = {
    "product": (lambda: matmul(1024, 1024, 1024), 64),
    "small product": (lambda: matmul(64, 64, 512), 96),  # of 64 threads
    "convolution": (lambda: conv2d_nchw_bn_relu(1, 56, 56, 64, 64, 3, 1, 1), 80),
    "depthwise convolution": (depthwise_conv2d, 64),
    "softmax": (lambda: softmax_nm(128, 1000), 64),
    "layer norm": (layer_norm, 64),
}


def emitted(make: Callable[[], Tensors]) -> EmittedKernels:
    dag = ComputeDAG(make())
    return emit_kernels(lower_to_kernels(dag, default_gpu_state(dag)), "k", "sm_80")


@needs_ptxas
@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", REGISTERS)
def test_kernels_need_few_registers_and_spill_none(name: str, model: str) -> None:
    make, most = REGISTERS[name]
    kernels = emitted(make)
    resources = assert_text_resources(kernels.text, model, most)
    assert {each.name for each in resources} == {launch.name for launch in kernels.launches}


@needs_ptxas
@pytest.mark.parametrize("tiles", [1, 2, 3])
def test_a_product_with_tiles_in_turn_spills_none(tiles: int) -> None:
    dag = ComputeDAG(matmul(1024, 1024, 1024))
    kernels = emit_kernels(lower_to_kernels(dag, default_gpu_state(dag), tiles), "k", "sm_80")
    assert [launch.shared_bytes for launch in kernels.launches] == [tiles * (64 * 20 + 16 * 64) * 4]
    ptx = generate_ptx(kernels.text, "sm_80")
    assert ("cp.async.cg.shared.global" in ptx) == (tiles > 1)
    assert len(assert_resources(ptx, "sm_80", 64)) == 1


def test_shared_and_global_memory_have_their_own_instructions() -> None:
    ptx = generate_ptx(emit_kernels(parsed(REVERSED_ROWS), "k", "sm_80").text, "sm_80")
    for instruction in ("ld.global.nc", "st.shared", "bar.sync", "ld.shared", "st.global", ".maxntid 8"):
        assert instruction in ptx


def test_a_module_that_llvm_refuses_is_an_error() -> None:
    with pytest.raises(CompileError, match="LLVM cannot generate PTX for sm_80"):
        generate_ptx("define void @f() { ret i32 0 }", "sm_80")


def test_an_instruction_that_llvm_cannot_select_ends_the_child_only() -> None:
    text = "declare float @llvm.exp.f32(float)\ndefine float @f(float %x) {\n"
    text += "  %y = call float @llvm.exp.f32(float %x)\n  ret float %y\n}\n"
    with pytest.raises(CompileError, match="LLVM cannot generate PTX for sm_80"):
        generate_ptx(text, "sm_80")


@needs_ptxas
def test_ptxas_says_what_is_wrong() -> None:
    with pytest.raises(CompileError, match="ptxas refuses the code for sm_80"):
        assemble(".version 7.0\n.target sm_80\n.address_size 64\nnonsense", "sm_80")


def test_a_missing_ptxas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(ptxas, "find_spec", lambda _: None)
    with pytest.raises(
        MissingToolchainError, match=r"there is no ptxas\nhelp: pip install 'intarsia\[ptxas\]'"
    ):
        assemble("", "sm_80")


def test_ptxas_of_the_wheel_is_found_where_path_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "cu13" / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    program.touch()

    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(ptxas, "find_spec", lambda _: Spec())
    assert find_ptxas() == program


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("y[0, 0] = x[0, 0];", "a statement stands outside of the loops over blocks"),
        (
            "for block b in 1 { for thread t in 2048 { y[0, t mod 8] = x[0, 0]; } }",
            "a kernel has 2048 threads in a block; expected at most 1024",
        ),
        (
            "for block b in 1 { alloc s: Buffer[(30000,), float32, shared] { for thread t in 8 "
            "{ s[t] = x[0, t]; y[0, t] = s[t]; } } }",
            "a kernel has 120000 bytes of shared memory; expected at most 101376",
        ),
        (
            "for block b in 4 { for thread t in 8 { y[b, t] = float32(log2(float64(x[b, t]))); } }",
            "no GPU code for the functions of the C library log2",
        ),
    ],
)
def test_what_no_gpu_can_run_is_refused(body: str, problem: str) -> None:
    with pytest.raises(CompileError, match=problem):
        emit_kernels(parsed(f"{HEAD} {body} }}"), "k", "sm_80")


def test_shared_memory_above_48_kb_is_asked_for_at_the_launch() -> None:
    dag = ComputeDAG(matmul(64, 64, 512))
    function = lower_to_kernels(dag, default_gpu_state(dag), 20, MOST_SHARED_BYTES)
    kernels = emit_kernels(function, "k", "sm_80")
    (launch,) = kernels.launches
    assert DECLARED_SHARED_BYTES < launch.dynamic_bytes == launch.shared_bytes <= MOST_SHARED_BYTES
    assert "external addrspace(3) global [0 x i8]" in kernels.text
    ptx = generate_ptx(kernels.text, "sm_80")
    assert ".extern .shared" in ptx
    if find_ptxas() is not None:
        assert len(assert_resources(ptx, "sm_80", 128)) == 1
    inputs = whole_numbers(dag)
    for is_descending in (False, True):
        results = on_this_cpu(function, inputs, is_descending=is_descending)
        assert_close(results, {"C": inputs["A"] @ inputs["B"]})


def filling(threads: int, elements: int) -> str:
    """A kernel whose threads fill shared memory in a loop of one element each, and add it up in another."""
    fill = f"for k in {elements} {{ s[k, t] = x[0, k mod 8]; }}"
    total = f"y[0, 0] = 0.0f32; for k in {elements} {{ y[0, 0] = y[0, 0] + s[k, t]; }}"
    body = f"for thread t in {threads} {{ {fill} if t < 1 {{ {total} }} }}"
    tile = f"alloc s: Buffer[({elements}, {threads}), float32, shared] {{ {body} }}"
    return f"{HEAD} for block b in 1 {{ {tile} }} }}"


@pytest.mark.parametrize(("threads", "elements", "loops"), [(64, 8, 0), (64, 32, 0), (64, 33, 1), (31, 8, 2)])
def test_ptxas_keeps_loops_that_fill_much_and_those_of_few_threads(
    threads: int, elements: int, loops: int
) -> None:
    text = emit_kernels(parsed(filling(threads, elements)), "k", "sm_80").text
    assert text.count("!llvm.loop !0") == loops
    assert generate_ptx(text, "sm_80").count('.pragma "nounroll"') == loops


ONE_THREAD: dict[str, tuple[Tensors, tuple[tuple[int, ...], ...]]] = {
    "products": (
        batched_product((3,), 1, 11, 3, ending="relu"),
        ((1, 1, 1, 2), (1, 1, 1, 1), (1, 1, 2, 8), (2, 1), (1,), (4,)),
    ),
    "convolution": (
        conv2d_nchw_bn_relu(1, 7, 6, 6, 4, 3, 2, 1),
        (
            *((1, 1, 1, 1), (1, 1, 1, 4), (1, 1, 1, 4), (2, 1, 1, 2)),
            *((1, 4), (2, 2), (1, 4), (1,), (2,)),
        ),
    ),
}
"""Computations, and lengths of a schedule with one thread for many results: both spilled registers."""


@needs_ptxas
@pytest.mark.parametrize("name", ONE_THREAD)
def test_one_thread_that_fills_tiles_spills_none(name: str) -> None:
    tensors, lengths = ONE_THREAD[name]
    task = gpu_task(tensors)
    *_, sketch = generate_sketches(task)
    program = replay_program(task.dag, ThreadSizes(sketch, task.hardware).steps(lengths))
    assert program is not None
    assert is_launchable(task, program)
    function = check_schedule(task, program)
    assert [kernel.thread_loop.extent for kernel in list_kernels(function).kernels] == [1]
    assert_text_resources(emit_kernels(function, "k", "sm_80").text, "sm_80", 96)
