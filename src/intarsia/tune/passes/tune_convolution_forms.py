"""The forms in which native computes grouped convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import Call
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.group_form import GroupedShape, GroupForm, best_group_form, form_costs
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.windows import windows_of
from intarsia.transform import register_pass
from intarsia.tune.kernels import KernelGroup, KernelQuestion, TuneKernels
from intarsia.tune.kernels.kernel_question import question_on

_HOPELESS: Final = 2.0
"""Ratio of multiplications, zeros included, to the best form above which a form is not tried."""


@register_pass
@dataclass(frozen=True)
class TuneConvolutionForms(TuneKernels, opt_level=0):
    """Decides in which form native computes a grouped convolution: where blocks of channels lie.

    By rule it is the form with the fewest multiplications, zeros included. Groups may be merged with zeros
    between them until blocks fit; each group may begin with a block of its own, padded; a table may have the
    places of input channels, so that only the result is padded; or few channels are read from a plain tensor.
    """

    def questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        """Return a question for each group with a grouped convolution that is not depthwise."""
        questions = []
        for group in groups:
            forms = _alternatives(group)
            if forms:
                settings = {form.value: {"form": form.value} for form in forms}
                # A form with fewer zeros has fewer multiplications than the kernel as it is.
                questions.append(replace(question_on(group, "form", settings, target), has_less_work=True))
        return questions


def _alternatives(group: KernelGroup) -> list[GroupForm]:
    """Return the forms beside the rule's that may pay, those of least cost first."""
    call = next((call for call in group.rule.calls if str(call.op) == "Conv"), None)
    shape = None if call is None else _grouped_shape(call)
    if call is None or shape is None:
        return []
    described = compute_call_of(call, "conv")
    windows = windows_of(described, described.input(0).shape[2:], described.input(1).shape[2:])
    lanes = group.lanes or group.vector_lanes
    # What the group reads is plain or in one of these orders, which may change as other groups are decided.
    orders = ChannelOrder.natural(shape.channels, lanes), shape.padded(lanes)[0]
    by_rule = {best_group_form(shape, windows, order) for order in orders}
    by_rule.add(best_group_form(shape, windows, orders[0], is_plain=True))
    costs = form_costs(shape, windows, orders[0], is_plain=True)
    most = _HOPELESS * max(1.0, min(costs.values()))
    likely = sorted((form for form in costs if costs[form] <= most), key=costs.__getitem__)
    return [form for form in likely if by_rule != {form}]


def _grouped_shape(call: Call) -> GroupedShape | None:
    described = compute_call_of(call, "conv")
    groups = described.integer("group")
    filters, read = described.input(1).shape[:2]
    if groups == 1 or read == 1 == filters // groups:
        return None
    return GroupedShape(groups, read, filters // groups)
