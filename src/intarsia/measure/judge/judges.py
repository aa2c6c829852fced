"""Judges: engines that vote on the right result, grouped by shared code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.judged_program import judged_program
from intarsia.measure.whole_run import run_arrays
from intarsia.passes.devices.without_devices import without_devices
from intarsia.runtime.executable import Executable
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import CompileError, IntarsiaError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.toolchain import usable_toolchains
from intarsia.transform import PassContext

Results = tuple[Array, ...]
"""The outputs of a program, flat and in order."""


@dataclass(frozen=True, slots=True)
class Judge:
    """An engine with its most conservative options.

    Attributes:
        name: Name for messages.
        target: Target that compiles and runs programs.
        group: Name of the group of engines with shared code, which have one vote together.
    """

    name: str
    target: Target
    group: str

    @property
    def is_usable(self) -> bool:
        """Whether the engine is installed."""
        return self.target.toolchain in {toolchain.name for toolchain in usable_toolchains()}


DEFINITION: Final = Judge("onnx.reference", REFERENCE_TARGET, "NumPy")
UNOPTIMISED: Final = Judge(
    "onnxruntime without optimisations", Target.for_toolchain("onnxruntime").with_options(optimize=0), "MLAS"
)
OPENVINO: Final = Judge("openvino", Target.for_toolchain("openvino"), "oneDNN")
NATIVE: Final = Judge(
    "native without fusion",
    # Checked: indices out of range are an error, as for the other engines. Otherwise native clamps them.
    Target.for_toolchain("native").with_options(
        fused=False, convolutions="direct", attention=False, checked=True
    ),
    "native",
)


@dataclass(slots=True)
class JudgeSession(ClosedOnExit):
    """A program that is compiled for a judge on its first run. Errors of the engine are returned.

    Attributes:
        judge: Judge that runs the program.
        module: Program without marked toolchains.
    """

    judge: Judge
    module: IRModule
    _executable: Executable | None = field(default=None, init=False)
    _refusal: IntarsiaError | None = field(default=None, init=False)

    def run(self, inputs: Mapping[str, Array]) -> Results | IntarsiaError:
        """Run the program and return the results, or the error if the engine refuses it or fails."""
        try:
            if self._refusal is None and self._executable is None:
                # A judge runs all of a program, also of one that is planned on several devices.
                program = without_devices(self.module)
                with PassContext():  # settings of what is judged must not change what is right
                    self._executable = build(judged_program(program, self.judge.target))
        except IntarsiaError as error:
            self._refusal = error
        # Engines are foreign code: while they compile they raise what they like, such as RuntimeError.
        except Exception as error:
            self._refusal = CompileError(f"{type(error).__name__} while compiling: {error}")
            self._refusal.__cause__ = error
        if self._executable is None:
            assert self._refusal is not None
            return self._refusal
        try:
            # Copies: an engine may give memory that it writes again in the next call.
            return tuple(array.copy() for array in run_arrays(self._executable, inputs))
        except IntarsiaError as error:
            return error

    @property
    def has_refused(self) -> bool:
        """Whether the engine has not compiled the program; False before the first run."""
        return self._refusal is not None

    def names(self) -> tuple[str, ...]:
        """Return the outputs' names; () before the first run, or if the engine refuses the program."""
        return () if self._executable is None else tuple(info.name for info in self._executable.outputs)

    def close(self) -> None:
        """Release the compiled program."""
        if self._executable is not None:
            self._executable.close()
            self._executable = None
