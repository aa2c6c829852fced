"""Parts of programs that are timed where they run, without the copies that their neighbours may save.

The target of such a part has the option `timed_on_device`: its inputs and results stay in the memory of the
GPU, and its time is that between two events of the GPU. Whole programs are timed by the clock of the host, as
they are called: with copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from intarsia.measure.timing.clock import Clock
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.target import Target
from intarsia.target.device_type import DeviceType

_OPTION: Final = "timed_on_device"


def timed_on_device(target: Target) -> Target:
    """Return the target for which parts of a program on several devices are measured."""
    if target.kind != DeviceType.CUDA.kind:
        return target
    return target.with_options(**{_OPTION: True})


def is_timed_on_device(target: Target) -> bool:
    """Whether programs for a target are timed on its device."""
    return target.option(_OPTION, False)


def device_call(executable: Executable, inputs: Sequence[Array]) -> tuple[Callable[[], object], Clock] | None:
    """Return the call and the clock by which a program is timed on its device; None if by the host's.

    Raises:
        UsageError: Its target has the option, and it has kernels that are not for GPUs.
    """
    targets = [Target(kernel.source.target) for kernel in executable.kernels]
    if not any(map(is_timed_on_device, targets)):
        return None
    from intarsia.runtime.cuda.resident_program import ResidentProgram

    program = ResidentProgram(executable, inputs)
    return program, program.clock
