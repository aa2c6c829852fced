"""Remarks of the passes that make a winner's program."""

from __future__ import annotations

import numpy as np

from intarsia.driver.explain.pass_remarks import group_remarks, instantiate_with_remarks
from intarsia.ir import Constant, DType, Function, IRModule, Span, TensorType, Var
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.op import call
from intarsia.report.run_records import RemarkRecord, RemarkSubject
from intarsia.target import Target


def program() -> IRModule:
    """A factor of channels that no weights before it can take."""
    x = Var("x", checked_type=TensorType((1, 3, 8, 8), DType.FLOAT32))
    factors = Constant(np.arange(1, 4, dtype=np.float32).reshape(1, 3, 1, 1))
    scaled = call("Mul", call("Relu", x), factors, span=Span("model.onnx", "scale"))
    weights = Constant(np.ones((4, 3, 3, 3), np.float32))
    return IRModule.from_expr(Function((x,), call("Conv", call("Relu", scaled), weights)))


def test_remarks_of_the_passes_of_native_are_collected() -> None:
    winner = MeasureInput(Workload(program(), "scaled"), Target("cpu -toolchain=native"), WHOLE)
    made, remarks = instantiate_with_remarks(winner)
    assert list(made.graph_functions)
    (remark,) = (item for item in remarks if item.pass_name == "BackwardFoldScaleAxis")
    assert remark.level == "missed"
    assert [(subject.operator, subject.node) for subject in remark.subjects] == [("Mul", "scale")]


def test_an_engine_has_passes_of_its_own() -> None:
    winner = MeasureInput(Workload(program(), "scaled"), Target("cpu -toolchain=onnxruntime"), WHOLE)
    assert instantiate_with_remarks(winner)[1] == ()


def test_equal_remarks_are_one() -> None:
    note = {"text": "uses its result", "operator": "Relu", "name": "%4", "node": "act"}
    remark = {"pass": "FuseOps", "level": "missed", "text": "is not fused", "operator": "Conv", "name": "%1"}
    remarks: list[dict[str, object]] = [
        {**remark, "node": node, "notes": notes} for node, notes in (("a", [note]), (None, []), ("a", [note]))
    ]
    subjects = RemarkSubject("Conv", "a", ("Relu (node 'act') uses its result",)), RemarkSubject("Conv", "")
    assert group_remarks(remarks) == (RemarkRecord("FuseOps", "missed", "is not fused", subjects),)
