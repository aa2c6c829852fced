"""`tune` with a plan: it is taken up, takes part, is kept, and carried out as it is when locked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tests.picky_toolchains as picky
from tests.collage_programs import program
from tests.faulty_toolchains import faulty_toolchains

import intarsia as ia
from intarsia.collage.placement.placement import Partition, Placement
from intarsia.collage.placement.plan import Plan
from intarsia.driver.plans import read_plan
from intarsia.driver.progress import Progress, TuneStage
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.testbed import local
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import IntarsiaError, UnsupportedModelError, VerificationError
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host
from intarsia.tune.contest.candidate_record import Status

pytestmark = pytest.mark.processes

MODEL = program("def @main(%x: T) { Tanh(Neg(Relu(%x))) }")
TARGETS = ("cpu -toolchain=no_relu", "cpu -toolchain=no_tanh")
X = np.array([0.5, -3], np.float32)


@pytest.fixture(autouse=True)
def _toolchains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    preload = (*local.PRELOAD, picky.__name__, "tests.faulty_toolchains_at_hand")
    monkeypatch.setattr(local, "PRELOAD", preload)
    with (
        faulty_toolchains(),
        TOOLCHAINS.holding("no_relu", picky.NoRelu),
        TOOLCHAINS.holding("no_tanh", picky.NoTanh),
        holding_operator_predicate("no_relu", picky.NoRelu().supports),
        holding_operator_predicate("no_tanh", picky.NoTanh().supports),
    ):
        yield


def divided(second: str = "no_relu") -> Plan:
    """Relu and Neg for one toolchain, Tanh for the other; the parameter is node 0."""
    partitions = (
        Partition("main", TARGETS[1], (1, 2), "Relu+Neg"),
        Partition("main", f"cpu -toolchain={second}", (3,), "Tanh"),
    )
    return Plan.of_candidate(MODEL, Placement(partitions).candidate, Target("cpu"), model="net")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "net.plan"


def test_a_plan_takes_part_and_the_winner_is_kept(path: Path) -> None:
    """None of them can alone, and there is no time for a search: the plan is all there is."""
    divided().write(path)
    result = ia.tune(MODEL, budget="0.5s", targets=TARGETS, plan=path)
    fates = {record.name: record.status for record in result.candidates}
    assert fates == {
        "no_tanh 1, no_relu 1": Status.MEASURED,
        "no_relu": Status.UNSUPPORTED,
        "no_tanh": Status.UNSUPPORTED,
    }
    np.testing.assert_allclose(result.executable(X), np.tanh(-np.maximum(X, 0)), rtol=1e-6)
    kept = Plan.read(path)
    assert kept == result.plan
    assert kept.placement == divided().placement
    assert kept.measured_seconds == result.chosen.timing.median if result.chosen.timing else None
    assert kept.host_digest == result.host.digest


def test_a_new_file_gets_the_winner(path: Path) -> None:
    result = ia.tune(MODEL, budget="0.5s", targets=["cpu -toolchain=right"], plan=path)
    kept = Plan.read(path)
    assert kept == result.plan
    assert kept.whole == Target.for_toolchain("right")


def test_a_plan_of_one_toolchain_is_that_candidate(path: Path) -> None:
    Plan.of_candidate(MODEL, WHOLE, Target.for_toolchain("right")).write(path)
    result = ia.tune(MODEL, budget="0.5s", targets=["cpu -toolchain=right"], plan=path)
    assert [record.name for record in result.candidates] == ["right"]
    other = ia.tune(MODEL, budget="0.5s", targets=["cpu -toolchain=failing"], plan=path)
    assert [record.name for record in other.candidates] == ["right", "failing"]


def test_a_plan_that_was_slower_is_replaced(path: Path) -> None:
    """The mix calls two kernels of the reference implementation, which cannot beat one engine's one."""
    divided("wrong").write(path)
    result = ia.tune(MODEL, budget="0.5s", targets=["cpu -toolchain=right"], plan=path)
    assert result.chosen.name == "right"
    assert {record.status for record in result.candidates} == {Status.MEASURED, Status.WRONG}
    assert Plan.read(path).whole == Target.for_toolchain("right")


def test_the_search_goes_on_from_a_plan_and_finds_it_once(path: Path) -> None:
    divided().write(path)
    result = ia.tune(MODEL, budget="10s", targets=TARGETS, plan=path)
    names = [record.name for record in result.candidates]
    assert len(names) == len(set(names))
    assert not result.chosen.is_whole
    assert Plan.read(path) == result.plan


def test_a_plan_by_hand_says_what_it_leaves_to_the_reference(path: Path) -> None:
    """Without a word the reference would run Tanh, and the user would blame the toolchain."""
    part = Partition("main", TARGETS[1], (1, 2), "Relu+Neg")
    Plan.of_candidate(MODEL, Placement((part,)).candidate, Target("cpu")).write(path)
    notes: list[str] = []
    read_plan(path, MODEL, this_host(), notes.append)
    assert (
        f"the plan {path} has no toolchain for 1 operator (Tanh), which the reference runs, slowly" in notes
    )
    divided().write(path)
    notes.clear()
    read_plan(path, MODEL, this_host(), notes.append)
    assert not any("no toolchain for" in note for note in notes)


class TestLocked:
    def test_only_the_plan_is_built_and_verified(self, path: Path, tmp_path: Path) -> None:
        divided().write(path)
        before = path.read_bytes()
        seen: list[Progress] = []
        with Database.open(tmp_path / "measurements.db") as database:
            result = ia.tune(MODEL, plan=path, locked=True, database=database, on_progress=seen.append)
            assert database.statistics().records == 0
        assert [record.name for record in result.candidates] == ["no_tanh 1, no_relu 1"]
        assert result.chosen.max_error is not None
        assert {each.stage for each in seen} == {TuneStage.IMPORT, TuneStage.REFERENCE, TuneStage.MEASURE}
        np.testing.assert_allclose(result.executable(X), np.tanh(-np.maximum(X, 0)), rtol=1e-6)
        result.save(tmp_path / "net.intarsia")
        assert ia.load(tmp_path / "net.intarsia").self_test() < 1e-6
        assert path.read_bytes() == before

    def test_one_toolchain_for_all(self, path: Path) -> None:
        Plan.of_candidate(MODEL, WHOLE, Target.for_toolchain("right")).write(path)
        result = ia.tune(MODEL, plan=path, locked=True)
        assert [record.name for record in result.candidates] == ["right"]

    @pytest.mark.parametrize(
        ("toolchain", "error", "code"),
        [
            ("wrong", VerificationError, 4),
            ("failing", UnsupportedModelError, 3),
            ("crashing", UnsupportedModelError, 3),
            ("no_tanh", UnsupportedModelError, 3),
        ],
    )
    def test_a_plan_that_is_wrong_here_is_an_error(
        self, path: Path, toolchain: str, error: type[IntarsiaError], code: int
    ) -> None:
        divided(toolchain).write(path)
        with pytest.raises(error) as caught:
            ia.tune(MODEL, plan=path, locked=True)
        assert caught.value.exit_code == code
        assert "no candidate computes the model right: no_tanh" in caught.value.problem
