"""Random networks through the passes of quantisation: integers compute nearly the same as float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.pass_checks import checked
from tests.properties.random_networks import networks

import intarsia as ia
from intarsia.ir import IRModule, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.measure.inputs import random_inputs
from intarsia.op import infer_types, verify
from intarsia.passes import AnnotateQuantization, RealizeQuantization
from intarsia.passes.quantise.heavy_layer import heavy_layers, top_level
from intarsia.tune.quantise.calibrate_quantization import (
    CalibrateQuantization,
    calibrate,
    calibration_record,
    with_scales,
)

Array = npt.NDArray[Any]

EXAMPLES = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MOST_ERROR = 0.25
"""Largest error in RMS, relative to the output: far below that of a wrong scale, zero point or axis."""


@EXAMPLES
@given(networks())
def test_quantised_networks(mod: IRModule) -> None:
    annotated = checked(AnnotateQuantization(), mod)
    printed = print_module(annotated)
    assert structural_equal(infer_types(parse_module(printed.text, list(printed.constants))), annotated)
    if annotated is infer_types(mod):
        return
    inputs = [random_inputs(mod["main"], seed) for seed in range(2)]
    calibrated = CalibrateQuantization(record=calibration_record(annotated, inputs))(annotated)
    realized = RealizeQuantization()(calibrated)
    for item in (calibrated, realized):
        verify(item)
        for values in inputs:
            pairs = zip(_run(mod, values), _run(item, values), strict=True)
            for expected, actual in pairs:
                size = float(np.sqrt(np.mean(expected**2)))
                assert float(np.sqrt(np.mean((expected - actual) ** 2))) <= MOST_ERROR * size + 1e-3


def _run(mod: IRModule, values: dict[str, Array]) -> list[Array]:
    return [np.asarray(value, np.float64) for value in ia.build(mod).run_flat(*values.values())]


@EXAMPLES
@given(networks(), st.data())
def test_ranges_of_all_layers_are_those_of_some(mod: IRModule, data: st.DataObject) -> None:
    """A mark stands elsewhere if fewer layers are in integers, but has a range."""
    annotated = AnnotateQuantization()(infer_types(mod))
    count = len(heavy_layers(top_level(annotated["main"].body)))
    if not count:
        return
    record = calibrate(annotated, [random_inputs(mod["main"], 0)])
    layers = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    some = AnnotateQuantization(layers=tuple(layers))(infer_types(mod))
    verify(RealizeQuantization()(with_scales(some, record, "minmax")))
