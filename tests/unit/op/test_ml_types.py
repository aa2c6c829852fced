"""Shapes of ai.onnx.ml's results, which onnx leaves open."""

from __future__ import annotations

from typing import Any

import pytest

from intarsia.ir import Constant, DType, SymbolicDim, TensorType, TupleType, Var
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call

N = SymbolicDim("n")


def inferred(
    name: str, *shapes: tuple[Any, ...], outputs: int = 1, dtype: DType = DType.FLOAT32, **attrs: Any
) -> Any:
    """The shapes of the results."""
    dtypes = [dtype, DType.INT64 if name == "ArrayFeatureExtractor" else dtype]
    args = [
        Var(f"x{position}", checked_type=TensorType(shape, dtypes[position]))
        for position, shape in enumerate(shapes)
    ]
    type_ = call(name, *args, domain="ai.onnx.ml", outputs=outputs, **attrs).checked_type
    return [field.shape for field in type_.fields] if isinstance(type_, TupleType) else type_.shape  # type: ignore[union-attr]


@pytest.mark.parametrize("rows", [5, N])
def test_operators_that_keep_the_shape(rows: Any) -> None:
    for name, attrs in (
        ("Scaler", {"scale": [1.0]}),
        ("Normalizer", {"norm": "L2"}),
        ("Binarizer", {"threshold": 0.5}),
        ("Imputer", {"imputed_value_floats": [1.0], "replaced_value_float": 0.0}),
        ("LabelEncoder", {"keys_floats": [1.0], "values_floats": [2.0]}),
    ):
        assert inferred(name, (rows, 3), **attrs) == (rows, 3)


@pytest.mark.parametrize("rows", [5, N])
def test_models_have_a_row_for_each_row(rows: Any) -> None:
    linear: dict[str, Any] = {"coefficients": [0.0] * 6, "classlabels_ints": [0, 1]}
    assert inferred("LinearClassifier", (rows, 3), outputs=2, **linear) == [(rows,), (rows, 2)]
    assert inferred("LinearRegressor", (rows, 3), coefficients=[0.0] * 6, targets=2) == (rows, 2)
    assert inferred("FeatureVectorizer", (rows, 3), (rows, 1), inputdimensions=[3, 1]) == (rows, 4)
    assert inferred("OneHotEncoder", (rows, 2), cats_int64s=[1, 2, 3], dtype=DType.INT64) == (rows, 2, 3)
    support: dict[str, Any] = {"coefficients": [1.0], "n_supports": 0, "rho": [0.0]}
    assert inferred("SVMRegressor", (rows, 3), **support) == (rows, 1)


def test_a_vector_is_one_row() -> None:
    assert inferred("LinearRegressor", (3,), coefficients=[0.0] * 3, targets=1) == (1, 1)
    assert inferred("ArrayFeatureExtractor", (4,), (2,)) == (1, 2)


def test_columns_are_counted_by_their_numbers() -> None:
    assert inferred("ArrayFeatureExtractor", (N, 4), (1, 3)) == (N, 3)


def test_trees_on_constants_are_evaluated() -> None:
    import numpy as np

    arrays = (
        np.array([[0.0], [2.0], [np.nan]], np.float32),
        np.array([0, 0, 0], np.int32),
        np.array([1.0, 0.0, 0.0], np.float32),
        np.array([[1, 2, 2], [1, 1, 1], [2, 2, 2]], np.int32),
        np.array([0, 0, 1], np.int32),
        np.array([0, 1], np.int32),
        np.array([[0.5], [-1.5]], np.float32),
        np.array([0], np.int32),
        np.array([1], np.int32),
    )
    trees = call("tree_ensemble", *map(Constant, arrays), domain="intarsia", aggregate="SUM", n_targets=2)
    np.testing.assert_array_equal(evaluate_call(trees), [[0, -1.5], [0.5, 0], [0, -1.5]])
