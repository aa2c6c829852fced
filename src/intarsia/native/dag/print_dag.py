"""A DAG as text, in TVM's format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, assert_never

from intarsia.ir.loop_walk import operands, scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Intrinsic, Literal, Load, LoopVar, Scalar
from intarsia.native.te.combiner import Combiner
from intarsia.native.te.tensor import ComputeOp, ExternOp, Operation, PlaceholderOp

LONGEST_LINE: Final = 256
"""Number of characters from which the middle of a line of `dag_text` is left out."""

_FUNCTIONS: Final = {
    ArithOp.MIN: "min",
    ArithOp.MAX: "max",
    ArithOp.SELECT: "select",
    ArithOp.NOT: "not",
    ArithOp.FLOOR_DIV: "floordiv",
    ArithOp.FLOOR_MOD: "floormod",
}
_SIGNS: Final = {ArithOp.ADD: " +", ArithOp.MAX: " max", ArithOp.MIN: " min", ArithOp.MUL: " *"}


def dag_text(
    ops: Iterable[Operation], *, shorten: bool = True, simple: bool = False, key_names: bool = False
) -> str:
    """Return one line for each result, such as `C(i, j) += (A[i, k]*B[k, j])`.

    Args:
        ops: Operations in the order of the lines.
        shorten: Whether the middle of lines longer than LONGEST_LINE is left out.
        simple: Whether shapes are left out, and the arguments of a body that is one function call; that text
            is the same for all sizes of a computation.
        key_names: Whether axes have their names in keys.
    """
    lines = [line for op in ops for line in _lines(op, simple, key_names)]
    if shorten:
        lines = [_shortened(line) for line in lines]
    return "".join(f"{line}\n" for line in lines)


def _lines(op: Operation, simple: bool, key_names: bool) -> list[str]:
    match op:
        case PlaceholderOp():
            shape = "" if simple else f" {list(op.shape)}"
            return [f"{op.name} = PLACEHOLDER{shape}"]
        case ComputeOp():
            axes = {axis.name: axis.key_name for axis in op.axes if key_names and axis.key_name}
            return [_compute_line(op, result_index, simple, axes) for result_index in range(len(op.bodies))]
        case ExternOp():
            inputs = ", ".join(tensor.buffer.name for tensor in op.inputs)
            shapes = "" if simple else " " + ", ".join(str(list(buffer.shape)) for buffer in op.buffers)
            return [f"{op.name} = EXTERN({inputs}){shapes}"]
        case _:
            assert_never(op)


def _compute_line(op: ComputeOp, result_index: int, simple: bool, names: Mapping[str, str]) -> str:
    suffix = f".v{result_index}" if len(op.bodies) > 1 else ""
    head = f"{op.name}{suffix}({', '.join(names.get(axis.name, axis.name) for axis in op.axes)})"
    body = op.bodies[result_index]
    if op.combiner is not None:
        return head + _combined(op.combiner, result_index, op.bodies, names)
    if simple and isinstance(body, Intrinsic):
        return f"{head} = {body.name}"
    return f"{head} = {expression_text(body, names)}"


def _combined(
    combiner: Combiner, result_index: int, bodies: tuple[Scalar, ...], names: Mapping[str, str]
) -> str:
    result = combiner.result[result_index]
    sources = [expression_text(body, names) for body in bodies]
    if len(bodies) == 1 and isinstance(result, Arith) and result.op in _SIGNS:
        return f"{_SIGNS[result.op]}= {sources[0]}"
    return f" {expression_text(result)}= ({','.join(sources)})"


def expression_text(root: Scalar, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a scalar as text: operators in parentheses, floats with `f`, functions by name.

    Args:
        root: The scalar.
        names: Other names of loop variables.
    """
    stack: list[str] = []
    for scalar, _ in scalar_post_order(root):
        count = len(operands(scalar))
        below = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        stack.append(_text(scalar, below, names))
    return stack[0]


def _text(scalar: Scalar, below: list[str], names: Mapping[str, str]) -> str:
    inside = ", ".join(below)
    match scalar:
        case LoopVar():
            return names.get(scalar.name, scalar.name)
        case Literal():
            return f"{scalar.value:g}f" if scalar.dtype.is_float else str(scalar.value)
        case Load():
            return f"{scalar.buffer.name}[{inside}]" if below else scalar.buffer.name
        case Cast():
            return f"{scalar.dtype.value}({inside})"
        case Intrinsic():
            return f"{scalar.name}({inside})"
        case Arith():
            name = _FUNCTIONS.get(scalar.op)
            sign = scalar.op.value if scalar.op in _TIGHT else f" {scalar.op.value} "
            return f"({sign.join(below)})" if name is None else f"{name}({inside})"
        case _:
            assert_never(scalar)


_TIGHT: Final = (*(ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.DIV), *(ArithOp.LT, ArithOp.LE))


def _shortened(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    kept = LONGEST_LINE // 2
    return f"{line[:kept]} ..(OMITTED).. {line[-kept:]}"
