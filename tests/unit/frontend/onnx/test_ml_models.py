"""Models of scikit-learn as skl2onnx writes them: trees, encoders, strings and maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.onnx_models import model_of, onnxruntime_outputs

import intarsia as ia
from intarsia.frontend.onnx import from_onnx, import_notes, to_onnx
from intarsia.frontend.onnx.opset import opset_versions
from intarsia.ir import Call, post_order
from intarsia.support.errors import InvalidModelError, ModelError, UnsupportedModelError

X = np.array([[0.0, 2.0], [1.0, -1.0], [3.0, 0.5]], np.float32)

TREE = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2],
    "nodes_featureids": [0, 0, 0, 1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0, 1.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
    "nodes_hitrates": [1.0] * 6,
    "nodes_missing_value_tracks_true": [0] * 6,
}
LEAVES = {
    "class_treeids": [0, 0, 0, 0, 1, 1, 1, 1],
    "class_nodeids": [1, 1, 2, 2, 1, 1, 2, 2],
    "class_ids": [0, 1, 0, 2, 0, 1, 0, 2],
    "class_weights": [0.4, 0.1, 0.2, 0.3, 0.5, 0.0, 0.1, 0.4],
}
TARGETS = {
    "target_treeids": [0, 0, 1, 1],
    "target_nodeids": [1, 2, 1, 2],
    "target_ids": [0, 0, 0, 0],
    "n_targets": 1,
    "target_weights": [0.5, -1.0, 0.25, 2.0],
}


def classifier(version: int, zipped: bool = False, **attributes: Any) -> Any:
    """A model of two trees, with the maps that skl2onnx adds if it is not told otherwise."""
    given = {**TREE, **LEAVES, "classlabels_int64s": [5, 6, 7], "post_transform": "NONE", **attributes}
    labels = onnx.TensorProto.STRING if "classlabels_strings" in attributes else onnx.TensorProto.INT64
    if "classlabels_strings" in attributes:
        del given["classlabels_int64s"]
    nodes = [
        helper.make_node("TreeEnsembleClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml", **given)
    ]
    outputs = [helper.make_tensor_value_info("label", labels, [None])]
    if zipped:
        nodes.append(
            helper.make_node(
                "ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[5, 6, 7]
            )
        )
        map_type = helper.make_map_type_proto(
            onnx.TensorProto.INT64, helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
        )
        outputs.append(helper.make_value_info("maps", helper.make_sequence_type_proto(map_type)))
    else:
        outputs.append(helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [None, 3]))
    return ml_model(
        nodes, [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [3, 2])], outputs, version
    )


def ml_model(nodes: list[Any], inputs: list[Any], outputs: list[Any], version: int, opset: int = 15) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def built_outputs(module: Any, toolchain: str, *inputs: Any) -> list[Any]:
    """What the module computes on a toolchain."""
    result = ia.build(module, f"cpu -toolchain={toolchain}")(*inputs)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def assert_all_equal(found: list[Any], expected: list[Any]) -> None:
    for value, wanted in zip(found, expected, strict=True):
        if np.asarray(wanted).dtype.kind in "OU":
            assert list(value) == list(wanted)
        else:
            np.testing.assert_allclose(value, wanted, rtol=1e-6)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("toolchain", ["onnxruntime", "reference"])
def test_trees_that_version_5_deprecated(version: int, toolchain: str) -> None:
    model = classifier(version)
    module = from_onnx(model)
    assert_all_equal(built_outputs(module, toolchain, X), onnxruntime_outputs(model, {"X": X}))


@pytest.mark.parametrize("opset", [1, 5, 9, 15])
def test_trees_beside_any_opset(opset: int) -> None:
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["y"], domain="ai.onnx.ml", **TREE, **TARGETS)
    inputs = [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, 2])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, 1])]
    model = ml_model([node], inputs, outputs, 1, opset)
    found = built_outputs(from_onnx(model, {"X": (3, 2)}), "onnxruntime", X)
    np.testing.assert_allclose(found[0], [[2.5], [-0.75], [-0.75]])


def test_a_model_with_deprecated_trees_is_exported_at_a_version_that_has_them() -> None:
    module = from_onnx(classifier(1))
    exported = to_onnx(module)
    assert opset_versions(exported)["ai.onnx.ml"] == 4
    assert_all_equal(onnxruntime_outputs(exported, {"X": X}), onnxruntime_outputs(classifier(1), {"X": X}))


def test_operators_of_no_common_version_are_no_one_model() -> None:
    from intarsia.op.opset import versions_of

    with pytest.raises(UnsupportedModelError) as caught:
        versions_of([("ai.onnx.ml", "TreeEnsemble"), ("ai.onnx.ml", "TreeEnsembleRegressor")])
    assert caught.value.problem == (
        "operators 'TreeEnsembleRegressor' and 'TreeEnsemble' belong to different versions of the domain "
        "'ai.onnx.ml', 4 and 5, and one model has one version of it"
    )


def test_the_tensor_before_a_zip_map_takes_the_place_of_the_maps() -> None:
    model = classifier(3, zipped=True)
    module = from_onnx(model)
    assert module["main"].attrs["output_names"] == ("label", "maps")
    assert import_notes(module) == (
        "the output 'maps' is the tensor of scores, one column for each of the classes 5, 6, 7; in the file "
        "it is a sequence of maps (ZipMap)",
    )
    expected = onnxruntime_outputs(classifier(3), {"X": X})
    assert_all_equal(built_outputs(module, "onnxruntime", X), expected)


def test_many_classes_are_not_all_named() -> None:
    model = classifier(3, zipped=True)
    del model.graph.node[1].attribute[:]
    names = [f"class {number}" for number in range(30)]
    model.graph.node[1].attribute.append(helper.make_attribute("classlabels_strings", names))
    (note,) = import_notes(from_onnx(model))
    assert "the classes class 0, class 1, class 2, class 3, class 4, class 5, class 6, ..., class 29;" in note


def test_there_are_no_notes_without_maps() -> None:
    assert import_notes(from_onnx(classifier(3))) == ()


@pytest.mark.parametrize("is_of_strings", [True, False])
def test_label_encoder_of_version_1(is_of_strings: bool) -> None:
    x, y = ("string", "int64") if is_of_strings else ("int64", "string")
    model = model_of(
        f"g ({x}[4] x) => ({y}[4] y) {{ y = ai.onnx.ml.LabelEncoder <classes_strings = ['a', 'b', 'c'],"
        " default_int64 = 7, default_string = 'none'> (x) }".replace("'", '"'),
        imports='"ai.onnx.ml": 1',
    )
    given = np.array(["b", "a", "z", "c"], object) if is_of_strings else np.array([1, 0, 9, 2], np.int64)
    wanted = [1, 0, 7, 2] if is_of_strings else ["b", "a", "none", "c"]
    module = from_onnx(model)
    for toolchain in ("onnxruntime", "reference"):
        (found,) = built_outputs(module, toolchain, given)
        assert list(found) == wanted


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ("", "needs 'classes_strings', a list of strings"),
        ("<default_int64 = 7>", "needs 'classes_strings', a list of strings"),
        ("<classes_strings: strings = []>", "needs 'classes_strings', a list of strings"),
        ("<classes_strings = [1, 2]>", "has an attribute 'classes_strings' that is no STRINGS"),
        ("<classes_strings = 3>", "has an attribute 'classes_strings' that is no STRINGS"),
        ('<classes_strings = ["a"], default_int64 = "b">', "has an attribute 'default_int64' that is no INT"),
        (
            '<classes_strings = ["a"], default_string = 1>',
            "has an attribute 'default_string' that is no STRING",
        ),
    ],
)
@pytest.mark.parametrize("is_of_strings", [True, False])
def test_malformed_label_encoder_of_version_1(attributes: str, problem: str, is_of_strings: bool) -> None:
    x, y = ("string", "int64") if is_of_strings else ("int64", "string")
    model = model_of(
        f"g ({x}[4] x) => ({y}[4] y) {{ y = ai.onnx.ml.LabelEncoder {attributes} (x) }}",
        imports='"ai.onnx.ml": 1',
    )
    with pytest.raises(InvalidModelError) as caught:
        from_onnx(model)
    assert caught.value.problem.startswith(f"operator 'LabelEncoder' {problem}")
    assert caught.value.__notes__ == ["at node 'y'"]


@pytest.mark.parametrize("argument", ["", '""'])
def test_label_encoder_of_version_1_without_argument(argument: str) -> None:
    model = model_of(
        'g (string[4] x) => (int64[4] y) { y = ai.onnx.ml.LabelEncoder <classes_strings = ["a"]> (x) }',
        imports='"ai.onnx.ml": 1',
    )
    model.graph.node[0].input[:] = [argument.strip('"')] if argument else []
    with pytest.raises(InvalidModelError, match="operator 'LabelEncoder' "):
        from_onnx(model)


def test_label_encoders_of_version_1_of_each_other() -> None:
    model = model_of(
        "g (string[4] x) => (string[4] y) {"
        ' place = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b"]> (x)'
        " same = Abs (place)"
        ' y = ai.onnx.ml.LabelEncoder <classes_strings = ["c", "d"]> (same) }',
        imports='"ai.onnx.ml": 1',
    )
    (found,) = built_outputs(from_onnx(model), "onnxruntime", np.array(["b", "a", "b", "a"], object))
    assert list(found) == ["d", "c", "d", "c"]


UNTYPED = {
    "contributed": "u = com.microsoft.FastGelu (x)",
    "ill-typed": "u = MatMul (x, x)",
    "undefined": "v = Abs (x)",
}


@pytest.mark.parametrize("before", UNTYPED)
@pytest.mark.parametrize(
    "node",
    [
        'ai.onnx.ml.LabelEncoder <classes_strings = ["a"]>',
        'ai.onnx.ml.DictVectorizer <string_vocabulary = ["a"]>',
    ],
)
def test_what_ends_onnx_for_want_of_a_type_is_refused(before: str, node: str) -> None:
    text = f"g (float[2,3] x) => (y) {{ {UNTYPED[before]} y = {node} (u) }}"
    model = model_of(text, opset=9, imports='"ai.onnx.ml": 1, "com.microsoft": 1')
    with pytest.raises(ModelError):
        from_onnx(model)


def test_column_transformer_of_strings_and_numbers(tmp_path: Any) -> None:
    model = model_of(
        "g (string[3,1] color, float[3,1] size) => (float[3,4] y) {"
        " one = ai.onnx.ml.OneHotEncoder <cats_strings = ['red', 'green', 'blue'], zeros = 1> (color)"
        " flat = Flatten <axis = 1> (one)"
        " scaled = ai.onnx.ml.Scaler <offset = [0.5], scale = [2.0]> (size)"
        " y = Concat <axis = 1> (scaled, flat) }".replace("'", '"'),
        imports='"ai.onnx.ml": 1',
    )
    colors = np.array([["blue"], ["violet"], ["red"]], object)
    sizes = np.array([[1.0], [2.0], [0.5]], np.float32)
    executable = ia.build(from_onnx(model))
    expected = [[1, 0, 0, 1], [3, 0, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(executable(colors, sizes), expected)
    executable.save(tmp_path / "mixed.intarsia")
    np.testing.assert_array_equal(ia.load(tmp_path / "mixed.intarsia")(colors, sizes), expected)


def test_imported_operators_are_those_of_the_file() -> None:
    module = from_onnx(classifier(3))
    names = {str(expr.op) for expr in post_order(module["main"]) if isinstance(expr, Call)}
    assert names == {"ai.onnx.ml::TreeEnsembleClassifier"}
