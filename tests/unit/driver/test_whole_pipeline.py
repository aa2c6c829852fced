"""Which passes place a program themselves, and which decide before it is placed."""

from __future__ import annotations

from intarsia.collage.tune_device_placement import CopyCost, TuneDevicePlacement
from intarsia.collage.tune_placement import TunePlacement
from intarsia.driver.pipeline import whole_pipeline
from intarsia.target import Target
from intarsia.tune import TuneInTurns
from intarsia.tune.passes import TuneLayout

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
