"""Rules for floats applied to float16 and bfloat16: narrow floats are stored, and computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import DType, TensorType
from intarsia.native.te.compute import compute
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import Rule
from intarsia.native.te.tensor import Tensor
from intarsia.op.known_value import LARGEST_KNOWN

NARROW = frozenset({DType.FLOAT16, DType.BFLOAT16})
"""Float types that are stored but not computed with."""


def in_float32(rule: Rule) -> Rule:
    """Wrap a rule: narrow arguments are cast to float32 first, and the results are rounded at the end.

    Both are stages of one element each, which a scheduler inlines. Other types pass unchanged.
    """

    @wraps(rule)
    def widened(call: ComputeCall) -> Sequence[Tensor]:
        if not any(type_.dtype in NARROW for type_ in _types(call)):
            return rule(call)
        results = rule(_widened(call))
        wanted = (type_.dtype for type_ in call.output_types)
        return [
            _cast(tensor, dtype, call.name if position == 0 else f"{call.name}.out{position}")
            for position, (tensor, dtype) in enumerate(zip(results, wanted, strict=True))
        ]

    return widened


def _types(call: ComputeCall) -> list[Tensor | TensorType]:
    return [*(tensor for tensor in call.inputs if tensor is not None), *call.output_types]


def _widened(call: ComputeCall) -> ComputeCall:
    inputs = tuple(
        None if tensor is None else _cast(tensor, _wide(tensor.dtype), f"{call.name}.wide{position}")
        for position, tensor in enumerate(call.inputs)
    )
    types = tuple(TensorType(type_.shape, _wide(type_.dtype)) for type_ in call.output_types)
    constants = tuple(map(_widened_value, call.constants))
    name = call.name if types == call.output_types else f"{call.name}.f32"
    return replace(call, inputs=inputs, output_types=types, constants=constants, name=name)


def _widened_value(value: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    """Return a known value in float32; a narrow weight counts as unknown, so that it is not copied."""
    if value is None or DType.of(value) not in NARROW:
        return value
    return value.astype(np.float32) if value.size <= LARGEST_KNOWN else None


def _wide(dtype: DType) -> DType:
    return DType.FLOAT32 if dtype in NARROW else dtype


def _cast(tensor: Tensor, dtype: DType, name: str) -> Tensor:
    if tensor.dtype is dtype:
        return tensor
    return compute(tensor.shape, lambda *i: tensor[i].astype(dtype), name)
