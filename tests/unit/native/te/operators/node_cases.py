"""What becomes of ONNX's backend node tests when their operators are computed by compute rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.backend.cases import Case
from tests.backend.similar import mismatch
from tests.te_cases import Tensors, case_function, case_operators, tensors_of
from tests.te_evaluator import evaluate, operations

from intarsia.ir.loop_verify import loop_complaints
from intarsia.native import te
from intarsia.native.lowering.naive import lower_naive
from intarsia.native.te.operators import NotCoveredError, compute_rules
from intarsia.native.tir import interpret
from intarsia.support.errors import UnsupportedModelError

Array = npt.NDArray[Any]

QUICK = 100_000
"""Iterations of innermost loops; larger cases are interpreted in the slow suite only."""


class Fate(StrEnum):
    """What becomes of a case."""

    RIGHT = "right"
    NOT_COVERED = "not covered"
    NOT_TENSORS = "not of tensors"
    WRONG = "wrong"


@dataclass(frozen=True)
class Outcome:
    """A case that only calls operators with compute rules.

    Attributes:
        name: The case.
        operators: Operators that its model calls.
        fate: Kind of the outcome.
        reason: Why, if it is not right.
        iterations: Number of iterations of all innermost loops; 0 if there are none.
    """

    name: str
    operators: frozenset[str]
    fate: Fate
    reason: str = ""
    iterations: int = 0


def outcomes(cases: Iterable[Case]) -> list[Outcome]:
    """What becomes of the cases that only call operators with compute rules."""
    known = frozenset(compute_rules())
    found = ((case, frozenset(case_operators(case))) for case in cases)
    return [outcome(case, operators) for case, operators in found if operators and operators <= known]


def outcome(case: Case, operators: frozenset[str], is_quick: bool = True) -> Outcome:
    """What becomes of a case; a large one is interpreted only if it need not be quick, and else evaluated."""
    try:
        made = [_tensors(case, inputs) for inputs, _ in case.data_sets]
    except NotCoveredError as error:
        return Outcome(case.name, operators, Fate.NOT_COVERED, error.problem)
    except (UnsupportedModelError, NotImplementedError) as error:
        return Outcome(case.name, operators, Fate.NOT_TENSORS, str(error))
    size = max(iterations(tensors.outputs) for tensors in made)
    for tensors, (_, expected) in zip(made, case.data_sets, strict=True):
        results = (
            evaluate(tensors.outputs, tensors.feeds) if is_quick and size > QUICK else interpreted(tensors)
        )
        if complaint := mismatch(results, expected, case.rtol, case.atol):
            return Outcome(case.name, operators, Fate.WRONG, complaint, size)
    return Outcome(case.name, operators, Fate.RIGHT, "", size)


def interpreted(tensors: Tensors) -> list[Array]:
    """The values of tensors, lowered without a schedule and interpreted."""
    prim_func = lower_naive(tensors.outputs)
    complaints = list(loop_complaints("main", prim_func))
    assert not complaints, complaints[:3]
    outputs = [np.zeros(tensor.shape, tensor.dtype.numpy) for tensor in tensors.outputs]
    inputs = prim_func.params[: len(prim_func.params) - len(outputs)]
    interpret(prim_func, [*(np.array(tensors.feeds[param.name]) for param in inputs), *outputs])
    return outputs


def iterations(tensors: Sequence[te.Tensor]) -> int:
    """How often innermost loops of the computations below tensors run."""
    return sum(
        math.prod(axis.extent for axis in (*op.axes, *op.reduce_axes))
        for op in operations(tensors)
        if isinstance(op, te.ComputeOp)
    )


def _tensors(case: Case, inputs: Sequence[Any]) -> Tensors:
    if not all(isinstance(value, np.ndarray | np.generic) for value in inputs):
        raise NotImplementedError("sequences and optional values")
    function, values = case_function(case, [np.asarray(value) for value in inputs])
    return tensors_of(function, values)
