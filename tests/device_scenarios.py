"""Annotated programs and what planning makes of them, for tests of planning and of running (reference C.5).

In the texts `@CPU` is device 0 of the cpu and `@GPU` device 0 of the mock device, which is the default; `f32`
is a matrix of 2 by 3 numbers. Types are left out of the planned program.

Of the reference's scenarios these have no counterpart: alloc_storage and alloc_tensor (memory is given out by
the runtime), references and ADTs (the language has none), lowered (build lowers what is planned, never the
other way round); the deep chain is in tests/properties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import Expr, IRModule, TensorType, Var, children, rewrite, with_fields, with_module_fields
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.op.device_call import placement_of
from intarsia.passes import InferType, PlanDevices
from intarsia.target import UNCONSTRAINED

PLANNING = PlanDevices(targets=("mock", "cpu"), fallback_device="mock")
CONSTANTS = (np.arange(6, dtype=np.float32).reshape(2, 3), np.array(True))

_SHORT = {
    "f32": "Tensor[(2, 3), float32]",
    "image": "Tensor[(1, 2, 4, 4), float32]",
    "kernel": "Tensor[(2, 2, 3, 3), float32]",
    "@CPU": "@device(cpu:0)",
    "@GPU": "@device(mock:0)",
}
_PLANNED = {'@device(cpu:0, target="cpu")': "@CPU", '@device(mock:0, target="mock")': "@GPU"}


@dataclass(frozen=True)
class Scenario:
    """A program with annotations.

    Attributes:
        name: What it shows.
        before: The program.
        after: The planned program, without types.
        runs: Whether build can make it; it cannot if only the run tells which function is called.
    """

    name: str
    before: str
    after: str
    runs: bool = True

    def program(self) -> IRModule:
        """The annotated program."""
        return annotated(self.before)

    def inputs(self) -> dict[str, npt.NDArray[Any]]:
        """An array for each parameter of @main; open dimensions are 4."""
        return {param.name: _array(param) for param in self.program()["main"].params}

    def planned(self) -> IRModule:
        """The planned program."""
        return PLANNING(self.program())


def _array(param: Var) -> npt.NDArray[Any]:
    assert isinstance(param.checked_type, TensorType)
    shape = tuple(dim if isinstance(dim, int) else 4 for dim in param.checked_type.shape or ())
    numbers = np.random.default_rng(len(param.name)).uniform(0.5, 3.0, shape)
    return np.asarray(numbers, param.checked_type.dtype.numpy)


def without_devices(mod: IRModule) -> IRModule:
    """The same program with nothing said about devices; copies between them stay, and do nothing."""

    def rule(expr: Expr) -> Expr:
        if placement_of(expr) is not None:
            return children(expr)[1]
        return with_fields(expr, virtual_device=UNCONSTRAINED)

    functions = {var: rewrite(function, rule) for var, function in mod.graph_functions.items()}
    return with_module_fields(mod, functions={**mod.functions, **functions})  # type: ignore[dict-item]  # kinds stay


def annotated(text: str) -> IRModule:
    """A program of short texts, with its types."""
    for short, full in _SHORT.items():
        text = text.replace(short, full)
    return InferType()(parse_module(f'#[version = "0.1"]\n{text}', CONSTANTS))


def shown(mod: IRModule) -> str:
    """A program with its devices, in short."""
    text = print_module(mod, show_types=False, show_spans=False).text
    for full, short in _PLANNED.items():
        text = text.replace(full, short)
    return text[text.index("def ") :].replace("\n\n", "\n").strip()


SCENARIOS = (
    Scenario(
        "plain",
        before="""
def @main(%a: f32, %b: f32, %c: f32, %d: f32) {
  %0 = Add(%a, %b);
  %1 = Add(%c, %d);
  Sub(%0, %1)
}
""",
        after="""
def @main(%a @GPU, %b @GPU, %c @GPU, %d @GPU) @GPU {
  %0 = Add(%a, %b) @GPU;
  %1 = Add(%c, %d) @GPU;
  %2 = Sub(%0, %1) @GPU;
  %2
}
""",
    ),
    Scenario(
        "left_add_on_cpu",
        before="""
