"""Integers that OpenVINO would cut are refused by predicate, compiler and kernel; ordinary ones pass."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import intarsia as ia
from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.ir.types import ANY
from intarsia.op import call
from intarsia.op.operator_predicate import operator_predicate
from intarsia.passes import AnnotateTarget, partition_whole
from intarsia.passes.regions.toolchain_call import assigned_toolchain
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.toolchain import toolchain
from intarsia.toolchain.openvino.integer_ranges import IntegerRanges
from intarsia.toolchain.openvino.integers import lost_bits
from intarsia.transform import Sequential

TYPES = (DType.INT64, DType.UINT64, DType.UINT32, DType.INT32, DType.INT16, DType.INT8, DType.UINT8)
OPERATORS = ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less", "BitwiseAnd", "BitwiseXor")
OPENVINO = ia.Target.for_toolchain("openvino")

Numbers = NDArray[np.generic]


def var(name: str, *shape: int, dtype: DType = DType.INT64) -> Var:
    return Var(name, checked_type=TensorType(shape, dtype))


def constant(*values: int, dtype: str = "int64") -> Constant:
    return Constant(np.array(values, dtype))


def numbers(value: float) -> Constant:
    return Constant(np.array(value, np.float32))


def program(*results: Expr, params: tuple[Var, ...]) -> IRModule:
    return IRModule.from_expr(Function(params, results[0] if len(results) == 1 else Tuple(results)))


X, MASK, TABLE = var("x", 4), var("mask", 2, 4), Constant(np.ones((100, 3), np.float32))
OPEN = Var("x", checked_type=TensorType((ANY, 8), DType.FLOAT32))


def test_the_case_of_the_report_is_refused_by_each_way_to_openvino() -> None:
    added = call("Add", X, constant(3))
    assert not toolchain("openvino").supports(added)
    assert not operator_predicate("openvino")(added)
    module = program(added, params=(X,))
    with pytest.raises(CompileError, match="it computes integers in 32 bits or in float32, and a result of"):
        ia.build(partition_whole(module, OPENVINO))
    annotated = Sequential([AnnotateTarget(("openvino",))])(module)
    body = annotated["main"].body
    assert isinstance(body, Call)
    assert assigned_toolchain(body) is None


def test_values_that_are_only_moved_are_looked_at_when_the_kernel_is_called() -> None:
    module = partition_whole(program(call("Concat", X, X, axis=0), params=(X,)), OPENVINO)
    with ia.build(module) as executable:
        small = np.array([1, -2, 2**31 - 1, -(2**31)])
        np.testing.assert_array_equal(executable.run_flat(small)[0], np.concatenate([small, small]))
        with pytest.raises(ExecutionError, match="'x' holds 1099511627776"):
            executable.run_flat(np.array([0, 1, 2**40, 3]))


SMALL: dict[str, tuple[Expr, tuple[Var, ...]]] = {
    "ids of a table": (call("Gather", TABLE, X), (X,)),
    "padding of ids of a table": (
        Tuple((call("Gather", TABLE, X), call("Cast", call("Equal", X, constant(1)), to=1))),
        (X,),
    ),
    "positions from a mask": (
        call("Gather", TABLE, call("Sub", call("CumSum", MASK, constant(1)), constant(1))),
        (MASK,),
    ),
    "length of a mask of truth values": (
        call("ReduceSum", call("Cast", call("Cast", MASK, to=9), to=7), constant(1)),
        (MASK,),
    ),
    "mask as real numbers": (call("Sub", numbers(1), call("Cast", MASK, to=1)), (MASK,)),
    "a mask compared": (call("Greater", MASK, constant(0)), (MASK,)),
    "shape arithmetic": (
        call("Reshape", OPEN, call("Concat", call("Mul", call("Shape", OPEN, end=1), constant(2)),
                                   constant(-1), axis=0)),
        (OPEN,),
    ),
    "a size of real numbers": (
        call("Cast", call("Ceil", call("Div", call("Cast", call("Shape", OPEN), to=1),
                                       Constant(np.array(2, np.float32)))), to=7),
        (OPEN,),
    ),
    "largest position": (call("Add", call("ArgMax", call("Cast", MASK, to=1), axis=1), constant(1)), (MASK,)),
}  # fmt: skip

LARGE: dict[str, tuple[Expr, tuple[Var, ...]]] = {
    "a sum": (call("Add", X, constant(2**30)), (X,)),
    "a division": (call("Div", MASK, constant(7)), (MASK,)),
    "a comparison of two": (call("Equal", MASK, X), (MASK, X)),
    "real numbers": (call("Cast", var("f", 3, dtype=DType.FLOAT32), to=7), ()),
    "products of masks, cast": (call("Cast", call("Mul", MASK, MASK), to=9), (MASK,)),
    "bytes": (call("Add", var("b", 3, dtype=DType.UINT8), var("c", 3, dtype=DType.UINT8)), ()),
    "a large constant": (call("Concat", X, constant(2**40), axis=0), (X,)),
    "an int32 division": (call("Div", *(var(n, 3, dtype=DType.INT32) for n in "ab")), ()),
}


@pytest.mark.parametrize("case", SMALL)
def test_what_models_do_with_integers_passes(case: str) -> None:
    body, params = SMALL[case]
    assert lost_bits(Function(params, body)) is None


@pytest.mark.parametrize("case", LARGE)
def test_what_may_be_large_is_refused(case: str) -> None:
    body, params = LARGE[case]
    assert lost_bits(Function(params, body)) is not None


def test_functions_that_are_called_are_looked_at() -> None:
    inner = program(call("Div", X, constant(7)), params=(X,))
    marked = partition_whole(inner, OPENVINO)
    assert lost_bits(marked["main"], marked) is not None


def test_an_input_that_selects_rows_is_within_the_table() -> None:
    ranges = IntegerRanges(Function((X,), call("Gather", TABLE, X)))
    assert ranges.interval(X) == (-100, 99)


def _values(dtype: DType, rng: np.random.Generator) -> Numbers:
    limits = np.iinfo(dtype)
    pool = [0, 1, 2, 5, 7, limits.max, limits.max - 1, limits.min, limits.min + 1]
    pool += [2**bit + offset for bit in (7, 15, 24, 31, 32, 40, 53) for offset in (-1, 0, 1, 3)]
    fitting = [value for value in pool if limits.min <= value <= limits.max]
    return rng.choice(np.array(fitting, dtype), 12)


def _random_program(rng: np.random.Generator) -> tuple[IRModule, list[Numbers]]:
    """A few operators on values at the limits of a type."""
    dtype = TYPES[rng.integers(len(TYPES))]
    params = (var("x", 12, dtype=dtype), var("y", 12, dtype=dtype))
    values: list[Expr] = [*params, Constant(_values(dtype, rng))]
    for _ in range(rng.integers(1, 4)):
        name = OPERATORS[rng.integers(len(OPERATORS))]
        left, right = (values[rng.integers(len(values))] for _ in "ab")
        if name in ("Div", "Mod"):
            right = Constant(np.array([rng.integers(1, 100)], dtype))
        result = call(name, left, right)
        if name in ("Equal", "Less"):
            result = call(
                "Cast", result, to={"int64": 7, "uint64": 13, "uint32": 12, "int32": 6}.get(dtype, 6)
            )
            if result.checked_type != params[0].checked_type:
                continue
        values.append(result)
    return program(values[-1], params=params), [_values(dtype, rng), _values(dtype, rng)]


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["native", "onnxruntime", "openvino"])
def test_random_integer_programs_are_right_or_refused(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(6):
        module, inputs = _random_program(rng)
        with ia.build(module) as reference, np.errstate(all="ignore"):
            expected = np.array(reference.run_flat(*inputs)[0])
        try:
            with ia.build(partition_whole(module, ia.Target.for_toolchain(name))) as executable:
                found = np.array(executable.run_flat(*inputs)[0])
        except (CompileError, ExecutionError):
            continue
        np.testing.assert_array_equal(found, expected, str(module))
