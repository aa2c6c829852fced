"""Repetitions of symbols and of layers, whatever they are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.layered_programs import layers

from intarsia.build import build
from intarsia.ir import IRModule, structural_equal
from intarsia.op import verify
from intarsia.tune import Choice
from intarsia.tune.repeated import in_repeated_parts, repeated_parts
from intarsia.tune.repeated.runs import Run, find_runs

CHOICES = {
    "gemm": Choice("substitute", {"rule": "product_as_gemm", "place": [1]}),
    "fold": Choice("FoldConstant"),
    "names": Choice("ToANormalForm"),
    "partition": Choice("PartitionWhole", {"target": "cpu -toolchain=reference"}),
}
"""In the order in which they are made."""


def runs_by_definition(symbols: list[int]) -> set[Run]:
    """All stretches that repeat and cannot be longer, each with its least period."""
    found: dict[tuple[int, int], Run] = {}
    for period in range(1, len(symbols) // 2 + 1):
        equal = [a == b for a, b in zip(symbols, symbols[period:], strict=False)]
        edges = [-1, *(at for at, same in enumerate(equal) if not same), len(equal)]
        for before, after in pairwise(edges):
            start, stop = before + 1, after + period
            if stop - start >= 2 * period:
                found.setdefault((start, stop), Run(start, stop, period))
    return set(found.values())


@given(st.lists(st.integers(0, 2), max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_runs_are_those_of_the_definition(symbols: list[int]) -> None:
    assert set(find_runs(symbols)) == runs_by_definition(symbols)


@st.composite
def programs(draw: st.DrawFn) -> IRModule:
    """Layers that cycle through several widths."""
    widths = draw(st.lists(st.sampled_from((2, 3, 5)), min_size=1, max_size=4))
    return layers(
        draw(st.integers(1, 7)), widths, is_masked=draw(st.booleans()), is_cached=draw(st.booleans())
    )


@given(programs(), st.lists(st.sampled_from(sorted(CHOICES)), max_size=2))
@settings(max_examples=examples(60), deadline=None)
def test_decided_programs_compute_the_same(mod: IRModule, names: list[str]) -> None:
    parts = repeated_parts(mod)
    outputs = [each for part in parts for one in part.occurrences for each in one.outputs]
    assert len(outputs) == len(set(outputs))
    choices = [choice.to_json() for name, choice in CHOICES.items() if name in names]
    after = in_repeated_parts(mod, {part.digest: choices for part in parts})
    verify(after)
    if not choices:
        assert structural_equal(after, mod)
    rng = np.random.default_rng(0)
    inputs = [
        rng.standard_normal((3, 4 if param.name == "x" else 1)).astype(np.float32)
        for param in mod["main"].params
    ]
    for old, new in zip(build(mod).run_flat(*inputs), build(after).run_flat(*inputs), strict=True):
        np.testing.assert_allclose(np.asarray(new), np.asarray(old), rtol=1e-4, atol=1e-4)
