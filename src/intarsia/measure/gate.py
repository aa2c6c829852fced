"""The reference result of a program, and the check of candidates against it (DESIGN idea 5).

A small program is computed by onnx.reference, the definition of ONNX's operators. A large one would take it
minutes: there onnxruntime with all optimisations off stands in, and is believed only if a second engine that
shares no code with it agrees; if it does not, onnx.reference decides, however long it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.measure.compare_outputs import GateReport, compare
from intarsia.measure.tolerance import Tolerance, tolerance_for
from intarsia.measure.work import Work, work_of
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError, ExecutionError, MissingToolchainError, UnsupportedModelError
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

Array = npt.NDArray[Any]

SMALL = 30_000_000
"""Multiply-adds that onnx.reference computes within seconds."""

_STAND_IN = Target.for_toolchain("onnxruntime").with_options(optimize=0)
_SECOND = Target.for_toolchain("openvino")
_DEFINITION = Target.for_toolchain("reference")


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
        work = work_of(module)
        usable = {toolchain.name for toolchain in usable_toolchains()}
        if work.multiply_adds <= SMALL or "onnxruntime" not in usable:
            return cls._of(module, inputs, _DEFINITION, work, "onnx.reference")
        try:
            gate = cls._of(module, inputs, _STAND_IN, work, "onnxruntime without optimisations")
        except (CompileError, ExecutionError):
            return cls._of(module, inputs, _DEFINITION, work, "onnx.reference")
        return gate._cross_checked(module, inputs, work) if "openvino" in usable else gate

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """Compare a candidate's outputs, flat and in order, with the reference."""
        return compare(outputs, self.expected, self.names, self.tolerances)

    @classmethod
    def _of(
        cls, module: IRModule, inputs: Mapping[str, Array], target: Target, work: Work, text: str
    ) -> Gate:
        executable = build(partition_whole(module, target))
        expected = run_arrays(executable, inputs)
        tolerances = tuple(
            tolerance_for(item.dtype, work.reduction_length, work.depth, work.quantized) for item in expected
        )
        names = tuple(output.name for output in executable.outputs)
        return cls(names, tuple(expected), tolerances, text)

    def _cross_checked(self, module: IRModule, inputs: Mapping[str, Array], work: Work) -> Gate:
        try:
            second = run_arrays(build(partition_whole(module, _SECOND)), inputs)
        except (CompileError, ExecutionError, MissingToolchainError):
            return self
        report = self.check(second)
        if report.passed:
            text = f"{self.reference}, cross-checked by openvino (difference {report.max_rel_error:.1e})"
            return Gate(self.names, self.expected, self.tolerances, text)
        text = f"onnx.reference, because {self.reference} and openvino disagree: {report.message}"
        return Gate._of(module, inputs, _DEFINITION, work, text)


def run_arrays(executable: Executable, inputs: Mapping[str, Array]) -> list[Array]:
    """Run a program whose results are all arrays.

    Raises:
        ExecutionError: A kernel failed.
        UnsupportedModelError: A result is a sequence or an absent optional.
    """
    results = executable.run_flat(**inputs)
    for info, value in zip(executable.outputs, results, strict=True):
        if not isinstance(value, np.ndarray):
            raise UnsupportedModelError(
                f"output {info.name!r} is a sequence or optional, which cannot be compared"
            )
    return [value for value in results if isinstance(value, np.ndarray)]
