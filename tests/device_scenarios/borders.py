"""Borders between devices: what annotations and copies in a program say."""

from __future__ import annotations

from tests.device_scenarios.scenario import Scenario

BORDERS = (
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
)
