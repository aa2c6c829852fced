"""The reference result of a program, and the check of candidates against it (DESIGN idea 5).

A small program is computed by onnx.reference, the definition of ONNX's operators. A large one would take it
minutes: there onnxruntime with all optimisations off stands in, and is believed only if a second engine that
shares no code with it agrees; if it does not, onnx.reference decides, however long it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.measure.compare_outputs import GateReport, compare, holds_only_nan
from intarsia.measure.tolerance import Tolerance, tolerance_for
from intarsia.measure.whole_run import run_arrays, run_whole
from intarsia.measure.work import Work, work_of
from intarsia.support.errors import CompileError, ExecutionError, MissingToolchainError
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

__all__ = ["SMALL", "Gate", "run_arrays"]

Array = npt.NDArray[Any]

SMALL = 30_000_000
"""Multiply-adds that onnx.reference computes within seconds."""

_STAND_IN = Target.for_toolchain("onnxruntime").with_options(optimize=0)
_SECOND = Target.for_toolchain("openvino")
_DEFINITION = Target.for_toolchain("reference")
_OTHER_INPUTS = "give inputs for which the model computes numbers"


@dataclass(frozen=True, slots=True)
class Gate:
    """Lets right results pass.

    Attributes:
        names: The outputs' names.
        expected: The reference result.
        tolerances: Allowed difference of each output.
        reference: How the reference result was made, in words.
    """

    names: tuple[str, ...]
    expected: tuple[Array, ...]
    tolerances: tuple[Tolerance, ...]
    reference: str

    @classmethod
    def for_module(cls, module: IRModule, inputs: Mapping[str, Array]) -> Gate:
        """Compute the reference result of a module that no toolchain is chosen for yet.

        Args:
            module: Its @main is computed.
            inputs: By parameter name.

        Raises:
            ExecutionError: Not even onnx.reference can compute it.
        """
        gate = cls._for_module(module, inputs)
        if not gate.unproven:
            return gate
        listed = ", ".join(f'"{name}"' for name in gate.unproven)
        text = f"{gate.reference}; NaN in all of output {listed}, which proves nothing of it"
        return replace(gate, reference=text)

    @classmethod
    def known(cls, module: IRModule, expected: Sequence[Array]) -> Gate:
        """The gate of a module whose result is known, flat and in order."""
        work = work_of(module)
        tolerances = tuple(
            tolerance_for(array.dtype, work.reduction_length, work.depth, work.quantized)
            for array in expected
        )
        names = tuple(f"output_{number}" for number in range(len(expected)))
        return cls(names, tuple(expected), tolerances, "known")

    @classmethod
    def stand_in(cls, module: IRModule, inputs: Mapping[str, Array]) -> Gate:
        """As `for_module`, but where onnx.reference would take long, onnxruntime is believed unchecked.

        For values that are checked otherwise later, such as those within a program.
        """
        work = work_of(module)
        if work.multiply_adds > SMALL and "onnxruntime" in {each.name for each in usable_toolchains()}:
            with suppress(CompileError, ExecutionError):
                return cls._of(module, inputs, _STAND_IN, work, "onnxruntime without optimisations")
        return cls._of(module, inputs, _DEFINITION, work, "onnx.reference")

    @classmethod
    def _for_module(cls, module: IRModule, inputs: Mapping[str, Array]) -> Gate:
        work = work_of(module)
        usable = {toolchain.name for toolchain in usable_toolchains()}
        if work.multiply_adds <= SMALL or "onnxruntime" not in usable:
            return cls._of(module, inputs, _DEFINITION, work, "onnx.reference")
        try:
            gate = cls._of(module, inputs, _STAND_IN, work, "onnxruntime without optimisations")
        except (CompileError, ExecutionError):
            return cls._of(module, inputs, _DEFINITION, work, "onnx.reference")
        return gate._cross_checked(module, inputs, work) if "openvino" in usable else gate

    @property
    def unproven(self) -> tuple[str, ...]:
        """Names of outputs that are NaN wherever they are numbers: their equality says nothing."""
        pairs = zip(self.names, self.expected, strict=True)
        return tuple(name for name, array in pairs if holds_only_nan(array))

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """Compare a candidate's outputs, flat and in order, with the reference.

        Where the reference has no numbers at all, nothing passes.
        """
        report = self._compared(outputs, self.expected)
        unproven = self.unproven
        if not report.passed or not unproven or len(unproven) < len(self.names):
            return report
        message = f"every output of the reference is NaN, so that nothing can be verified; {_OTHER_INPUTS}"
        return replace(report, passed=False, message=message)

    def agreeing(self, results: Mapping[str, Sequence[Array]]) -> tuple[str, str] | None:
        """Two of several results, by name, that are right if one of them is; None if all differ.

        That two engines agree against the reference says that the reference may be wrong.
        """
        pairs = combinations(results, 2)
        return next((pair for pair in pairs if self._agree(*(results[name] for name in pair))), None)

    def _agree(self, first: Sequence[Array], second: Sequence[Array]) -> bool:
        return len(first) == len(self.names) and self._compared(second, first).passed

    def _compared(self, outputs: Sequence[Array], expected: Sequence[Array]) -> GateReport:
        return compare(outputs, expected, self.names, self.tolerances)

    @classmethod
    def _of(
        cls, module: IRModule, inputs: Mapping[str, Array], target: Target, work: Work, text: str
    ) -> Gate:
        run = run_whole(module, target, inputs)
        tolerances = tuple(
            tolerance_for(item.dtype, work.reduction_length, work.depth, work.quantized)
            for item in run.outputs
        )
        names = tuple(output.name for output in run.executable.outputs)
        return cls(names, run.outputs, tolerances, text)

    def _cross_checked(self, module: IRModule, inputs: Mapping[str, Array], work: Work) -> Gate:
        try:
            second = run_whole(module, _SECOND, inputs)
        except (CompileError, ExecutionError, MissingToolchainError):
            return self
        report = self._compared(second.outputs, self.expected)
        if report.passed:
            text = f"{self.reference}, cross-checked by openvino (difference {report.max_rel_error:.1e})"
            return replace(self, reference=text)
        text = f"onnx.reference, because {self.reference} and openvino disagree: {report.message}"
        return Gate._of(module, inputs, _DEFINITION, work, text)
