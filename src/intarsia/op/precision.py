"""Which arguments of an operator may be of a 16-bit floating-point type."""

from __future__ import annotations

from functools import cache

from intarsia.ir import DType
from intarsia.op.opset import schema_of


@cache
def takes(name: str, position: int, dtype: DType) -> bool:
    """Whether an operator of ONNX's default domain accepts an element type for an argument.

    False where the schema names the type of the argument (Resize's scales are float32), so that it cannot
    change together with others.
    """
    schema = schema_of(name)
    if not schema.inputs:
        return False
    formal = schema.inputs[min(position, len(schema.inputs) - 1)]
    allowed = {item.type_param_str: item.allowed_type_strs for item in schema.type_constraints}
    spelled = {DType.FLOAT16: "tensor(float16)", DType.BFLOAT16: "tensor(bfloat16)"}.get(dtype)
    return spelled in allowed.get(formal.type_str, ())
