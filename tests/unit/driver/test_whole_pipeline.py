"""Which passes place a program themselves, and which decide before it is placed."""

from __future__ import annotations

from intarsia.autoschedule.tuning.tune_schedule import TuneSchedule
from intarsia.collage.tune_device_placement import CopyCost, TuneDevicePlacement
from intarsia.collage.tune_placement import TunePlacement
from intarsia.driver.pipeline import whole_pipeline
from intarsia.driver.tuning_pipelines import REWRITE_GAIN, default_tuning
from intarsia.target import Target
from intarsia.tune import TuneInTurns
from intarsia.tune.passes import TuneLayout
from intarsia.tune.tuning_pass import TuningPass

TARGETS = [Target.for_toolchain(name) for name in ("onnxruntime", "reference")]
DEVICES = tuple(f'VirtualDevice(cpu:{number}, target="cpu -toolchain=reference")' for number in range(2))


def test_other_passes_decide_before_each_placement() -> None:
    pipeline = whole_pipeline([TuneLayout()], TARGETS, searches_parts=False)
    assert isinstance(pipeline, TunePlacement)
    (before,) = pipeline.eval_passes
    assert isinstance(before, TuneInTurns)


def test_a_placement_on_devices_names_its_toolchains_itself() -> None:
    """No target could get a program that is on several devices, or that another toolchain has parts of."""
    placing = TuneDevicePlacement(devices=DEVICES, copy_cost=CopyCost())
    pipeline = whole_pipeline([placing], TARGETS, searches_parts=True)
    assert isinstance(pipeline, TuneInTurns)
    assert pipeline.passes == (placing,)


def test_schedules_are_decided_first_for_native() -> None:
    """One pipeline: native with the best schedules is the target of all other passes."""
    schedules = TuneSchedule(trials=9)
    native = Target.for_toolchain("native")
    pipeline = whole_pipeline([TuneLayout(), schedules], [native, *TARGETS], searches_parts=False)
    assert isinstance(pipeline, TunePlacement)
    assert pipeline.target_passes == (("native", (schedules,)),)
    (before,) = pipeline.eval_passes
    assert isinstance(before, TuneInTurns)
    assert before.passes == (TuneLayout(),)
    without = whole_pipeline([schedules], TARGETS, searches_parts=False)
    assert isinstance(without, TunePlacement)
    assert (without.target_passes, without.eval_passes) == ((), ())


def first_gains(*toolchains: str) -> set[float | None]:
    """The expectations of the default passes in the pipeline for some toolchains."""
    pipeline = whole_pipeline(
        default_tuning().passes, tuple(map(Target.for_toolchain, toolchains)), searches_parts=True
    )
    assert isinstance(pipeline, TunePlacement)
    (turns,) = pipeline.eval_passes
    assert isinstance(turns, TuneInTurns)
    return {item.expected_gain for item in turns.passes if isinstance(item, TuningPass)}


def test_little_is_expected_of_rewriting_where_native_runs_the_program() -> None:
    assert first_gains("native", "openvino") == {REWRITE_GAIN, None}
    assert first_gains("onnxruntime", "openvino") == {None}