def @main(%a: f32, %b: f32, %c: f32, %d: f32) {
  %0 = Add(%a, %b);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = Add(%c, %d);
  Sub(%1, %2)
}
""",
        after="""
def @main(%a @CPU, %b @CPU, %c @GPU, %d @GPU) @GPU {
  %0 = Add(%a, %b) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Add(%c, %d) @GPU;
  %3 = Sub(%1, %2) @GPU;
  %3
}
""",
    ),
    Scenario(
        "left_add_on_cpu_via_copy",
        before="""
def @main(%a: f32, %b: f32, %c: f32, %d: f32) {
  %0 = Add(%a, %b);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = intarsia::device_copy(%1) @GPU;
  %3 = Add(%c, %d);
  Sub(%2, %3)
}
""",
        after="""
def @main(%a @CPU, %b @CPU, %c @GPU, %d @GPU) @GPU {
  %0 = Add(%a, %b) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Add(%c, %d) @GPU;
  %3 = Sub(%1, %2) @GPU;
  %3
}
""",
    ),
    Scenario(
        "both_adds_on_cpu",
        before="""
def @main(%a: f32, %b: f32, %c: f32, %d: f32) {
  %0 = Add(%a, %b);
  %1 = Add(%c, %d);
  %2 = intarsia::on_device(%0) @CPU;
  %3 = intarsia::on_device(%1) @CPU;
  Sub(%2, %3)
}
""",
        after="""
def @main(%a @CPU, %b @CPU, %c @CPU, %d @CPU) @GPU {
  %0 = Add(%a, %b) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Add(%c, %d) @CPU;
  %3 = intarsia::device_copy(%2) @GPU;
  %4 = Sub(%1, %3) @GPU;
  %4
}
""",
    ),
    Scenario(
        "sharing",
        before="""
def @main(%a: f32, %b: f32) {
  %0 = Add(%a, %b);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = intarsia::on_device(%0) @CPU;
  Sub(%1, %2)
}
""",
        after="""
def @main(%a @CPU, %b @CPU) @GPU {
  %0 = Add(%a, %b) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Sub(%1, %1) @GPU;
  %2
}
""",
    ),
    Scenario(
        "let_on_cpu",
        before="""
def @main(%a: f32, %b: f32, %c: f32, %d: f32) {
  let %l: f32 = Add(%a, %b);
  let %r: f32 = Add(%c, %d);
  %0 = intarsia::on_device(%l) @CPU;
  Sub(%0, %r)
}
""",
        after="""
def @main(%a @CPU, %b @CPU, %c @GPU, %d @GPU) @GPU {
  %0 = Add(%a, %b) @CPU;
  let @GPU %l @CPU = %0;
  %1 = Add(%c, %d) @GPU;
  let @GPU %r @GPU = %1;
  %2 = intarsia::device_copy(%l) @GPU;
  %3 = Sub(%2, %r) @GPU;
  %3
}
""",
    ),
    Scenario(
        "func_param_on_cpu",
        before="""
def @main(%a: f32, %b: f32, %c: f32, %d: f32) {
  let %f: fn (f32, f32) -> f32 = fn (%x: f32, %y: f32) {
    %0 = Add(%x, %y);
    intarsia::on_device(%0, constrain_result=1) @CPU
  };
  %1 = %f(%a, %b);
  %2 = Add(%c, %d);
  Sub(%1, %2)
}
""",
        after="""
def @main(%a @CPU, %b @CPU, %c @CPU, %d @CPU) @CPU {
  %0 = fn (%x @CPU, %y @CPU) @CPU {
    %1 = Add(%x, %y) @CPU;
    %1
  };
  let @CPU %f @CPU = %0;
  %2 = %f(%a, %b) @CPU;
  %3 = Add(%c, %d) @CPU;
  %4 = Sub(%2, %3) @CPU;
  %4
}
""",
    ),
    Scenario(
        "func_result_on_cpu",
        before="""
def @main(%a: f32, %b: f32, %c: f32, %d: f32) {
  let %f: fn (f32, f32) -> f32 = fn (%x: f32, %y: f32) { Add(%x, %y) };
  %0 = %f(%a, %b);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = Add(%c, %d);
  Sub(%1, %2)
}
""",
        after="""
