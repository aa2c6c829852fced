"""Kernels written by hand in LLVM IR, and how tests compile them."""

from __future__ import annotations

import functools

import numpy as np

from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS, CodegenOptions, generate_object_code

ADD = """
define void @add(ptr %args, ptr %runtime) {
  %a = load ptr, ptr %args
  %b_at = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %b_at
  %out_at = getelementptr ptr, ptr %args, i64 2
  %out = load ptr, ptr %out_at
  %x = load <4 x float>, ptr %a, align 4
  %y = load <4 x float>, ptr %b, align 4
  %sum = fadd <4 x float> %x, %y
  store <4 x float> %sum, ptr %out, align 4
  ret void
}
"""
"""out = a + b, four float32."""

EVERY_REFERENCE = """
declare double @exp(double)
@table = internal constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0]
@scale = constant double 8.0
@calls = global i64 0
@start = global i64 5
@pointer = internal global ptr @start
define internal double @triple(double %x) noinline {
  %y = fmul double %x, 3.0
  ret double %y
}
define void @refer(ptr %args, ptr %runtime) {
  %out = load ptr, ptr %args
  %before = load i64, ptr @calls
  %count = add i64 %before, 1
  store i64 %count, ptr @calls
  %at = getelementptr double, ptr @table, i64 %before
  %entry = load double, ptr %at
  %scale = load double, ptr @scale
  %tripled = call double @triple(double %entry)
  %scaled = fmul double %tripled, %scale
  store double %scaled, ptr %out
  %exp_at = getelementptr double, ptr %out, i64 1
  %power = call double @exp(double %entry)
  store double %power, ptr %exp_at
  %start_at = load ptr, ptr @pointer
  %started = load i64, ptr %start_at
  %as_double = sitofp i64 %started to double
  %started_at = getelementptr double, ptr %out, i64 2
  store double %as_double, ptr %started_at
  ret void
}
"""
"""A constant table, written data, zeros, an internal pointer, an internal function and one of libm."""

REGIONS = """
define internal void @mark(ptr %counts, i64 %begin, i64 %end, ptr %scratch) {
entry:
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %after, %next ]
  %at = getelementptr i32, ptr %counts, i64 %i
  %before = load i32, ptr %at
  %more = add i32 %before, 1
  store i32 %more, ptr %at
  %after = add i64 %i, 1
  %is_left = icmp slt i64 %after, %end
  br i1 %is_left, label %next, label %leave
leave:
  ret void
}
define void @regions(ptr %args, ptr %runtime) {
entry:
  %counts = load ptr, ptr %args
  %sizes_at = getelementptr ptr, ptr %args, i64 1
  %sizes = load ptr, ptr %sizes_at
  %extent = load i64, ptr %sizes
  %loops_at = getelementptr i64, ptr %sizes, i64 1
  %loops = load i64, ptr %loops_at
  %parallel_for = load ptr, ptr %runtime
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %run ]
  %is_left = icmp slt i64 %i, %loops
  br i1 %is_left, label %run, label %leave
run:
  call void %parallel_for(ptr %runtime, ptr @mark, ptr %counts, i64 %extent)
  %after = add i64 %i, 1
  br label %next
leave:
  ret void
}
"""
"""counts (int32) += 1 in the first sizes[0] elements, by sizes[1] parallel loops; sizes are two int64."""

NESTED = """
define internal void @inner(ptr %closure, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %row = load ptr, ptr %closure
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %after, %next ]
  store i64 %i, ptr %scratch
  %at = getelementptr i64, ptr %row, i64 %i
  %before = load i64, ptr %at
  %seen = load i64, ptr %scratch
  %more = add i64 %before, %seen
  store i64 %more, ptr %at
  %after = add i64 %i, 1
  %is_left = icmp slt i64 %after, %end
  br i1 %is_left, label %next, label %leave
leave:
  ret void
}
define internal void @outer(ptr %closure, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %own = alloca [1 x ptr]
  %matrix = load ptr, ptr %closure
  %runtime_at = getelementptr ptr, ptr %closure, i64 1
  %runtime = load ptr, ptr %runtime_at
  %parallel_for = load ptr, ptr %runtime
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %after, %next ]
  store i64 %i, ptr %scratch
  %offset = mul i64 %i, 16
  %row = getelementptr i64, ptr %matrix, i64 %offset
  store ptr %row, ptr %own
  call void %parallel_for(ptr %runtime, ptr @inner, ptr %own, i64 16)
  %mine = load i64, ptr %scratch
  %before = load i64, ptr %row
  %more = add i64 %before, %mine
  store i64 %more, ptr %row
  %after = add i64 %i, 1
  %is_left = icmp slt i64 %after, %end
  br i1 %is_left, label %next, label %leave
leave:
  ret void
}
define void @nested(ptr %args, ptr %runtime) {
  %closure = alloca [2 x ptr]
  %matrix = load ptr, ptr %args
  store ptr %matrix, ptr %closure
  %runtime_at = getelementptr ptr, ptr %closure, i64 1
  store ptr %runtime, ptr %runtime_at
  %parallel_for = load ptr, ptr %runtime
  call void %parallel_for(ptr %runtime, ptr @outer, ptr %closure, i64 32)
  ret void
}
"""
"""matrix (int64, 32 by 16) += column + (row in column 0): a parallel loop in another, both with scratch."""

