"""TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor by intarsia::tree_ensemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from intarsia.ir import Constant, DType, Expr, Tuple
from intarsia.op import call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.tree_ensemble_op import TREE_ENSEMBLE, aggregate_start
from intarsia.passes.machine_learning.linear import class_labels, highest_label
from intarsia.passes.machine_learning.ml_call import MlCall, cast, constant, scalar
from intarsia.passes.machine_learning.post_transform import post_transformed
from intarsia.passes.machine_learning.tree_tables import (
    TreeBuilder,
    TreeTables,
    new_tree_nodes,
    old_tree_nodes,
)

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_COMBINED: Mapping[str, Callable[[float, float], float]] = MappingProxyType(
    {"SUM": lambda first, second: first + second, "MIN": min, "MAX": max}
)
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def tree_ensemble(ml: MlCall) -> Expr:
    """TreeEnsemble of version 5."""
    x, dtype = ml.matrix(), ml.type_of().dtype
    if dtype not in (DType.FLOAT32, DType.FLOAT64):
        raise ml.refusal(dtype.value)
    if ml.value("post_transform", 0):
        raise ml.refusal("a post_transform: onnx's reference has none")
    aggregate, targets = ml.value("aggregate_function", 1), ml.value("n_targets", 1)
    assert isinstance(aggregate, int)
    assert isinstance(targets, int)
    nodes, roots, count = new_tree_nodes(ml, dtype)
    columns, weights = ml.numbers("leaf_targetids", DType.INT64), ml.numbers("leaf_weights", dtype)
    pairs = zip(columns.tolist(), weights.tolist(), strict=True)
    leaves = {count + number: (pair,) for number, pair in enumerate(pairs)}
    if any(
        child >= count and child not in leaves
        for node in nodes.values()
        for child in (node.then, node.otherwise)
    ):
        raise ml.refusal("leaves that are not there")
    return _aggregated(ml, x, dtype, nodes, leaves, roots, _AGGREGATES[aggregate], targets)


def tree_regressor(ml: MlCall) -> Expr:
    """TreeEnsembleRegressor: the base values are added to what the trees say together."""
    x, dtype = ml.matrix(), ml.float_type()
    targets = ml.value("n_targets", 1)
    assert isinstance(targets, int)
    if targets == 1 and ml.text("post_transform", "NONE") != "NONE":
        raise ml.refusal("a transform of one target: engines differ about it")
    numbers, nodes, roots = old_tree_nodes(ml, dtype)
    leaves = _old_leaves(ml, "target", numbers, dtype)
    scores = _aggregated(ml, x, dtype, nodes, leaves, roots, ml.text("aggregate_function", "SUM"), targets)
    return cast(post_transformed(_with_base(ml, scores, dtype, targets), ml), DType.FLOAT32)


def tree_classifier(ml: MlCall) -> Expr:
    """TreeEnsembleClassifier: the label of the highest score, and all scores.

    Two classes may have one score, whose leaves all belong to class 0: it is that of the second class. Then
    1 - score (NONE) or its negative (LOGISTIC) is the first one's. Other forms engines do not agree about.
    """
    x, dtype = ml.matrix(), ml.float_type()
    labels = class_labels(ml, "classlabels_int64s")
    numbers, nodes, roots = old_tree_nodes(ml, dtype)
    leaves = _old_leaves(ml, "class", numbers, dtype)
    classes = {column for pairs in leaves.values() for column, _ in pairs}
    if len(labels) == 2 and classes == {0}:
        return _binary(ml, _aggregated(ml, x, dtype, nodes, leaves, roots, "SUM", 1), labels, dtype)
    if len(labels) < 2 or len(classes) == 1:
        raise ml.refusal("leaves of one class only")
    scores = _aggregated(ml, x, dtype, nodes, leaves, roots, "SUM", len(labels))
    scores = cast(_with_base(ml, scores, dtype, len(labels)), DType.FLOAT32)
    return Tuple((highest_label(scores, labels), post_transformed(scores, ml)))


def _binary(ml: MlCall, score: Expr, labels: np.ndarray, dtype: DType) -> Expr:
    """Label and both scores from the score of the second class."""
    score = cast(_with_base(ml, score, dtype, 1), DType.FLOAT32)
    weights = ml.numbers("class_weights_as_tensor" if ml.has("class_weights_as_tensor") else "class_weights")
    match ml.text("post_transform", "NONE"):
        case "NONE" if (weights >= 0).all():
            first, limit, second = call("Sub", scalar(1.0, DType.FLOAT32), score), 0.5, score
        case "LOGISTIC" if (weights < 0).any():
            first, limit, second = call("Sigmoid", call("Neg", score)), 0.0, call("Sigmoid", score)
        case other:
            raise ml.refusal(f"{other} of one score for two classes: engines differ about it")
    is_second = call("Greater", score, scalar(limit, DType.FLOAT32))
    column = call("Where", is_second, constant(labels[1:], DType.INT64), constant(labels[:1], DType.INT64))
    label = call("Squeeze", column, constant(np.array([1]), DType.INT64))
    return Tuple((label, call("Concat", first, second, axis=1)))


def _old_leaves(
    ml: MlCall, prefix: str, numbers: Mapping[tuple[int, int], int], dtype: DType
) -> dict[int, list[tuple[int, float]]]:
    """What each leaf adds, by its number."""
    names = ("treeids", "nodeids", "ids")
    trees, nodes, columns = (ml.numbers(f"{prefix}_{name}", DType.INT64).tolist() for name in names)
    tensor = f"{prefix}_weights_as_tensor"
    weights = ml.numbers(tensor if ml.has(tensor) else f"{prefix}_weights", dtype).tolist()
    leaves: dict[int, list[tuple[int, float]]] = {}
    if not len(trees) == len(nodes) == len(columns) == len(weights):
        raise ml.refusal("lists of leaves that differ in length")
    for tree, node, column, weight in zip(trees, nodes, columns, weights, strict=True):
        if (tree, node) not in numbers:
            raise ml.refusal("leaves that are not there")
        leaves.setdefault(numbers[tree, node], []).append((column, weight))
    return leaves


def _aggregated(
    ml: MlCall,
    x: Expr,
    dtype: DType,
    nodes: Mapping[int, object],
    leaves: Mapping[int, object],
    roots: list[int],
    aggregate: str,
    targets: int,
) -> Expr:
    kind = "SUM" if aggregate == "AVERAGE" else aggregate
    if kind not in _COMBINED or not roots:
        raise ml.refusal(f"the aggregate {aggregate}" if roots else "no trees")
    empty = aggregate_start(kind, dtype.numpy)
    builder = TreeBuilder(ml, dtype, nodes, leaves, targets, empty, _COMBINED[kind])  # type: ignore[arg-type]
    tables = builder.tables(roots)
    scores = call(
        TREE_ENSEMBLE,
        x,
        *_constants(tables),
        domain=INTARSIA_DOMAIN,
        aggregate=kind,
        n_targets=targets,
    )
    if aggregate != "AVERAGE":
        return scores
    return call("Div", scores, scalar(len(roots), dtype))


def _constants(tables: TreeTables) -> list[Constant]:
    return [constant(array, DType.of(array)) for array in tables.arrays]


def _with_base(ml: MlCall, scores: Expr, dtype: DType, count: int) -> Expr:
    tensor = ml.has("base_values_as_tensor")
    base = ml.numbers("base_values_as_tensor" if tensor else "base_values", dtype)
    if base.size not in (0, count):
        raise ml.refusal(f"{base.size} base values for {count} results")
    return call("Add", scores, constant(base, dtype)) if base.size else scores
