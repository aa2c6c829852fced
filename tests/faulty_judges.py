"""Engines that stand in for judges and misbehave; worker processes of tests import this module.

The environment variable says which, and how.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar, Final

from tests.faulty_toolchains import KernelWithFault
from tests.only_in_workers import is_worker

from intarsia.ir import Function, IRModule
from intarsia.runtime.kernel import TOOLCHAINS, Array, Kernel, KernelSource, Value
from intarsia.target import Target
from intarsia.toolchain.reference.toolchain import Reference

CONDUCT: Final = "INTARSIA_TEST_JUDGES"
"""Names of toolchains with their conduct: "openvino=hang,reference=crash"."""

_stack = ExitStack()


class HangingKernel(KernelWithFault):
    """Sleeps for good, and holds the interpreter's lock."""

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        library = ctypes.PyDLL(None)
        while True:
            library.sleep(60)


class CrashingKernel(KernelWithFault):
    """Ends its process."""

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        os.abort()


KERNELS: Final = {"hang": HangingKernel, "crash": CrashingKernel}


def misbehaving(toolchain: str, conduct: str) -> type[Reference]:
    """Return a toolchain that compiles everything, and misbehaves when it runs."""

    class Misbehaving(Reference):
        name: ClassVar[str] = toolchain

        def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
            return KERNELS[conduct](super().compile(function, target, module), 0.0)

        def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
            return KERNELS[conduct](super().load(source, blob), 0.0)

    return Misbehaving


if is_worker():
    for item in filter(None, os.environ.get(CONDUCT, "").split(",")):
        toolchain, _, conduct = item.partition("=")
        _stack.enter_context(TOOLCHAINS.holding(toolchain, misbehaving(toolchain, conduct)))
