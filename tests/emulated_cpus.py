"""Instruction sets of common CPUs, for running the suite as if on one of them (`pytest --isa NAME`).

Code is generated for the named CPU. It runs where this machine has all of its features; a test whose code
this machine cannot run is skipped with that reason, so that tests of plans, schedules and emitted text still
say whether they assume anything of the CPU that they were written on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.named_cpus import NAMED_CPUS
from intarsia.support.errors import ArtifactError
from intarsia.target.machine_families import family_model

_CANNOT_RUN = "does not run here: this machine has no"

CPUS: Mapping[str, Isa] = MappingProxyType(
    {name: isa for name, isa in NAMED_CPUS.items() if isa.architecture == "x86_64"}
)


def emulate(name: str) -> None:
    """Let `Isa.host()` return the instruction set of a CPU, with the cores and caches of this machine.

    What else is known of a machine is what is true of the CPU's family.
    """
    here = Isa.host()
    machine = replace(family_model(name), caches=here.caches)
    missing = tuple(set(here.features) - set(CPUS[name].features))
    cpu = replace(CPUS[name], cores=here.cores, machine=machine, missing=missing)
    Isa.host = classmethod(lambda _: cpu)  # type: ignore[method-assign, assignment]
    if not here.fits(cpu):
        NativeFunction.of_code = classmethod(_refuse_to_run)  # type: ignore[method-assign, assignment]


def _refuse_to_run(_class: type[NativeFunction], /, *_given: object, **_named: object) -> NativeFunction:
    """Stand in for loading a kernel: some are loaded without an artifact that names their instruction set."""
    raise ArtifactError(f"native code {_CANNOT_RUN} what --isa names")


def skip_what_cannot_run(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Turn the failure of a test whose native code this machine cannot run into a skip with that reason."""
    message = "" if call.excinfo is None else str(call.excinfo.value)
    if report.failed and _CANNOT_RUN in message:
        report.outcome = "skipped"
        report.longrepr = (str(report.fspath), report.location[1] or 0, message.splitlines()[0])
