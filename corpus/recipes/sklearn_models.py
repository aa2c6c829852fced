"""Pipelines of scikit-learn: trees, linear models, mixed columns of numbers and strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corpus.draw import Draw
from corpus.inputs import table
from corpus.recipe import BuiltModel, recipe

TREES, TABULAR = "tree ensembles", "tabular"


def _data(draw: Draw, classes: int = 0) -> tuple[Any, Any]:
    """Return rows, and labels or numbers that depend on them."""
    rows = table(draw, 300, draw.choose("columns", 8, 5, 13))
    score = np.tanh(rows / np.abs(rows).mean(0)) @ draw.normal(rows.shape[1])
    if not classes:
        return rows, score
    edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    return rows, np.searchsorted(edges, score)


def _convert(model: Any, inputs: Mapping[str, Any], opset: int, zipmap: bool = False) -> BuiltModel:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
    from sklearn.pipeline import Pipeline

    kinds = {"f": FloatTensorType, "i": Int64TensorType, "O": StringTensorType}
    types = [(name, kinds[array.dtype.kind]([None, array.shape[1]])) for name, array in inputs.items()]
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    options = {id(last): {"zipmap": zipmap}} if hasattr(last, "predict_proba") else None
    return BuiltModel(to_onnx(model, initial_types=types, options=options, target_opset=opset), inputs)


def _fit_and_convert(draw: Draw, model: Any, classes: int, opset: int, zipmap: bool = False) -> BuiltModel:
    rows, target = _data(draw, classes)
    model.fit(rows, target)
    return _convert(model, {"rows": rows[: draw.choose("rows", 16, 1, 40)]}, opset, zipmap)


@recipe(TREES, "skl2onnx", "classifier")
def random_forest(draw: Draw) -> BuiltModel:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(
        draw.choose("trees", 20, 7), max_depth=draw.choose("depth", 6, 3), random_state=0
    )
    return _fit_and_convert(draw, model, draw.choose("labels", 3, 2, 5), 17)


@recipe(TREES, "skl2onnx", "classifier")
def gradient_boosting(draw: Draw) -> BuiltModel:
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(n_estimators=draw.choose("trees", 15, 5), max_depth=3, random_state=0)
    return _fit_and_convert(draw, model, draw.choose("labels", 2, 3), 18)


@recipe(TREES, "skl2onnx", "regressor")
def boosted_regressor(draw: Draw) -> BuiltModel:
    from sklearn.ensemble import GradientBoostingRegressor

    model = GradientBoostingRegressor(
        n_estimators=draw.choose("trees", 20, 8), max_depth=draw.choose("depth", 3, 5)
    )
    return _fit_and_convert(draw, model, 0, 17)


@recipe(TREES, "skl2onnx", "anomaly scores")
def isolation_forest(draw: Draw) -> BuiltModel:
    from skl2onnx import to_onnx
    from sklearn.ensemble import IsolationForest

    rows, _ = _data(draw)
    model = IsolationForest(n_estimators=draw.choose("trees", 10, 6), random_state=0).fit(rows)
    proto = to_onnx(model, rows[:1], target_opset={"": 17, "ai.onnx.ml": 3})
    return BuiltModel(proto, {"X": rows[:12]})


@recipe(TREES, "skl2onnx", "regressor")
def extra_trees(draw: Draw) -> BuiltModel:
    from sklearn.ensemble import ExtraTreesRegressor

    return _fit_and_convert(draw, ExtraTreesRegressor(10, max_depth=8, random_state=0), 0, 15)


@recipe(TREES, "skl2onnx", "classifier", "map output")
def decision_tree_map(draw: Draw) -> BuiltModel:
    from sklearn.tree import DecisionTreeClassifier

    return _fit_and_convert(draw, DecisionTreeClassifier(max_depth=5, random_state=0), 3, 17, zipmap=True)


@recipe(TABULAR, "skl2onnx", "scaler")
def logistic_regression(draw: Draw) -> BuiltModel:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    scaler = draw.choose("scaler", StandardScaler, MinMaxScaler)()
    return _fit_and_convert(
        draw, make_pipeline(scaler, LogisticRegression()), draw.choose("labels", 3, 2), 17
    )


@recipe(TABULAR, "skl2onnx", "components", "polynomials")
def ridge_of_components(draw: Draw) -> BuiltModel:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    model = make_pipeline(
        StandardScaler(), PolynomialFeatures(2), PCA(draw.choose("components", 6, 3)), Ridge()
    )
    return _fit_and_convert(draw, model, 0, 17)


@recipe(TABULAR, "skl2onnx", "neural network")
def sklearn_mlp(draw: Draw) -> BuiltModel:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier(draw.choose("layers", (32, 16), (50,)), max_iter=20, random_state=0)
    return _fit_and_convert(draw, make_pipeline(StandardScaler(), network), 3, 17)


@recipe(TABULAR, "skl2onnx", "kernel")
def support_vectors(draw: Draw) -> BuiltModel:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    kernel = draw.choose("kernel", "rbf", "linear", "poly")
    return _fit_and_convert(draw, make_pipeline(StandardScaler(), SVC(kernel=kernel)), 3, 17)


@recipe(TABULAR, "skl2onnx", "distances", "top k")
def nearest_neighbours(draw: Draw) -> BuiltModel:
    from sklearn.neighbors import KNeighborsClassifier

    return _fit_and_convert(draw, KNeighborsClassifier(draw.choose("neighbours", 3, 5)), 2, 17)


@recipe(TABULAR, "skl2onnx", "clusters")
def k_means(draw: Draw) -> BuiltModel:
    from sklearn.cluster import KMeans
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), KMeans(draw.choose("clusters", 4, 9), random_state=0, n_init=2))
    return _fit_and_convert(draw, model, 0, 17)


@recipe(TABULAR, "skl2onnx", "strings", "one-hot", "mixed columns", "imputer")
def mixed_columns(draw: Draw) -> BuiltModel:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rows, target = _data(draw, 2)
    numbers = rows[:, :3].copy()
    numbers[draw.values.random(numbers.shape) < 0.1] = np.nan
    columns = np.concatenate([numbers.astype(object), _words(draw, len(rows), 2)], 1)
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    transformer = ColumnTransformer([("numbers", scaled, [0, 1, 2]), ("words", OneHotEncoder(), [3, 4])])
    model = make_pipeline(transformer, LogisticRegression()).fit(columns, target)
    types = [("numbers", FloatTensorType([None, 3])), ("words", StringTensorType([None, 2]))]
    proto = to_onnx(model, initial_types=types, options={"zipmap": False}, target_opset=17)
    return BuiltModel(proto, {"numbers": numbers[:10], "words": columns[:10, 3:]})


def _words(draw: Draw, rows: int, columns: int) -> Any:
    words = np.array(["red", "green", "blue", "naïve", "a b"], object)
    return words[draw.values.integers(0, len(words), (rows, columns))]


@recipe(TABULAR, "skl2onnx", "strings", "one-hot")
def one_hot_strings(draw: Draw) -> BuiltModel:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    words = _words(draw, 200, draw.choose("columns", 3, 2))
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    model.fit(words, words[:, 0] == "red")
    inputs = words[:8].copy()
    inputs[0, 0] = "unknown"
    return _convert(model, {"words": inputs}, 17)


@recipe(TABULAR, "skl2onnx", "strings", "labels")
def string_labels(draw: Draw) -> BuiltModel:
    from sklearn.linear_model import LogisticRegression

    rows, target = _data(draw, 3)
    rows = np.tanh(rows)
    model = LogisticRegression().fit(rows, np.array(["low", "middle", "high"])[target])
    return _convert(model, {"rows": rows[:12]}, 17)
