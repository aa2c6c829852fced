"""What makes a program of a candidate: instantiators by name, so that any process finds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from intarsia.ir import IRModule
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.passes import partition_whole
from intarsia.support.registry import Registry
from intarsia.target import Target

Instantiate: TypeAlias = Callable[[IRModule, Target, PlainData], IRModule]
"""Makes of a workload's program, the target and a candidate's trace the program to build."""

CANDIDATE_KINDS: Registry[Instantiate] = Registry("candidate kind", "intarsia.candidates")
"""Kinds of this package, and those that installed packages announce as entry points of that group."""


def instantiate(mod: IRModule, target: Target, candidate: Candidate) -> IRModule:
    """The program that a candidate stands for.

    Raises:
        UsageError: There is no such kind of candidates.
    """
    return CANDIDATE_KINDS[candidate.kind](mod, target, candidate.trace)


def _as_it_is(mod: IRModule, target: Target, trace: PlainData) -> IRModule:  # noqa: ARG001  # of all instantiators
    return mod


def _whole(mod: IRModule, target: Target, trace: PlainData) -> IRModule:  # noqa: ARG001  # of all instantiators
    return partition_whole(mod, target)


AS_IT_IS = Candidate("as it is")
"""The program with the toolchains that its functions are marked for."""

WHOLE = Candidate("whole")
"""All of the program given to the target's toolchain."""

CANDIDATE_KINDS.register(AS_IT_IS.kind, _as_it_is)
CANDIDATE_KINDS.register(WHOLE.kind, _whole)
