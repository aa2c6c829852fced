"""Instantiate candidates as programs.

Instantiators are registered by name, so that any process finds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from intarsia.ir import IRModule
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.passes import partition_whole
from intarsia.support.registry import Registry
from intarsia.target import Target

Instantiate: TypeAlias = Callable[[IRModule, Target, PlainData], IRModule]
"""Function of a workload's program, the target and a candidate's trace that returns the program to build."""

CANDIDATE_KINDS: Registry[Instantiate] = Registry("candidate kind", "intarsia.candidates")
"""Kinds of this package, and kinds that other packages register as entry points of that group."""


def instantiate(mod: IRModule, target: Target, candidate: Candidate) -> IRModule:
    """Return the program of a candidate.

    Raises:
        UsageError: There is no such kind of candidates.
    """
    return CANDIDATE_KINDS[candidate.kind](mod, target, candidate.trace)


def _keep(mod: IRModule, target: Target, trace: PlainData) -> IRModule:  # noqa: ARG001  # of all instantiators
    return mod


def _take_whole(mod: IRModule, target: Target, trace: PlainData) -> IRModule:  # noqa: ARG001  # of all instantiators
    return partition_whole(mod, target)


AS_IT_IS = Candidate("as it is")
"""The program with the toolchains that its functions are marked with."""

WHOLE = Candidate("whole")
"""The whole-program candidate: the target's toolchain compiles all of it."""

CANDIDATE_KINDS.register(AS_IT_IS.kind, _keep)
CANDIDATE_KINDS.register(WHOLE.kind, _take_whole)
