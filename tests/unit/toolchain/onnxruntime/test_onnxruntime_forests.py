"""Forests of two classes: what onnxruntime labels wrong it is not given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from tests.onnx_models import onnxruntime_outputs, reference_outputs

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, IRModule, Op, post_order
from intarsia.passes import partition_for, partition_whole
from intarsia.support.errors import CompileError
from intarsia.toolchain import toolchain

X = np.array([[-1.0], [0.25], [1.0]], np.float32)
WEIGHTS = (0.75, 0.25, 0.375, 0.625)
"""Of both classes, for numbers up to 0 and for others: X is of the first, the second and the second class."""


def forest(ids: tuple[int, ...] = (0, 1, 0, 1), used: tuple[int, ...] = (0, 1), **attributes: Any) -> Any:
    """A model of one tree with two leaves."""
    names = [name if number in used else "" for number, name in enumerate(("label", "scores"))]
    if not any(name.startswith("classlabels") for name in attributes):
        attributes["classlabels_int64s"] = [0, 2]
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        names,
        name="forest",
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.0, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0] * len(ids),
        class_nodeids=[1 + 2 * number // len(ids) for number in range(len(ids))],
        class_ids=ids,
        class_weights=WEIGHTS[: len(ids)],
        **attributes,
    )
    outputs = [helper.make_empty_tensor_value_info(name) for name in names if name]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, X.shape)], outputs)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def outputs_of(module: IRModule, name: str) -> list[Any]:
    with ia.build(partition_whole(module, ia.Target.for_toolchain(name))) as executable:
        return list(executable.run_flat(X))


def supported(module: IRModule) -> bool:
    (call,) = (
        expr for expr in post_order(module["main"]) if isinstance(expr, Call) and isinstance(expr.op, Op)
    )
    return toolchain("onnxruntime").supports(call)


@pytest.mark.parametrize(
    "labels",
    [{"classlabels_int64s": [0, 2]}, {"classlabels_int64s": [0, 1]}, {"classlabels_strings": ["no", "yes"]}],
)
def test_onnxruntime_mislabels_two_classes_and_is_not_given_them(labels: dict[str, Any]) -> None:
    model = forest(**labels)
    names = next(iter(labels.values()))
    wanted = [names[0], names[1], names[1]]
    wrong, scores = onnxruntime_outputs(model, {"x": X})
    assert wrong.tolist() != wanted  # once it is right, the refusal can go
    right, expected_scores = reference_outputs(model, {"x": X})
    assert right.tolist() == wanted
    np.testing.assert_allclose(scores, expected_scores)
    module = from_onnx(model)
    assert not supported(module)
    with pytest.raises(CompileError) as caught:
        outputs_of(module, "onnxruntime")
    assert caught.value.problem == (
        "onnxruntime cannot compile this: it labels two classes wrong whose leaves have weights for both "
        "(node 'forest')"
    )


def test_native_labels_two_classes_as_the_reference_does() -> None:
    model = forest()
    label, scores = outputs_of(from_onnx(model), "native")
    assert label.tolist() == [0, 2, 2]
    np.testing.assert_allclose(scores, reference_outputs(model, {"x": X})[1])


def test_the_rest_of_the_program_still_goes_to_onnxruntime() -> None:
    module = partition_for(from_onnx(forest()), "onnxruntime", "native")
    with ia.build(module) as executable:
        assert executable.run_flat(X)[0].tolist() == [0, 2, 2]  # type: ignore[union-attr]


def test_scores_alone_are_right() -> None:
    model = forest(used=(1,))
    (scores,) = outputs_of(from_onnx(model), "onnxruntime")
    np.testing.assert_allclose(scores, np.reshape([WEIGHTS[:2], WEIGHTS[2:], WEIGHTS[2:]], (3, 2)))


def test_scores_with_base_values_are_wrong() -> None:
    module = from_onnx(forest(used=(1,), base_values=[0.5, -0.25]))
    with pytest.raises(CompileError, match="labels two classes wrong"):
        outputs_of(module, "onnxruntime")


@pytest.mark.parametrize(
    ("ids", "attributes"),
    [((0, 0), {}), ((0, 2, 0, 1), {"classlabels_int64s": [5, 6, 7]})],
)
def test_other_forests_are_right(ids: tuple[int, ...], attributes: dict[str, Any]) -> None:
    model = forest(ids, **attributes)
    module = from_onnx(model)
    assert supported(module)
    for found, wanted in zip(
        outputs_of(module, "onnxruntime"), reference_outputs(model, {"x": X}), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
