"""Running one case in one column; the engines run in this very process."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from tests.backend.cases import Case
from tests.backend.similar import mismatch
from tests.backend.verdict import Column, Outcome, Verdict

from intarsia.frontend.onnx import from_onnx, to_onnx
from intarsia.ir import structural_digest, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.onnx_backend import BackendIsNotSupposedToImplementIt, IntarsiaBackend, backend_for
from intarsia.support.errors import CompileError, IntarsiaError, UnsupportedModelError

Run: TypeAlias = Callable[[list[Any]], Sequence[Any]]
"""From inputs to outputs."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case that is ready to run.

    Attributes:
        run: Computes the outputs.
        note: The reason of the verdict, if nothing is wrong.
    """

    run: Run
    note: str = ""


class EvaluatorError(Exception):
    """onnx's own evaluator cannot run a model."""


class RoundTripError(AssertionError):
    """A program that is not what it was after printing and parsing, or whose export is no valid model."""


def judge(case: Case, column: Column) -> Verdict:
    """Run a case; never raises."""
    np.random.seed(0)  # noqa: NPY002 - the state that onnx's evaluator draws random numbers from
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _verdict(case, column)


def _verdict(case: Case, column: Column) -> Verdict:
    try:
        prepared = _PREPARE[column](case)
        complaint = _complaint(case, prepared.run)
    except (BackendIsNotSupposedToImplementIt, UnsupportedModelError, CompileError) as error:
        return Verdict(case.name, column, Outcome.UNSUPPORTED, str(error))
    except RoundTripError as error:
        return Verdict(case.name, column, Outcome.WRONG, str(error))
    except (IntarsiaError, EvaluatorError) as error:
        return Verdict(case.name, column, Outcome.FAILED, f"{type(error).__name__}: {error}")
    except Exception as error:  # whatever escapes is what is looked for
        reason = f"{type(error).__name__}: {error}"
        return Verdict(case.name, column, Outcome.FAILED, reason, traceback.format_exc())
    outcome = Outcome.WRONG if complaint else Outcome.PASSED
    return Verdict(case.name, column, outcome, complaint or prepared.note)


def _complaint(case: Case, run: Run) -> str:
    complaints = (
        mismatch(run(inputs), expected, case.rtol, case.atol) for inputs, expected in case.data_sets
    )
    return next(filter(None, complaints), "")


def _evaluated(model: onnx.ModelProto) -> Run:
    initializers = {item.name for item in model.graph.initializer}
    names = [item.name for item in model.graph.input if item.name not in initializers]

    def run(inputs: list[Any]) -> Sequence[Any]:
        try:
            found: Sequence[Any] = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=False)))
        except Exception as error:
            raise EvaluatorError(f"{type(error).__name__}: {error}") from error
        return found

    return run


def _onnx(case: Case) -> Prepared:
    return Prepared(_evaluated(onnx.load_from_string(case.model)))


def _round_trip(case: Case) -> Prepared:
    """The case's model after import, print, parse and export."""
    module = from_onnx(case.model)
    printed = print_module(module)
    parsed = parse_module(printed.text, printed.constants)
    if not structural_equal(parsed, module):
        raise RoundTripError("the printed program is another one when it is parsed")
    if structural_digest(parsed) != structural_digest(module):
        raise RoundTripError("the printed program has another digest when it is parsed")
    exported = to_onnx(parsed["main"], parsed)
    if complaint := _invalid(exported, is_strict=False):
        raise RoundTripError(f"the exported model is not valid: {complaint}")
    return Prepared(_evaluated(exported), _invalid(exported, is_strict=True))


def _invalid(model: onnx.ModelProto, is_strict: bool) -> str:
    """What onnx's checker has against a model; a strict one infers and compares all types."""
    try:
        onnx.checker.check_model(model, full_check=is_strict)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return ""


def _backend(backend: type[IntarsiaBackend]) -> Callable[[Case], Prepared]:
    return lambda case: Prepared(backend.prepare(onnx.load_from_string(case.model)).run)


_PREPARE: dict[Column, Callable[[Case], Prepared]] = {
    Column.ONNX: _onnx,
    Column.ROUND_TRIP: _round_trip,
    Column.REFERENCE: _backend(backend_for("reference")),
    Column.NATIVE: _backend(backend_for("native")),
    Column.ONNXRUNTIME: _backend(backend_for("onnxruntime")),
    Column.OPENVINO: _backend(backend_for("openvino")),
    Column.AUTO: _backend(IntarsiaBackend),
}