def @main(%a @CPU, %b @CPU, %c @GPU, %d @GPU) @GPU {
  %0 = fn (%x @CPU, %y @CPU) @CPU {
    %1 = Add(%x, %y) @CPU;
    %1
  };
  let @GPU %f @CPU = %0;
  %2 = %f(%a, %b) @CPU;
  %3 = intarsia::device_copy(%2) @GPU;
  %4 = Add(%c, %d) @GPU;
  %5 = Sub(%3, %4) @GPU;
  %5
}
""",
    ),
    Scenario(
        "higher_order",
        before="""
def @main(%x: f32, %y: f32) {
  let %f: fn (fn (f32) -> f32) -> fn (f32) -> f32 = fn (%g: fn (f32) -> f32) {
    fn (%a: f32) {
      %0 = %g(%a);
      %1 = intarsia::on_device(%0) @CPU;
      Add(%1, %x)
    }
  };
  let %h: fn (f32) -> f32 = fn (%b: f32) { Relu(%b) };
  %2 = %f(%h);
  %3 = %2(%y);
  Sub(%x, %3)
}
""",
        after="""
def @main(%x @GPU, %y @CPU) @GPU {
  %0 = fn (%g @CPU) @GPU {
    %1 = fn (%a @CPU) @GPU {
      %2 = %g(%a) @CPU;
      %3 = intarsia::device_copy(%2) @GPU;
      %4 = Add(%3, %x) @GPU;
      %4
    };
    %1
  };
  let @GPU %f @GPU = %0;
  %5 = fn (%b @CPU) @CPU {
    %6 = Relu(%b) @CPU;
    %6
  };
  let @GPU %h @CPU = %5;
  %7 = %f(%h) @GPU;
  %8 = %7(%y) @GPU;
  %9 = Sub(%x, %8) @GPU;
  %9
}
""",
        runs=False,
    ),
    Scenario(
        "function_in_tuple",
        before="""
def @main(%x: f32, %y: f32) {
  let %f: fn (f32, f32) -> f32 = fn (%a: f32, %b: f32) {
    %0 = intarsia::on_device(%b) @CPU;
    Add(%a, %0)
  };
  let %t: (fn (f32, f32) -> f32, f32) = (%f, %x);
  %1 = %t.1;
  %2 = %t.0;
  %2(%1, %y)
}
""",
        after="""
def @main(%x @GPU, %y @CPU) @GPU {
  %0 = fn (%a @GPU, %b @CPU) @GPU {
    %1 = intarsia::device_copy(%b) @GPU;
    %2 = Add(%a, %1) @GPU;
    %2
  };
  let @GPU %f @GPU = %0;
  %3 = (%f, %x) @GPU;
  let @GPU %t @GPU = %3;
  %4 = %t.0 @GPU;
  %5 = %t.1 @GPU;
  %6 = %4(%5, %y) @GPU;
  %6
}
""",
    ),
    Scenario(
        "device_copy",
        before="""
def @main(%x: f32) {
  %0 = intarsia::device_copy(%x) @GPU;
  %1 = intarsia::on_device(%x) @CPU;
  %2 = Neg(%1);
  Add(%0, %2)
}
""",
        after="""
def @main(%x @CPU) @GPU {
  %0 = intarsia::device_copy(%x) @GPU;
  %1 = Neg(%0) @GPU;
  %2 = Add(%0, %1) @GPU;
  %2
}
""",
    ),
    Scenario(
        "shape_of",
        before="""
def @main(%x: Tensor[(N, 3), float32]) {
  %0 = intarsia::on_device(%x, constrain_result=1) @GPU;
  Shape(%0)
}
""",
        after="""
def @main(%x @GPU) @CPU {
  %0 = Shape(%x) @CPU;
  %0
}
""",
    ),
    Scenario(
        "reshape",
        before="""
def @main(%x: Tensor[(N, 3), float32], %y: Tensor[(N, 3), float32]) {
  %0 = Shape(%y);
  Reshape(%x, %0)
}
""",
        after="""
def @main(%x @GPU, %y @GPU) @GPU {
  %0 = Shape(%y) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Reshape(%x, %1) @GPU;
  %2
}
""",
    ),
    Scenario(
        "dynamic_input",
        before="""
