"""Options of passes on the command line, and what is wrong with them."""

from __future__ import annotations

import pytest

from intarsia.cli.arguments.pass_settings import parse_pass_context
from intarsia.native.tir.unroll_loop import UNROLL_LOOP, UnrollLoopConfig
from intarsia.passes.fuse_ops import MAX_DEPTH
from intarsia.passes.plan_devices import FALLBACK_DEVICE
from intarsia.support.errors import UsageError
from intarsia.transform import PassSettings
from intarsia.transform.immutable_module import IMMUTABLE_MODULE


def test_nothing_given_is_the_default_context() -> None:
    assert PassSettings.of(parse_pass_context([], [])) == PassSettings()


def test_each_type_of_value() -> None:
    ctx = parse_pass_context(
        ["FuseOps.max_depth=16", "transform.immutable_module=true", "PlanDevices.fallback_device=cpu:0"], []
    )
    assert (ctx.option(MAX_DEPTH), ctx.option(IMMUTABLE_MODULE)) == (16, True)
    assert ctx.option(FALLBACK_DEVICE) == "cpu:0"


@pytest.mark.parametrize(
    "texts",
    [
        ["tir.UnrollLoop.auto_max_step=64", "tir.UnrollLoop.explicit_unroll=false"],
        ['tir.UnrollLoop={"auto_max_step": 64, "explicit_unroll": false}'],
        ['tir.UnrollLoop={"auto_max_step": 64}', "tir.UnrollLoop.explicit_unroll=false"],
    ],
    ids=["one by one", "as JSON", "both"],
)
def test_options_with_fields(texts: list[str]) -> None:
    expected = UnrollLoopConfig(auto_max_step=64, explicit_unroll=False)
    assert parse_pass_context(texts, []).option(UNROLL_LOOP) == expected


def test_passes_and_pipelines_are_disabled() -> None:
    ctx = parse_pass_context([], ["FoldConstant", "RegisterPromotion", "default_tir"])
    assert ctx.disabled_pass == ("FoldConstant", "RegisterPromotion", "default_tir")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("FuseOps.max_depth", "--pass-config 'FuseOps.max_depth' has no value"),
        ("nobody.has=1", "unknown key 'nobody.has'"),
        ("FuseOps.max_depth=deep", "neither a number"),
        ("FuseOps.max_depth=1.5", "expected int"),
        ("transform.immutable_module=1", "expected bool"),
        ("tir.UnrollLoop=64", "sets an option with fields to one value"),
        ("tir.UnrollLoop.steps=64", "has no field 'steps'"),
        ('tir.UnrollLoop.auto_max_step="64"', "auto_max_step is '64', expected a whole number"),
    ],
)
def test_what_is_wrong_is_said(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_pass_context([text], [])
    assert problem in str(caught.value)


def test_a_pass_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="'FoldConstnt' is no pass") as caught:
        parse_pass_context([], ["FoldConstnt"])
    assert "FoldConstant" in caught.value.help
