"""The rest of a vectorised loop behind its whole vectors."""

import numpy as np
import pytest
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import parsed

from intarsia.ir import DType
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.machine.isa import Isa

AVX2 = Isa("x86_64", "x86-64-v3", ("avx", "avx2", "f16c", "fma", "sse2", "sse4.1"))
SSE = Isa("x86_64", "x86-64-v2", ("sse2", "sse4.1"))
AVX512 = Isa("x86_64", "x86-64-v4", (*AVX2.features, "avx512f", "avx512vl"))


def text_of(extent: int, body: str, isa: Isa = AVX512, shape: str = "") -> str:
    buffers = f"x: Buffer[{shape or (1000,)}, float32], y: Buffer[(1000,), float32]"
    return emit_llvm(
        parsed(f"def prim @f({buffers}) {{ for vectorized i in {extent} {{ {body} }} }}"), "k", isa
    ).text


def test_many_elements_are_one_vector_with_a_mask() -> None:
    text = text_of(16 + 11, "y[i] = x[i] + 1f32;")
    assert text.count("fadd <16 x float>") == 2
    assert "fadd <8 x float>" not in text
    assert "llvm.masked.load.v16f32" in text
    assert "llvm.masked.store.v16f32" in text


@pytest.mark.parametrize("extent", [16, 24, 16 + 1])
def test_one_narrow_vector_needs_no_mask(extent: int) -> None:
    assert "masked" not in text_of(extent, "y[i] = x[i] + 1f32;")


def test_functions_are_computed_once_for_any_rest() -> None:
    text = text_of(16 + 1, "y[i] = exp(x[i]);")
    assert "masked" in text
    assert text.count("scalef") == 3  # declared, and called for two vectors


def test_machines_without_masks_have_narrower_vectors() -> None:
    text = text_of(16 + 7, "y[i] = x[i] + 1f32;", SSE)
    assert "masked" not in text
    assert text.count("fadd <4 x float>") == 5
    assert text.count("fadd <2 x float>") == 1


def test_machines_with_slow_masked_stores_store_parts() -> None:
    text = text_of(8 + 7, "y[i] = x[i] + 1f32;", AVX2)
    assert text.count("fadd <8 x float>") == 2
    assert "llvm.masked.load.v8f32" in text
    assert "masked.store" not in text
    assert [text.count(f"store <{lanes} x float>") for lanes in (8, 4, 2)] == [1, 1, 1]


def test_sums_of_a_narrow_tile_are_whole_vectors() -> None:
    """Rows of registers are padded, so that no lane has to be chosen."""
    text = emit_llvm(parsed(SUMS), "k", AVX2).text
    assert text.count("fmul <8 x float>") == 2
    assert "select" not in text


AT_QUOTIENT = """def prim @f(x: Buffer[(6, 14), float32], w: Buffer[(3,), float32],
                      y: Buffer[(6, 14), float32]) {
  for i in 6 { for vectorized j in 14 { y[i, j] = x[i, j] * w[INDEX]; } }
}"""


@pytest.mark.parametrize("index", ["i mod 3", "i floordiv 2"])
def test_all_lanes_may_read_an_element_at_a_quotient(index: str) -> None:
    """Loops over images and channels are one: the channel is a remainder."""
    function = parsed(AT_QUOTIENT.replace("INDEX", index))
    text = emit_llvm(function, "k", AVX512).text
    assert text.count("fmul <16 x float>") == 1
    assert "fmul <8 x float>" not in text


