"""List the kernels of the other benchmarks: convolutions, matrix products, row-wise operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks import native_convolutions, native_products
from benchmarks.native_convolutions import Case, arrays_of, declare
from benchmarks.native_kernels import OPERATORS, OperatorCase, Run, compile_engine_calls
from benchmarks.native_products import CONSTANT, VARIABLE, Product

from intarsia.ir import Constant, DType, TensorType, Var
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.te.operators import compute, compute_call_of
from intarsia.native.te.operators.blocked_layout import blocked_array, plain_array
from intarsia.op import call
from intarsia.support.aligned_memory import aligned_array

Array = npt.NDArray[np.float32]
SETS = ("convolution", "dense", "rows")


@dataclass(frozen=True)
class Kernel:
    """A kernel as it is in the middle of a region, and the same operator for engines.

    Attributes:
        dag: Declaration of the computation.
        inputs: Contents of its placeholders.
        engines: Function of an array for the result and a number of threads; it returns a call of each
        engine. shape: Shape of the engines' result. plain: Function that converts the kernel's result to the
        layout of the engines.
    """

    dag: ComputeDAG
    inputs: Mapping[str, Array]
    engines: Callable[[Array, int], dict[str, Run]]
    shape: tuple[int, ...]
    plain: Callable[[Array], Array]


@dataclass(frozen=True)
class KernelCase:
    """An operator of one of the sets.

    Attributes:
        group: One of SETS.
        name: Name in tables.
        operations: Number of multiplications and additions; None for memory-bound operators.
        kernel: Function that makes the arrays and the declaration for an ISA.
    """

    group: str
    name: str
    operations: int | None
    kernel: Callable[[Isa], Kernel]


def kernel_cases() -> Iterator[KernelCase]:
    """Yield all kernels of all sets."""
    for conv in native_convolutions.CASES:
        operations = conv.operations if "Conv" in conv.operator else None
        yield KernelCase("convolution", conv.name, operations, partial(_convolution, conv))
    for product in (*CONSTANT, *VARIABLE):
        name = f"{product.title}, {'constant' if product.is_constant else 'variable'}"
        operations = 2 * int(np.prod(product.shape)) * product.left[-1]
        yield KernelCase("dense", name, operations, partial(_product, product))
    for operator in OPERATORS:
        yield KernelCase("rows", operator.title, None, partial(_operator, operator))


def _convolution(case: Case, isa: Isa) -> Kernel:
    lanes = isa.vector_bytes // 4
    x, weight, bias = map(aligned_array, arrays_of(case))
    kernel_input = x if case.reads_plain else blocked_array(x, lanes)
    placeholder = te.placeholder(kernel_input.shape, name="x")
    result, constants = declare(case, placeholder, weight, bias, lanes)
    inputs = {tensor.buffer.name: array for tensor, array in constants.items()} | {"x": kernel_input}
    attrs: dict[str, Any] = {"strides": (case.stride,) * 2, "pads": (case.pad,) * 4}
    weights: dict[str, Array] = {}
    match case.operator:
        case "Conv" | "ConvTranspose":
            weights = {"w": weight, "b": bias}
            attrs |= {"group": case.groups}
        case "MaxPool":
            attrs |= {"kernel_shape": (case.taps,) * 2}
        case _:
            attrs = {}
    count = case.dimension.count if case.operator == "ConvTranspose" else case.window.count
    return Kernel(
        ComputeDAG((placeholder, *constants, result)),
        inputs,
        lambda y, threads: compile_engine_calls(case.operator, attrs, {"x": x}, weights, y, threads),
        (1, case.filters, count, count),
        lambda y: y if case.writes_plain else plain_array(y, case.filters),
    )


def _product(case: Product, _: Isa) -> Kernel:
    random = np.random.default_rng(0)
    shapes = case.left, case.right
    x, w = (aligned_array(random.standard_normal(shape).astype(np.float32)) for shape in shapes)
    name, attrs = case.operator
    left = Var("x", checked_type=TensorType(x.shape, DType.FLOAT32))
    right = Constant(w) if case.is_constant else Var("w", checked_type=TensorType(w.shape, DType.FLOAT32))
    typed = call(name, left, right, **attrs)
    return Kernel(
        ComputeDAG(compute(compute_call_of(typed, "t"))),
        {"t.x0": x, "t.x1": w},
        lambda y, threads: native_products.compile_engines(case, x, w, y, threads),
        case.shape,
        lambda y: y,
    )


def _operator(case: OperatorCase, _: Isa) -> Kernel:
    x = aligned_array(np.random.default_rng(0).standard_normal(case.shape).astype(np.float32))
    activation = Var("x0", checked_type=TensorType(case.shape, DType.FLOAT32))
    typed = call(case.name, activation, *map(Constant, case.constants), **case.attrs)
    dag = ComputeDAG(compute(compute_call_of(typed, "t")))
    weights = {f"w{index}": constant for index, constant in enumerate(case.constants)}
    return Kernel(
        dag,
        {"t.x0": x, **{f"t.x{index}": constant for index, constant in enumerate(case.constants, 1)}},
        lambda y, threads: compile_engine_calls(case.name, case.attrs, {"x": x}, weights, y, threads),
        dag.outputs[0].shape,
        lambda y: y,
    )
