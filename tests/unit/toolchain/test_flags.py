"""Flags reach the engines, and results stay what they are."""

from __future__ import annotations

import numpy as np
import pytest
from tests.partitioned_programs import SIZE, unpartitioned

from intarsia.build import build
from intarsia.native.llvm.codegen import CodegenOptions, IrPasses
from intarsia.native.llvm.isa import Isa
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.target import FLAGS, Target, TargetOption
from intarsia.toolchain.native_plan import planned_region
from intarsia.toolchain.onnxruntime_session import session_options
from intarsia.toolchain.openvino_model import model_options

CASES = [
    pytest.param(option, value, id=f"{option.name}={value}")
    for option in FLAGS
    for value in option.values
    if value != option.default
]
ISA = Isa.host()


def built(target: Target) -> Executable:
    return build(partition_whole(unpartitioned(), target))


def given() -> Array:
    return np.random.default_rng(7).standard_normal((SIZE, SIZE)).astype(np.float32)


@pytest.mark.parametrize(("option", "value"), CASES)
def test_results_stay_what_they_are(option: TargetOption, value: str | int | bool) -> None:
    plain = Target.for_toolchain(option.toolchains[0], threads=2)
    with built(plain) as expected, built(plain.with_options(**{option.name: value})) as found:
        np.testing.assert_allclose(found(given()), expected(given()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("level", "name"),
    [("basic", "BASIC"), ("extended", "EXTENDED"), ("layout", "LAYOUT"), ("all", "ALL")],
)
def test_graph_levels_of_onnxruntime(level: str, name: str) -> None:
    from onnxruntime import GraphOptimizationLevel

    options = session_options(Target(f"cpu -toolchain=onnxruntime -graph_level={level}"))
    assert options.graph_optimization_level == getattr(GraphOptimizationLevel, f"ORT_ENABLE_{name}")


@pytest.mark.parametrize(
    ("text", "entry", "default", "found"),
    [
        ("-spinning=false", "session.intra_op.allow_spinning", "1", "0"),
        ("-prepacking=false", "session.disable_prepacking", "0", "1"),
        ("-dynamic_blocks=4", "session.dynamic_block_base", "0", "4"),
    ],
)
def test_entries_of_onnxruntime(text: str, entry: str, default: str, found: str) -> None:
    plain = Target("cpu -toolchain=onnxruntime")
    assert session_options(plain).get_session_config_entry(entry) == default
    assert session_options(Target(f"{plain} {text}")).get_session_config_entry(entry) == found


def test_memory_of_onnxruntime() -> None:
    assert session_options(Target("cpu -toolchain=onnxruntime")).enable_cpu_mem_arena
    assert not session_options(Target("cpu -toolchain=onnxruntime -memory_arena=false")).enable_cpu_mem_arena


def test_properties_of_openvino() -> None:
    plain = model_options(Target("cpu -toolchain=openvino -threads=2"))
    text = "-core_type=performance -hyper_threading=true -inference_precision=float16 -partitioner=auto"
    assert model_options(Target(f"cpu -toolchain=openvino -threads=2 {text}")) == plain | {
        "SCHEDULING_CORE_TYPE": "PCORE_ONLY",
        "ENABLE_HYPER_THREADING": "YES",
        "INFERENCE_PRECISION_HINT": "f16",
        "TBB_PARTITIONER": "AUTO",
    }


def test_options_of_llvm() -> None:
    with built(Target("cpu -toolchain=native -llvm_passes=O2 -llvm_level=3")) as executable:
        planned = planned_region(executable.kernels[0].source)
    assert planned.options == CodegenOptions(IrPasses.O2, 3)
    assert planned.isa == ISA


def test_weights_are_asked_for_or_not() -> None:
    with built(Target("cpu -toolchain=native -prefetch=false")) as executable:
        assert planned_region(executable.kernels[0].source).options == CodegenOptions(prefetch=False)


def test_kernels_without_wide_vectors_need_no_cpu_that_has_them() -> None:
    with built(Target("cpu -toolchain=native -wide_vectors=false")) as executable:
        isa = planned_region(executable.kernels[0].source).isa
    assert isa.vector_bytes <= 32
    assert ISA.fits(isa)
    assert set(isa.features) == {name for name in ISA.features if not name.startswith("avx512")}


@pytest.mark.skipif(not ISA.has_bf16, reason="the CPU multiplies no bfloat16")
@pytest.mark.parametrize(("dtype", "digits"), [("float16", 1e-3), ("bfloat16", 1e-2)])
def test_openvino_computes_in_the_precision_that_it_is_told(dtype: str, digits: float) -> None:
    plain = Target("cpu -toolchain=openvino")
    with built(plain) as exact, built(plain.with_options(inference_precision=dtype)) as narrow:
        expected = exact(given())
        error = np.abs(narrow(given()) - expected).max() / np.abs(expected).max()
    assert 1e-5 < error < digits
