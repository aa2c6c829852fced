from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import DEEPEST, Allocate, Block, Buffer, Literal, Statement, Store
from intarsia.native.tir import StorageRewrite


def allocations(text: str) -> list[str]:
    after = checked(StorageRewrite(), parsed(text))
    return [line.strip()[6:-2] for line in lines_of(after) if "alloc" in line]


def test_buffers_of_different_shapes_share_a_flat_one() -> None:
    text = """def prim @f(x: Buffer[(6,), float32], y: Buffer[(6,), float32]) {
      alloc a: Buffer[(2, 3), float32] {
        for i in 6 { a[i floordiv 3, i mod 3] = x[i]; }
        for i in 6 { y[i] = a[i mod 2, i floordiv 2]; }
        alloc b: Buffer[(6,), float32] {
          for i in 6 { b[i] = y[5 - i]; }
          for i in 6 { y[i] = b[i]; }
        }
      }
    }"""
    assert allocations(text) == ["a: Buffer[(6,), float32, thread]"]


def test_what_is_needed_at_once_is_kept_apart() -> None:
    text = """def prim @f(x: Buffer[(6,), float32], y: Buffer[(6,), float32]) {
      alloc a: Buffer[(6,), float32] { alloc b: Buffer[(6,), float32] { alloc c: Buffer[(6,), int32] {
        for i in 6 { a[i] = x[i]; }
        for i in 6 { b[i] = x[5 - i]; c[i] = int32(i); }
        for i in 6 { y[i] = a[i] + b[i]; }
      } } }
    }"""
    assert allocations(text) == [
        "a: Buffer[(6,), float32, thread]",
        "b: Buffer[(6,), float32, thread]",
        "c: Buffer[(6,), int32, thread]",
    ]


def test_a_buffer_that_a_loop_uses_from_outside_lives_as_long_as_the_loop() -> None:
    text = """def prim @f(x: Buffer[(6,), float32], y: Buffer[(6,), float32]) {
      alloc a: Buffer[(6,), float32] {
        for i in 6 { a[i] = x[i]; }
        for k in 3 {
          for i in 6 { y[i] = y[i] + a[i]; }
          alloc b: Buffer[(6,), float32] {
            for i in 6 { b[i] = y[5 - i]; }
            for i in 6 { y[i] = b[i]; }
          }
        }
      }
    }"""
    assert allocations(text) == ["a: Buffer[(6,), float32, thread]", "b: Buffer[(6,), float32, thread]"]


def test_buffers_of_one_iteration_move_out_of_serial_loops_only() -> None:
    text = """def prim @f(x: Buffer[(6,), float32], y: Buffer[(6,), float32]) {
      for KIND i in 6 { alloc t: Buffer[(2,), float32] { t[0] = x[i]; y[i] = t[0]; } }
    }"""
    serial, parallel = (
        lines_of(checked(StorageRewrite(), parsed(text.replace("KIND", kind))))
        for kind in ("serial", "parallel")
    )
    assert serial[:2] == ["alloc t: Buffer[(2,), float32, thread] {", "  for i in 6 {"]
    assert parallel[:2] == ["for parallel i in 6 {", "  alloc t: Buffer[(2,), float32, thread] {"]


def test_what_threads_share_stays_global() -> None:
    text = """def prim @f(x: Buffer[(6,), float32], y: Buffer[(6,), float32]) {
      alloc a: Buffer[(6,), float32] {
        for parallel i in 6 { a[i] = x[i]; }
        for parallel i in 6 { y[i] = a[5 - i]; }
      }
      alloc b: Buffer[(6,), float32] {
        for i in 6 { b[i] = x[i]; }
        for i in 6 { y[i] = y[i] + b[5 - i]; }
      }
    }"""
    assert allocations(text) == ["a: Buffer[(6,), float32]", "b: Buffer[(6,), float32, thread]"]


def test_registers_and_what_lanes_have_stay() -> None:
    text = """def prim @f(x: Buffer[(6,), float32], y: Buffer[(6,), float32]) {
      for i in 6 { alloc t: Buffer[(), float32, register] { t[] = x[i]; y[i] = t[]; } }
      for vectorized i in 6 { alloc u: Buffer[(), float32] { u[] = x[i]; y[i] = u[]; } }
    }"""
    mod = in_module(parsed(text))
    assert StorageRewrite()(mod) is mod


def test_nothing_is_nested_deeper_than_it_may() -> None:
    y = Buffer("y", (), DType.FLOAT32)
    body: Statement = Block(())
    for number in range(DEEPEST):
        one = Buffer(f"t{number}", (), DType.FLOAT32)
        body = Block((Allocate(one, Store(one, (), Literal(1, DType.FLOAT32))), body))
    mod = in_module(PrimFunc((y,), body))
    after = StorageRewrite()(mod)  # all share one
    assert str(after).count("alloc") == 1
    for number in range(DEEPEST):
        one = Buffer(f"u{number}", (number + 1,), DType.FLOAT32)
        body = Allocate(one, body) if number < DEEPEST - 1 else body
    deep = in_module(PrimFunc((y,), body))
    assert StorageRewrite()(deep) is deep
