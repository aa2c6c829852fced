"""Contexts of tuning passes take their settings from the context around them."""

from __future__ import annotations

import pytest
from tests.tuning_passes import CostTable

from intarsia.passes.fuse_ops import MAX_DEPTH
from intarsia.transform import PassContext, PassSettings
from intarsia.transform.instrument import PassTimingInstrument
from intarsia.tune import TuningContext


def test_settings_and_instruments_come_from_the_surrounding_context() -> None:
    timing = PassTimingInstrument()
    with PassContext(1, ["A"], ["B"], {MAX_DEPTH.key: 3}, [timing]) as outer:
        ctx = TuningContext(CostTable())
    assert PassSettings.of(ctx) == PassSettings.of(outer)
    assert ctx.instruments == (timing,)


@pytest.mark.parametrize("level", [0, 3])
def test_a_given_setting_replaces_that_one_only(level: int) -> None:
    with PassContext(1, disabled_pass=["B"]):
        ctx = TuningContext(CostTable(), opt_level=level)
    assert (ctx.opt_level, ctx.disabled_pass) == (level, ("B",))


def test_without_a_surrounding_context_settings_are_the_default_ones() -> None:
    assert PassSettings.of(TuningContext(CostTable())) == PassSettings()
