"""Border costs from chains of kernels: planted ones are found again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import cast

import pytest
from tests.collage_costs import One
from tests.collage_testbeds import collage_testbed
from tests.faulty_toolchains import faulty_toolchains

from intarsia.collage.costs.measure_boundaries import ELEMENTS, LENGTH, measure_boundaries
from intarsia.collage.placement.placement import Placement
from intarsia.ir import TensorType
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.measurer import Measurer
from intarsia.op import verify
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.target import Target

RUN = 2e-6
FIXED: dict[frozenset[str], float] = {
    frozenset({"a"}): 1e-6,
    frozenset({"b"}): 2e-6,
    frozenset({"a", "b"}): 30e-6,
}
PER_BYTE: dict[frozenset[str], float] = {
    frozenset({"a"}): 0.0,
    frozenset({"b"}): 1e-12,
    frozenset({"a", "b"}): 5e-11,
}
TARGETS = (Target.for_toolchain("a"), Target.for_toolchain("b"))


class Planted:
    """Answers with the sum of planted costs; what has a toolchain that is broken fails."""

    def __init__(self, broken: str = "", left_out: str = "") -> None:
        self.broken, self.left_out = broken, left_out

    def measure(
        self, inputs: Sequence[MeasureInput], *, seconds: float = inf, enough: int = 1
    ) -> list[MeasureResult | None]:
        return list(map(self._one, inputs))

    def _one(self, item: MeasureInput) -> MeasureResult | None:
        if item.candidate.kind != "collage":
            return MeasureResult((RUN,), MeasureError.OK, "", 0.0, 0.0)
        verify(Placement.of_candidate(item.candidate).applied(item.workload.module))
        runners = [each.toolchain for each in Placement.of_candidate(item.candidate).partitions]
        if self.left_out in runners:
            return None
        if self.broken in runners:
            return MeasureResult((), MeasureError.CRASH, "it crashed", 0.0, 0.0)
        type_ = item.workload.module["main"].params[0].checked_type
        assert isinstance(type_, TensorType)
        assert type_.shape is not None
        (elements,) = type_.shape
        assert isinstance(elements, int)
        size = 4 * elements
        kernels = {"a": 3e-6 + 1e-10 * size, "b": 5e-6 + 2e-10 * size}
        seconds = RUN + sum(kernels[name] for name in runners)
        for pair in zip(runners[1:], runners, strict=False):
            seconds += FIXED[frozenset(pair)] + PER_BYTE[frozenset(pair)] * size
        return MeasureResult((seconds,), MeasureError.OK, "", 0.0, 0.0)


def measured(
    planted: Planted, targets: Sequence[Target] = TARGETS
) -> dict[tuple[str, str], tuple[float, float]]:
    found = measure_boundaries(cast("Measurer", planted), targets)
    assert found.run_seconds == RUN
    return {pair: (each.fixed, each.per_byte) for pair, each in found.crossings.items()}


def test_planted_costs_are_found() -> None:
    found = measured(Planted())
    assert set(found) == {("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")}
    for pair, (fixed, per_byte) in found.items():
        assert fixed == pytest.approx(FIXED[frozenset(pair)], rel=0.01)
        assert per_byte == pytest.approx(PER_BYTE[frozenset(pair)], rel=0.01, abs=1e-15)


@pytest.mark.parametrize("planted", [Planted(broken="b"), Planted(left_out="b")])
def test_a_pair_that_fails_is_free(planted: Planted) -> None:
    found = measured(planted)
    assert found["a", "b"] == found["b", "a"] == found["b", "b"] == (0.0, 0.0)
    assert found["a", "a"][0] == pytest.approx(1e-6, rel=0.01)


def test_one_toolchain_borders_on_itself() -> None:
    assert set(measured(Planted(), TARGETS[:1])) == {("a", "a")}


def test_borders_are_never_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain may run faster than its kernels alone, by noise."""
    monkeypatch.setitem(FIXED, frozenset({"a", "b"}), -1e-6)
    monkeypatch.setitem(PER_BYTE, frozenset({"a", "b"}), -1e-12)
    assert measured(Planted())["a", "b"] == (0.0, 0.0)


def test_chains_alternate() -> None:
    assert LENGTH % 2 == 0
    assert sorted(ELEMENTS) == list(ELEMENTS)


@pytest.fixture
def toolchains() -> Iterator[None]:
    with faulty_toolchains(), TOOLCHAINS.holding("one", One):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("toolchains")
def test_on_this_machine() -> None:
    with collage_testbed() as testbed:
        targets = [Target.for_toolchain(name) for name in ("right", "crashing")]
        found = measure_boundaries(Measurer(testbed), targets)
    assert 0 < found.run_seconds < 0.1
    assert len(found.crossings) == 4
    assert all(each.fixed >= 0 and each.per_byte >= 0 for each in found.crossings.values())
    assert found.crossings["crashing", "right"].fixed == 0


@pytest.mark.slow
@pytest.mark.usefixtures("toolchains")
def test_without_time_all_is_free() -> None:
    with collage_testbed() as testbed:
        found = measure_boundaries(Measurer(testbed), [Target.for_toolchain("right")], seconds=0.0)
    assert found.run_seconds == 0
    assert [(each.fixed, each.per_byte) for each in found.crossings.values()] == [(0.0, 0.0)]
