"""Result types of the operators whose body is a function: Loop, Scan and SequenceMap."""

from __future__ import annotations

from intarsia.ir import (
    ANY,
    Attrs,
    Dim,
    FuncType,
    SequenceType,
    TensorType,
    TupleType,
    Type,
    join_types,
)
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import operators_with
from intarsia.support.errors import InvalidModelError

BODY_OPERATORS = operators_with(OperatorTrait.HAS_BODY)
"""Loop, Scan and SequenceMap."""

_Types = tuple[Type | None, ...]


def body_result_types(body: FuncType) -> _Types:
    """The values that a body returns, one by one."""
    return body.result.fields if isinstance(body.result, TupleType) else (body.result,)


def control_flow_types(name: str, types: _Types, attrs: Attrs) -> _Types:
    """Types of all results of a call of Loop, Scan or SequenceMap.

    Args:
        name: The operator.
        types: Types of its arguments, the body last.
        attrs: Its attributes.

    Raises:
        InvalidModelError: No body, or one that does not fit the other arguments.
    """
    body = types[-1] if types else None
    if not isinstance(body, FuncType):
        raise InvalidModelError(f"operator {name!r} needs a body: a function as its last argument")
    args, results = types[:-1], body_result_types(body)
    match name:
        case "Loop":
            return _loop_types(args, body, results)
        case "Scan":
            return _scan_types(args, body, results, attrs)
        case _:
            _check_counts(name, args, body, results, states=0)
            return tuple(None if item is None else SequenceType(item) for item in results)


def _loop_types(args: _Types, body: FuncType, results: _Types) -> _Types:
    """Arguments: (trip count, condition, states...); results of the body: (condition, states..., rows...)."""
    if len(args) < 2:
        raise InvalidModelError(f"operator 'Loop' has {len(args)} arguments, expected 2 or more and a body")
    _check_counts("Loop", args, body, results, states=len(args) - 1)
    states = tuple(map(_widened, args[2:], results[1:]))
    return states + tuple(_stacked(item, 0, ANY) for item in results[1 + len(states) :])


def _scan_types(args: _Types, body: FuncType, results: _Types, attrs: Attrs) -> _Types:
    scanned = attrs.get("num_scan_inputs")
    if not isinstance(scanned, int) or not 1 <= scanned <= len(args):
        raise InvalidModelError(
            f"operator 'Scan' has num_scan_inputs={scanned!r}, expected a number from 1 to {len(args)}"
        )
    states = len(args) - scanned
    _check_counts("Scan", args, body, results, states)
    length: Dim = ANY  # all that is scanned has one length: a number says more than a name
    for item, axis in zip(args[states:], scan_axes(attrs, "scan_input_axes", scanned), strict=True):
        if isinstance(item, TensorType) and item.shape is not None:
            size = item.shape[_position(axis, len(item.shape))]
            length = size if length == ANY or isinstance(size, int) else length
    output_axes = scan_axes(attrs, "scan_output_axes", len(results) - states)
    stacked = (_stacked(item, axis, length) for item, axis in zip(results[states:], output_axes, strict=True))
    return (*map(_widened, args[:states], results[:states]), *stacked)


def scan_parameter_types(args: _Types, attrs: Attrs) -> _Types:
    """Types of the parameters of a Scan's body that the arguments alone determine.

    A state has the type that it starts with: ONNX lets its shape change in no step. A scanned argument loses
    its axis.

    Args:
        args: Types of the arguments without the body: states, then what is scanned.
        attrs: The attributes of the Scan.

    Returns:
        A type for each argument; None where its own is unknown or the attributes do not fit it.
    """
    scanned = attrs.get("num_scan_inputs")
    if not isinstance(scanned, int) or not 1 <= scanned <= len(args):
        return (None,) * len(args)  # the call is refused
    states = len(args) - scanned
    axes = scan_axes(attrs, "scan_input_axes", scanned)
    return (*args[:states], *map(_without_axis, args[states:], axes))


def _without_axis(item: Type | None, axis: int) -> Type | None:
    if not isinstance(item, TensorType) or not item.shape:
        return None
    position = _position(axis, len(item.shape))
    return TensorType((*item.shape[:position], *item.shape[position + 1 :]), item.dtype)


def _check_counts(name: str, args: _Types, body: FuncType, results: _Types, states: int) -> None:
    if len(body.params) != len(args):
        raise InvalidModelError(
            f"operator {name!r} has {len(args)} arguments, but its body takes {len(body.params)}"
        )
    if len(results) < states:
        raise InvalidModelError(
            f"operator {name!r} needs a body that returns {states} values or more, found {len(results)}"
        )


def scan_axes(attrs: Attrs, name: str, count: int) -> tuple[int, ...]:
    """Return the axes, or the directions, of what a Scan reads or stacks; zeros if they are not given.

    Args:
        attrs: The attributes of the Scan.
        name: Name of the attribute, such as "scan_output_axes".
        count: Number of the values.

    Raises:
        InvalidModelError: There is another number of them.
    """
    value = attrs.get(name, (0,) * count)
    axes = tuple(item for item in value if isinstance(item, int)) if isinstance(value, tuple) else ()
    if len(axes) != count:
        raise InvalidModelError(f"operator 'Scan' has {name}={value!r}, expected {count} axes")
    return axes


def _position(axis: int, rank: int) -> int:
    """The axis counted from the front.

    Raises:
        InvalidModelError: There is no such axis.
    """
    if not -rank <= axis < rank:
        raise InvalidModelError(f"operator 'Scan' names the axis {axis} of a tensor of rank {rank}")
    return axis % rank


def _widened(before: Type | None, after: Type | None) -> Type | None:
    if before is None or after is None:
        return before or after
    joined = join_types(before, after)
    if joined is None and isinstance(before, TensorType) and isinstance(after, TensorType):
        raise InvalidModelError(f"a loop state starts as {before}, but its body returns {after}")
    return joined


def _stacked(item: Type | None, axis: int, length: Dim) -> Type | None:
    if not isinstance(item, TensorType):
        return None
    if item.shape is None:
        return item
    position = _position(axis, len(item.shape) + 1)
    return TensorType((*item.shape[:position], length, *item.shape[position:]), item.dtype)
