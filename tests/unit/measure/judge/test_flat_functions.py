"""Results of functions that are flat: engines round them otherwise, whatever the noise of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import intarsia as ia
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.passes import InferType, partition_whole

Floats = npt.NDArray[Any]
TYPE = "Tensor[(16, 96), float32]"

PROGRAMS = {
    "Erf": ("Erf(%x)", "%1 = Add(%0, float32(1.0));", "Mul(%x, %1)"),
    "Tanh": ("Tanh(%x)", "%1 = Mul(%0, %0);", "Sub(float32(1.0), %1)"),
    "Sigmoid": ("Sigmoid(%x)", "%1 = Sub(float32(1.0), %0);", "Mul(%0, %1)"),
    "Cos": ("Cos(%x)", "", "Sub(float32(1.0), %0)"),
    "Exp": ("Exp(%x)", "", "Sub(%0, float32(1.0))"),
    "Elu": ("Elu(%x, alpha=1.0)", "", "Add(%0, float32(1.0))"),
    "Softmax": ("Softmax(%x, axis=-1)", "", "Sub(float32(1.0), %0)"),
}
"""Programs in which what is left of a result is its rounding: the function, and the lines behind it."""
SCALES = {"Cos": 0.03, "Exp": 0.01, "Softmax": 12.0}
"""Factors of the inputs, into the flat part of the function."""


def program(name: str, rounding: str = "") -> IRModule:
    """The program of a function, `rounding` being what is done to its result."""
    value, middle, result = PROGRAMS[name]
    first = f"%f = {value};\n  %0 = {rounding};" if rounding else f"%0 = {value};"
    body = f"{first}\n  {middle}\n  {result}"
    return InferType()(parse_module(f'#[version = "0.1"]\ndef @main(%x: {TYPE}) {{\n  {body}\n}}'))


def rounded_up(name: str) -> IRModule:
    """The program with each result of the function one rounding error larger, as another engine has it."""
    return program(name, "Mul(%f, float32(1.00000011920928955078125))")


@pytest.fixture(scope="module", params=PROGRAMS)
def gate_of(request: pytest.FixtureRequest) -> tuple[str, Gate, dict[str, Floats]]:
    module = program(request.param)
    inputs = random_inputs(module["main"])
    inputs["x"] *= np.float32(SCALES.get(request.param, 3.0))
    return request.param, Gate.for_module(module, inputs), inputs


def test_another_rounding_passes(gate_of: tuple[str, Gate, dict[str, Floats]]) -> None:
    name, gate, inputs = gate_of
    other = ia.build(partition_whole(rounded_up(name), ia.Target.for_toolchain("reference")))
    report = gate.check(run_arrays(other, inputs))
    assert report.passed, report


@pytest.mark.parametrize(
    ("body", "exact"),
    [
        ("%0 = Exp(%x); %1 = Add(%0, float32(1.0)); Log(%1)", lambda x: np.log1p(np.exp(x))),
        ("%0 = Exp(%x); %1 = Sub(float32(1.0), %0); Log(%1)", lambda x: np.log1p(-np.exp(x))),
    ],
)
def test_a_fused_function_may_be_more_exact_than_its_operators(
    body: str, exact: Callable[[Floats], Floats]
) -> None:
    """Where exp(x) is small, most of its digits are lost in 1 + exp(x), in another place by each rounding."""
    module = InferType()(parse_module(f'#[version = "0.1"]\ndef @main(%x: {TYPE}) {{\n{body}\n}}'))
    inputs = random_inputs(module["main"])
    inputs["x"] = -np.float32(4) * np.abs(inputs["x"]) - np.float32(0.5)
    gate = Gate.for_module(module, inputs)
    right = exact(inputs["x"].astype(np.float64)).astype(np.float32)
    report = gate.check([right])
    assert report.passed, report
    assert not gate.check([right * np.float32(1.001)]).passed
    assert not gate.check([smallest_half_zeroed(right)]).passed


def smallest_half_zeroed(values: Floats) -> Floats:
    return np.where(np.abs(values) < np.median(np.abs(values)), 0, values).astype(values.dtype)


def a_row_scaled(values: Floats) -> Floats:
    changed = values.copy()
    changed[3] *= np.float32(1.001)
    return changed


@pytest.mark.parametrize("fault", [smallest_half_zeroed, a_row_scaled])
def test_faults_do_not(
    gate_of: tuple[str, Gate, dict[str, Floats]], fault: Callable[[Floats], Floats]
) -> None:
    _, gate, _ = gate_of
    assert not gate.check([fault(values) for values in gate.expected]).passed
