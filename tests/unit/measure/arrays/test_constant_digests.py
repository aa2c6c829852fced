"""Digests on several threads are those of one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var, structural_digest
from intarsia.measure.arrays.constant_digests import LARGE, digest_constants
from intarsia.op import call

COUNT = 20


def test_there_are_as_many_threads_as_usable_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, count: int) -> None:
            counts.append(count)
            super().__init__(count)

    monkeypatch.setattr("intarsia.measure.arrays.constant_digests.ThreadPoolExecutor", Pool)
    monkeypatch.setattr("intarsia.measure.arrays.constant_digests.usable_cores", lambda root: 3)
    digest_constants(program(LARGE // 4)[0])
    assert counts == [3]


def program(elements: int) -> tuple[IRModule, list[Constant]]:
    """A sum with many constants."""
    constants = [Constant(np.full(elements, number, np.float32)) for number in range(COUNT)]
    value = x = Var("x", checked_type=TensorType((elements,), DType.FLOAT32))
    for each in constants:
        value = call("Add", value, each)  # type: ignore[assignment]  # any expression
    return IRModule.from_expr(Function((x,), value)), constants


@pytest.mark.parametrize(("elements", "is_ahead"), [(8, False), (LARGE // 4, True)])
def test_large_constants_have_the_digests_that_they_would_have(elements: int, is_ahead: bool) -> None:
    module, constants = program(elements)
    digest_constants(module)
    assert [bool(each._digest) for each in constants] == [is_ahead] * COUNT
    assert structural_digest(module) == structural_digest(program(elements)[0])
