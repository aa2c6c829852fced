"""Kinds of candidates for tests of measuring; workers register them by importing this module."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

from intarsia.ir import Attrs, Function, IRModule, with_fields
from intarsia.measure.candidate_kind import CANDIDATE_KINDS
from intarsia.measure.measure_input import PlainData
from intarsia.op import call
from intarsia.target import Target


def marked(mod: IRModule, function: Function, compiler: str = "reference") -> IRModule:
    attrs = Attrs({"Compiler": compiler, "target": f"cpu -toolchain={compiler}", "global_symbol": "main"})
    return mod.with_function("main", with_fields(function, attrs=attrs))


def right(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    """The program itself, whatever the trace."""
    return mod


def wrong(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    main = mod["main"]
    return mod.with_function("main", with_fields(main, body=call("Neg", main.body)))


def nobody(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    """A program for a toolchain that there is not."""
    return marked(mod, mod["main"], "nobody")


def raises(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    raise ValueError(f"trace {trace} makes no sense")


def segfaults(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    ctypes.string_at(0)
    return mod


def aborts(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    os.abort()


def exits(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    sys.exit(3)


def loops(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    while True:
        time.sleep(0.01)


def grows(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    held = [bytearray(64 << 20) for _ in range(160)]
    return right(mod, target, len(held))


def closes_files(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    os.closerange(0, 1024)
    return mod


def kills(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    os.killpg(0, signal.SIGKILL)
    return mod


def floods(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    for _ in range(2_000):
        print("x" * 1_000)  # noqa: T201  # that is what it is for
    raise ValueError("flooded")


for function in (
    *(right, wrong, nobody, raises, segfaults, aborts, exits, loops, grows),
    *(closes_files, kills, floods),
):
    CANDIDATE_KINDS.register(f"test {function.__name__}", function)
