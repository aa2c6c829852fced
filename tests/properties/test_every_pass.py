"""What every pass keeps: results, rules of the language, spans and devices; a second run changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from tests.effort import examples
from tests.every_pass import every_pass
from tests.ir_programs import relu, var
from tests.properties.random_networks import networks, random_inputs
from tests.properties.random_programs import CONDITION, SHAPE, programs

from intarsia.build import build
from intarsia.ir import (
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    Span,
    post_order,
    rewrite,
    with_fields,
    with_module_fields,
)
from intarsia.ir.printer import print_module
from intarsia.op import verify
from intarsia.target import DeviceType, VirtualDevice
from intarsia.transform import Pass, PassContext

pytestmark = pytest.mark.quick_tests(110)

Array: TypeAlias = npt.NDArray[Any]

PASSES = {str(item).splitlines()[0]: item for item in every_pass()}
NOT_IDEMPOTENT: dict[str, str] = {}
"""Passes that may change a program that they have made, with the reason."""

LEVEL = PassContext(opt_level=9)
DEVICE = VirtualDevice(DeviceType.CPU, 1)
EXAMPLES = settings(
    max_examples=examples(25, quick=2),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(params=PASSES, scope="module")
def item(request: pytest.FixtureRequest) -> Pass:
    return PASSES[request.param]


def agree(before: IRModule, after: IRModule, inputs: Sequence[Array], item: Pass) -> None:
    """Both compute the same, up to rounding relative to the largest value."""
    bound = 2e-2 if item.info.name == "ToMixedPrecision" else 1e-4
    results = (build(mod).run_flat(*inputs) for mod in (before, after))
    for old, new in zip(*(map(np.asarray, values) for values in results), strict=True):
        assert old.dtype == new.dtype
        np.testing.assert_allclose(new, old, rtol=bound, atol=bound * max(1.0, float(np.abs(old).max())))


def inputs_of(mod: IRModule) -> list[Array]:
    rng = np.random.default_rng(0)
    return [
        np.array(True) if param.checked_type == CONDITION else rng.normal(size=SHAPE).astype(np.float32)
        for param in mod["main"].params
    ]


def checked(item: Pass, mod: IRModule) -> IRModule:
    """The program after the pass, which is well formed; a second run leaves it as it is."""
    after = item(mod, LEVEL)
    verify(after)
    if item.info.name not in NOT_IDEMPOTENT:
        assert item(after, LEVEL) is after, f"a second run changes\n{after}\nto\n{item(after, LEVEL)}"
    return after


def annotated(mod: IRModule) -> IRModule:
    """The same program, with a span and a device on every expression."""

    def rule(expr: Expr) -> Expr:
        if isinstance(expr, (Op, GlobalVar)):
            return expr
        return with_fields(expr, span=Span("model.onnx", type(expr).__name__), virtual_device=DEVICE)

    functions = {var: rewrite(function, rule) for var, function in mod.graph_functions.items()}
    return with_module_fields(mod, functions={**mod.functions, **functions})  # type: ignore[dict-item]  # the rule keeps kinds


def lost_facts(mod: IRModule) -> list[str]:
    """Expressions without a span, or elsewhere than on the device; the target alone may be refined."""
    found = []
    for function in mod.graph_functions.values():
        for expr in post_order(function):
            if isinstance(expr, (Op, GlobalVar)):
                continue
            device = expr.virtual_device
            if expr.span is None:
                found.append(f"no span: {expr}")
            if (device.device_type, device.virtual_device_id) != (DeviceType.CPU, 1):
                found.append(f"device {device}: {expr}")
    return found


@EXAMPLES
@given(programs(compilers=(), annotated=False))
def test_programs_compute_the_same(item: Pass, mod: IRModule) -> None:
    agree(mod, checked(item, mod), inputs_of(mod), item)


@EXAMPLES
@given(networks())
def test_networks_compute_the_same(item: Pass, mod: IRModule) -> None:
    after = checked(item, mod)
    for seed in (0, 1):
        agree(mod, after, random_inputs(seed), item)


@EXAMPLES
@given(programs(compilers=("reference",), annotated=True))
def test_annotated_programs_stay_well_formed(item: Pass, mod: IRModule) -> None:
    checked(item, mod)


@EXAMPLES
@given(programs(compilers=(), annotated=False))
def test_facts_of_programs_are_kept(item: Pass, mod: IRModule) -> None:
    assert lost_facts(item(annotated(mod), LEVEL)) == []


@EXAMPLES
@given(networks())
def test_facts_of_networks_are_kept(item: Pass, mod: IRModule) -> None:
    assert lost_facts(item(annotated(mod), LEVEL)) == []


def test_functions_of_toolchains_are_left_alone(item: Pass) -> None:
    x = var()
    region = Function((x,), relu(relu(x)))
    marked = with_fields(region, attrs=region.attrs.updated(Compiler="reference", global_symbol="main"))
    before = IRModule.from_expr(marked)
    after = item(before, LEVEL)
    if item.info.places_devices:  # all is the same but for the device of the whole
        assert print_module(after, show_devices=False) == print_module(before, show_devices=False)
    else:
        assert marked in after.functions.values()
