"""Parallel loops: their bodies become functions that the runtime calls for ranges of iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from intarsia.ir.prim_func import For
from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.loop_frame import LoopFrame
from intarsia.native.emission.loops import Symbols
from intarsia.native.emission.registers import RegisterFile
from intarsia.native.emission.state import FunctionState, KernelState, MemoryPlace

BodyEmitter = Callable[[FunctionState, For, str, str], None]


def new_function(kernel: KernelState, runtime: str | None) -> FunctionState:
    """Begin an empty function with an open entry block."""
    builder = Builder(kernel.module, kernel.contract)
    root = LoopFrame(builder.hole(), [], "entry", None)
    return FunctionState(
        kernel, builder, Symbols(builder), RegisterFile(builder), root, scratch="%scratch", runtime=runtime
    )


def emit_parallel(state: FunctionState, loop: For, emit_body: BodyEmitter, count: str | None = None) -> None:
    """Emit a parallel loop as a call of the runtime, and the function that the runtime calls.

    Args:
        state: Function that the loop is in.
        loop: The loop.
        emit_body: Emits the iterations of a range.
        count: Number of iterations, as an operand; the loop's extent if not given.
    """
    kernel, builder = state.kernel, state.builder
    inside = kernel.facts.contents(loop.body)
    used = sorted((inside.loads | inside.stores) & state.memory.keys())
    places = [state.memory[name] for name in used]
    numbers = _numbers(state)
    name = f"{kernel.name}.body{kernel.bodies}"
    kernel.bodies += 1
    _body_function(state, loop, name, places, numbers, emit_body)
    _entry_function(state, name, len(places), len(numbers))
    size = max(1, len(places) + len(numbers))
    closure = builder.fresh("closure")
    state.root.before.append(f"  {closure} = alloca [{size} x i64], align 8")
    captured = [f"ptr {place.base}" for place in places]
    captured += [f"i64 {state.symbols.table[number].text}" for number in numbers]
    for slot, value in enumerate(captured):
        address = builder.pure(f"getelementptr i8, ptr {closure}, i64 {8 * slot}")
        builder.do(f"store {value}, ptr {address}, align 8")
    call = builder.value_of(f"load ptr, ptr {state.runtime}, align 8")
    builder.do(
        f"call void {call}(ptr {state.runtime}, ptr @{name}, ptr {closure}, i64 {count or loop.extent})"
    )
    for written in inside.stores:
        state.versions[written] = state.versions.get(written, 0) + 1


def _numbers(state: FunctionState) -> list[int]:
    """Return the symbols of the enclosing loops."""
    return sorted({symbol for value in state.env.values() for symbol, _ in value.terms})


def _body_function(
    state: FunctionState,
    loop: For,
    name: str,
    places: list[MemoryPlace],
    numbers: list[int],
    emit_body: BodyEmitter,
) -> None:
    inner = new_function(state.kernel, None)
    inner.scratch_top = state.scratch_top
    for slot, place in enumerate(places):
        inner.memory[place.name] = replace(place, base=f"%b{slot}")
    renamed = {}
    for slot, number in enumerate(numbers):
        outer = state.symbols.table[number]
        assert outer.low is not None  # counters have a range
        assert outer.high is not None
        renamed[number] = inner.symbols.counter(f"%n{slot}", outer.low, outer.high, inner.root).terms[0][0]
    for variable, value in state.env.items():
        terms = tuple((renamed[symbol], coefficient) for symbol, coefficient in value.terms)
        inner.env[variable] = AffineIndex(value.const, value.lane, terms)
    emit_body(inner, loop, "%begin", "%end")
    params = [f"ptr noalias %b{slot}" for slot in range(len(places))]
    params += [f"i64 %n{slot}" for slot in range(len(numbers))]
    params += ["i64 %begin", "i64 %end", "ptr noalias %scratch"]
    inner.builder.do("ret void")
    text = f"define internal void @{name}.part({', '.join(params)}) noinline nounwind {{\nentry:\n"
    state.kernel.module.functions.append(f"{text}{inner.builder.text()}\n}}")


def _entry_function(state: FunctionState, name: str, places: int, numbers: int) -> None:
    """Emit the function that the runtime calls.

    It unpacks the closure into arguments of the body function, whose `noalias` LLVM can use.
    """
    builder = Builder(state.kernel.module)
    args = []
    for slot in range(places + numbers):
        kind = "ptr" if slot < places else "i64"
        address = builder.value_of(f"getelementptr i8, ptr %closure, i64 {8 * slot}")
        args.append(f"{kind} {builder.value_of(f'load {kind}, ptr {address}, align 8')}")
    args += ["i64 %begin", "i64 %end", "ptr %scratch"]
    builder.do(f"call void @{name}.part({', '.join(args)})")
    builder.do("ret void")
    params = "ptr %closure, i64 %begin, i64 %end, ptr %scratch"
    head = f"define internal void @{name}({params}) nounwind {{\nentry:\n"
    state.kernel.module.functions.append(f"{head}{builder.text()}\n}}")
