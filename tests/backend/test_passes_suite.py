"""Every pass on every case of ONNX's backend tests: the program is well formed, and computes the same."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cache

import numpy as np
import pytest
from tests.backend.cases import Case, onnx_cases
from tests.backend.passes_on_case import passes_on_cases, verdicts

pytestmark = pytest.mark.backend

CHUNKS = 8

CHANGING = ("CanonicalizeOps", "FoldConstant", "SimplifyExpr", "default_heuristic", "partition_for_reference")
"""Passes that find something to do in many of the cases."""

NO_REVERSED_SCAN = "Scan is not implemented for other output input_direction than 0"
"""Gap of onnx's evaluator, which has the layers of recurrent networks themselves in both directions."""


@cache
def cases() -> list[Case]:
    return onnx_cases()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_pass_keeps_the_results(chunk: int) -> None:
    passes = passes_on_cases()
    found: list[tuple[str, str, str]] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the tests' own arithmetic overflows on purpose
        for case in cases()[chunk::CHUNKS]:
            found += [(name, case.name, text) for name, text in verdicts(case, passes)]
    assert [item for item in found if item[2] and not _is_gap(item[0], item[2])] == []
    changing = Counter(name for name, _, _ in found)
    assert all(changing[name] >= 20 for name in CHANGING)  # else nothing has been tried


def _is_gap(name: str, text: str) -> bool:
    return name == "RecurrentToScan" and NO_REVERSED_SCAN in text
