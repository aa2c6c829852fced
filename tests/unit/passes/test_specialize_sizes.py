"""A variant computes at its sizes what @main computes, and @main computes all other sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.ir import DimRange, IRModule, dim_ranges, with_dim_ranges
from intarsia.ir.parser import parse_module
from intarsia.ir.variant import variants
from intarsia.ir.verify import verify
from intarsia.op.infer import infer_types
from intarsia.passes import (
    BindDims,
    InferType,
    PartitionWhole,
    RemoveUnusedFunctions,
    SpecializeSizes,
    default_heuristic,
)
from intarsia.runtime.kernel import Array
from intarsia.support.errors import UsageError

NATIVE = "cpu -toolchain=native"
REFERENCE = "cpu -toolchain=reference"
PROGRAM = """
def @main(%x: Tensor[(batch, rows, 4), float32]) -> Tensor[(batch, rows, 4), float32] {
  Softmax(Exp(%x), axis=1)
}
"""


def program() -> IRModule:
    return infer_types(parse_module(PROGRAM))


def specialized(*sizes: str, target: str = NATIVE, mod: IRModule | None = None) -> IRModule:
    return SpecializeSizes(sizes, target)(program() if mod is None else mod)


def expected(x: Array) -> Array:
    powers: Array = np.exp(np.exp(x) - np.exp(x).max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 99))
def test_every_size_computes_the_same(batch: int, rows: int, seed: int) -> None:
    mod = specialized("batch=2", "rows=3")
    mod = specialized("batch=1", "rows=5", target=REFERENCE, mod=mod)
    with build(PartitionWhole("cpu -toolchain=onnxruntime")(mod)) as exe:
        for shape in [(batch, rows, 4), (2, 3, 4), (1, 5, 4), (2, 4, 4)]:
            x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
            np.testing.assert_allclose(exe(x), expected(x), rtol=1e-4, atol=1e-6)


def test_a_variant_has_the_sizes_and_its_own_functions() -> None:
    mod = specialized("batch=2", "rows=3", mod=with_dim_ranges(program(), {"batch": DimRange(1, 8)}))
    assert variants(mod) == {"main_batch_2_rows_3": {"batch": 2, "rows": 3}}
    assert dim_ranges(mod["main_batch_2_rows_3"]) == {}
    assert dim_ranges(mod["main"]) == {"batch": DimRange(1, 8)}
    native = mod["main_batch_2_rows_3_native"]
    assert (native.attrs["target"], native.attrs["global_symbol"]) == (NATIVE, "main_batch_2_rows_3_native")
    verify(mod)


def test_a_second_variant_takes_free_names() -> None:
    mod = specialized("batch=2", "rows=3", mod=specialized("batch=1", "rows=1"))
    assert list(variants(mod).values()) == [{"batch": 1, "rows": 1}, {"batch": 2, "rows": 3}]
    assert len({var.name for var in mod.functions}) == 5
    verify(mod)


@pytest.mark.parametrize("sizes", [(), ("depth=2",), ("batch=2", "depth=1")])
def test_a_program_without_the_dimensions_stays(sizes: tuple[str, ...]) -> None:
    mod = program()
    assert SpecializeSizes(sizes, NATIVE)(mod) is mod
    assert SpecializeSizes(("batch=2",), "")(mod) is mod


def test_sizes_that_have_a_variant_stay() -> None:
    mod = specialized("batch=2", "rows=3")
    assert SpecializeSizes(("rows=3", "batch=2"), REFERENCE)(mod) is mod


def test_names_that_are_no_identifiers() -> None:
    mod = BindDims(("rows=3",))(program())
    text = str(mod).replace("batch", "my_batch")
    mod = SpecializeSizes(("my_batch=2",), NATIVE)(infer_types(parse_module(text)))
    assert list(variants(mod)) == ["main_my_batch_2"]


def test_other_passes_keep_variants() -> None:
    mod = specialized("batch=2", "rows=3")
    assert RemoveUnusedFunctions()(mod) is mod
    after = default_heuristic()(mod)
    assert variants(after) == variants(mod)
    name = "main_batch_2_rows_3_native"
    assert RemoveUnusedFunctions((name,))(mod).functions.keys() == {mod.global_var(name)}


def test_native_runs_a_batch_of_any_size_beside_a_variant() -> None:
    mod = from_onnx(model_of("g (float[batch, 4] x) => (float[batch, 4] y) { y = Softmax (x) }"))
    partitioned = PartitionWhole(NATIVE)(SpecializeSizes(("batch=3",), NATIVE)(mod))
    assert {var.name for var in partitioned.functions} == {
        "main",
        "main_native",
        "main_batch_3",
        "main_batch_3_native",
    }
    with build(partitioned) as exe:
        for size in (1, 2, 3, 5):
            x = np.linspace(-1, 1, 4 * size, dtype=np.float32).reshape(size, 4)
            powers = np.exp(x)
            np.testing.assert_allclose(exe(x), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
            part = "main_batch_3_native" if size == 3 else "main_native"
            assert {row.part for row in exe.profile(x, repeats=1).rows} == {part}


def test_control_flow_is_interpreted_in_a_variant() -> None:
    mod = from_onnx(
        model_of(
            "g (float[batch, 4] x, bool c) => (float[batch, 4] y) { y = If (c) <"
            "then_branch = a () => (float[batch, 4] p) { p = Relu (x) }, "
            "else_branch = b () => (float[batch, 4] q) { q = Neg (x) }> }"
        )
    )
    with build(PartitionWhole(REFERENCE)(InferType()(SpecializeSizes(("batch=2",), NATIVE)(mod)))) as exe:
        for size in (2, 3):
            x = np.linspace(-1, 1, 4 * size, dtype=np.float32).reshape(size, 4)
            np.testing.assert_array_equal(exe(x, np.array(True)), np.maximum(x, 0))
            np.testing.assert_array_equal(exe(x, np.array(False)), -x)


@pytest.mark.parametrize(("sizes", "target"), [(("batch",), NATIVE), (("batch=2",), "cpu")])
def test_options_that_make_no_sense(sizes: tuple[str, ...], target: str) -> None:
    with pytest.raises(UsageError, match=r"expected a name with a number|names no toolchain"):
        SpecializeSizes(sizes, target)
