"""The packing of the matrices that native multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Constant, TensorType
from intarsia.native.dag.gemm_form import MatrixPacking
from intarsia.transform import register_pass
from intarsia.tune.kernels import KernelGroup, KernelQuestion, TuneKernels
from intarsia.tune.kernels.kernel_question import question_on

_PRODUCTS: Final = frozenset({"Gemm", "MatMul"})
_FEW_ROWS: Final = 64
"""Maximum number of rows of a product that may read a constant matrix unpacked: with more, each element of it
is read for many multiplications, and the packing is paid for when the program is built."""


@register_pass
@dataclass(frozen=True)
class TunePacking(TuneKernels, opt_level=0):
    """Decides whether native packs the right matrices of products.

    By rule constants are packed when a program is built, and panels of computed matrices where many tiles use
    them; of few rows, vectors run along the sum where both matrices do. Other modes are to read the matrix
    where it is, to pack panels all the same, or to run along the sum all the same.
    """

    def questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        """Return a question for each group with a product of matrices."""
        questions = []
        for group in groups:
            modes = _modes(group)
            if modes:
                settings = {mode.value: {"packing": mode.value} for mode in modes}
                questions.append(question_on(group, "packing", settings, target))
        return questions


def _modes(group: KernelGroup) -> list[MatrixPacking]:
    """Return the modes that may pay; the one that is the rule's is among them where it is not known."""
    products = [call for call in group.rule.calls if str(call.op) in _PRODUCTS]
    if not products or group.lanes:
        return []
    if all(isinstance(call.args[1], Constant) for call in products):
        has_few_rows = all(_rows(call) <= _FEW_ROWS for call in products)
        return list(MatrixPacking) if has_few_rows else []
    return list(MatrixPacking)


def _rows(call: Call) -> int:
    """Return the number of rows of a product; 1 for a vector."""
    type_ = call.checked_type
    assert isinstance(type_, TensorType), "a product has one result"
    return type_.static_shape[-2] if len(type_.static_shape) > 1 else 1
