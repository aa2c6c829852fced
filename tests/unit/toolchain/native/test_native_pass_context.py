"""Native compiles under the pass context of its caller, and its cache tells contexts apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.build.test_device_programs import BRANCHES
from tests.unit.build.test_device_programs import program as device_program
from tests.unit.toolchain.native.test_native_compile import ISA, product

import intarsia as ia
from intarsia.build import build
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.whole_run import run_arrays
from intarsia.native.dag import structural_key
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS
from intarsia.native.object_code.kernel_cache import KernelCache, kernel_key
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.digest import digest_text
from intarsia.target import Target
from intarsia.toolchain.native.build import build_region
from intarsia.toolchain.native.caches import kernel_cache
from intarsia.toolchain.native.compile import compile_dags
from intarsia.toolchain.native.version import native_version
from intarsia.transform import PassContext, PassInfo, PassInstrument

pytestmark = pytest.mark.quick_tests(6)

TIR_PASSES = [
    "Simplify",
    "LoopPartition",
    "VectorizeLoop",
    "MarkSmallLoops",
    "RegisterPromotion",
    "SkipPadding",
    "ResultStorage",
    "StorageRewrite",
    "UnrollLoop",
    "Simplify",
]
UNROLLED = {"tir.UnrollLoop": {"auto_max_step": 64}}
TARGET = Target("cpu -toolchain=native -threads=1")


class Watch(PassInstrument):
    """Notes the passes that run, and keeps some from running."""

    def __init__(self, skipped: tuple[str, ...] = ()) -> None:
        self.seen: list[str] = []
        self.skipped = skipped

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        return info.name not in self.skipped

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.seen.append(info.name)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def small_product() -> IRModule:
    """A product with sums of five terms, whose loop is small enough to be unrolled."""
    x = Var("x", checked_type=TensorType((32, 5), DType.FLOAT32))
    weight = Constant(np.random.default_rng(0).standard_normal((5, 128)).astype(np.float32))
    return partition_whole(IRModule.from_expr(Function((x,), call("MatMul", x, weight))), TARGET)


def codes(executable: Executable) -> list[bytes]:
    """Object code of the kernels of the only region."""
    return [kernel.object_code for kernel in build_region(executable.kernels[0].source).kernels]


def built_codes(**settings: Any) -> list[bytes]:
    """Object code of the small product, built under a context."""
    with PassContext(**settings), build(small_product()) as executable:
        return codes(executable)


def test_an_instrument_sees_the_passes_on_the_graph_and_on_loops() -> None:
    for _ in range(2):  # the second time the kernel is there already
        watch = Watch()
        with PassContext(instruments=[watch]), build(small_product()):
            pass
        assert {"SimplifyInference", "FoldConstant", "DecomposeRecurrent"} <= set(watch.seen)
        assert watch.seen[-len(TIR_PASSES) :] == TIR_PASSES
        assert build(small_product())


def test_an_instrument_that_skips_a_pass_leaves_the_cache_alone() -> None:
    default = built_codes()
    kernels = list(kernel_cache().folder.rglob("*.kernel"))
    watch = Watch(skipped=("RegisterPromotion",))
    assert built_codes(instruments=[watch]) != default
    assert "RegisterPromotion" not in watch.seen
    assert list(kernel_cache().folder.rglob("*.kernel")) == kernels
    assert built_codes() == default


@pytest.mark.parametrize(
    "settings",
    [{"disabled_pass": ["LoopPartition"]}, {"disabled_pass": ["RegisterPromotion"]}, {"config": UNROLLED}],
    ids=str,
)
def test_settings_change_the_code_whatever_the_cache_has(settings: dict[str, Any]) -> None:
    default = built_codes()
    changed = built_codes(**settings)
    assert changed != default
    assert built_codes() == default
    assert built_codes(**settings) == changed
    assert len(list(kernel_cache().folder.rglob("*.kernel"))) == 2


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    "settings", [{}, *({"disabled_pass": [name]} for name in dict.fromkeys(TIR_PASSES))], ids=str
)
def test_results_are_right_without_any_of_the_passes_on_loops(settings: dict[str, Any]) -> None:
    x = np.random.default_rng(1).standard_normal((32, 5)).astype(np.float32)
    mod = small_product()
    with PassContext(**settings), build(mod) as executable:
        weight = executable.kernels[0].source.weights
        expected = x @ next(iter(weight.values()))
        np.testing.assert_allclose(executable(x), expected, rtol=1e-5, atol=1e-5)


def test_the_key_of_a_kernel_is_what_it_was_under_the_default_context(tmp_path: Path) -> None:
    cache, dag = KernelCache(tmp_path / "kernels"), product()
    compile_dags([dag], ISA, 2, cache)
    source = digest_text(["default schedule", native_version(), structural_key(dag), "2", str(ISA.machine)])
    assert cache.get(kernel_key(source, ISA, DEFAULT_OPTIONS)) is not None


def test_an_artifact_is_compiled_again_under_its_own_settings(tmp_path: Path) -> None:
    path = tmp_path / "model.intarsia"
    with PassContext(config=UNROLLED), build(small_product()) as executable:
        executable.save(path)
    with ia.load(path, trusted=False) as loaded:
        assert codes(loaded) == built_codes(config=UNROLLED) != built_codes()
    with PassContext(disabled_pass=["RegisterPromotion"]), ia.load(path, trusted=False) as loaded:
        assert codes(loaded) == built_codes(config=UNROLLED)


def test_an_artifact_of_the_default_context_says_nothing_of_settings(tmp_path: Path) -> None:
    with build(small_product()) as executable:
        executable.save(f"{tmp_path}/model/")
    assert "pass_settings" not in (tmp_path / "model" / "manifest.json").read_text()


@pytest.mark.parametrize(
    "instruments", [(), ("DecomposeRecurrent", "DecomposeMl")], ids=["disabled", "skipped"]
)
def test_passes_without_which_there_are_no_kernels_run_in_any_case(instruments: tuple[str, ...]) -> None:
    x = Var("x", checked_type=TensorType((3, 1, 4), DType.FLOAT32))
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in ((1, 6, 4), (1, 6, 6))]
    layer = call("RNN", x, *map(Constant, weights), hidden_size=6)
    mod = partition_whole(IRModule.from_expr(Function((x,), layer)), TARGET)
    data = rng.standard_normal((3, 1, 4)).astype(np.float32)
    with build(mod) as executable:
        expected = run_arrays(executable, {"x": data})
    watch = [Watch(instruments)] if instruments else []
    names = ["DecomposeRecurrent", "DecomposeMl"]
    with PassContext(disabled_pass=names, instruments=watch), build(mod) as executable:
        for result, wanted in zip(run_arrays(executable, {"x": data}), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_the_threads_of_devices_compile_under_the_context_of_the_caller() -> None:
    watch = Watch()
    mod = device_program(BRANCHES, ("cpu:0", "cpu:1"))
    with PassContext(instruments=[watch]), build(mod, "cpu -toolchain=native"):
        pass
    assert watch.seen.count("default_tir") > 1
