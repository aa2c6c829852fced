"""Schedule family of products with weights of few bits."""

from __future__ import annotations

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.block_products import block_product_state, block_products
from intarsia.native.schedule.schedule_family import Choice, Knob, ScheduleFamily, loop_extents
from intarsia.native.schedule.schedule_task import ScheduleTask

_MOST_ROWS = 16


def block_product_family(task: ScheduleTask) -> ScheduleFamily | None:
    """Return the family of `block_product_state`: rows of a tile; None for DAGs without one such product."""
    products = block_products(task)
    if len(products) != 1:
        return None
    (product,) = products
    default = product.most_rows(task)
    row = None if product.row is None else product.result.axes[product.row].name

    def make(choice: Choice) -> LoopState:
        state = block_product_state(task, choice[0])
        assert state is not None, "there is a product"
        return state

    def read(state: LoopState) -> Choice | None:
        rows = 1 if row is None else loop_extents(state, product.result.name).get(f"{row}.1")
        return None if rows is None else (rows,)

    knob = Knob.of("rows", range(1, min(product.rows, _MOST_ROWS) + 1), default)
    return ScheduleFamily((knob,), (default,), make, lambda choice: choice[0] <= default, read)
