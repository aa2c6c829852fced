"""Trees as arrays for intarsia::tree_ensemble, from both spellings that ai.onnx.ml has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.passes.machine_learning.ml_call import Array, MlCall

_MODES: Final = (
    "BRANCH_LEQ",
    "BRANCH_LT",
    "BRANCH_GTE",
    "BRANCH_GT",
    "BRANCH_EQ",
    "BRANCH_NEQ",
    "BRANCH_MEMBER",
)
"""What a node compares, in the order of version 5's numbers."""

_DEEPEST: Final = 4096
"""Comparisons on a path; more than any forest has, so that more are a cycle."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeTables:
    """The arguments of intarsia::tree_ensemble behind x, in its order; see op/tree_ensemble_op."""

    features: Array
    thresholds: Array
    children: Array
    leaves: Array
    targets: Array
    weights: Array
    roots: Array
    depths: Array

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All of them."""
        return (
            self.features,
            self.thresholds,
            self.children,
            self.leaves,
            self.targets,
            self.weights,
            self.roots,
            self.depths,
        )


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A comparison as the model has it.

    Attributes:
        mode: One of `_MODES`.
        feature: The column.
        value: Threshold that the column is compared with.
        then: The node where the comparison holds; a number as the model has it.
        otherwise: The node where it does not.
        missing: The node where the column is NaN.
        members: Values that the column is looked for in, if the mode is BRANCH_MEMBER.
    """

    mode: str
    feature: int
    value: float
    then: int
    otherwise: int
    missing: int
    members: tuple[float, ...] = ()


@dataclass(slots=True, eq=False)
class TreeBuilder:
    """The tables so far: nodes of a model are numbered as they are met from the roots.

    Attributes:
        ml: The call that has the trees.
        dtype: Type of the thresholds and weights.
        nodes: The comparisons by their number in the model; what is not there is a leaf.
        leaves: Contributions of each leaf, by its number in the model: (column, weight) pairs.
        targets: Number of columns.
        empty: The weight of a column that a leaf says nothing about.
        combine: Puts two weights of a leaf for one column together.
    """

    ml: MlCall
    dtype: DType
    nodes: Mapping[int, TreeNode]
    leaves: Mapping[int, Sequence[tuple[int, float]]]
    targets: int
    empty: float
    combine: Callable[[float, float], float]
    _rows: list[tuple[int, float, int, int, int, int]] = field(default_factory=list)
    _leaf_rows: list[Sequence[tuple[int, float]]] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)

    def tables(self, roots: Sequence[int]) -> TreeTables:
        """The arrays.

        Raises:
            NotDecomposedError: A column or a result that is not there, or a cycle.
        """
        numbers = [self._numbered(root) for root in roots]
        features, thresholds, no, yes, missing, leaf = zip(*self._rows, strict=True)
        has_missing = any(a != b for a, b in zip(no, missing, strict=True))
        children = np.array((no, yes, missing) if has_missing else (no, yes), np.int32).T
        targets, weights = self._leaf_tables()
        depths = self._depths(numbers, np.array((no, yes, missing)).T)
        return TreeTables(
            np.array(features, np.int32),
            np.array(thresholds, self.dtype.numpy),
            np.ascontiguousarray(children),
            np.array(leaf, np.int32),
            targets,
            weights,
            np.array(numbers, np.int32),
            depths,
        )

    def _numbered(self, root: int) -> int:
        """The number of a node of the model in the tables; it and all below it are entered."""
        pending = [root]
        while pending:
            model_number = pending[-1]
            node = self.nodes.get(model_number)
            missing = () if node is None else (node.then, node.otherwise, node.missing)
            if model_number in self._numbers:
                pending.pop()
            elif node is None:
                self._numbers[model_number] = self._enter_leaf(model_number)
            elif left := [child for child in missing if child not in self._numbers]:
                pending += left
                if len(pending) > _DEEPEST * 3:
                    raise self.ml.refusal("trees that are cyclic, or deeper than 4096")
            else:
                self._numbers[model_number] = self._enter(node)
        return self._numbers[root]

    def _enter_leaf(self, model_number: int) -> int:
        number = len(self._rows)
        self._rows.append((0, 0.0, number, number, number, len(self._leaf_rows)))
        pairs = self.leaves.get(model_number, ())
        if any(not 0 <= column < self.targets for column, _ in pairs):
            raise self.ml.refusal("leaves of results that are not there")
        self._leaf_rows.append(pairs)
        return number

    def _enter(self, node: TreeNode) -> int:
        """A comparison as `column <= threshold`, or two of them for equality."""
        features = self.ml.shape()[1]
        if not 0 <= node.feature < features:
            raise self.ml.refusal(f"the column {node.feature} of {features}")
        yes, no, missing = (self._numbers[child] for child in (node.then, node.otherwise, node.missing))
        at, below = self._threshold(node.value), self._below(node.value)
        match node.mode:
            case "BRANCH_LEQ":
                return self._compare(node.feature, at, yes, no, missing)
            case "BRANCH_LT":
                return self._compare(node.feature, below, yes, no, missing)
            case "BRANCH_GTE":
                return self._compare(node.feature, below, no, yes, missing)
            case "BRANCH_GT":
                return self._compare(node.feature, at, no, yes, missing)
            case "BRANCH_EQ":
                return self._equal(node.feature, node.value, yes, no, missing)
            case "BRANCH_NEQ":
                return self._equal(node.feature, node.value, no, yes, missing)
            case "BRANCH_MEMBER":
                for member in node.members:
                    no = self._equal(node.feature, member, yes, no, missing)
                return no if node.members else self._compare(node.feature, np.nan, yes, no, missing)
            case other:
                raise self.ml.refusal(f"the comparison {other}")

    def _equal(self, feature: int, value: float, yes: int, no: int, missing: int) -> int:
        """Not above the value, and not below it."""
        not_above = self._compare(feature, self._below(value), no, yes, missing)
        return self._compare(feature, self._threshold(value), not_above, no, missing)

    def _compare(self, feature: int, threshold: float, yes: int, no: int, missing: int) -> int:
        self._rows.append((feature, threshold, no, yes, missing, 0))
        return len(self._rows) - 1

    def _threshold(self, value: float) -> float:
        return float(self.dtype.numpy.type(value))

    def _below(self, value: float) -> float:
        """The next smaller number: x < value is x <= that one. Nothing is below minus infinity."""
        exact = self.dtype.numpy.type(value)
        return (
            float("nan") if exact == -np.inf else float(np.nextafter(exact, self.dtype.numpy.type(-np.inf)))
        )

    def _leaf_tables(self) -> tuple[Array, Array]:
        """Columns and weights: one of each a leaf if that is enough, else a weight for each column."""
        if max(map(len, self._leaf_rows)) <= 1 and min(map(len, self._leaf_rows)) == 1:
            columns, weights = zip(*(pairs[0] for pairs in self._leaf_rows), strict=True)
            return np.array(columns, np.int32), np.array(weights, self.dtype.numpy).reshape(-1, 1)
        dense = np.full((len(self._leaf_rows), self.targets), self.empty, self.dtype.numpy)
        filled: set[tuple[int, int]] = set()
        for row, pairs in enumerate(self._leaf_rows):
            for column, weight in pairs:
                is_first = (row, column) not in filled
                dense[row, column] = weight if is_first else self.combine(dense[row, column], weight)
                filled.add((row, column))
        return np.zeros(len(self._leaf_rows), np.int32), dense

    def _depths(self, roots: Sequence[int], children: Array) -> Array:
        """The length of the longest path of each tree. Children were entered before their parents."""
        below = np.zeros(len(children), np.int32)
        for number, (no, yes, missing) in enumerate(children.tolist()):
            if no != number:
                below[number] = 1 + max(below[no], below[yes], below[missing])
        return below[np.array(roots, np.int64)]


def old_tree_nodes(
    ml: MlCall, dtype: DType
) -> tuple[dict[tuple[int, int], int], dict[int, TreeNode], list[int]]:
    """Nodes of TreeEnsembleClassifier and TreeEnsembleRegressor.

    Returns:
        The number of each (tree, node), the comparisons by number, and the number of each root: the first
        node of its tree.
    """
    trees, ids = ml.numbers("nodes_treeids", DType.INT64), ml.numbers("nodes_nodeids", DType.INT64)
    pairs = list(zip(trees.tolist(), ids.tolist(), strict=True))
    numbers = {pair: number for number, pair in enumerate(pairs)}
    modes = ml.texts("nodes_modes")
    values = ml.numbers(
        "nodes_values_as_tensor" if ml.has("nodes_values_as_tensor") else "nodes_values", dtype
    )
    columns = [
        ml.numbers(f"nodes_{name}", DType.INT64).tolist()
        for name in ("featureids", "truenodeids", "falsenodeids")
    ]
    flags = ml.numbers("nodes_missing_value_tracks_true", DType.INT64).tolist() or [0] * len(pairs)
    if any(len(column) != len(pairs) for column in (modes, values, *columns, flags)):
        raise ml.refusal("lists of nodes that differ in length")
    nodes: dict[int, TreeNode] = {}
    roots: dict[int, int] = {}
    rows = zip(pairs, modes, values.tolist(), *columns, flags, strict=True)
    for number, (pair, mode, value, feature, yes, no, is_true) in enumerate(rows):
        roots.setdefault(pair[0], number)
        if mode == "LEAF":
            continue
        children = [numbers.get((pair[0], child)) for child in (yes, no)]
        then, otherwise = children
        if then is None or otherwise is None:
            raise ml.refusal("branches to nodes that are not there")
        nodes[number] = TreeNode(mode, feature, value, then, otherwise, then if is_true else otherwise)
    return numbers, nodes, [roots[tree] for tree in sorted(roots)]


def new_tree_nodes(ml: MlCall, dtype: DType) -> tuple[dict[int, TreeNode], list[int], int]:
    """Nodes of TreeEnsemble of version 5.

    Returns:
        The comparisons by number, the numbers of the roots, and how many comparisons there are: leaves have
        the numbers from there on.
    """
    names = ("featureids", "modes", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    columns = [ml.numbers(f"nodes_{name}", DType.INT64).tolist() for name in names]
    splits = ml.numbers("nodes_splits", dtype).tolist()
    count = len(splits)
    flags = ml.numbers("nodes_missing_value_tracks_true", DType.INT64).tolist() or [0] * count
    if any(len(column) != count for column in (*columns, flags)):
        raise ml.refusal("lists of nodes that differ in length")
    members = _memberships(ml.numbers("membership_values", dtype))
    nodes: dict[int, TreeNode] = {}
    rows = zip(*columns, flags, splits, strict=True)
    for number, (feature, mode, yes, no, is_yes_leaf, is_no_leaf, is_true, split) in enumerate(rows):
        if not 0 <= mode < len(_MODES):
            raise ml.refusal(f"the comparison {mode}")
        name = _MODES[mode]
        then, otherwise = yes + count * bool(is_yes_leaf), no + count * bool(is_no_leaf)
        missing = then if is_true or name == "BRANCH_NEQ" else otherwise  # NaN differs from every number
        members_of_node = members.pop(0) if name == "BRANCH_MEMBER" and members else ()
        nodes[number] = TreeNode(name, feature, split, then, otherwise, missing, members_of_node)
    return nodes, ml.numbers("tree_roots", DType.INT64).tolist(), count


def _memberships(values: Array) -> list[tuple[float, ...]]:
    """The sets of the nodes that look for a member, each ended by NaN."""
    sets: list[tuple[float, ...]] = []
    current: list[float] = []
    for value in values.tolist():
        if np.isnan(value):
            sets.append(tuple(current))
            current = []
        else:
            current.append(value)
    return sets