def @main(%x: Tensor[(N, 3), float32], %y: Tensor[(N, 3), float32]) {
  %0 = Add(%x, %y);
  %1 = intarsia::on_device(%0) @CPU;
  Relu(%1)
}
""",
        after="""
def @main(%x @CPU, %y @CPU) @GPU {
  %0 = Add(%x, %y) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Relu(%1) @GPU;
  %2
}
""",
    ),
    Scenario(
        "redundant_annotation",
        before="""
def @main(%x: f32, %y: f32, %z: f32) {
  %0 = Add(%x, %y);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = Sub(%1, %z);
  %3 = intarsia::on_device(%0) @CPU;
  Add(%2, %3)
}
""",
        after="""
def @main(%x @CPU, %y @CPU, %z @GPU) @GPU {
  %0 = Add(%x, %y) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Sub(%1, %z) @GPU;
  %3 = Add(%2, %1) @GPU;
  %3
}
""",
    ),
    Scenario(
        "nested_annotations",
        before="""
def @main(%x: f32) {
  %0 = Relu(%x);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = intarsia::on_device(%1, constrain_body=0, constrain_result=1) @GPU;
  %3 = intarsia::on_device(%2, constrain_body=0, constrain_result=1) @CPU;
  Neg(%3)
}
""",
        after="""
def @main(%x @CPU) @CPU {
  %0 = Relu(%x) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = intarsia::device_copy(%1) @CPU;
  %3 = Neg(%2) @CPU;
  %3
}
""",
    ),
    Scenario(
        "annotate_expr",
        before="""
def @main(%x: f32, %y: f32, %z: f32) {
  %0 = Add(%x, %y);
  %1 = intarsia::on_device(%0) @GPU;
  %2 = Sub(%1, %z);
  intarsia::on_device(%2, constrain_result=1) @CPU
}
""",
        after="""
def @main(%x @GPU, %y @GPU, %z @CPU) @CPU {
  %0 = Add(%x, %y) @GPU;
  %1 = intarsia::device_copy(%0) @CPU;
  %2 = Sub(%1, %z) @CPU;
  %2
}
""",
    ),
    Scenario(
        "annotate_all",
        before="""
def @main(%x: f32, %y: f32, %z: f32) {
  %0 = Add(%x, %y);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = Sub(%1, %z);
  intarsia::on_device(%2, constrain_result=1) @CPU
}
""",
        after="""
def @main(%x @CPU, %y @CPU, %z @CPU) @CPU {
  %0 = Add(%x, %y) @CPU;
  %1 = Sub(%0, %z) @CPU;
  %1
}
""",
    ),
    Scenario(
        "conv_network",
        before="""
def @main(%p: image, %q: image, %w: kernel) {
  %0 = Conv(%p, %w, pads=[1, 1, 1, 1]);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = Conv(%q, %w, pads=[1, 1, 1, 1]);
  %3 = intarsia::on_device(%2) @CPU;
  %4 = Add(%1, %3);
  %5 = intarsia::on_device(%4) @GPU;
  %6 = Conv(%5, %w, pads=[1, 1, 1, 1]);
  intarsia::on_device(%6, constrain_result=1) @CPU
}
""",
        after="""
def @main(%p @CPU, %q @CPU, %w @CPU) @CPU {
  %0 = Conv(%p, %w, pads=[1, 1, 1, 1]) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Conv(%q, %w, pads=[1, 1, 1, 1]) @CPU;
  %3 = intarsia::device_copy(%2) @GPU;
  %4 = Add(%1, %3) @GPU;
  %5 = intarsia::device_copy(%4) @CPU;
  %6 = Conv(%5, %w, pads=[1, 1, 1, 1]) @CPU;
  %6
}
""",
    ),
    Scenario(
        "tuple_get_item",
        before="""
def @main(%x: Tensor[(3, 3), float32]) {
  %0 = Split(%x, axis=0, num_outputs=3, outputs=3);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = %1.0;
  %3 = %1.1;
  Sub(%2, %3)
}
""",
        after="""
