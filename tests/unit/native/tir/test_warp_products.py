"""Products of a warp: each level of proof computes the same, and what breaks one is found."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.gpu_on_cpu.cpu_kernels import Array, run_on_cpu
from tests.gpu_on_cpu.ptxas_checks import assert_text_resources, needs_ptxas
from tests.tir_checks import in_module, lines_of, parsed

from intarsia.ir import PrimFunc, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import MODELS, generate_ptx
from intarsia.native.tir import SplitAtBarriers, UnrollLoop, interpret
from intarsia.support.errors import ExecutionError, VerifyError

TYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float32": np.float32,
    "int32": ml_dtypes.bfloat16,  # words of two
    "bytes": np.int8,  # words of four, unsigned on the left
}


def text_of(dtype: str, *, is_transposed: bool = False) -> str:
    """Two warps, each of which multiplies 16 rows of its own by the same two tiles of 8 columns."""
    depth = 8 if dtype in ("float32", "int32", "bytes") else 16
    total, one = ("int32", "1i32") if dtype == "bytes" else ("float32", "1.0f32")
    dtype = "int32" if dtype == "bytes" else dtype
    pad = 4 if depth == 8 else 8
    shape = (16, depth) if is_transposed else (depth, 16)
    tile = "b[c * 8, 0] transposed" if is_transposed else "b[0, c * 8]"
    count = 16 * depth
    return f"""def prim @f(x: Buffer[(32, {depth}), {dtype}], w: Buffer[{shape}, {dtype}], y: Buffer[(32, 16), {total}]) {{
  for block g in 1 {{
    alloc a: Buffer[(32, {depth + pad}), {dtype}, shared] {{
      alloc b: Buffer[({shape[0]}, {shape[1] + pad}), {dtype}, shared] {{
        for thread t in 64 {{
          alloc sums: Buffer[(2, 4), {total}, register] {{
            for i in {count // 32} {{
              a[(i * 64 + t) floordiv {depth}, (i * 64 + t) mod {depth}] = x[(i * 64 + t) floordiv {depth}, (i * 64 + t) mod {depth}];
            }}
            for i in {count // 64} {{
              b[(i * 64 + t) floordiv {shape[1]}, (i * 64 + t) mod {shape[1]}] = w[(i * 64 + t) floordiv {shape[1]}, (i * 64 + t) mod {shape[1]}];
            }}
            barrier;
            for unrolled c in 2 {{
              for unrolled e in 4 {{
                sums[c, e] = {one};
              }}
              mma sums[c, 0] += a[t floordiv 32 * 16, 0] * {tile};
              mma sums[c, 0] += a[t floordiv 32 * 16, 0] * {tile};
            }}
            for unrolled c in 2 {{
              for unrolled e in 4 {{
                y[t floordiv 32 * 16 + t mod 32 floordiv 4 + e floordiv 2 * 8, c * 8 + t mod 4 * 2 + e mod 2] = sums[c, e];
              }}
            }}
          }}
        }}
      }}
    }}
  }}
}}
"""  # noqa: E501  # a kernel


CASES = [(dtype, is_transposed) for dtype in TYPES for is_transposed in (False, True)]


def factors(dtype: str, *, is_transposed: bool, seed: int = 0) -> tuple[Array, Array, Array]:
    """Both factors, and twice their product plus 1."""
    rng = np.random.default_rng(seed)
    if dtype == "bytes":
        return _factors_of_bytes(rng, is_transposed=is_transposed)
    depth = 8 if dtype == "float32" else 16
    x, w = (rng.standard_normal(shape).astype(TYPES[dtype]) for shape in ((32, depth), (depth, 16)))
    expected = 2 * (x.astype(np.float64) @ w.astype(np.float64)) + 1
    columns = np.ascontiguousarray(w.T)
    if dtype == "int32":
        x, columns = x.view(np.int32), columns.view(np.int32)
        w = np.ascontiguousarray(columns.T)
    return x, columns if is_transposed else w, expected


def _factors_of_bytes(rng: np.random.Generator, *, is_transposed: bool) -> tuple[Array, Array, Array]:
    x, w = rng.integers(0, 256, (32, 32), np.uint8), rng.integers(-128, 128, (16, 32), np.int8)
    expected = 2 * (x.astype(np.int32) @ w.astype(np.int32).T) + 1
    columns = w.view(np.int32)
    return x.view(np.int32), columns if is_transposed else np.ascontiguousarray(columns.T), expected


def check(result: Array, expected: Array, dtype: str) -> None:
    """Products of float32 have factors of 11 significant bits."""
    np.testing.assert_allclose(result, expected, atol=2e-2 if dtype == "float32" else 1e-4)


def interpreted(function: PrimFunc, x: Array, w: Array) -> Array:
    y = np.zeros((32, 16), function.params[-1].dtype.numpy)
    interpret(function, [x, w, y])
    return y


def compiled(function: PrimFunc, x: Array, w: Array, *, is_descending: bool = False) -> Array:
    y = np.zeros((32, 16), function.params[-1].dtype.numpy)
    run_on_cpu(function, {"x": x.copy(), "w": w.copy(), "y": y}, is_descending=is_descending)
    return y


@pytest.mark.parametrize(("dtype", "is_transposed"), CASES)
def test_each_level_computes_the_product(dtype: str, is_transposed: bool) -> None:
    function = parsed(text_of(dtype, is_transposed=is_transposed))
    verify(in_module(function))
    x, w, expected = factors(dtype, is_transposed=is_transposed)
    check(interpreted(function, x, w), expected, dtype)
    split = SplitAtBarriers()(in_module(function))
    verify(split)
    check(interpreted(split.prim_func("f"), x, w), expected, dtype)
    for is_descending in (False, True):
        check(compiled(function, x, w, is_descending=is_descending), expected, dtype)
    unrolled = UnrollLoop()(in_module(function)).prim_func("f")
    check(compiled(unrolled, x, w), expected, dtype)


@pytest.mark.parametrize(("dtype", "is_transposed"), CASES)
def test_a_missing_barrier_is_found(dtype: str, is_transposed: bool) -> None:
    function = parsed(text_of(dtype, is_transposed=is_transposed).replace("barrier;", ""))
    x, w, expected = factors(dtype, is_transposed=is_transposed)
    with pytest.raises(ExecutionError, match="race for element"):
        interpreted(function, x, w)
    results = [compiled(function, x, w, is_descending=is_descending) for is_descending in (False, True)]
    assert not all(np.allclose(result, expected, atol=2e-2) for result in results)


def test_factors_of_float32_are_rounded_to_tf32() -> None:
    function = parsed(text_of("float32"))
    x, w = np.full((32, 8), 1 + 2.0**-12, np.float32), np.ones((8, 16), np.float32)
    assert np.all(compiled(function, x, w) == 17)
    assert np.all(interpreted(function, x, w) != 17)


def test_a_product_prints_and_reads_back() -> None:
    plain, transposed = (parse_module(text_of("float16", is_transposed=kind)) for kind in (False, True))
    for mod in (plain, transposed):
        assert structural_equal(parse_module(print_module(mod).text), mod)
    assert any(line.strip().endswith("transposed;") for line in lines_of(transposed.prim_func("f")))
    text = text_of("float16", is_transposed=True)
    assert not structural_equal(parse_module(text.replace(" transposed;", ";")), transposed)


def test_threads_of_a_warp_name_the_same_tiles() -> None:
    x, w, _ = factors("float16", is_transposed=False)
    function = parsed(text_of("float16").replace("a[t floordiv 32 * 16, 0]", "a[t floordiv 16 * 4, 0]"))
    with pytest.raises(ExecutionError, match="threads of a warp of block 0 multiply different tiles"):
        interpreted(function, x, w)


def test_tiles_start_at_multiples_of_16_bytes() -> None:
    x, w, _ = factors("float16", is_transposed=False)
    function = parsed(text_of("float16").replace("* b[0, c * 8]", "* b[0, c * 8 + 4]"))
    with pytest.raises(ExecutionError, match="a tile starts at element 4 of b; expected a multiple of 8"):
        interpreted(function, x, w)
    with pytest.raises(AssertionError, match="no multiple of the size"):
        compiled(function, x, w)


def test_a_tile_lies_inside_of_its_buffer() -> None:
    x, w, _ = factors("float16", is_transposed=False)
    function = parsed(text_of("float16").replace("* b[0, c * 8]", "* b[8, c * 8]"))
    with pytest.raises(ExecutionError, match="index 0 of b is 23; expected 0 to 15"):
        interpreted(function, x, w)


FAULTS: dict[str, tuple[str, str]] = {
    "the sums sums are global; expected thread or register": ("(2, 4), float32, register", "(2, 4), float32"),
    "the sums sums are Buffer": ("(2, 4), float32, register", "(2, 4), float16, register"),
    "products of float16 have sums in int32": ("(2, 4), float32, register", "(2, 4), int32, register"),
    "the factor x is": ("+= a[t floordiv 32 * 16, 0]", "+= x[0, 0]"),
    "rows of a have no multiple of 16 bytes": ("a: Buffer[(32, 24)", "a: Buffer[(32, 25)"),
    "a product of float16 and bfloat16": (
        "b: Buffer[(16, 24), float16, shared]",
        "b: Buffer[(16, 24), bfloat16, shared]",
    ),
    "a product of a warp stands in 48 threads": ("for thread t in 64", "for thread t in 48"),
    "a product of a warp stands in a guard": ("mma sums", "if t < 3 { } mma sums"),
}


@pytest.mark.parametrize("complaint", FAULTS)
def test_a_fault_has_its_complaint(complaint: str) -> None:
    before, after = FAULTS[complaint]
    text = text_of("float16")
    assert before in text
    text = text.replace(before, after)
    if "guard" in complaint:
        text = text.replace("{ } mma sums[c, 0] += a[t floordiv 32 * 16, 0] * b[0, c * 8];", GUARDED)
    with pytest.raises(VerifyError, match=complaint):
        verify(parse_module(text))


GUARDED: Any = "{ mma sums[c, 0] += a[t floordiv 32 * 16, 0] * b[0, c * 8]; }"


@pytest.mark.parametrize("dtype", TYPES)
def test_ptx_has_the_instructions_of_the_type(dtype: str) -> None:
    ptx = generate_ptx(emit_kernels(parsed(text_of(dtype)), "k", "sm_80").text, "sm_80")
    shape = {"float32": "m16n8k8", "bytes": "m16n8k32"}.get(dtype, "m16n8k16")
    names = {"bfloat16": "bf16.bf16", "float16": "f16.f16", "float32": "tf32.tf32", "int32": "bf16.bf16"}
    types = "s32.u8.s8.s32" if dtype == "bytes" else f"f32.{names[dtype]}.f32"
    assert ptx.count(f"mma.sync.aligned.{shape}.row.col.{types}") == 4
    # Each tile is loaded once: one of the left factor, two of the right one.
    expected = {"float32": (0, 0), "int32": (1, 0), "bytes": (1, 0)}.get(dtype, (1, 2))
    assert (ptx.count("ldmatrix.sync.aligned.m8n8.x4"), ptx.count("m8n8.x2.trans")) == expected


@needs_ptxas
@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("dtype", "is_transposed"), CASES)
def test_ptxas_accepts_products(dtype: str, is_transposed: bool, model: str) -> None:
    kernels = emit_kernels(parsed(text_of(dtype, is_transposed=is_transposed)), "k", model)
    assert len(assert_text_resources(kernels.text, model, 64)) == 1


def test_sums_of_bytes_wrap_around() -> None:
    text = text_of("bytes").replace("= 1i32;", "= 2147483647i32;")
    x, w, expected = factors("bytes", is_transposed=False)
    wrapped = (expected.astype(np.int64) - 1 + 2**31 - 1 + 2**31) % 2**32 - 2**31
    for result in (interpreted(parsed(text), x, w), compiled(parsed(text), x, w)):
        np.testing.assert_array_equal(result, wrapped)
