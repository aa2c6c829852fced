"""Programs in which functions are values: chosen by a condition, held by tuples, passed on.

In the texts `f32` is a vector of two numbers, and `flag` a truth value.
"""

from __future__ import annotations

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType

CHOICE = """
def @main(%c: flag, %x: f32) {
  let %v: f32 = Relu(%x);
  let %f: fn (f32) -> f32 = fn (%a: f32) { Add(%a, %v) };
  let %g: fn (f32) -> f32 = fn (%b: f32) { Sub(%b, %x) };
  let %h: fn (f32) -> f32 = if (%c) { %f } else { %g };
  %0 = %h(%x);
  %1 = %h(%0);
  Mul(%0, %1)
}
"""
NESTED = """
def @main(%c: flag, %d: flag, %x: f32) {
  let %f: fn (f32) -> f32 = fn (%p: f32) { Neg(%p) };
  let %t: (fn (f32) -> f32, f32) = if (%c) {
    let %h: fn (f32) -> f32 = if (%d) { %f } else { fn (%q: f32) { Add(%q, %x) } };
    (%h, Exp(%x))
  } else { (@twice, %x) };
  let %k: fn (f32) -> f32 = fn (%y: f32) { %0 = %t.0; Mul(%0(%y), %x) };
  %1 = %t.1;
  Add(%k(%1), %k(%x))
}
def @twice(%x: f32) -> f32 { Add(%x, %x) }
"""
TUPLES = """
def @main(%c: flag, %x: f32) {
  let %f: fn (f32) -> f32 = fn (%p: f32) { Neg(%p) };
  let %g: fn (f32) -> f32 = fn (%p: f32) { Exp(%p) };
  let %t: (fn (f32) -> f32, fn (f32) -> f32, (f32, fn (f32) -> f32)) =
    if (%c) { (%f, %g, (Neg(%x), %g)) } else { (%g, %f, (Exp(%x), @inc)) };
  %1 = %t.0;
  %2 = %t.1;
  %3 = %t.2;
  %4 = %3.0;
  %5 = %3.1;
  let %k: fn (f32) -> f32 = if (%c) { %1 } else { %5 };
  let %u: (fn (f32) -> f32, fn (f32) -> f32) = (%k, %2);
  %6 = %u.0;
  %7 = Add(%6(%x), %2(%4));
  %8 = fn (%h: (fn (f32) -> f32, f32)) { %9 = %h.0; %9(%h.1) };
  %10 = %8((%5, %7));
  Mul(%10, Relu(%x))
}
def @inc(%x: f32) -> f32 { Add(%x, %x) }
"""


def program(text: str) -> IRModule:
    """A program of a text, with its types."""
    full = text.replace("f32", "Tensor[(2,), float32]").replace("flag", "Tensor[(), bool]")
    return InferType()(parse_module(f'#[version = "0.1"]\n{full}'))
