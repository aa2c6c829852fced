"""Values with places of their own: parameters, results, shapes, constants, memories, whole functions."""

from __future__ import annotations

from tests.device_scenarios.scenario import Scenario

PLACES = (
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
)
