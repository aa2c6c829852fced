"""Flags reach the engines, and results stay what they are."""

from __future__ import annotations

import numpy as np
import pytest
from tests.partitioned_programs import SIZE, unpartitioned
from tests.speed_options import SPEED_OPTIONS

from intarsia.build import build
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import CodegenOptions, IrPasses
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.support.errors import CompileError
from intarsia.target import Target, TargetOption
from intarsia.toolchain.native.plan import planned_region
from intarsia.toolchain.onnxruntime.session import session_options
from intarsia.toolchain.openvino.properties import model_options, refuse_unmet_options

pytestmark = pytest.mark.quick_tests(14, also=["test_results_stay_what_they_are[wide_vectors=False]"])

CASES = [
    pytest.param(option, value, id=f"{option.name}={value}")
    for option in SPEED_OPTIONS
    for value in option.values
    if value != option.default
]
ISA = Isa.host()


def built(target: Target) -> Executable:
    return build(partition_whole(unpartitioned(), target))


def built_unless_unmet(target: Target) -> Executable:
    """Build for a target, or skip where OpenVINO says that this machine lacks what an option needs."""
    try:
        return built(target)
    except CompileError as error:
        if "openvino computes -" not in str(error):
            raise
        pytest.skip(str(error))


def given() -> Array:
    return np.random.default_rng(7).standard_normal((SIZE, SIZE)).astype(np.float32)


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize(("option", "value"), CASES)
def test_results_stay_what_they_are(option: TargetOption, value: str | int | bool) -> None:
    plain = Target.for_toolchain(option.toolchains[0], threads=2)
    target = plain.with_options(**{option.name: value})
    with built(plain) as expected, built_unless_unmet(target) as changed:
        np.testing.assert_allclose(changed(given()), expected(given()), rtol=1e-4, atol=1e-5)


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


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 1e-3), ("bfloat16", 1e-2)])
def test_openvino_computes_in_the_precision_that_it_is_given_or_refuses(dtype: str, digits: float) -> None:
    plain = Target("cpu -toolchain=openvino")
    narrow_target = plain.with_options(inference_precision=dtype)
    with built(plain) as exact, built_unless_unmet(narrow_target) as narrow:
        expected = exact(given())
        error = np.abs(narrow(given()) - expected).max() / np.abs(expected).max()
    assert 1e-5 < error < digits


class Compiled:
    """Stands for a compiled model on another machine: the values that it reports."""

    def __init__(self, **properties: object) -> None:
        self._properties = properties

    def get_property(self, name: str) -> object:
        return self._properties[name]


class ElementType:
    def __init__(self, text: str) -> None:
        self._text = text

    def to_string(self) -> str:
        return self._text


PRECISION, CORES = "INFERENCE_PRECISION_HINT", "SCHEDULING_CORE_TYPE"
OPENVINO = "cpu -toolchain=openvino"


@pytest.mark.parametrize(
    ("option", "properties", "message"),
    [
        # A Zen 4 has bfloat16 arithmetic and no float16.
        (
            "-inference_precision=float16",
            {PRECISION: ElementType("bf16")},
            "openvino computes -inference_precision=float16 as bfloat16 on this machine\n"
            "help: leave out -inference_precision, or set it to bfloat16",
        ),
        # A Zen 3 or a CPU with AVX2 alone has neither.
        (
            "-inference_precision=bfloat16",
            {PRECISION: ElementType("f32")},
            "openvino computes -inference_precision=bfloat16 as float32 on this machine\n"
            "help: leave out -inference_precision, or set it to float32",
        ),
        (
            "-hyper_threading=true",
            {"ENABLE_HYPER_THREADING": False},
            "openvino computes -hyper_threading=true as false on this machine\n"
            "help: leave out -hyper_threading, or set it to false",
        ),
        (
            "-core_type=efficient",
            {CORES: "SchedulingCoreType.ANY_CORE"},
            "openvino computes -core_type=efficient as any on this machine\n"
            "help: leave out -core_type, or set it to any",
        ),
    ],
)
def test_options_that_openvino_does_otherwise_are_refused(
    option: str, properties: dict[str, object], message: str
) -> None:
    with pytest.raises(CompileError) as caught:
        refuse_unmet_options(Compiled(**properties), Target(f"{OPENVINO} {option}"))
    assert str(caught.value) == message


def test_a_loaded_model_is_not_refused_for_options_of_speed_alone() -> None:
    compiled = Compiled(**{CORES: "SchedulingCoreType.ANY_CORE", PRECISION: ElementType("f32")})
    refuse_unmet_options(compiled, Target(f"{OPENVINO} -core_type=efficient"), only_results=True)
    with pytest.raises(CompileError):
        refuse_unmet_options(compiled, Target(f"{OPENVINO} -inference_precision=float16"), only_results=True)


def test_a_sapphire_rapids_has_both_narrow_precisions() -> None:
    for dtype, text in (("float16", "f16"), ("bfloat16", "bf16")):
        target = Target(f"{OPENVINO} -inference_precision={dtype}")
        refuse_unmet_options(Compiled(**{PRECISION: ElementType(text)}), target)
