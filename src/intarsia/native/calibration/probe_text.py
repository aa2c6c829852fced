"""Probes of the machine as LLVM IR: dependent and independent multiply-adds, and reads of a buffer.

Every loop body is written out and depends on arguments, so that code generation without IR passes leaves the
instructions as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from intarsia.native.machine.isa import Isa

TICK: Final = "tick"
CHAIN: Final = "chain"
SUMS: Final = "sums"
READ: Final = "read"

TICKS: Final = 64
"""Number of dependent additions and exclusive ors in a round of TICK: each takes one cycle."""
CHAIN_STEPS: Final = 16
"""Number of dependent multiply-adds in a round of CHAIN."""
SUM_STEPS: Final = 4
"""Number of multiply-adds of each sum in a round of SUMS."""
READ_VECTORS: Final = 8
"""Number of vectors in a round of READ, each combined with an accumulator of its own."""
_KEPT_FREE: Final = 4
"""Number of vector registers that SUMS leaves for the two factors and what the code generator needs."""


def sum_count(isa: Isa) -> int:
    """Return the number of independent sums of SUMS: as many as the registers contain."""
    return isa.vector_registers - _KEPT_FREE


def probe_text(isa: Isa) -> str:
    """Return the module of all probes for an instruction set.

    They are TICK(rounds, a, b) -> i64; CHAIN(rounds, data) and SUMS(rounds, data), with the address of two
    vectors of factors and space for a result; READ(begin, end, repeats, result), with a multiple of
    READ_VECTORS vectors from begin to end.
    """
    chain = _multiply_add_loop(CHAIN, isa, 1, CHAIN_STEPS)
    sums = _multiply_add_loop(SUMS, isa, sum_count(isa), SUM_STEPS)
    floats, _ = _vectors(isa)
    declared = f"declare {floats} @llvm.fma.v{isa.vector_bytes // 4}f32({floats}, {floats}, {floats})"
    return "\n".join([_tick_loop(), chain, sums, _read_loop(isa), declared if isa.has_fma else "", ""])


def _vectors(isa: Isa) -> tuple[str, str]:
    """Return the types of a vector of floats and of integers."""
    lanes = isa.vector_bytes // 4
    return f"<{lanes} x float>", f"<{lanes} x i32>"


def _tick_loop() -> str:
    steps, value = [], "%x"
    for number in range(TICKS):
        # An addition alone would be folded with the next one into a single addition.
        operation, operand = ("add", "%a") if number % 2 == 0 else ("xor", "%b")
        steps.append(f"%t{number} = {operation} i64 {value}, {operand}")
        value = f"%t{number}"
    return _function(
        f"define i64 @{TICK}(i64 %rounds, i64 %a, i64 %b)",
        [],
        [f"%x = phi i64 [ 0, %entry ], [ {value}, %loop ]"],
        steps,
        [f"ret i64 {value}"],
    )


def _multiply_add_loop(name: str, isa: Isa, count: int, steps: int) -> str:
    """Return a function that adds a product to each of `count` sums, `steps` times in a round."""
    floats, _ = _vectors(isa)
    size = isa.vector_bytes
    before = [
        f"%second = getelementptr i8, ptr %data, i64 {size}",
        f"%result = getelementptr i8, ptr %data, i64 {2 * size}",
        f"%a = load {floats}, ptr %data, align 4",
        f"%b = load {floats}, ptr %second, align 4",
    ]
    body: list[str] = []
    for step in range(steps):
        for number in range(count):
            given = f"%s{number}" if step == 0 else f"%s{number}.{step - 1}"
            body += _multiply_add(f"%s{number}.{step}", given, floats, isa)
    last = [f"%s{number}.{steps - 1}" for number in range(count)]
    starts = [
        f"%s{number} = phi {floats} [ zeroinitializer, %entry ], [ {value}, %loop ]"
        for number, value in enumerate(last)
    ]
    combined = list(_combined(last, lambda left, right: f"fadd {floats} {left}, {right}"))
    after = [*combined, f"store {floats} {_last_name(combined, last)}, ptr %result, align 4", "ret void"]
    return _function(f"define void @{name}(i64 %rounds, ptr %data)", before, starts, body, after)


def _multiply_add(result: str, given: str, floats: str, isa: Isa) -> list[str]:
    if isa.has_fma:
        function = f"@llvm.fma.v{isa.vector_bytes // 4}f32"
        return [f"{result} = call {floats} {function}({floats} %a, {floats} %b, {floats} {given})"]
    return [f"{result}.p = fmul {floats} {given}, %b", f"{result} = fadd {floats} {result}.p, %a"]


def _read_loop(isa: Isa) -> str:
    _, integers = _vectors(isa)
    size = isa.vector_bytes
    loads: list[str] = []
    for number in range(READ_VECTORS):
        loads += [
            f"%p{number} = getelementptr i8, ptr %at, i64 {number * size}",
            f"%l{number} = load {integers}, ptr %p{number}, align {size}",
            f"%n{number} = xor {integers} %a{number}, %l{number}",
        ]
    numbers = range(READ_VECTORS)
    outer = [f"%o{n} = phi {integers} [ zeroinitializer, %entry ], [ %n{n}, %next ]" for n in numbers]
    inner = [f"%a{n} = phi {integers} [ %o{n}, %again ], [ %n{n}, %loop ]" for n in numbers]
    combined = list(
        _combined([f"%n{n}" for n in numbers], lambda left, right: f"xor {integers} {left}, {right}")
    )
    lines = [
        f"define void @{READ}(ptr %begin, ptr %end, i64 %repeats, ptr %result) nounwind {{",
        "entry:",
        "br label %again",
        "again:",
        "%r = phi i64 [ 0, %entry ], [ %r.next, %next ]",
        *outer,
        "br label %loop",
        "loop:",
        "%at = phi ptr [ %begin, %again ], [ %at.next, %loop ]",
        *inner,
        *loads,
        f"%at.next = getelementptr i8, ptr %at, i64 {READ_VECTORS * size}",
        "%more = icmp ult ptr %at.next, %end",
        "br i1 %more, label %loop, label %next",
        "next:",
        "%r.next = add i64 %r, 1",
        "%again.more = icmp ult i64 %r.next, %repeats",
        "br i1 %again.more, label %again, label %done",
        "done:",
        *combined,
        f"store {integers} {_last_name(combined, ['%n0'])}, ptr %result, align 4",
        "ret void",
        "}",
    ]
    return "\n".join(lines)


def _combined(values: Sequence[str], operation: Callable[[str, str], str]) -> Iterable[str]:
    """Yield the instructions that combine all values into one."""
    total = values[0]
    for number, value in enumerate(values[1:]):
        yield f"%c{number} = {operation(total, value)}"
        total = f"%c{number}"


def _last_name(instructions: Sequence[str], values: Sequence[str]) -> str:
    return instructions[-1].partition(" ")[0] if instructions else values[0]


def _function(
    head: str, before: Iterable[str], starts: Iterable[str], body: Iterable[str], after: Iterable[str]
) -> str:
    """Return a function with one loop of %rounds rounds, at least one."""
    lines = [
        f"{head} nounwind {{",
        "entry:",
        *before,
        "br label %loop",
        "loop:",
        "%i = phi i64 [ 0, %entry ], [ %i.next, %loop ]",
        *starts,
        *body,
        "%i.next = add i64 %i, 1",
        "%more = icmp ult i64 %i.next, %rounds",
        "br i1 %more, label %loop, label %done",
        "done:",
        *after,
        "}",
    ]
    return "\n".join(lines)
