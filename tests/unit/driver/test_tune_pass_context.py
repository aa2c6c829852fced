"""`tune` under a pass context: its settings reach what is built, instruments watch this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import intarsia as ia
from intarsia.build import build
from intarsia.driver.kept_run import family_question_digest, question_digest
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.digest import digest_text
from intarsia.support.version import VERSION
from intarsia.target import Host, Target
from intarsia.toolchain.native.build import build_region
from intarsia.transform import PassContext, PassInfo, PassInstrument, PassSettings
from intarsia.tune.passes import TunePipeline

TARGET = "cpu -toolchain=native -threads=1"
UNROLLED = {"tir.UnrollLoop": {"auto_max_step": 64}}
HOST = Host.detect()


class Watch(PassInstrument):
    """Notes the passes that run."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.seen.append(info.name)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def small_product() -> IRModule:
    """A product with sums of five terms, whose loop is small enough to be unrolled."""
    x = Var("x", checked_type=TensorType((32, 5), DType.FLOAT32))
    weight = Constant(np.random.default_rng(0).standard_normal((5, 128)).astype(np.float32))
    return IRModule.from_expr(Function((x,), call("MatMul", x, weight)))


def codes(executable: Executable) -> list[bytes]:
    """Object code of the kernels of the only region, from the source's own settings."""
    return [kernel.object_code for kernel in build_region(executable.kernels[0].source).kernels]


def question(workload: Workload) -> str:
    """The digest of one and the same question about a workload."""
    return question_digest(
        workload, HOST, (), seconds=1.0, trials=None, seed=0, searches=True, passes=(), plan=None
    )


def family_question() -> str:
    """The digest of what runs of similar models share."""
    return family_question_digest(HOST, (), searches=True, passes=())


def test_the_default_settings_leave_questions_as_they_are() -> None:
    """What users have stored is found again."""
    workload = Workload(small_product())
    options = json.dumps([[], 1.0, None, 0, True, [], None, _conflicts()])
    assert question(workload) == digest_text((VERSION, workload.digest, HOST.digest, options))
    shared = json.dumps([[], True, [], _conflicts()])
    assert family_question() == digest_text((VERSION, HOST.digest, shared))
    with PassContext(instruments=[Watch()]):
        assert question(Workload(small_product())) == question(workload)


def _conflicts() -> list[Any]:
    from intarsia.collage.conflicts import declared_conflicts

    return sorted(declared_conflicts())


@pytest.mark.parametrize(
    "settings", [{"opt_level": 1}, {"disabled_pass": ["FoldConstant"]}, {"config": UNROLLED}], ids=str
)
def test_other_settings_are_another_question(settings: dict[str, Any]) -> None:
    plain, shared = question(Workload(small_product())), family_question()
    with PassContext(**settings):
        assert question(Workload(small_product())) != plain
        assert family_question() != shared


@pytest.mark.processes
def test_the_winner_is_built_under_the_settings_and_measured_under_them(tmp_path: Path) -> None:
    with Database.open(tmp_path / "measurements.db") as database:
        asked = {"budget": "1s", "targets": [TARGET], "passes": [], "database": database}
        plain = ia.tune(small_product(), **asked)  # type: ignore[arg-type]  # each of its own type
        with PassContext(config=UNROLLED) as context:
            unrolled = ia.tune(small_product(), **asked)  # type: ignore[arg-type]  # as above
            again = ia.tune(small_product(), **asked)  # type: ignore[arg-type]  # as above
            with build(partition_whole(small_product(), Target(TARGET))) as built:
                expected = codes(built)
    assert unrolled.finished_at is None
    assert again.finished_at is not None
    settings = PassSettings.of(context).text
    for result in (unrolled, again):
        assert result.executable.kernels[0].source.pass_settings == settings
        assert codes(result.executable) == expected != codes(plain.executable)


@pytest.mark.processes
def test_an_instrument_sees_the_tuning_passes_and_the_build_of_the_winner() -> None:
    watch = Watch()
    with PassContext(instruments=[watch]):
        result = ia.tune(
            small_product(), budget="60s", targets=[TARGET], passes=[TunePipeline()], partitions=False
        )
    assert result.chosen.chosen
    assert "TunePipeline" in watch.seen
    assert watch.seen.index("TunePipeline") < watch.seen.index("default_tir")
    assert {"UnrollLoop", "SimplifyInference"} <= set(watch.seen)
