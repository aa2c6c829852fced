"""The one way from a program to something that runs.

Imports stand inside the functions: `import intarsia` binds `build` without loading the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.support.errors import UsageError
from intarsia.support.version import VERSION

if TYPE_CHECKING:
    from intarsia.ir import IRModule
    from intarsia.runtime.executable import Executable
    from intarsia.runtime.provenance import Provenance
    from intarsia.target import Target


def build(mod: IRModule, target: Target | str | None = None) -> Executable:
    """Compile what the module says, and decide nothing.

    Functions with the attribute `Compiler` go to that toolchain (for the target in their attribute `target`),
    everything else goes to the toolchain of `target`. A function without marked parts, calls of
    global functions and control flow is one kernel; otherwise each unmarked operator is one.

    A program that names several devices must be planned (PlanDevices). Unmarked code then goes to the
    toolchain that the target of its device names, and only if that names none to that of `target`.

    Args:
        mod: The program; execution starts at @main. Types must have been inferred.
        target: For unmarked code: a target, its text, or the name of a toolchain; the reference toolchain, if
            not given or without a toolchain. A target with another toolchain also takes functions with an If
            as one kernel.

    Raises:
        CompileError: A toolchain refuses its part.
        MissingToolchainError: A toolchain is not usable here.
        UnsupportedModelError: A function is used as a value, a type is unknown, or a device is not planned.
    """
    from contextlib import ExitStack

    from intarsia.build.kernel_table import KernelTable
    from intarsia.build.program import ProgramLowering
    from intarsia.ir import IRModule
    from intarsia.runtime import artifact_load  # noqa: F401  # executables are pickled by it
    from intarsia.runtime.devices.open_devices import open_devices
    from intarsia.runtime.executable import Executable
    from intarsia.target import Target
    from intarsia.target.reference import REFERENCE

    if not isinstance(mod, IRModule):
        raise UsageError(
            f"build takes a module, found {type(mod).__name__}",
            help="make one with from_onnx(model), or use tune",
        )
    wanted = Target.of_text(target) if isinstance(target, str) else target
    if wanted is None or wanted.toolchain is None:
        options = {} if wanted is None else dict(wanted.options)
        wanted = Target.for_toolchain(REFERENCE, "cpu" if wanted is None else wanted.kind, **options)
    kernels = KernelTable(mod)
    lowering = ProgramLowering(kernels, wanted, whole_control_flow=wanted.toolchain != REFERENCE)
    with ExitStack() as closing:
        kernels.devices = open_devices(lowering.devices.plan_names, lowering.devices.threads)
        for device in kernels.devices:
            closing.callback(device.close)
        plan, compiled = lowering.plan(), kernels.kernels
        exe = Executable(
            plan,
            compiled,
            lowering.constants,
            lambda: _provenance(mod),
            kernel_names=kernels.names,
            devices=kernels.devices,
        )
        closing.pop_all()
    return exe


def _provenance(mod: IRModule) -> Provenance:
    from intarsia.ir.printer import print_module
    from intarsia.runtime.provenance import Provenance
    from intarsia.toolchain.this_host import this_host

    printed = print_module(mod)
    return Provenance(
        program=printed.text,
        program_constants=tuple(printed.constants),
        model=str(mod.attrs.get("name", "")),
        host=this_host().to_json(),
        created_by=f"intarsia {VERSION}",
    )
