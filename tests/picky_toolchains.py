"""Toolchains that lack an operator each; worker processes of tests import this module."""

from __future__ import annotations

from typing import ClassVar

from tests.only_in_workers import is_worker

from intarsia.ir import Call, Function, IRModule, Op, post_order
from intarsia.runtime.kernel import TOOLCHAINS, Kernel
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain.reference.toolchain import Reference


class Picky(Reference):
    """The reference without one operator."""

    lacks: ClassVar[str]

    def supports(self, call: Call) -> bool:
        return not (isinstance(call.op, Op) and call.op.name == self.lacks)

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        for expr in post_order(function):
            if isinstance(expr, Call) and not self.supports(expr):
                raise CompileError(f"{self.name} has no {self.lacks}")
        return super().compile(function, target, module)


class NoRelu(Picky):
    name: ClassVar[str] = "no_relu"
    lacks: ClassVar[str] = "Relu"


class NoTanh(Picky):
    name: ClassVar[str] = "no_tanh"
    lacks: ClassVar[str] = "Tanh"


PICKY = (NoRelu, NoTanh)

if is_worker():
    for toolchain in PICKY:
        TOOLCHAINS.register(toolchain.name, toolchain)
