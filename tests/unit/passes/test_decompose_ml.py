"""Operators of ai.onnx.ml on native: the same as onnxruntime or onnx's reference, on random models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.onnx_models import model_of, onnxruntime_outputs, reference_outputs

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, IRModule, post_order
from intarsia.passes import DecomposeMl
from intarsia.passes.decompose_ml import ml_obstacle
from intarsia.transform import PassContext

pytestmark = pytest.mark.quick_tests(
    18,
    also=[
        "test_classifier_with_probit",
        "test_damaged_trees_are_left_alone",
        "test_features_side_by_side",
        "test_forms_that_engines_do_not_agree_about_are_left_alone",
        "test_one_hot_of_integers",
        "test_operators_on_columns[Imputer-attributes5]",
        "test_operators_on_columns[LinearRegressor-attributes0]",
        "test_operators_on_columns[Normalizer-attributes4]",
        "test_strings_are_left_alone",
    ],
)

FEATURES = 4
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def random_trees(
    seed: int, count: int, modes: list[str], has_missing: bool
) -> tuple[dict[str, list[Any]], list[tuple[int, int]]]:
    """Attributes `nodes_...` of random trees, one of them a leaf only, and their leaves as (tree, node)."""
    generator = np.random.default_rng(seed)
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    lists: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    lists["nodes_missing_value_tracks_true"] = []
    leaves: list[tuple[int, int]] = []
    for tree in range(count):
        size, pending = 1, [(0, 0)]
        while pending:
            node, depth = pending.pop(0)
            is_leaf = (tree == 1 and depth == 0) or depth == 5 or (depth > 0 and generator.random() < 0.3)
            children = (0, 0) if is_leaf else (size, size + 1)
            if is_leaf:
                leaves.append((tree, node))
            else:
                pending += [(child, depth + 1) for child in children]
                size += 2
            mode = "LEAF" if is_leaf else str(generator.choice(modes))
            value = 0.0 if is_leaf else float(generator.integers(-2, 3)) / 2
            row = (tree, node, int(generator.integers(FEATURES)), mode, value, *children)
            for name, item in zip(names, row, strict=True):
                lists[f"nodes_{name}"].append(item)
            is_true = int(has_missing and generator.integers(2))
            lists["nodes_missing_value_tracks_true"].append(is_true)
    return lists, leaves


def rows(seed: int, dtype: Any = np.float32, has_missing: bool = False) -> Any:
    """Numbers of which many equal thresholds."""
    generator = np.random.default_rng(seed)
    x = (generator.integers(-4, 5, (37, FEATURES)) / 2).astype(dtype)
    if has_missing:
        x[generator.random(x.shape) < 0.2] = np.nan
    return x


def weights_of(
    prefix: str, leaves: list[tuple[int, int]], columns: int, seed: int, dense: bool, low: float = -1.0
) -> dict[str, Any]:
    """Attributes `target_...` or `class_...`: a weight for one column of each leaf, or for each."""
    generator = np.random.default_rng(seed)
    entries = [
        (tree, node, column)
        for tree, node in leaves
        for column in (range(columns) if dense else [int(generator.integers(columns))])
    ]
    trees, nodes, ids = zip(*entries, strict=True)
    values = generator.uniform(low, 1.0, len(entries)).astype(np.float32)
    return {
        f"{prefix}_treeids": trees,
        f"{prefix}_nodeids": nodes,
        f"{prefix}_ids": ids,
        f"{prefix}_weights": values.tolist(),
    }


def ml_model(name: str, x: Any, outputs: int, **attributes: Any) -> Any:
    """A model of one operator."""
    names = ["y", "z"][:outputs]
    node = helper.make_node(name, ["x"], names, domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    graph = helper.make_graph(
        [node], "g", inputs, [helper.make_empty_tensor_value_info(name) for name in names]
    )
    version = 5 if name == "TreeEnsemble" else 3
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def native_outputs(model: Any, *inputs: Any) -> list[Any]:
    result = ia.build(from_onnx(model), "cpu -toolchain=native -threads=1")(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def assert_close(found: list[Any], expected: list[Any]) -> None:
    for value, wanted in zip(found, expected, strict=True):
        assert (value.dtype, value.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


def refusal(model: Any) -> str | None:
    (call,) = (node for node in post_order(from_onnx(model)["main"]) if isinstance(node, Call))
    return ml_obstacle(call)


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_regressors(seed: int, dense: bool, aggregate: str) -> None:
    has_missing = seed % 2 == 1
    modes = MODES[:1] if seed < 2 else MODES[:5]  # engines differ about NaN and BRANCH_NEQ
    trees, leaves = random_trees(seed, 7, modes, has_missing)
    x = rows(seed, has_missing=has_missing)
    model = ml_model(
        "TreeEnsembleRegressor",
        x,
        1,
        **trees,
        **weights_of("target", leaves, 3, seed, dense or aggregate in ("MIN", "MAX")),
        n_targets=3,
        base_values=[0.5, -1.0, 2.0],
        aggregate_function=aggregate,
    )
    assert_close(native_outputs(model, x), reference_outputs(model, {"x": x}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regressors_of_any_type_and_every_comparison(dtype: Any) -> None:
    trees, leaves = random_trees(5, 6, MODES, has_missing=False)
    x = rows(5, dtype)
    weights = weights_of("target", leaves, 1, 5, dense=False)
    model = ml_model("TreeEnsembleRegressor", x, 1, **trees, **weights, n_targets=1)
    assert_close(native_outputs(model, x), onnxruntime_outputs(model, {"x": x}))


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("dense", [False, True])
def test_classifiers(transform: str, dense: bool) -> None:
    trees, leaves = random_trees(1, 9, MODES[:4], has_missing=True)
    x = rows(1, has_missing=True)
    model = ml_model(
        "TreeEnsembleClassifier",
        x,
        2,
        **trees,
        **weights_of("class", leaves, 3, 1, dense),
        classlabels_int64s=[7, 3, 9],
        post_transform=transform,
        base_values=[0.25, 0.5, -0.5],
    )
    assert_close(native_outputs(model, x), onnxruntime_outputs(model, {"x": x}))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_classifiers_of_other_types(dtype: Any) -> None:
    trees, leaves = random_trees(4, 5, MODES, has_missing=False)
    x = rows(4, dtype)
    weights = weights_of("class", leaves, 3, 4, dense=True)
    model = ml_model("TreeEnsembleClassifier", x, 2, **trees, **weights, classlabels_int64s=[0, 1, 2])
    assert_close(native_outputs(model, x), onnxruntime_outputs(model, {"x": x}))


def test_classifier_with_probit() -> None:
    trees, leaves = random_trees(2, 1, MODES[:1], has_missing=False)
    x = rows(2)
    weights = weights_of("class", leaves, 3, 2, dense=True, low=0.1)
    model = ml_model(
        "TreeEnsembleClassifier",
        x,
        2,
        **trees,
        **weights,
        classlabels_int64s=[0, 1, 2],
        post_transform="PROBIT",
    )
    assert_close(native_outputs(model, x), onnxruntime_outputs(model, {"x": x}))


@pytest.mark.parametrize(("transform", "low"), [("NONE", 0.0), ("LOGISTIC", -1.0)])
def test_two_classes_of_one_score(transform: str, low: float) -> None:
    trees, leaves = random_trees(3, 3, MODES[:1], has_missing=False)
    x = rows(3)
    weights = weights_of("class", leaves, 1, 3, dense=False, low=low)
    model = ml_model(
        "TreeEnsembleClassifier",
        x,
        2,
        **trees,
        **weights,
        classlabels_int64s=[4, 6],
        post_transform=transform,
        base_values=[-0.25],
    )
    assert_close(native_outputs(model, x), onnxruntime_outputs(model, {"x": x}))


def test_forms_that_engines_do_not_agree_about_are_left_alone() -> None:
    trees, leaves = random_trees(3, 3, MODES[:1], has_missing=False)
    x = rows(3)
    weights = weights_of("class", leaves, 1, 3, dense=False)
    model = ml_model("TreeEnsembleClassifier", x, 2, **trees, **weights, classlabels_int64s=[0, 1])
    assert refusal(model) == (
        "operator 'ai.onnx.ml::TreeEnsembleClassifier' has no native kernel for NONE of one score for two "
        "classes: engines differ about it"
    )


def test_strings_are_left_alone() -> None:
    model = ml_model("LinearClassifier", rows(0), 2, coefficients=[0.0] * 8, classlabels_strings=["a", "b"])
    assert refusal(model) == (
        "operator 'ai.onnx.ml::LinearClassifier' has no native kernel for labels that are strings"
    )


def test_damaged_trees_are_left_alone() -> None:
    trees, leaves = random_trees(3, 2, MODES[:1], has_missing=False)
    weights = weights_of("target", leaves, 1, 3, dense=False)
    x = rows(3)
    for name, value, reason in (
        ("nodes_featureids", FEATURES, "the column 4 of 4"),
        ("nodes_truenodeids", 999, "branches to nodes that are not there"),
        ("nodes_truenodeids", 0, "trees that are cyclic, or deeper than 4096"),
    ):
        damaged = {**trees, name: [value, *trees[name][1:]]}
        model = ml_model("TreeEnsembleRegressor", x, 1, **damaged, **weights, n_targets=1)
        assert str(refusal(model)).endswith(reason)


def new_trees(dtype: Any, members: bool) -> dict[str, Any]:
    """Two trees of version 5: one with two levels, one that is a leaf."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = [1.0, 0.5, -1.0, float("nan")] if members else []
    attributes: dict[str, Any] = {
        "nodes_splits": helper.make_tensor("s", number, [3], [0.5, -0.5, 0.0]),
        "nodes_featureids": [0, 2, 1],
        "nodes_modes": helper.make_tensor("m", TensorProto.UINT8, [3], [6 if members else 0, 3, 0]),
        "nodes_truenodeids": [1, 0, 2],
        "nodes_falsenodeids": [3, 1, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falseleafs": [1, 1, 1],
        "tree_roots": [0, 2],
        "leaf_targetids": [0, 1, 1, 0],
        "leaf_weights": helper.make_tensor("w", number, [4], [0.5, 1.5, -2.0, 3.0]),
        "n_targets": 2,
    }
    if members:
        attributes["membership_values"] = helper.make_tensor("v", number, [len(values)], values)
    return attributes


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("members", [False, True])
@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_trees_of_version_5(dtype: Any, members: bool, aggregate: int) -> None:
    x = rows(6, dtype)
    model = ml_model("TreeEnsemble", x, 1, **new_trees(dtype, members), aggregate_function=aggregate)
    (expected,) = reference_outputs(model, {"x": x})
    assert_close(native_outputs(model, x), [expected.astype(dtype)])


def test_a_large_forest_is_right_on_two_threads() -> None:
    trees, leaves = random_trees(8, 40, MODES[:1], has_missing=False)
    x = np.random.default_rng(8).standard_normal((100, FEATURES)).astype(np.float32)
    weights = weights_of("target", leaves, 2, 8, dense=True)
    model = ml_model("TreeEnsembleRegressor", x, 1, **trees, **weights, n_targets=2)
    module = from_onnx(model)
    found = ia.build(module, "cpu -toolchain=native -threads=2")(x)
    assert_close([found], onnxruntime_outputs(model, {"x": x}))


@pytest.mark.parametrize(("count", "trees"), [(1, 7), (1, 40), (3, 7), (5, 40), (7, 3), (16, 7)])
def test_few_rows_go_down_several_trees_side_by_side(count: int, trees: int) -> None:
    """Groups of 16, 5, 3, 2 trees and 1: the last one is not full."""
    attributes, leaves = random_trees(trees, trees, MODES[:1], has_missing=True)
    x = rows(trees, has_missing=True)[:count]
    weights = weights_of("target", leaves, 2, trees, dense=count % 2 == 0)
    model = ml_model("TreeEnsembleRegressor", x, 1, **attributes, **weights, n_targets=2)
    assert_close(native_outputs(model, x), onnxruntime_outputs(model, {"x": x}))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_linear_classifiers(transform: str) -> None:
    x = rows(4)
    coefficients = np.random.default_rng(4).standard_normal(12).tolist()
    model = ml_model(
        "LinearClassifier",
        x,
        2,
        coefficients=coefficients,
        intercepts=[0.5, -0.5, 0.25],
        classlabels_ints=[3, 5, 8],
        post_transform=transform,
    )
    assert_close(native_outputs(model, x), reference_outputs(model, {"x": x}))


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        (
            "LinearRegressor",
            {"coefficients": [0.5, -1.0, 2.0, 0.25] * 2, "intercepts": [1.0, 2.0], "targets": 2},
        ),
        ("Scaler", {"offset": [0.5], "scale": [1.0, 2.0, 3.0, 4.0]}),
        ("Binarizer", {"threshold": 0.5}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": 0.5}),
        ("Imputer", {"imputed_value_floats": [9.0], "replaced_value_float": float("nan")}),
        ("LabelEncoder", {"keys_floats": [0.5, -1.0], "values_floats": [3.0, 4.0], "default_float": -9.0}),
        ("LabelEncoder", {"keys_floats": [2.0, 1.0], "values_int64s": [3, 4], "default_int64": -9}),
    ],
)
def test_operators_on_columns(name: str, attributes: dict[str, Any]) -> None:
    x = rows(9)
    x[3] = 0.0
    if name == "Imputer":
        x[2, 1] = np.nan
    model = ml_model(name, x, 1, **attributes)
    assert_close(native_outputs(model, x), reference_outputs(model, {"x": x}))


