"""Lets, functions, branches and loops."""

from __future__ import annotations

from tests.device_scenarios.scenario import Scenario

CONTROL_FLOW = (
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
  %5 = Loop(%n, bool(true) @GPU, %x, %2, outputs=1) @GPU;
  %6 = %5.0 @GPU;
  %6
}
""",
    ),
)
