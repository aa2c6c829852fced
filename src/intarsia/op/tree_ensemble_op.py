"""The operator intarsia::tree_ensemble: what a forest of decision trees adds up to, with the trees as arrays.

tree_ensemble(x, features, thresholds, children, leaves, targets, weights, roots, depths,
              aggregate=, n_targets=)

x           rows to classify, of shape (rows, features), float32 or float64
features    int32 (nodes,): the column that a node compares
thresholds  (nodes,), of the type of x: the comparison is `column <= threshold`
children    int32 (nodes, 2), the next node where the comparison is false and where it is true, or (nodes, 3),
            with the next node where the column is NaN
leaves      int32 (nodes,): the number of a leaf; a leaf is its own child
targets     int32 (leaves,): the column of the result that the only weight of a leaf is for
weights     (leaves, 1), or (leaves, n_targets) where leaves have a weight for each column
roots       int32 (trees,): the node where each tree begins
depths      int32 (trees,): comparisons on the longest path of each tree

The result has the shape (rows, n_targets). `aggregate` is SUM, MIN or MAX; a column that no leaf is for is 0,
or the largest, or the least number of the type.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, DType, TensorType, Type
from intarsia.support.errors import InvalidModelError

TREE_ENSEMBLE: Final = "tree_ensemble"
TREE_ARGUMENTS: Final = 9
TREE_ATTRIBUTES: Final = ("aggregate", "n_targets")

Array = npt.NDArray[Any]


def tree_ensemble_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of the result: a row of `n_targets` for each row of x.

    Raises:
        InvalidModelError: x is no matrix of floats.
    """
    x, targets = args[0], attrs["n_targets"]
    if not isinstance(x, TensorType) or x.shape is None:
        return None
    if len(x.shape) != 2 or x.dtype not in (DType.FLOAT32, DType.FLOAT64) or not isinstance(targets, int):
        raise InvalidModelError(f"operator 'intarsia::tree_ensemble' is for a matrix of floats, not {x}")
    return TensorType((x.shape[0], targets), x.dtype)


def aggregate_start(aggregate: str, dtype: np.dtype[Any]) -> float:
    """What a result is before the first leaf."""
    if aggregate == "SUM":
        return 0.0
    limits = np.finfo(dtype)
    return float(limits.max if aggregate == "MIN" else limits.min)


def tree_ensemble_value(*arrays: Array, aggregate: str, n_targets: int) -> Array:
    """Compute the result of the operator; trees are added in order, in the type of x."""
    x, features, thresholds, children, leaves, targets, weights, roots, depths = arrays
    rows = np.arange(len(x))
    result = np.full((len(x), n_targets), aggregate_start(aggregate, x.dtype), x.dtype)
    combine = {"SUM": np.add, "MIN": np.minimum, "MAX": np.maximum}[aggregate]
    for root, depth in zip(roots, depths, strict=True):
        node = np.full(len(x), root)
        for _ in range(depth):
            value = x[rows, features[node]]
            branch = (value <= thresholds[node]).astype(np.int64)
            if children.shape[1] > 2:
                branch = np.where(np.isnan(value), 2, branch)
            node = children[node, branch]
        leaf = leaves[node]
        if weights.shape[1] == n_targets:
            result = combine(result, weights[leaf])
        else:
            result[rows, targets[leaf]] = combine(result[rows, targets[leaf]], weights[leaf, 0])
    return result
