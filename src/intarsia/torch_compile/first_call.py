"""Verify an executable: its results on the inputs of the first call, compared with those of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.tolerance import Tolerance
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError

Array = npt.NDArray[Any]

NOISE_FACTOR: Final = 64.0
"""Allowed error of an output, as a multiple of its change when inputs and weights change by an ulp or two.

Sums in another order change more values, so the factor is large; a wrong program is off by far more.
"""


@dataclass(frozen=True, slots=True)
class FirstCall:
    """Inputs of the first call, and what PyTorch computes from them.

    Attributes:
        inputs: Arrays by parameter name.
        expected: Function that computes the results of the program, flat and in order; with True, from inputs
            and weights that differ in their last bits.
    """

    inputs: dict[str, Any]
    expected: Callable[[bool], Sequence[Array]]


@dataclass
class FirstCallCheck:
    """The check of a program's executables.

    Attributes:
        module: The program.
        call: Its first call.
    """

    module: IRModule
    call: FirstCall
    _gates: list[Gate] = field(default_factory=list, init=False)

    def refuse_wrong(self, executable: Executable) -> None:
        """Run an executable and compare its results.

        The rounding error bound comes first. Where terms cancel, it is too strict, and PyTorch's own results
        from inputs that differ in their last bits say how uncertain they are.

        Raises:
            CompileError: A result is wrong.
        """
        outputs = [np.asarray(value) for value in executable.run_flat(**self.call.inputs)]
        report = self._strict().check(outputs)
        if not report.passed:
            report = self._by_noise().check(outputs)
        if not report.passed:
            raise CompileError(f"its results differ from PyTorch's: {report.message}")

    def _strict(self) -> Gate:
        if not self._gates:
            self._gates.append(Gate.known(self.module, self.call.expected(False)))
        return self._gates[0]

    def _by_noise(self) -> Gate:
        strict = self._strict()
        if len(self._gates) < 2:
            changed = self.call.expected(True)
            tolerances = [
                _loosened(tolerance or Tolerance(), array, other)
                for tolerance, array, other in zip(strict.tolerances, strict.expected, changed, strict=True)
            ]
            self._gates.append(Gate.by_tolerance(strict.names, strict.expected, tolerances, "PyTorch"))
        return self._gates[1]


def _loosened(tolerance: Tolerance, expected: Array, changed: Array) -> Tolerance:
    """Return a tolerance that also allows a multiple of the difference between two results."""
    with np.errstate(all="ignore"):
        differences = np.abs(expected.astype(np.float64) - changed.astype(np.float64))
    noise = float(differences[np.isfinite(differences)].max(initial=0.0))
    return replace(tolerance, atol=tolerance.atol + NOISE_FACTOR * noise)
