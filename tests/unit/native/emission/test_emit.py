"""The text that the emitter writes."""

import re

import pytest
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import assert_same_bits, parsed, random_arrays, results

from intarsia.ir import with_prim_func_fields
from intarsia.native.emission.emit import EmittedKernel, emit_llvm
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code

AVX2 = Isa("x86_64", "x86-64-v3", ("avx", "avx2", "f16c", "fma", "sse2", "sse4.1"))
AVX512 = Isa("x86_64", "x86-64-v4", (*AVX2.features, "avx512f", "avx512vl"))
NEON = Isa("aarch64", "generic", ("neon",))

TILE = """def prim @f(a: Buffer[(9, 6), float32], b: Buffer[(9, 16), float32], c: Buffer[(6, 16), float32])
attributes {contract=true} {
  alloc acc: Buffer[(6, 16), float32, register] {
    for unrolled i in 6 { for vectorized j in 16 { acc[i, j] = 0.0f32; } }
    for k in 9 {
      for unrolled i in 6 { for vectorized j in 16 { acc[i, j] = acc[i, j] + a[k, i] * b[k, j]; } }
    }
    for unrolled i in 6 { for vectorized j in 16 { c[i, j] = acc[i, j]; } }
  }
}"""


def emitted(text: str, isa: Isa = AVX2) -> EmittedKernel:
    return emit_llvm(parsed(text), "k", isa)


def loop_text(text: str) -> str:
    """What runs in each iteration of the only loop."""
    return text[text.index("\nloop") : text.index("\ndone")]


def test_tile_stays_in_registers() -> None:
    text = emitted(TILE).text
    inside = loop_text(text)
    assert "alloca" not in text
    assert "store" not in inside
    assert inside.count("phi <8 x float>") == 12
    assert inside.count("load <8 x float>") == 2  # shared by the six rows
    assert inside.count("load float") == 6  # shared by the two halves of a row
    assert inside.count("fmul contract <8 x float>") == inside.count("fadd contract <8 x float>") == 12


def test_pointers_advance_instead_of_being_computed() -> None:
    inside = loop_text(emitted(TILE).text)
    assert inside.count("phi ptr") == 2  # one for each operand
    assert "mul i64" not in inside
    assert set(re.findall(r"next = getelementptr i8, ptr %p\d+, i64 (\d+)", inside)) == {"24", "64"}


def test_vectors_of_streamed_buffers_are_asked_for_ahead() -> None:
    tile = parsed(TILE)
    streamed = with_prim_func_fields(tile, attrs=tile.attrs.updated(streamed=("b",)))
    inside = loop_text(emit_llvm(streamed, "k", AVX2).text)
    assert "prefetch" not in emit_llvm(streamed, "k", AVX2, prefetch=False).text
    near = re.findall(r"call void @llvm.prefetch.p0\(ptr %\w+, i32 0, i32 3, i32 1\)", inside)
    assert len(near) == 2  # once for each vector that is loaded
    assert inside.count("call void @llvm.prefetch.p0") == 3  # and for the line that they make, later
    assert "prefetch" not in emitted(TILE).text
    arrays = random_arrays(tile)
    expected = results(tile, arrays)
    compile_kernel(streamed)(arrays)
    assert_same_bits(arrays, expected)


@pytest.mark.parametrize(("isa", "vector", "count"), [(AVX2, 8, 12), (AVX512, 16, 6), (NEON, 4, 24)])
def test_vectors_are_as_wide_as_the_machine(isa: Isa, vector: int, count: int) -> None:
    inside = loop_text(emitted(TILE, isa).text)
    assert inside.count(f"phi <{vector} x float>") == count


def test_contraction_is_only_allowed_by_the_attribute() -> None:
    assert "contract" not in emitted(TILE.replace("contract=true", "contract=false")).text


def test_loop_of_one_iteration_is_no_loop() -> None:
    text = emitted("def prim @f(x: Buffer[(1,), float32]) { for i in 1 { x[i] = x[i] + 1.0f32; } }").text
    assert "phi" not in text
    assert "br " not in text


def test_loop_of_no_iteration_is_nothing() -> None:
    text = emitted("def prim @f(x: Buffer[(0,), float32]) { for i in 0 { x[i] = 1.0f32; } }").text
    assert "store" not in text


def test_unrolled_loop_is_written_out() -> None:
    text = emitted("def prim @f(x: Buffer[(3,), float32]) { for unrolled i in 3 { x[i] = 1.0f32; } }").text
    assert text.count("store float") == 3
    assert "phi" not in text


def test_rest_of_vectorised_loop_is_narrower_vectors() -> None:
    text = emitted(
        "def prim @f(x: Buffer[(15,), float32]) { for vectorized i in 15 { x[i] = 1.0f32; } }"
    ).text
    assert re.findall(r"store (\S+(?: x float>)?)", text) == [
        "<8 x float>",
        "<4 x float>",
        "<2 x float>",
        "float",
    ]


def test_long_vectorised_loop_is_a_loop() -> None:
    body = "{ for vectorized i in 1000 { x[i] = 1.0f32; } }"
    text = emitted(f"def prim @f(x: Buffer[(1000,), float32]) {body}").text
    assert text.count("store <8 x float>") == 1
    assert "icmp eq i64 %i2.next, 125" in text


