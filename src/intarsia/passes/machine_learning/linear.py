"""Linear models."""

from __future__ import annotations

import numpy as np

from intarsia.ir import DType, Expr, Tuple
from intarsia.op import call
from intarsia.passes.machine_learning.ml_call import Array, MlCall, cast, constant
from intarsia.passes.machine_learning.post_transform import post_transformed


def linear_regressor(ml: MlCall) -> Expr:
    """LinearRegressor: a product with the coefficients, and the intercepts."""
    targets = ml.value("targets", 1)
    assert isinstance(targets, int)
    if targets == 1 and ml.text("post_transform", "NONE") != "NONE":
        raise ml.refusal("a transform of one target: engines differ about it")
    return post_transformed(_scores(ml, targets), ml)


def linear_classifier(ml: MlCall) -> Expr:
    """LinearClassifier: the label of the highest score, and all scores."""
    labels = class_labels(ml, "classlabels_ints")
    if len(labels) < 2 or ml.numbers("coefficients").size != len(labels) * ml.shape()[-1]:
        raise ml.refusal("one row of coefficients for two classes")
    scores = _scores(ml, len(labels))
    return Tuple((highest_label(scores, labels), post_transformed(scores, ml)))


def class_labels(ml: MlCall, name: str) -> Array:
    """The labels of a classifier.

    Raises:
        NotDecomposedError: They are strings, or there are none.
    """
    labels = ml.numbers(name, DType.INT64)
    if not labels.size:
        raise ml.refusal("labels that are strings")
    return labels


def highest_label(scores: Expr, labels: Array) -> Expr:
    """The label of the highest score of each row, the first one if there are several."""
    best = call("ArgMax", scores, axis=1, keepdims=0)
    if np.array_equal(labels, np.arange(len(labels))):
        return best
    return call("Gather", constant(labels, DType.INT64), best, axis=0)


def _scores(ml: MlCall, count: int) -> Expr:
    x = cast(ml.matrix(), DType.FLOAT32)
    coefficients = ml.numbers("coefficients")
    features = ml.shape()[1]
    if coefficients.size != count * features:
        raise ml.refusal(f"{coefficients.size} coefficients for {count} results of {features} features")
    weights = constant(coefficients.reshape(count, features).T, DType.FLOAT32)
    product = call("MatMul", x, weights)
    intercepts = ml.numbers("intercepts")
    return call("Add", product, constant(intercepts, DType.FLOAT32)) if intercepts.size else product
