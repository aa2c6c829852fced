"""Graphs of operators: what is open between annotated ones, and results with several fields."""

from __future__ import annotations

from tests.device_scenarios.scenario import Scenario

NETWORKS = (
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
