"""The page docs/native_operators.md: which operators have a native kernel, and for which forms."""

from __future__ import annotations

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from tests.unit.native.te.operators.node_cases import Fate, Outcome

from intarsia.native.te.operators import compute_rules

_HEAD = """\
# Operators with a native kernel

Written by `tests/unit/native/te/operators/test_node_cases.py` with `--update-golden`; do not edit.

Shapes must be static. Element types are float16, bfloat16, float32, float64, the integers of 8 to 64 bits
and bool, where ONNX defines the operator for them; float16 and bfloat16 are computed in float32. The last
column gives the number of passed tests, and of all tests, among the ONNX backend node tests that call the
operator and no operator that is missing on this page.

| operator | covered | rule | node tests |
|---|---|---|---|
"""
_REASONS = """
## Forms in the node tests that are not covered

Element types of fewer than 8 bits, of 8-bit floats, and strings are left out of this list, as are results
whose shape cannot be inferred.

| form | tests |
|---|---|
"""
_TYPES = re.compile(r" for (Tensor\[.*|(float8|float4|u?int[24]).*|string)$")


def operator_page(outcomes: Sequence[Outcome]) -> str:
    """The text of the page."""
    rows = (_row(op_name, outcomes) for op_name in compute_rules())
    reasons = Counter(
        outcome.reason
        for outcome in outcomes
        if outcome.fate is Fate.NOT_COVERED and not _TYPES.search(outcome.reason)
    )
    listed = (f"| {_escaped(reason)} | {count} |\n" for reason, count in sorted(reasons.items()))
    return f"{_HEAD}{''.join(rows)}{_REASONS}{''.join(listed)}"


def _row(op_name: str, outcomes: Sequence[Outcome]) -> str:
    rule = inspect.unwrap(compute_rules()[op_name])
    line = (inspect.getdoc(rule) or "").partition("\n")[0]
    module = rule.__module__.rpartition(".")[2]
    fates = _fates(op_name, outcomes)
    total = sum(fates.values()) - fates[Fate.NOT_TENSORS]
    counted = f"{fates[Fate.RIGHT]} of {total}" if total else "none"
    return f"| {op_name} | {_escaped(line)} | `{module}.py` | {counted} |\n"


def _fates(op_name: str, outcomes: Sequence[Outcome]) -> Counter[Fate]:
    found: defaultdict[str, Counter[Fate]] = defaultdict(Counter)
    for outcome in outcomes:
        for operator in outcome.operators:
            found[operator][outcome.fate] += 1
    return found[op_name]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
