"""What tests of passes share: comparing a program before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import intarsia as ia
from intarsia.ir import Call, Function, GlobalVar, IRModule, Op, Span, post_order
from intarsia.ir import with_fields as changed
from intarsia.measure.inputs import random_inputs
from intarsia.op import infer_types, verify
from intarsia.op.rewrite_typed import rewrite_typed
from intarsia.target import DeviceType, VirtualDevice
from intarsia.transform import Pass

Array = npt.NDArray[Any]

DEVICE = VirtualDevice(DeviceType.CPU, 1)
SPAN = Span("planned", "planned.onnx")


def operator_counts(mod: IRModule) -> Counter[str]:
    """How many calls of each operator all functions have."""
    return Counter(
        str(node.op)
        for function in mod.graph_functions.values()
        for node in post_order(function)
        if isinstance(node, Call) and isinstance(node.op, Op)
    )


def assert_same_results(
    before: IRModule,
    after: IRModule,
    inputs: Mapping[str, Array] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    least_scale: float = 0.0,
) -> None:
    """Fail unless both compute nearly the same, and have the same results' types.

    `atol` is relative to the largest magnitude of the output, or to `least_scale` if that is larger: the
    magnitude of values within the program, where they may cancel each other out.
    """
    inputs = random_inputs(before["main"]) if inputs is None else inputs
    expected, found = (ia.build(mod).run_flat(*inputs.values()) for mod in (before, after))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        left, right = np.asarray(one), np.asarray(other)
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        if right.dtype.kind not in "fV" or not right.size:
            np.testing.assert_array_equal(left, right)
            continue
        wide = right.astype(np.float64)
        scale = float(np.abs(wide, where=np.isfinite(wide), out=np.zeros_like(wide)).max(initial=least_scale))
        np.testing.assert_allclose(left.astype(np.float64), wide, rtol=rtol, atol=atol * scale)


def checked(
    made: Pass, before: IRModule, rtol: float = 1e-5, atol: float = 1e-5, least_scale: float = 0.0
) -> IRModule:
    """Run a pass; fail unless the result is valid, computes the same, and stays as it is when run again."""
    before = infer_types(before)
    after = made(before)
    verify(after)
    assert_same_results(before, after, rtol=rtol, atol=atol, least_scale=least_scale)
    assert made(after) is after, f"changes again:\n{after}\n{made(after)}"
    return after


def planned(mod: IRModule) -> IRModule:
    """The program with a span and one device on everything but operators."""

    def rule(expr: Any) -> Any:
        is_name = isinstance(expr, (Op, GlobalVar))
        return expr if is_name else changed(expr, span=expr.span or SPAN, virtual_device=DEVICE)

    return IRModule({var: _function(rewrite_typed(f, rule)) for var, f in mod.graph_functions.items()})


def _function(expr: Any) -> Function:
    assert isinstance(expr, Function)
    return expr


def assert_facts_kept(made: Pass, before: IRModule) -> None:
    """Fail if a pass, run on the program with spans and devices everywhere, leaves something without."""
    before = planned(infer_types(before))
    after = made(before)
    assert after is not before
    for function in after.graph_functions.values():
        for node in post_order(function):
            if not isinstance(node, (Op, GlobalVar)):
                assert node.span is not None, f"no span: {node}"
                assert node.virtual_device == DEVICE, f"no device: {node}"
