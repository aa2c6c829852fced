"""Toolchains that misbehave, to show that they cannot win: each is the reference with one fault."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import ClassVar

import numpy as np
import onnx

from intarsia.ir import Call, Constant, Expr, Function, IRModule, rewrite
from intarsia.op import call
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.runtime.kernel import TOOLCHAINS, Array, Kernel, KernelSource, Value
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.target import Target
from intarsia.toolchain import Available, Unavailable
from intarsia.toolchain.protocol import FusionStyle
from intarsia.toolchain.reference.toolchain import Reference


class KernelWithFault:
    """A reference kernel whose results are changed."""

    def __init__(self, kernel: Kernel, offset: float) -> None:
        self._kernel = kernel
        self._offset = offset

    @property
    def source(self) -> KernelSource:
        return self._kernel.source

    def blob(self) -> bytes | None:
        return None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        if np.isinf(self._offset):
            raise ExecutionError("the engine lost its nerve")
        results = self._kernel.run(inputs, outputs)
        for result in results:
            if isinstance(result, np.ndarray):
                np.add(result, np.asarray(self._offset, result.dtype), out=result)
        return results


class Faulty(Reference):
    """The reference toolchain with a fault: an offset of all results, infinite to fail at run time."""

    offset: ClassVar[float] = 0.0

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        return KernelWithFault(super().compile(function, target, module), self.offset)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        return KernelWithFault(super().load(source, blob), self.offset)


class Right(Faulty):
    """Computes what it should."""

    name: ClassVar[str] = "right"


class Wrong(Faulty):
    """Is off by a little more than rounding."""

    name: ClassVar[str] = "wrong"
    offset: ClassVar[float] = 1e-3


class AlsoWrong(Wrong):
    """Is wrong as `Wrong` is."""

    name: ClassVar[str] = "also_wrong"


class Failing(Faulty):
    """Fails at run time."""

    name: ClassVar[str] = "failing"
    offset: ClassVar[float] = float("inf")


class Refusing(Reference):
    """Compiles nothing."""

    name: ClassVar[str] = "refusing"

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        raise CompileError("operator 'Relu' is beneath this toolchain")


class Missing(Reference):
    """Is not installed."""

    name: ClassVar[str] = "missing"

    def availability(self) -> Available | Unavailable:
        return Unavailable("it is not installed", help="pip install 'missing'")


class CrashingKernel(KernelWithFault):
    """Ends its process."""

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        os.abort()


class Crashing(Reference):
    """Compiles, and crashes when it runs."""

    name: ClassVar[str] = "crashing"

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        return CrashingKernel(super().compile(function, target, module), 0.0)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        return CrashingKernel(super().load(source, blob), 0.0)


FAULTY = (Right, Wrong, AlsoWrong, Failing, Refusing, Missing, Crashing)

FAULT = b"Tanh"
"""The operator that the toolchains below stumble over; they run everything else right, and fast."""


class StumblingKernel(KernelWithFault):
    """A reference kernel that does harm if its model has the operator."""

    def __init__(self, kernel: Kernel, conduct: str) -> None:
        super().__init__(kernel, 0.0)
        self._conduct = conduct if FAULT in kernel.source.model else ""

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        if self._conduct == "crash":
            os.abort()
        if self._conduct == "hang":
            time.sleep(3600)
        results = super().run(inputs, outputs)
        if self._conduct == "slip":
            for result in results:
                if isinstance(result, np.ndarray):
                    np.multiply(result, np.asarray(1.01, result.dtype), out=result)
        return results


class Stumbling(Reference):
    """The reference toolchain, for graphs, with a fault where the operator is."""

    fusion_style: ClassVar[FusionStyle] = FusionStyle.GRAPH
    conduct: ClassVar[str] = ""

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        return StumblingKernel(super().compile(function, target, module), self.conduct)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        return StumblingKernel(super().load(source, blob), self.conduct)


class CrashesOnTanh(Stumbling):
    """Ends its process."""

    name: ClassVar[str] = "crashes_on_tanh"
    conduct: ClassVar[str] = "crash"


class HangsOnTanh(Stumbling):
    """Does not come back."""

    name: ClassVar[str] = "hangs_on_tanh"
    conduct: ClassVar[str] = "hang"


class WrongOnTanh(Stumbling):
    """Is off by one percent."""

    name: ClassVar[str] = "wrong_on_tanh"
    conduct: ClassVar[str] = "slip"


class SlowKernel(KernelWithFault):
    """A reference kernel that takes 4 ms more for one operator, and 100 ms more for each further operator.

    The steps are larger than what a disturbance does to a measurement.
    """

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        operators = len(onnx.load_model_from_string(self.source.model).graph.node)
        time.sleep(0.004 + 0.1 * (operators - 1))
        return super().run(inputs, outputs)


class Slow(Reference):
    """Runs everything right, and slowly."""

    name: ClassVar[str] = "slow"
    fusion_style: ClassVar[FusionStyle] = FusionStyle.GRAPH

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        return SlowKernel(super().compile(function, target, module), 0.0)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        return SlowKernel(super().load(source, blob), 0.0)


class WrongTanh(Reference):
    """Computes every Tanh one percent too large, wherever it is in a program."""

    name: ClassVar[str] = "wrong_tanh"

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        changed = rewrite(function, _enlarged_tanh)
        assert isinstance(changed, Function)
        return super().compile(changed, target, module)


def _enlarged_tanh(expr: Expr) -> Expr:
    if isinstance(expr, Call) and str(expr.op) == "Tanh":
        return call("Mul", expr, Constant(np.array(1.01, np.float32)))
    return expr


STUMBLING = (CrashesOnTanh, HangsOnTanh, WrongOnTanh, Slow)


class ForgetfulKernel(KernelWithFault):
    """A reference kernel that is right on its first call, and then does as its conduct says."""

    def __init__(self, kernel: Kernel, conduct: str) -> None:
        super().__init__(kernel, 0.0)
        self._conduct = conduct
        self._first: list[Array] | None = None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        results = super().run(inputs, outputs)
        if self._first is None:
            self._first = [np.array(result) for result in results if isinstance(result, np.ndarray)]
            return results
        for result, first in zip(results, self._first, strict=True):
            assert isinstance(result, np.ndarray)
            np.copyto(result, first if self._conduct == "stale" else result + np.asarray(1, result.dtype))
        return results


class Forgetful(Reference):
    """The reference toolchain with kernels whose later calls are wrong."""

    conduct: ClassVar[str] = ""

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        return ForgetfulKernel(super().compile(function, target, module), self.conduct)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        return ForgetfulKernel(super().load(source, blob), self.conduct)


class Stale(Forgetful):
    """Returns its first result for ever."""

    name: ClassVar[str] = "stale"
    conduct: ClassVar[str] = "stale"


class RightOnce(Forgetful):
    """Is right on the first call only."""

    name: ClassVar[str] = "right_once"
    conduct: ClassVar[str] = "tired"


FORGETFUL = (Stale, RightOnce)


class PartialKernel(KernelWithFault):
    """A reference kernel that does not write the last element of memory that it is given."""

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        results = super().run(inputs, [None] * len(outputs))
        for number, (result, output) in enumerate(zip(results, outputs, strict=True)):
            if output is not None:
                assert isinstance(result, np.ndarray)
                output.reshape(-1)[:-1] = result.reshape(-1)[:-1]
                results[number] = output
        return results


class Partial(Reference):
    """The reference toolchain; its last element is right only where memory happens to hold it already."""

    name: ClassVar[str] = "partial"

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        return PartialKernel(super().compile(function, target, module), 0.0)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        return PartialKernel(super().load(source, blob), 0.0)


@contextmanager
def faulty_toolchains() -> Iterator[None]:
    """Register all of them for the duration of a test."""
    with ExitStack() as stack:
        for toolchain in FAULTY:
            stack.enter_context(TOOLCHAINS.holding(toolchain.name, toolchain))
        yield


@contextmanager
def stumbling_toolchains() -> Iterator[None]:
    """Register those that have a fault with one operator, and what they say they support: everything."""
    with ExitStack() as stack:
        for toolchain in STUMBLING:
            stack.enter_context(TOOLCHAINS.holding(toolchain.name, toolchain))
            stack.enter_context(holding_operator_predicate(toolchain.name, toolchain().supports))
        yield