def test_one_hot_of_integers() -> None:
    x = np.array([[3, 1], [7, 3]], np.int64)
    model = ml_model("OneHotEncoder", x, 1, cats_int64s=[3, 1, 5])
    assert_close(native_outputs(model, x), reference_outputs(model, {"x": x}))


@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 3, 4)])
def test_columns_by_number(shape: tuple[int, ...]) -> None:
    dims = ",".join(map(str, shape))
    model = model_of(
        f"g (float[{dims}] x) => (float[r] y) {{ y = ai.onnx.ml.ArrayFeatureExtractor (x, i) }}",
        imports='"ai.onnx.ml": 3',
        i=np.array([[2, 0, 2]], np.int64),
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    assert_close(native_outputs(model, x), reference_outputs(model, {"x": x}))


def test_features_side_by_side() -> None:
    model = model_of(
        "g (float[3,2] a, float[3,1] b) => (float[3,3] y) {"
        " y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [2, 1]> (a, b) }",
        imports='"ai.onnx.ml": 3',
    )
    a, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((3, 1), np.float32)
    assert_close(native_outputs(model, a, b), reference_outputs(model, {"a": a, "b": b}))


def test_a_scaled_forest_is_one_native_program_and_survives_saving(tmp_path: Any) -> None:
    trees, leaves = random_trees(1, 4, MODES[:1], has_missing=False)
    weights = weights_of("class", leaves, 3, 1, dense=True, low=0.0)
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0]),
        helper.make_node(
            "TreeEnsembleClassifier",
            ["s"],
            ["y", "z"],
            domain="ai.onnx.ml",
            **trees,
            **weights,
            classlabels_int64s=[0, 1, 2],
        ),
    ]
    x = rows(1)
    model = ml_model("Scaler", x, 1)
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.extend(nodes)
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in "yz")
    executable = ia.build(from_onnx(model), "cpu -toolchain=native")
    expected = onnxruntime_outputs(model, {"x": x})
    executable.save(tmp_path / "forest.intarsia")
    assert_close(list(ia.load(tmp_path / "forest.intarsia")(x)), expected)


def test_the_pass_leaves_nothing_of_the_domain() -> None:
    x = rows(0)
    module: IRModule = from_onnx(ml_model("Scaler", x, 1, offset=[0.5], scale=[2.0]))
    after = DecomposeMl()(module, PassContext())
    names = {str(node.op) for node in post_order(after["main"]) if isinstance(node, Call)}
    assert names == {"Sub", "Mul"}
