"""Shapes of the results of ai.onnx.ml's operators, of which onnx infers little more than the element type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TypeAlias

from intarsia.ir import ANY, Attrs, Dim, TensorType, Type, is_compatible

ShapeRule: TypeAlias = Callable[[Sequence[TensorType], Attrs], "Sequence[tuple[Dim, ...] | None]"]
"""From the types of the arguments, all of known rank, to the shape of each result; None: not known."""

_MISTAKEN = frozenset({"LinearClassifier"})
"""Operators with wrong shapes from onnx: it counts classes by the intercepts, which may be left out."""


def refined_ml_types(
    name: str, args: Sequence[Type], attrs: Attrs, results: tuple[Type | None, ...]
) -> tuple[Type | None, ...]:
    """Return the inferred types of an operator's results, with the shapes that onnx left open.

    Args:
        name: The operator, of the domain ai.onnx.ml.
        args: Types of its arguments.
        attrs: Its attributes.
        results: Types that onnx inferred; a shape that contradicts one is not taken.
    """
    shaped = [arg for arg in args if isinstance(arg, TensorType) and arg.shape is not None]
    if name not in _RULES or len(shaped) < len(args) or not shaped:
        return results
    shapes = _RULES[name](shaped, attrs)
    return tuple(
        _refined(result, shapes[position], name in _MISTAKEN) if position < len(shapes) else result
        for position, result in enumerate(results)
    )


def _refined(inferred: Type | None, shape: tuple[Dim, ...] | None, is_mistaken: bool) -> Type | None:
    if not isinstance(inferred, TensorType) or shape is None:
        return inferred
    refined = TensorType(shape, inferred.dtype)
    if is_mistaken or inferred.is_static:
        return refined if is_mistaken else inferred
    return refined if inferred.shape is None or is_compatible(inferred, refined) else inferred


def _same(args: Sequence[TensorType], _: Attrs) -> Sequence[tuple[Dim, ...] | None]:
    return [args[0].shape]


def _rows(arg: TensorType) -> Dim | None:
    """The number of rows: a vector is one row."""
    shape = arg.shape or ()
    if len(shape) == 2:
        return shape[0]
    return 1 if len(shape) == 1 else None


def _extracted(args: Sequence[TensorType], _: Attrs) -> Sequence[tuple[Dim, ...] | None]:
    data, indices = args[0].shape or (), args[1].shape or ()
    static = [dim for dim in indices if isinstance(dim, int)]
    count: Dim = math.prod(static) if len(static) == len(indices) else ANY
    return [(1, count) if len(data) == 1 else (*data[:-1], count)]


def _count(attrs: Attrs, *names: str) -> int:
    """The length of the longest of some lists."""
    return max((len(value) for name in names if isinstance(value := attrs.get(name), tuple)), default=0)


def _classified(args: Sequence[TensorType], attrs: Attrs) -> Sequence[tuple[Dim, ...] | None]:
    """A label for each row, and a score for each class; of one class there may be one score or two."""
    rows = _rows(args[0])
    if rows is None:
        return []
    classes = _count(attrs, "classlabels_ints", "classlabels_int64s", "classlabels_strings")
    return [(rows,), (rows, classes) if classes > 1 else None]


def _regressed(args: Sequence[TensorType], attrs: Attrs) -> Sequence[tuple[Dim, ...] | None]:
    rows, targets = _rows(args[0]), attrs.get("n_targets", attrs.get("targets", 1))
    return [(rows, targets)] if rows is not None and isinstance(targets, int) else []


def _support_vectors(args: Sequence[TensorType], _: Attrs) -> Sequence[tuple[Dim, ...] | None]:
    rows = _rows(args[0])
    return [] if rows is None else [(rows, 1)]


def _one_hot(args: Sequence[TensorType], attrs: Attrs) -> Sequence[tuple[Dim, ...] | None]:
    return [(*(args[0].shape or ()), _count(attrs, "cats_int64s", "cats_strings"))]


def _vectorized(args: Sequence[TensorType], attrs: Attrs) -> Sequence[tuple[Dim, ...] | None]:
    lengths = attrs.get("inputdimensions", ())
    rows = _rows(args[0])
    if rows is None or not isinstance(lengths, tuple) or len(lengths) != len(args):
        return []
    return [(rows, sum(length for length in lengths if isinstance(length, int)))]


_RULES: MappingProxyType[str, ShapeRule] = MappingProxyType(
    {
        "ArrayFeatureExtractor": _extracted,
        "Binarizer": _same,
        "CategoryMapper": _same,
        "FeatureVectorizer": _vectorized,
        "Imputer": _same,
        "LabelEncoder": _same,
        "LinearClassifier": _classified,
        "LinearRegressor": _regressed,
        "Normalizer": _same,
        "OneHotEncoder": _one_hot,
        "SVMRegressor": _support_vectors,
        "Scaler": _same,
        "TreeEnsembleClassifier": _classified,
        "TreeEnsembleRegressor": _regressed,
    }
)
