"""The kernels of the other scripts as one list: convolutions, products, operators on rows and elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks import native_convolutions, native_products
from benchmarks.native_convolutions import Case, arrays_of, declared
from benchmarks.native_kernels import OPERATORS, OperatorCase, Run, engine_calls
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
        dag: What is computed.
        inputs: Contents of its placeholders.
        engines: Given an array for the result and a number of threads, calls of the engines.
        shape: Of that array.
        plain: The kernel's result as engines give it.
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
        name: For tables.
        operations: Products and sums; None where that is not what takes the time.
        kernel: The arrays and declarations, made when they are needed.
    """

    group: str
    name: str
    operations: int | None
    kernel: Callable[[Isa], Kernel]


def kernel_cases() -> Iterator[KernelCase]:
    """All of them."""
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
    given = x if case.is_plain else blocked_array(x, lanes)
    placeholder = te.placeholder(given.shape, name="x")
    result, constants = declared(case, placeholder, weight, bias, lanes)
    inputs = {tensor.buffer.name: array for tensor, array in constants.items()} | {"x": given}
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
        lambda y, threads: engine_calls(case.operator, attrs, {"x": x}, weights, y, threads),
        (1, case.made, count, count),
        lambda y: y if case.makes_plain else plain_array(y, case.made),
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
        lambda y, threads: native_products.engines(case, x, w, y, threads),
        case.shape,
        lambda y: y,
    )


def _operator(case: OperatorCase, _: Isa) -> Kernel:
    x = aligned_array(np.random.default_rng(0).standard_normal(case.shape).astype(np.float32))
    given = Var("x0", checked_type=TensorType(case.shape, DType.FLOAT32))
    typed = call(case.name, given, *map(Constant, case.constants), **case.attrs)
    dag = ComputeDAG(compute(compute_call_of(typed, "t")))
    weights = {f"w{place}": each for place, each in enumerate(case.constants)}
    return Kernel(
        dag,
        {"t.x0": x, **{f"t.x{place}": each for place, each in enumerate(case.constants, 1)}},
        lambda y, threads: engine_calls(case.name, case.attrs, {"x": x}, weights, y, threads),
        dag.outputs[0].shape,
        lambda y: y,
    )