SCRATCH = """
define internal void @use(ptr %closure, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %place = ptrtoint ptr %scratch to i64
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %after, %filled ]
  %at = getelementptr i64, ptr %closure, i64 %i
  store i64 %place, ptr %at
  br label %fill
fill:
  %j = phi i64 [ 0, %next ], [ %j_after, %fill ]
  %cell = getelementptr i64, ptr %scratch, i64 %j
  store i64 %i, ptr %cell
  %j_after = add i64 %j, 1
  %is_more = icmp slt i64 %j_after, 512
  br i1 %is_more, label %fill, label %check
check:
  %k = phi i64 [ 0, %fill ], [ %k_after, %same ]
  %check_cell = getelementptr i64, ptr %scratch, i64 %k
  %found = load i64, ptr %check_cell
  %is_same = icmp eq i64 %found, %i
  br i1 %is_same, label %same, label %wrong
same:
  %k_after = add i64 %k, 1
  %is_unchecked = icmp slt i64 %k_after, 512
  br i1 %is_unchecked, label %check, label %filled
wrong:
  store i64 0, ptr %at
  br label %filled
filled:
  %after = add i64 %i, 1
  %is_left = icmp slt i64 %after, %end
  br i1 %is_left, label %next, label %leave
leave:
  ret void
}
define void @scratch(ptr %args, ptr %runtime) {
  %places = load ptr, ptr %args
  %parallel_for = load ptr, ptr %runtime
  call void %parallel_for(ptr %runtime, ptr @use, ptr %places, i64 1000)
  ret void
}
"""
"""places[i] = address of the scratch memory (4096 bytes) of iteration i of 1000, 0 if another wrote to it."""

CHECKED = """
define void @checked(ptr %args, ptr %runtime) {
  %out = load ptr, ptr %args
  %index = load i64, ptr %out
  %is_inside = icmp ult i64 %index, 3
  br i1 %is_inside, label %inside, label %outside
inside:
  %at = getelementptr i64, ptr %out, i64 %index
  store i64 -1, ptr %at
  ret void
outside:
  %check = getelementptr i8, ptr %runtime, i64 48
  store i64 1, ptr %check
  %where = getelementptr i8, ptr %runtime, i64 56
  store i64 %index, ptr %where
  ret void
}
"""
"""out[out[0]] = -1, three int64, bounds-checked."""

SCRATCH_BYTES = 4096


def array(name: str, shape: tuple[int, ...], dtype: str, *, is_written: bool = False) -> ArrayParameter:
    return ArrayParameter(name, shape, np.dtype(dtype), is_written)


PARAMETERS = {
    "add": (array("a", (4,), "f4"), array("b", (4,), "f4"), array("out", (4,), "f4", is_written=True)),
    "refer": (array("out", (3,), "f8", is_written=True),),
    "regions": (array("counts", (1000,), "i4", is_written=True), array("sizes", (2,), "i8")),
    "nested": (array("matrix", (32, 16), "i8", is_written=True),),
    "scratch": (array("places", (1000,), "i8", is_written=True),),
    "checked": (array("out", (3,), "i8", is_written=True),),
}
TEXTS = {
    "add": ADD,
    "refer": EVERY_REFERENCE,
    "regions": REGIONS,
    "nested": NESTED,
    "scratch": SCRATCH,
    "checked": CHECKED,
}
CHECKS = {"checked": ("dimension 0 of out",)}
NEEDED_SCRATCH = {"nested": 8, "scratch": SCRATCH_BYTES}


@functools.cache
def object_code(name: str, options: CodegenOptions = DEFAULT_OPTIONS) -> bytes:
    """The object code of a kernel of this page."""
    return generate_object_code(TEXTS[name], Isa.host(), options)


def kernel(name: str, options: CodegenOptions = DEFAULT_OPTIONS) -> NativeFunction:
    """A kernel of this page, loaded."""
    return NativeFunction.load(
        object_code(name, options),
        name,
        PARAMETERS[name],
        NEEDED_SCRATCH.get(name, 0),
        checks=CHECKS.get(name, ()),
    )
