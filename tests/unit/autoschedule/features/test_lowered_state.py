"""The loops of a state, made once, as they are compiled."""

from dataclasses import replace

from tests.schedule_families import SMALL, program_task

from intarsia.autoschedule.features.lowered_state import lower_state
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.lowering import lower
from intarsia.native.schedule import default_state


def test_models_share_the_loops_of_equal_states() -> None:
    task = program_task("convolution")
    first, second = (default_state(task.dag, SMALL, 2) for _ in range(2))
    assert lower_state(task, first) is lower_state(task, second)
    assert lower_state(task, first) is not lower_state(task, LoopState.initial(task.dag))


def test_packed_constants_are_read_as_they_are_packed() -> None:
    task = program_task("packed_product")
    state = default_state(task.dag, SMALL, 2)
    packed = lower_state(task, state)
    plain = lower_state(replace(task, layout_rewrite_option=LayoutRewriteOption.NO_REWRITE), state)
    assert packed is not None
    assert plain is not None
    assert plain.function == lower(task.dag, state)
    shapes = [{param.name: param.shape for param in each.function.params} for each in (packed, plain)]
    assert shapes[0]["B"] != shapes[1]["B"]
    assert shapes[0]["A"] == shapes[1]["A"]


def test_a_state_that_cannot_be_lowered_has_none() -> None:
    task = program_task("product")
    assert lower_state(task, LoopState.initial(task.dag).split("C", "i", [None])) is None
