"""Kernels for another CPU than this machine's: they can be saved and not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.native.machine.isa import Isa
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.errors import ExecutionError
from intarsia.target import Target


def named_architecture(source: KernelSource, isa: Isa) -> str | None:
    """Return the architecture of kernels if the target of their source names a CPU, else None."""
    return None if Target(source.target).option("mcpu") is None else isa.architecture


class ForeignKernel:
    """Compiled kernels that this machine cannot run.

    Args:
        source: Source of the kernels.
        isa: Instruction set that they need.
        write: Function that returns their compiled form.
    """

    def __init__(self, source: KernelSource, isa: Isa, write: Callable[[], bytes]) -> None:
        self.source = source
        self._isa = isa
        self._write = write

    @property
    def named_architecture(self) -> str | None:
        """As `CrossCompiledKernel.named_architecture`."""
        return self._isa.architecture

    def blob(self) -> bytes | None:
        """The compiled form, as `NativeKernel.blob`."""
        return self._write()

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """Refuse to run.

        Raises:
            ExecutionError: Always.
        """
        del inputs, outputs
        lacking = ", ".join(Isa.host_without_compiler().lacks(self._isa))
        raise ExecutionError(
            f"native code for {self._isa.cpu} does not run here: this machine has no {lacking}",
            help="save it, and load the artifact on a machine with that CPU",
        )