def @main(%x @CPU) @GPU {
  %0 = Split(%x, axis=0, num_outputs=3, outputs=3) @CPU;
  %1 = %0.0 @CPU;
  %2 = intarsia::device_copy(%1) @GPU;
  %3 = %0.1 @CPU;
  %4 = intarsia::device_copy(%3) @GPU;
  %5 = Sub(%2, %4) @GPU;
  %5
}
""",
    ),
    Scenario(
        "propagation",
        before="""
def @main(%x: f32) {
  %0 = Sigmoid(%x);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = Exp(%1);
  %3 = intarsia::on_device(%2) @GPU;
  %4 = Neg(%1);
  %5 = intarsia::on_device(%4) @GPU;
  %6 = Add(%3, %5);
  %7 = intarsia::on_device(%6) @GPU;
  %8 = Tan(%7);
  intarsia::on_device(%8, constrain_result=1) @CPU
}
""",
        after="""
def @main(%x @CPU) @CPU {
  %0 = Sigmoid(%x) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Exp(%1) @GPU;
  %3 = Neg(%1) @GPU;
  %4 = Add(%2, %3) @GPU;
  %5 = intarsia::device_copy(%4) @CPU;
  %6 = Tan(%5) @CPU;
  %6
}
""",
    ),
    Scenario(
        "fusible_network",
        before="""
def @main(%x: f32, %y: f32) {
  %0 = Add(%x, %y);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = Relu(%1);
  %3 = intarsia::on_device(%2) @CPU;
  %4 = Exp(%1);
  %5 = intarsia::on_device(%4) @CPU;
  %6 = Sub(%3, %5);
  %7 = intarsia::on_device(%6) @GPU;
  %8 = Neg(%7);
  intarsia::on_device(%8, constrain_result=1) @CPU
}
""",
        after="""
def @main(%x @CPU, %y @CPU) @CPU {
  %0 = Add(%x, %y) @CPU;
  %1 = Relu(%0) @CPU;
  %2 = intarsia::device_copy(%1) @GPU;
  %3 = Exp(%0) @CPU;
  %4 = intarsia::device_copy(%3) @GPU;
  %5 = Sub(%2, %4) @GPU;
  %6 = intarsia::device_copy(%5) @CPU;
  %7 = Neg(%6) @CPU;
  %7
}
""",
    ),
    Scenario(
        "unpropagatable_graph",
        before="""
def @main(%a: f32, %b: f32, %c: f32, %d: f32) {
  %0 = Add(%a, %b);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = Mul(%c, %d);
  %3 = intarsia::on_device(%2) @GPU;
  %4 = Sub(%1, %3);
  intarsia::on_device(%4, constrain_result=1) @CPU
}
""",
        after="""
def @main(%a @CPU, %b @CPU, %c @GPU, %d @GPU) @CPU {
  %0 = Add(%a, %b) @CPU;
  %1 = Mul(%c, %d) @GPU;
  %2 = intarsia::device_copy(%1) @CPU;
  %3 = Sub(%0, %2) @CPU;
  %3
}
""",
    ),
    Scenario(
        "conditional",
        before="""
def @main(%cond: Tensor[(), bool], %y: f32, %z: f32) {
  let %f: fn (f32) -> f32 = fn (%a: f32) {
    %0 = intarsia::on_device(%y) @CPU;
    Add(%a, %0)
  };
  let %g: fn (f32) -> f32 = fn (%b: f32) { Sub(%b, %y) };
  let %h: fn (f32) -> f32 = if (%cond) { %f } else { %g };
  %h(%z)
}
""",
        after="""
def @main(%cond @CPU, %y @CPU, %z @CPU) @CPU {
  %0 = fn (%a @CPU) @CPU {
    %1 = Add(%a, %y) @CPU;
    %1
  };
  let @CPU %f @CPU = %0;
  %2 = fn (%b @CPU) @CPU {
    %3 = Sub(%b, %y) @CPU;
    %3
  };
  let @CPU %g @CPU = %2;
  %4 = if (%cond) {
    %f
  } else {
    %g
  } @CPU;
  let @CPU %h @CPU = %4;
  %5 = %h(%z) @CPU;
  %5
}
""",
        runs=False,
    ),
    Scenario(
        "branch_on_cpu",
        before="""
