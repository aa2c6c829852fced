"""From the source of a kernel to its plan: what is compiled, and what a search for schedules is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.llvm.isa import Isa
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.native_simplified import simplified
from intarsia.toolchain.native_source import source_function


@dataclass(frozen=True, slots=True)
class PlannedRegion:
    """A source before its kernels are compiled.

    Attributes:
        isa: What they will run on.
        threads: On how many threads.
        names: Of the parameters.
        plan: Which kernels, in which order.
    """

    isa: Isa
    threads: int
    names: tuple[str, ...]
    plan: RegionPlan


def planned_region(source: KernelSource) -> PlannedRegion:
    """The plan of a source for this machine.

    Raises:
        CompileError: An operator has no native kernel, or a shape is not known.
    """
    target = Target(source.target)
    if target.option("optimize", 1) == 0:
        raise CompileError("native cannot switch its optimisations off", help="leave out -optimize=0")
    threads = target.option("threads", usable_cores(Path("/")))
    function, isa = simplified(source_function(source)), Isa.host()
    try:
        plan = plan_region(function, isa)
    except CompileError as error:
        raise CompileError(f"native cannot compile this: {error.problem}", help=error.help) from error
    return PlannedRegion(isa, threads, tuple(param.name for param in function.params), plan)
