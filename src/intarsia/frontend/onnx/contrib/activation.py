"""Activations that fused operators name by an attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.frontend.onnx.contrib.definition import ContribNode, NoDefinitionError
from intarsia.ir import AttrValue, Expr

_PARAMETERS = {
    "": (),
    "Celu": ("alpha",),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
"""Names of activations with the attributes that their parameters are."""


def apply_activation(node: ContribNode, x: Expr, name: str, parameters: Sequence[float]) -> Expr:
    """Apply an activation with a list of parameters.

    Args:
        node: The node that names it.
        x: Argument of the activation.
        name: An operator of ONNX; nothing is applied if it is empty.
        parameters: Its parameters in onnxruntime's order; missing ones have ONNX's defaults.

    Raises:
        NoDefinitionError: There is no such activation.
    """
    if name == "Clip" and len(parameters) == 2:
        return node.op("Clip", x, *(node.scalar(value, x) for value in parameters))
    return apply_named_activation(
        node, x, name, dict(zip(_PARAMETERS.get(name, ()), parameters, strict=False))
    )


def apply_named_activation(node: ContribNode, x: Expr, name: str, parameters: Mapping[str, float]) -> Expr:
    """Apply an activation with named parameters.

    Args:
        node: The node that names it.
        x: Argument of the activation.
        name: An operator of ONNX; nothing is applied if it is empty.
        parameters: Values by name of the activation's attribute. Unknown names are ignored, as in
            onnxruntime; missing ones have ONNX's defaults.

    Raises:
        NoDefinitionError: There is no such activation.
    """
    if name not in _PARAMETERS:
        raise NoDefinitionError(f"the activation {name!r}")
    attrs: dict[str, AttrValue] = {
        key: float(parameters[key]) for key in _PARAMETERS[name] if key in parameters
    }
    return node.op(name, x, **attrs) if name else x
