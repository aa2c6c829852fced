"""Candidates that do harm while they are built or while they run, and candidates of planted costs.

Workers register the kinds of candidates, and the toolchain whose kernels misbehave, by importing this module.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx.reference  # noqa: F401  # so that workers are forked with it: it takes a second to import
from tests.only_in_workers import is_worker
from tests.unit.measure.worker_pool import bad_tasks

from intarsia.ir import Attrs, Function, IRModule, with_fields
from intarsia.measure.candidate_kind import CANDIDATE_KINDS
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.runtime.kernel import TOOLCHAINS, Array, Kernel, KernelSource, Value
from intarsia.target import Target
from intarsia.toolchain.reference.toolchain import Reference

FAULTS: dict[str, Callable[[], object]] = {
    function.__name__: function
    for function in (
        *(bad_tasks.raise_error, bad_tasks.segfault, bad_tasks.abort, bad_tasks.exit_softly, bad_tasks.loop),
        *(bad_tasks.allocate_at_once, bad_tasks.allocate_bit_by_bit, bad_tasks.close_files),
        *(bad_tasks.kill_own_group, bad_tasks.kill_parent, bad_tasks.flood),
    )
}
BUILDING, RUNNING = "test bad to build", "test bad to run"


def bad_to_build(number: int, fault: str | None = None) -> Candidate:
    """A candidate whose instantiator does harm; none without a fault."""
    return Candidate(BUILDING, {"number": number, "fault": fault})


def bad_to_run(number: int, fault: str | None = None, **conduct: float | str) -> Candidate:
    """A candidate whose kernel behaves as `HazardKernel` says."""
    return Candidate(RUNNING, {"number": number, "fault": fault, **conduct})


class HazardKernel:
    """A kernel of the reference toolchain that misbehaves.

    Its conduct, all of it optional:
        fault: Name of what it does instead of computing,
        at_call: at this call in a process, from 1 (default 1).
        wrong_from: From this call in a process on its results are wrong.
        seconds: So long a call takes at least.
        log: Folder in which each process that runs it leaves a file.
    """

    def __init__(self, source: KernelSource) -> None:
        conduct, _, model = source.model.partition(b"\n")
        self.source = source
        self._conduct: dict[str, Any] = json.loads(conduct)
        self._kernel = Reference().load(replace(source, toolchain="reference", model=model))
        self._calls = 0

    def blob(self) -> bytes | None:
        return None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        self._calls += 1
        conduct = self._conduct
        if self._calls == 1 and "log" in conduct:
            Path(conduct["log"], f"{conduct['number']}.{os.getpid()}.{time.monotonic_ns()}").touch()
        if conduct["fault"] is not None and self._calls == conduct.get("at_call", 1):
            FAULTS[conduct["fault"]]()
        time.sleep(conduct.get("seconds", 0.0))
        results = self._kernel.run(inputs, outputs)
        if self._calls >= conduct.get("wrong_from", self._calls + 1):
            for result in results:
                assert isinstance(result, np.ndarray)
                np.add(result, 1, out=result)
        return results


class Hazard(Reference):
    """Compiles functions to kernels whose conduct stands in the function's attribute "hazard"."""

    name: ClassVar[str] = "hazard"

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        source = Reference().compile(function, target, module).source
        conduct = str(function.attrs["hazard"]).encode()
        return HazardKernel(replace(source, toolchain="hazard", model=conduct + b"\n" + source.model))

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        return HazardKernel(source)


def _bad_to_build(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    assert isinstance(trace, dict)
    if trace["fault"] is not None:
        FAULTS[str(trace["fault"])]()
    return mod


def _bad_to_run(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    attrs = {"Compiler": "hazard", "target": "cpu -toolchain=hazard", "global_symbol": "main"}
    marked = with_fields(mod["main"], attrs=Attrs({**attrs, "hazard": json.dumps(trace)}))
    return mod.with_function("main", marked)


CANDIDATE_KINDS.register(BUILDING, _bad_to_build)
CANDIDATE_KINDS.register(RUNNING, _bad_to_run)
if is_worker():
    TOOLCHAINS.register(Hazard.name, Hazard)
