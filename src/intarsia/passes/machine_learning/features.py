"""Scaling, imputing, encoding and picking columns."""

from __future__ import annotations

import numpy as np

from intarsia.ir import DType, Expr
from intarsia.op import call
from intarsia.passes.machine_learning.ml_call import MlCall, cast, constant, scalar

_MOST_KEYS = 4096
"""Keys of an encoder: an element is compared with all of them."""

_LEAST_NORM = 1e-30
"""What a row is divided by at least, as onnx's reference does."""


def scaled(ml: MlCall) -> Expr:
    """Scaler: `(x - offset) * scale`, computed as float32."""
    x = cast(ml.floats(), DType.FLOAT32)
    offset, scale = ml.numbers("offset"), ml.numbers("scale")
    if offset.size:
        x = call("Sub", x, constant(offset, DType.FLOAT32))
    return call("Mul", x, constant(scale, DType.FLOAT32)) if scale.size else x


def binarized(ml: MlCall) -> Expr:
    """Binarizer: 1 above the threshold, 0 elsewhere."""
    dtype = ml.type_of().dtype
    ml.float_type()
    threshold = ml.value("threshold", 0.0)
    assert isinstance(threshold, (int, float))
    is_above = call("Greater", ml.floats(), scalar(float(np.float32(threshold)), ml.float_type()))
    return cast(is_above, dtype)


def imputed(ml: MlCall) -> Expr:
    """Imputer: another value in place of NaN, or of a number."""
    x, dtype = ml.arg(), ml.type_of().dtype
    if dtype.is_float:
        values, replaced = ml.numbers("imputed_value_floats", dtype), ml.value("replaced_value_float", 0.0)
    else:
        values, replaced = ml.numbers("imputed_value_int64s", dtype), ml.value("replaced_value_int64", 0)
    if dtype is DType.STRING or not values.size or len(ml.shape()) != 2:
        raise ml.refusal("this imputation")
    assert isinstance(replaced, (int, float))
    is_missing = (
        call("IsNaN", x)
        if np.isnan(replaced)
        else call("Equal", x, scalar(float(np.float32(replaced)), dtype))
    )
    return call("Where", is_missing, constant(values, dtype), x)


def normalized(ml: MlCall) -> Expr:
    """Normalizer: rows divided by their norm."""
    x = cast(ml.matrix(), DType.FLOAT32)
    axes = constant(np.array([1]), DType.INT64)
    match ml.text("norm", "MAX"):
        case "L1":
            norm = call("ReduceL1", x, axes, keepdims=1)
        case "L2":
            norm = call("ReduceL2", x, axes, keepdims=1)
        case other:
            raise ml.refusal(f"the norm {other}: engines differ about negative numbers")
    return call("Div", x, call("Max", norm, scalar(_LEAST_NORM, DType.FLOAT32)))


def extracted(ml: MlCall) -> Expr:
    """ArrayFeatureExtractor: columns by their numbers."""
    indices = call("Reshape", ml.arg(1), constant(np.array([-1]), DType.INT64))
    picked = call("Gather", ml.arg(), indices, axis=-1)
    return call("Unsqueeze", picked, constant(np.array([0]), DType.INT64)) if len(ml.shape()) == 1 else picked


def vectorized(ml: MlCall) -> Expr:
    """FeatureVectorizer: matrices side by side, cut or filled with zeros to a given width."""
    lengths = ml.numbers("inputdimensions", DType.INT64)
    if len(lengths) != len(ml.call.args):
        raise ml.refusal("another number of lengths than of arguments")
    parts = []
    for position, length in enumerate(lengths):
        if ml.shape(position)[1:] != (int(length),):
            raise ml.refusal(f"an argument of shape {ml.shape(position)}")
        parts.append(cast(ml.floats(position), DType.FLOAT32))
    return call("Concat", *parts, axis=1)


def one_hot(ml: MlCall) -> Expr:
    """OneHotEncoder: 1 at the place of the category, and only zeros for one that is unknown."""
    categories = ml.numbers("cats_int64s", DType.INT64)
    if not categories.size or ml.type_of().dtype is DType.STRING:
        raise ml.refusal("strings")
    if not ml.value("zeros", 1):
        raise ml.refusal("an error at unknown categories")
    x = call("Unsqueeze", cast(ml.arg(), DType.INT64), constant(np.array([-1]), DType.INT64))
    return cast(call("Equal", x, constant(categories, DType.INT64)), DType.FLOAT32)


def encoded(ml: MlCall) -> Expr:
    """LabelEncoder of numbers: the value of the key, or the default."""
    keys, key_type = _table(ml, "keys")
    values, value_type = _table(ml, "values")
    if key_type is not ml.type_of().dtype or len(keys) != len(values):
        raise ml.refusal(f"keys of {key_type.value}")
    if len(np.unique(keys)) < len(keys) or np.isnan(keys).any() or len(keys) > _MOST_KEYS:
        raise ml.refusal("keys that are no set of numbers, or too many")
    default = ml.numbers("default_tensor", value_type)
    if not default.size:
        number = ml.value("default_float" if value_type.is_float else "default_int64", 0)
        assert isinstance(number, (int, float))
        default = np.asarray([number])
    x = call("Unsqueeze", ml.arg(), constant(np.array([-1]), DType.INT64))
    is_key = cast(call("Equal", x, constant(keys, key_type)), DType.INT32)
    is_known = cast(call("ReduceMax", is_key, constant(np.array([-1]), DType.INT64), keepdims=0), DType.BOOL)
    matched = call(
        "Gather", constant(values, value_type), call("ArgMax", is_key, axis=-1, keepdims=0), axis=0
    )
    return call("Where", is_known, matched, scalar(default.reshape(-1)[0], value_type))


def _table(ml: MlCall, name: str) -> tuple[np.ndarray, DType]:
    """The keys or the values of a LabelEncoder, in their type."""
    for suffix, dtype in (("int64s", DType.INT64), ("floats", DType.FLOAT32)):
        if ml.has(f"{name}_{suffix}"):
            return ml.numbers(f"{name}_{suffix}", dtype), dtype
    tensor = ml.value(f"{name}_tensor", ())
    from intarsia.ir import Constant

    if isinstance(tensor, Constant) and DType.of(tensor.data) is not DType.STRING:
        dtype = DType.of(tensor.data)
        return tensor.data.reshape(-1), dtype
    raise ml.refusal("strings")