def @main(%cond: Tensor[(), bool], %x: f32) {
  %0 = Neg(%x);
  %1 = intarsia::on_device(%0) @CPU;
  %2 = if (%cond) { Relu(%1) } else { Exp(%x) };
  Tan(%2)
}
""",
        after="""
def @main(%cond @CPU, %x @CPU) @GPU {
  %0 = if (%cond) {
    %1 = Neg(%x) @CPU;
    %2 = Relu(%1) @CPU;
    %2
  } else {
    %3 = Exp(%x) @CPU;
    %3
  } @CPU;
  %4 = intarsia::device_copy(%0) @GPU;
  %5 = Tan(%4) @GPU;
  %5
}
""",
    ),
    Scenario(
        "global",
        before="""
def @f(%a: f32, %b: f32) -> f32 {
  %0 = intarsia::on_device(%b) @CPU;
  Add(%a, %0)
}
def @main(%x: f32, %y: f32) {
  %0 = Neg(%x);
  @f(%y, %0): f32
}
""",
        after="""
def @f(%a @GPU, %b @CPU) @GPU {
  %0 = intarsia::device_copy(%b) @GPU;
  %1 = Add(%a, %0) @GPU;
  %1
}
def @main(%x @CPU, %y @GPU) @GPU {
  %0 = Neg(%x) @CPU;
  %1 = @f(%y, %0) @GPU;
  %1
}
""",
    ),
    Scenario(
        "free_on_device",
        before="""
def @main(%a: f32, %b: f32, %c: f32) {
  %0 = Add(%a, %b);
  %1 = intarsia::on_device(%0, constrain_body=0) @GPU;
  %2 = intarsia::on_device(%c) @CPU;
  %3 = Neg(%2);
  %4 = intarsia::on_device(%3) @CPU;
  Sub(%1, %4)
}
""",
        after="""
def @main(%a @GPU, %b @GPU, %c @CPU) @GPU {
  %0 = Add(%a, %b) @GPU;
  %1 = Neg(%c) @CPU;
  %2 = intarsia::device_copy(%1) @GPU;
  %3 = Sub(%0, %2) @GPU;
  %3
}
""",
    ),
    Scenario(
        "conflicted_inputs",
        before="""
def @main(%a: f32 @CPU, %b: f32 @GPU) {
  %0 = Add(%a, %b);
  %1 = Relu(%0);
  %2 = intarsia::on_device(%1) @CPU;
  %3 = Neg(%0);
  %4 = intarsia::on_device(%3) @GPU;
  Add(%2, %4)
}
""",
        after="""
def @main(%a @CPU, %b @GPU) @GPU {
  %0 = intarsia::device_copy(%a) @GPU;
  %1 = Add(%0, %b) @GPU;
  %2 = intarsia::device_copy(%1) @CPU;
  %3 = Relu(%2) @CPU;
  %4 = intarsia::device_copy(%3) @GPU;
  %5 = Neg(%1) @GPU;
  %6 = Add(%4, %5) @GPU;
  %6
}
""",
    ),
    Scenario(
        "shared_constant",
        before="""
def @main(%x: f32) {
  %0 = Add(%x, meta[Constant][0]);
  %1 = intarsia::on_device(%0) @CPU;
  Add(%1, meta[Constant][0])
}
""",
        after="""
def @main(%x @CPU) @GPU {
  %0 = Add(%x, meta[Constant][0] @CPU) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Add(%1, meta[Constant][1] @GPU) @GPU;
  %2
}
""",
    ),
    Scenario(
        "param_on_cpu",
        before="""
def @main(%x: f32 @CPU) {
  %0 = Relu(%x);
  Neg(%0)
}
""",
        after="""
def @main(%x @CPU) @CPU {
  %0 = Relu(%x) @CPU;
  %1 = Neg(%0) @CPU;
  %1
}
""",
    ),
    Scenario(
        "result_on_cpu",
        before="""
def @main(%x: f32) @CPU {
  %0 = Relu(%x) @GPU;
  Neg(%0)
}
""",
        after="""
def @main(%x @GPU) @CPU {
  %0 = Relu(%x) @GPU;
  %1 = intarsia::device_copy(%0) @CPU;
  %2 = Neg(%1) @CPU;
  %2
}
""",
    ),
    Scenario(
        "primitive",
        before="""
