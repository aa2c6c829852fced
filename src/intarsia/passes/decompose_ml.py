"""Operators of ai.onnx.ml by ONNX's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from weakref import WeakKeyDictionary

from intarsia.ir import Call, Expr, Function, IRModule, Op, TensorType, Tuple, TupleGetItem
from intarsia.op import rewrite_typed
from intarsia.op.node import OUTPUTS
from intarsia.op.opset import ML_DOMAIN
from intarsia.passes.machine_learning.features import (
    binarized,
    encoded,
    extracted,
    imputed,
    normalized,
    one_hot,
    scaled,
    vectorized,
)
from intarsia.passes.machine_learning.linear import linear_classifier, linear_regressor
from intarsia.passes.machine_learning.ml_call import MlCall, NotDecomposedError
from intarsia.passes.machine_learning.tree_ensembles import tree_classifier, tree_ensemble, tree_regressor
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import FunctionPass, PassContext, register_pass

_RULES: MappingProxyType[str, Callable[[MlCall], Expr]] = MappingProxyType(
    {
        "ArrayFeatureExtractor": extracted,
        "Binarizer": binarized,
        "FeatureVectorizer": vectorized,
        "Imputer": imputed,
        "LabelEncoder": encoded,
        "LinearClassifier": linear_classifier,
        "LinearRegressor": linear_regressor,
        "Normalizer": normalized,
        "OneHotEncoder": one_hot,
        "Scaler": scaled,
        "TreeEnsemble": tree_ensemble,
        "TreeEnsembleClassifier": tree_classifier,
        "TreeEnsembleRegressor": tree_regressor,
    }
)

_results: WeakKeyDictionary[Call, Expr | str] = WeakKeyDictionary()
"""What a call becomes, or why it stays: building the tables of a forest takes a while."""


@register_pass
@dataclass(frozen=True)
class DecomposeMl(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces operators of ai.onnx.ml by ONNX's own, and forests by intarsia::tree_ensemble.

    What `ml_obstacle` names stays as it is: strings, and forms that engines do not agree about.

    Before:
        def @main(%x: Tensor[(4, 2), float32]) {
          ai.onnx.ml::Scaler(%x, offset=[0.5, 1.0], scale=[2.0, 4.0])
        }
    After:
        def @main(%x: Tensor[(4, 2), float32]) {
          Mul(Sub(%x, meta[Constant][0]), meta[Constant][1])
        }
    Constants:
        [0.5, 1.0] [2.0, 4.0]
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function without operators of ai.onnx.ml that have an equivalent."""
        after = rewrite_typed(function, _decomposed)
        assert isinstance(after, Function)
        return after


def ml_obstacle(ml_call: Call) -> str | None:
    """Why a typed call of an operator of ai.onnx.ml is not decomposed; None if it is."""
    result = _result(ml_call)
    return result if isinstance(result, str) else None


def _decomposed(expr: Expr) -> Expr:
    match expr:
        case Call(op=Op(domain=domain)) if domain == ML_DOMAIN:
            result = _result(expr)
            return expr if isinstance(result, str) else result
        case TupleGetItem():
            return tuple_field(expr)
        case _:
            return expr


def _result(ml_call: Call) -> Expr | str:
    if ml_call not in _results:
        _results[ml_call] = _made(ml_call)
    return _results[ml_call]


def _made(ml_call: Call) -> Expr | str:
    assert isinstance(ml_call.op, Op)
    types = [arg.checked_type for arg in ml_call.args]
    if ml_call.op.name not in _RULES:
        return f"operator {str(ml_call.op)!r} has no native kernel"
    open_type = next(
        (type_ for type_ in types if not isinstance(type_, TensorType) or not type_.is_static), None
    )
    if open_type is not None or None in types:
        return f"operator {str(ml_call.op)!r} has no native kernel for {open_type or 'an unknown type'}"
    try:
        result = _RULES[ml_call.op.name](MlCall(ml_call))
    except NotDecomposedError as error:
        return str(error)
    count = ml_call.attrs.get(OUTPUTS, 0)
    assert isinstance(count, int)
    if not isinstance(result, Tuple):
        return result
    return Tuple(result.fields[:count]) if OUTPUTS in ml_call.attrs else result.fields[0]