@pytest.mark.parametrize("index", ["i mod 3", "i floordiv 2", "j mod 3", "(i + j) mod 3"])
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
def test_elements_at_quotients_are_the_same_in_vectors(index: str, isa: Isa) -> None:
    rows, columns = np.indices((6, 14))
    places = {"i mod 3": rows % 3, "i floordiv 2": rows // 2, "j mod 3": columns % 3}
    x, w = np.arange(84, dtype=np.float32).reshape(6, 14), np.array([2, 3, 5], np.float32)
    y = np.zeros_like(x)
    compile_kernel(parsed(AT_QUOTIENT.replace("INDEX", index)), isa)([x, w, y])
    np.testing.assert_array_equal(y, x * w[places.get(index, (rows + columns) % 3)])


@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
def test_lanes_of_other_iterations_stay(isa: Isa) -> None:
    """The rest of a sum in lanes adds to the first ones only: the others have sums of whole vectors."""
    function = parsed(
        """def prim @f(x: Buffer[(29,), float32], y: Buffer[(8,), float32]) {
          alloc t: Buffer[(8,), float32, register] {
            for vectorized j in 8 { t[j] = 0f32; }
            for k in 3 { for vectorized j in 8 { t[j] = t[j] + exp(x[k * 8 + j]); } }
            for vectorized j in 5 { t[j] = t[j] + exp(x[24 + j]); }
            for vectorized j in 8 { y[j] = t[j]; }
          }
        }"""
    )
    x, y = np.linspace(-1, 1, 29, dtype=np.float32), np.zeros(8, np.float32)
    compile_kernel(function, isa)([x, y])
    whole = np.exp(x[:24]).reshape(3, 8).sum(0)
    whole[:5] += np.exp(x[24:])
    np.testing.assert_allclose(y, whole, rtol=1e-6)


def test_registers_have_vectors_of_one_width() -> None:
    """Elements five apart are read in narrower vectors, so their sums are cleared and stored in such."""
    text = emit_llvm(
        parsed(
            """def prim @f(x: Buffer[(9, 35), float32], y: Buffer[(7,), float32]) {
              alloc t: Buffer[(8,), float32, register] {
                for vectorized j in 7 { t[j] = 0f32; }
                for k in 9 { for vectorized j in 7 { t[j] = t[j] + x[k, j * 5]; } }
                for vectorized j in 7 { y[j] = t[j] + x[0, j]; }
              }
            }"""
        ),
        "k",
        AVX2,
    ).text
    assert "<8 x float>" not in text


SUMS = """def prim @f(x: Buffer[(9, 2), float32], w: Buffer[(9, 7), float32], y: Buffer[(2, 7), float32]) {
  alloc t: Buffer[(2, 8), float32, register] {
    for unrolled i in 2 { for vectorized j in 7 { t[i, j] = 0f32; } }
    for k in 9 { for unrolled i in 2 { for vectorized j in 7 { t[i, j] = t[i, j] + x[k, i] * w[k, j]; } } }
    for unrolled i in 2 { for vectorized j in 7 { y[i, j] = t[i, j]; } }
  }
}"""


@pytest.mark.parametrize("rest", [1, 2, 4, 8])
def test_sums_by_a_function_are_cleared_and_stored_in_its_vectors(rest: int) -> None:
    """In a narrower vector they would be cleared apart, and be put together in each iteration."""
    columns = 16 + rest
    body = parsed(
        f"""def prim @f(x: Buffer[(9,), int32], w: Buffer[(9, {columns}), int32], y: Buffer[(99,), int32]) {{
          alloc t: Buffer[(32,), int32, register] {{
            for vectorized j in {columns} {{ t[j] = 0i32; }}
            for k in 9 {{ for vectorized j in {columns} {{ t[j] = t[j] + dot_u8s8(x[k], w[k, j]); }} }}
            for vectorized j in {columns} {{ y[j] = t[j]; }}
          }}
        }}"""
    )
    isa = Isa("x86_64", "x86-64-v4", (*AVX512.features, "avx512bw", "avx512vnni"))
    text = emit_llvm(body, "k", isa).text
    assert text.count("phi <16 x i32>") == 2
    assert text.count("phi i32") == 0
    assert "insertelement <16 x i32> %" not in text.replace("insertelement <16 x i32> poison", "")


def test_elements_far_apart_have_no_mask() -> None:
    assert "masked" not in text_of(27, "y[i] = x[i * 7];")


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("extent", [5, 7, 10, 15, 23, 39, 77])
@pytest.mark.parametrize("step", [1, 2])
def test_no_other_element_is_touched(extent: int, step: int, isa: Isa) -> None:
    size = (extent - 1) * step + 1
    function = parsed(
        f"""def prim @f(x: Buffer[({size},), float32], y: Buffer[({extent},), float32]) {{
          alloc t: Buffer[({extent},), float32, register] {{
            for vectorized i in {extent} {{ t[i] = x[i * {step}] * 2f32; }}
            for vectorized i in {extent} {{ y[i] = t[i] + exp(x[i * {step}]); }}
          }}
        }}"""
    )
    around = np.full(size + extent + 32, 7.0, np.float32)
    x, y = around[8 : 8 + size], around[16 + size : 16 + size + extent]
    x[:] = np.linspace(-2, 3, size, dtype=np.float32)
    given = x.copy()
    compile_kernel(function, isa)([x, y])
    np.testing.assert_allclose(y, given[::step] * 2 + np.exp(given[::step]), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(x, given)
    rest = np.concatenate([around[:8], around[8 + size : 16 + size], around[16 + size + extent :]])
    np.testing.assert_array_equal(rest, 7.0)


ROWS_OF_HALVES = """def prim @f(x: Buffer[(9, 2), float32], w: Buffer[(9, COLUMNS), float32],
                          y: Buffer[(2, COLUMNS), float16]) {
  alloc t: Buffer[(2, PADDED), float32, register] {
    for unrolled i in 2 { for vectorized j in COLUMNS { t[i, j] = 0f32; } }
    for k in 9 {
      for unrolled i in 2 { for vectorized j in COLUMNS { t[i, j] = t[i, j] + x[k, i] * w[k, j]; } }
    }
    for unrolled i in 2 { for vectorized j in COLUMNS { y[i, j] = float16(t[i, j]); } }
  }
}"""


def _rows_of_halves(columns: int) -> str:
    return ROWS_OF_HALVES.replace("COLUMNS", str(columns)).replace("PADDED", str(-(-columns // 16) * 16))


@pytest.mark.parametrize("isa", [AVX2, Isa("x86_64", "x86-64-v4", (*AVX512.features, "avx512bw"))])
def test_sums_that_are_rounded_to_halves_are_whole_vectors(isa: Isa) -> None:
    """AVX-512BW masks words, and stores in parts need no mask."""
    text = emit_llvm(parsed(_rows_of_halves(7)), "k", isa).text
    lanes = 16 if "avx512vl" in isa.features else 8
    assert text.count(f"phi <{lanes} x float>") == 2
    assert not any(f"phi <{narrow} x float>" in text for narrow in (4, 2))
    assert "phi float" not in text
    assert "masked.store.v16f16" not in text, "LLVM takes masked halves apart"


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("columns", [3, 5, 7, 11, 16 + 13, 32 + 9])
def test_rows_of_halves_touch_no_other_element(columns: int, isa: Isa) -> None:
    random = np.random.default_rng(columns)
    x, w = (random.integers(-4, 5, (9, count)).astype(np.float32) for count in (2, columns))
    around = np.full(2 * columns + 32, 7, np.float16)
    y = around[16 : 16 + 2 * columns].reshape(2, columns)
    compile_kernel(parsed(_rows_of_halves(columns)), isa)([x, w, y])
    np.testing.assert_array_equal(y, x.T @ w)
    np.testing.assert_array_equal(np.concatenate([around[:16], around[-16:]]), 7)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize("extent", [3, 7, 23, 61])
def test_small_elements_behind_whole_vectors_are_read_and_stored(extent: int, dtype: str, isa: Isa) -> None:
    element = DType(dtype).numpy
    around = np.full(2 * extent + 96, 7, element)
    x, y = around[32 : 32 + extent], around[64 + extent : 64 + 2 * extent]
    x[:] = np.arange(extent).astype(element)
    copying = f"for vectorized i in {extent} {{ y[i] = x[i]; }}"
    buffers = f"x: Buffer[({extent},), {dtype}], y: Buffer[({extent},), {dtype}]"
    compile_kernel(parsed(f"def prim @f({buffers}) {{ {copying} }}"), isa)([x, y])
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32))
    outside = np.concatenate([around[:32], around[32 + extent : 64 + extent], around[64 + 2 * extent :]])
    np.testing.assert_array_equal(outside.astype(np.float32), 7)


SHARED = "alloc t: Buffer[(), float32, register] { t[] = x[i] * 2f32; y[i] = t[] * exp(t[]) + t[]; }"


def test_a_rest_with_scalars_of_its_lanes_is_one_vector() -> None:
    """A number that a lane reads twice is a scalar inside of the loop, which nothing else reads."""
    text = text_of(16 + 11, SHARED)
    assert text.count("fmul contract <16 x float>") == text_of(32, SHARED).count("fmul contract <16 x float>")
    assert not any(f"<{lanes} x float>" in text for lanes in (8, 2))
    assert "select" not in text_of(16 + 11, "alloc t: Buffer[(), float32] { t[] = x[i]; y[i] = t[] + t[]; }")


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("extent", [3, 7, 15, 23, 29])
def test_scalars_of_lanes_have_their_values(extent: int, isa: Isa) -> None:
    function = parsed(
        f"""def prim @f(x: Buffer[({extent},), float32], y: Buffer[({extent + 4},), float32]) {{
          for vectorized i in {extent} {{ {SHARED} }}
        }}"""
    )
    x, y = np.linspace(-2, 2, extent, dtype=np.float32), np.full(extent + 4, 7.0, np.float32)
    compile_kernel(function, isa)([x, y])
    np.testing.assert_allclose(y[:extent], 2 * x * np.exp(2 * x) + 2 * x, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(y[extent:], 7.0)
