"""A program with annotations, and the short texts that scenarios are written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import (
    DType,
    IRModule,
    TensorType,
    Var,
)
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.passes import InferType, PlanDevices

PLANNING = PlanDevices(targets=("mock", "cpu"), fallback_device="mock")
CONSTANTS = (np.arange(6, dtype=np.float32).reshape(2, 3), np.array(True))

_SHORT = {
    "f32": "Tensor[(2, 3), float32]",
    "image": "Tensor[(1, 2, 4, 4), float32]",
    "kernel": "Tensor[(2, 2, 3, 3), float32]",
    "@CPU": "@device(cpu:0)",
    "@GPU": "@device(mock:0)",
}
_PLANNED = {'@device(cpu:0, target="cpu")': "@CPU", '@device(mock:0, target="mock")': "@GPU"}


@dataclass(frozen=True)
class Scenario:
    """A program with annotations.

    Attributes:
        name: Short description of the scenario.
        before: The program.
        after: The planned program, without types.
    """

    name: str
    before: str
    after: str

    def program(self) -> IRModule:
        """The annotated program."""
        return annotated(self.before)

    def inputs(self, truth: bool = True) -> dict[str, npt.NDArray[Any]]:
        """An array for each parameter of @main; open dimensions are 4, and conditions are `truth`."""
        return {param.name: _array(param, truth) for param in self.program()["main"].params}

    def planned(self) -> IRModule:
        """The planned program."""
        return PLANNING(self.program())


def _array(param: Var, truth: bool) -> npt.NDArray[Any]:
    assert isinstance(param.checked_type, TensorType)
    if param.checked_type.dtype is DType.BOOL:
        return np.array(truth)
    shape = tuple(dim if isinstance(dim, int) else 4 for dim in param.checked_type.shape or ())
    numbers = np.random.default_rng(len(param.name)).uniform(0.5, 3.0, shape)
    return np.asarray(numbers, param.checked_type.dtype.numpy)


def annotated(text: str) -> IRModule:
    """A program of short texts, with its types."""
    for short, full in _SHORT.items():
        text = text.replace(short, full)
    return InferType()(parse_module(f'#[version = "0.1"]\n{text}', CONSTANTS))


def shown(mod: IRModule) -> str:
    """A program with its devices, in short."""
    text = print_module(mod, show_types=False, show_spans=False).text
    for full, short in _PLANNED.items():
        text = text.replace(full, short)
    return text[text.index("def ") :].replace("\n\n", "\n").strip()
