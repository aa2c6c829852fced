"""Every case of ONNX's node suite that is one call on tensors, evaluated on constants."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.backend.cases import Case, onnx_cases
from tests.backend.similar import mismatch

from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Constant, Expr, Op, post_order, substitute
from intarsia.op.evaluate import can_evaluate, evaluate_call
from intarsia.op.infer import typed
from intarsia.op.purity import is_random
from intarsia.support.errors import ExecutionError, IntarsiaError

pytestmark = pytest.mark.backend

EXPECTED_TO_FAIL = {
    "ImportError": "needs a package that is not one of ours (Pillow)",
    "returned no tensor": "sequences are no constants",
    "'STFT' returned": "onnx infers another shape than it computes",
    "cannot be evaluated by onnx.reference": "what it computes wrong is no constant (op/reference_gaps.py)",
}
"""Parts of messages, and why the call is left to run time."""


def test_cases_of_one_call_have_the_expected_value() -> None:
    verdicts = [_verdict(case) for case in onnx_cases(("node",))]
    wrong = [text for text in verdicts if text and not any(part in text for part in EXPECTED_TO_FAIL)]
    assert wrong == []
    assert verdicts.count("") > 1000


def _verdict(case: Case) -> str | None:
    """What is wrong; empty if nothing is, None if it is no single call on tensors."""
    model = onnx.load_from_string(case.model)
    (inputs, outputs), *_ = case.data_sets
    if len(model.graph.node) != 1 or not all(isinstance(item, np.ndarray) for item in inputs):
        return None
    try:
        main = from_onnx(model)["main"]
    except IntarsiaError:
        return None
    constants: dict[Expr, Expr] = dict(zip(main.params, map(Constant, inputs), strict=True))
    calls = [item for item in post_order(substitute(main.body, constants)) if isinstance(item, Call)]
    if len(calls) != 1 or not can_evaluate(calls[0]) or is_random(calls[0]):
        return None
    made = typed(calls[0])
    assert isinstance(made, Call)
    assert isinstance(made.op, Op)
    try:
        found = evaluate_call(made)
    except ExecutionError as error:
        return f"{case.name}: {error}"
    if isinstance(found, tuple) and len(found) != len(outputs):
        return None  # the case leaves results out
    text = mismatch(found if isinstance(found, tuple) else (found,), outputs, case.rtol, case.atol)
    return f"{case.name}: {text}" if text else ""
