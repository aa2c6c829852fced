"""Compute rules of registered operators (`op.register_operator`), which are functions of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from intarsia.ir import TensorType
from intarsia.ir.attributes import Attrs
from intarsia.ir.prim_func import Load, Scalar
from intarsia.native.te.compute import placeholder
from intarsia.native.te.op_attrs import LAYOUT_FREE
from intarsia.native.te.operators.compute_call import ComputeCall, NotCoveredError
from intarsia.native.te.rewrite_scalar import rewrite_scalar
from intarsia.native.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor, operations
from intarsia.op.operator_definition import OperatorDefinition, definition_of


def registered_operator(op_name: str) -> OperatorDefinition | None:
    """Return the definition of "domain::name"; None if no operator of that name is registered."""
    domain, separator, name = op_name.partition("::")
    return definition_of(domain, name) if separator else None


def compute_registered(definition: OperatorDefinition, call: ComputeCall) -> tuple[Tensor, ...]:
    """Declare the results of a call of a registered operator by its compute rule.

    The rule gets placeholders with the names of the inputs. The call's tensors then take their place, and the
    names of operations get the name of the call as a prefix, so that a kernel may hold several calls.

    Raises:
        NotCoveredError: The results have other types than the operator's inference says, two operations have
            one name, or an operation is written in loops.
    """
    assert definition.compute is not None
    signature = definition.signature
    given = signature.positional(call.inputs)
    inputs = {
        name: None if tensor is None else placeholder(tensor.shape, tensor.dtype, name, _facts(tensor))
        for name, tensor in zip(signature.inputs, given, strict=True)
    }
    attrs = signature.keywords(call.attrs, str(definition))
    returned = definition.compute(*inputs.values(), **attrs)
    results = tuple(returned) if isinstance(returned, Sequence) else (returned,)
    _check_results(definition, results, call)
    outer = {
        tensor.op: actual
        for tensor, actual in zip(inputs.values(), given, strict=True)
        if tensor is not None and actual is not None
    }
    return _inserted(results[: len(call.output_types)], outer, call)


def _facts(tensor: Tensor) -> Mapping[str, Any]:
    return tensor.op.attrs if isinstance(tensor.op, PlaceholderOp) else {}


def _check_results(definition: OperatorDefinition, results: Sequence[Any], call: ComputeCall) -> None:
    wrong = next((item for item in results if not isinstance(item, Tensor)), None)
    if wrong is not None:
        raise call.not_covered(f"its inputs: compute returns {wrong!r}, expected tensors of native.te")
    if len(results) != len(definition.outputs):
        raise call.not_covered(
            f"its inputs: compute returns {len(results)} tensors, expected {len(definition.outputs)}"
        )
    for name, tensor, expected in zip(definition.outputs, results, call.output_types, strict=False):
        actual = TensorType(tensor.shape, tensor.dtype)
        if actual != expected:
            raise NotCoveredError(
                f"operator {call.op_name!r} contradicts itself: for {name!r} compute gives {actual}, "
                f"infer says {expected}",
                help="make both functions give the same shape and element type",
            )


def _inserted(
    results: Sequence[Tensor], outer: Mapping[Operation, Tensor], call: ComputeCall
) -> tuple[Tensor, ...]:
    """Return results that read the call's tensors, with unique names of operations."""
    ops = operations(tensor.op for tensor in results)
    _check_ops(ops, outer, call)
    renamed: dict[Operation, Operation] = {}
    only = results[0].op if len({tensor.op for tensor in results}) == 1 else None

    def moved(tensor: Tensor) -> Tensor:
        return outer.get(tensor.op) or Tensor(renamed[tensor.op], tensor.position)

    for op in ops:
        if isinstance(op, ComputeOp):
            tensors = {tensor.buffer: moved(tensor) for tensor in op.inputs}
            renamed[op] = replace(
                op,
                name=call.name if op is only else f"{call.name}.{op.name}",
                bodies=tuple(_reading(body, tensors) for body in op.bodies),
                inputs=tuple(dict.fromkeys(tensors.values())),
                attrs=_renamed_facts(op.attrs, {old.name: new.op.name for old, new in tensors.items()}),
            )
    return tuple(moved(tensor) for tensor in results)


def _check_ops(ops: Sequence[Operation], outer: Mapping[Operation, Tensor], call: ComputeCall) -> None:
    names = [op.name for op in ops]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise call.not_covered(
            f"its inputs: its compute rule names two tensors {twice!r}; pass te.compute a name for each"
        )
    other = next((op for op in ops if not isinstance(op, ComputeOp) and op not in outer), None)
    if other is not None:
        raise call.not_covered(
            f"its inputs: {other.name!r} of its compute rule is neither an input nor a te.compute"
        )


def _reading(body: Scalar, tensors: Mapping[Any, Tensor]) -> Scalar:
    """Return a scalar that loads from the buffers of other tensors."""

    def rule(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Load):
            return Load(tensors[scalar.buffer].buffer, scalar.indices)
        return scalar

    return rewrite_scalar(body, rule)


def _renamed_facts(attrs: Attrs, names: Mapping[str, str]) -> Attrs:
    """Return facts for schedulers that name the tensors which are read in place of the old ones."""
    listed = attrs.get(LAYOUT_FREE)
    if not isinstance(listed, tuple):
        return attrs
    return attrs.updated(**{LAYOUT_FREE: tuple(names.get(str(name), str(name)) for name in listed)})