def @main(%x: f32, %y: f32) {
  %0 = fn (%a: f32, %b: f32) attributes {Primitive=1} @CPU {
    %1 = Add(%a, %b);
    Relu(%1)
  };
  %2 = %0(%x, %y);
  %3 = intarsia::on_device(%2) @CPU;
  Mul(%3, %y)
}
""",
        after="""
def @main(%x @CPU, %y @GPU) @GPU {
  %0 = fn (%a @CPU, %b @CPU) attributes {Primitive=1} @CPU {
    %1 = Add(%a, %b) @CPU;
    %2 = Relu(%1) @CPU;
    %2
  };
  %3 = intarsia::device_copy(%y) @CPU;
  %4 = %0(%x, %3) @CPU;
  %5 = intarsia::device_copy(%4) @GPU;
  %6 = Mul(%5, %y) @GPU;
  %6
}
""",
    ),
    Scenario(
        "memory_scope",
        before="""
def @main(%x: f32 @device(mock:0, scope="fast"), %y: f32) {
  %0 = Add(%x, %y);
  %1 = intarsia::on_device(%0, constrain_body=0, constrain_result=1) @device(?, scope="fast");
  Neg(%1)
}
""",
        after="""
def @main(%x @device(mock:0, target="mock", scope="fast"), %y @GPU) @GPU {
  %0 = Add(%x, %y) @GPU;
  %1 = intarsia::device_copy(%0) @device(mock:0, target="mock", scope="fast");
  %2 = Neg(%1) @GPU;
  %2
}
""",
    ),
    Scenario(
        "loop",
        before="""
def @main(%n: Tensor[(), int64], %x: f32, %y: f32) {
  %0 = intarsia::on_device(%y) @CPU;
  %1 = Neg(%0);
  %2 = intarsia::on_device(%1) @CPU;
  %3 = fn (%i: Tensor[(), int64], %go: Tensor[(), bool], %s: f32) {
    %4 = Add(%s, %2);
    (%go, %4)
  };
  Loop(%n, meta[Constant][1], %x, %3, outputs=1).0
}
""",
        after="""
def @main(%n @GPU, %x @GPU, %y @CPU) @GPU {
  %0 = Neg(%y) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = fn (%i @GPU, %go @GPU, %s @GPU) @GPU {
    %3 = Add(%s, %1) @GPU;
    %4 = (%go, %3) @GPU;
    %4
  };
  %5 = Loop(%n, meta[Constant][0] @GPU, %x, %2, outputs=1) @GPU;
  %6 = %5.0 @GPU;
  %6
}
""",
    ),
    Scenario(
        "results_of_a_split",
        before="""
def @main(%x: Tensor[(3, 3), float32]) {
  %0 = Split(%x, axis=0, num_outputs=3, outputs=3) @CPU;
  intarsia::on_device(%0, constrain_body=0, constrain_result=1) @GPU
}
""",
        after="""
def @main(%x @CPU) @GPU {
  %0 = Split(%x, axis=0, num_outputs=3, outputs=3) @CPU;
  %1 = %0.0 @CPU;
  %2 = intarsia::device_copy(%1) @GPU;
  %3 = %0.1 @CPU;
  %4 = intarsia::device_copy(%3) @GPU;
  %5 = %0.2 @CPU;
  %6 = intarsia::device_copy(%5) @GPU;
  %7 = (%2, %4, %6) @GPU;
  %7
}
""",
    ),
    Scenario(
        "tuple_of_two_devices",
        before="""
def @main(%x: f32 @CPU, %y: f32 @GPU) {
  %0 = (%x, %y);
  %1 = %0.0;
  %2 = %0.1;
  %3 = Neg(%1);
  %4 = Neg(%2);
  %5 = intarsia::on_device(%3) @CPU;
  Add(%5, %4)
}
""",
        after="""
def @main(%x @CPU, %y @GPU) @GPU {
  %0 = Neg(%x) @CPU;
  %1 = intarsia::device_copy(%0) @GPU;
  %2 = Neg(%y) @GPU;
  %3 = Add(%1, %2) @GPU;
  %3
}
""",
    ),
)