FEW_READ_OFTEN = """def prim @f(x: Buffer[(2,), float32], y: Buffer[(EXTENT,), float32]) {
  alloc held: Buffer[(2,), float32, register] {
    for vectorized j in 2 { held[j] = x[j] * 3.0f32; }
    for vectorized i in EXTENT { y[i] = held[i floordiv HALF] + 1.0f32; }
  }
}"""


def few_read_often(extent: int) -> str:
    return FEW_READ_OFTEN.replace("EXTENT", str(extent)).replace("HALF", str(extent // 2))


def test_no_long_loop_is_expanded_for_a_register_buffer() -> None:
    """Resize to 2**20 elements would become a function of 2**17 vectors."""
    text = emitted(few_read_often(2**20)).text
    assert len(text) < 5_000
    assert "icmp eq i64" in text


@pytest.mark.parametrize(("extent", "is_expanded"), [(4096, True), (4098, False)])
def test_results_at_the_most_that_is_expanded(extent: int, is_expanded: bool) -> None:
    function = parsed(few_read_often(extent))
    assert ("icmp eq i64" not in emit_llvm(function, "k", AVX2).text) == is_expanded
    arrays = random_arrays(function)
    expected = results(function, arrays)
    compile_kernel(function)(arrays)
    assert_same_bits(arrays, expected)


def test_alignment_is_used_where_it_is_known() -> None:
    program = """def prim @f(x: Buffer[(4, 16), float32]) attributes {alignment=64} {
      for i in 4 { for vectorized j in 16 { x[i, j] = 1.0f32; } }
    }"""
    text = emitted(program).text
    assert re.findall(r"store <8 x float>.* align (\d+)", text) == ["64", "32"]
    assert "align 4\n" in emitted(program.replace("attributes {alignment=64}", "")).text


def test_guards_that_ranges_decide_are_dropped() -> None:
    program = """def prim @f(x: Buffer[(10,), float32]) {
      for i in 2 { for j in 5 { if i * 5 + j < 10 { x[(i * 5 + j) mod 10] = 1.0f32; } } }
    }"""
    text = emitted(program).text
    assert "icmp slt" not in text
    assert "srem" not in text
    assert "sdiv" not in text


def test_scalars_in_memory_scope_are_registers_too() -> None:
    program = """def prim @f(x: Buffer[(8,), float32], y: Buffer[(1,), float32]) {
      alloc s: Buffer[(), float32] { s[] = 0.0f32; for i in 8 { s[] = s[] + x[i]; } y[0] = s[]; }
    }"""
    text = emitted(program).text
    assert "alloca" not in text
    assert loop_text(text).count("phi float") == 1


def test_buffer_that_cannot_be_registers_is_memory() -> None:
    program = """def prim @f(x: Buffer[(8,), float32], y: Buffer[(8,), float32]) {
      alloc t: Buffer[(8,), float32, register] {
        for i in 8 { t[i] = x[i] + x[i]; }
        for i in 8 { y[i] = t[7 - i]; }
      }
    }"""
    assert "alloca" in emitted(program).text
    function = parsed(program)
    arrays = random_arrays(function)
    expected = results(function, arrays)
    compile_kernel(function)(arrays)
    assert_same_bits(arrays, expected)


def test_large_buffers_share_scratch() -> None:
    program = """def prim @f(y: Buffer[(3000,), float32]) {
      for r in 2 {
        alloc s: Buffer[(3000,), float32, thread] {
          for i in 3000 { s[i] = 1.0f32; }
          alloc t: Buffer[(2000,), float32, thread] { for i in 2000 { t[i] = s[i]; } y[0] = t[5]; }
          alloc u: Buffer[(2500,), float32, thread] { for i in 2500 { u[i] = s[i]; } y[1] = u[5]; }
        }
      }
    }"""
    kernel = emitted(program)
    assert kernel.scratch_bytes == 12032 + 10000 + 32  # a vector that begins at the last element is inside
    assert "i64 12032" in kernel.text


def test_mathematics_of_the_library_is_listed() -> None:
    program = "def prim @f(x: Buffer[(4,), float32]) { for i in 4 { x[i] = sinh(exp(x[i])); } }"
    assert emitted(program).symbols == ("sinhf",)


@pytest.mark.parametrize("function", ["exp", "log2", "tanh", "erf", "sin", "round_even", "sinh"])
def test_code_is_generated_for_other_machines(function: str) -> None:
    program = f"""def prim @f(x: Buffer[(23,), float32], h: Buffer[(23,), float16]) {{
      for vectorized i in 23 {{ if x[i] < 1.0f32 {{ h[i] = float16({function}(x[i])); }} }}
    }}"""
    assert generate_object_code(emitted(program, NEON).text, NEON)


@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
def test_tile_computes_products(isa: Isa) -> None:
    function = parsed(TILE)
    arrays = random_arrays(function)
    expected = results(function, arrays)
    compile_kernel(function, isa)(arrays)
    assert_same_bits(arrays, expected)
