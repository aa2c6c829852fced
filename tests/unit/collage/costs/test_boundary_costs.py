"""Border costs as matrices and as plain data."""

from __future__ import annotations

import json

from intarsia.collage.costs.boundary_costs import FREE, NO_BOUNDARIES, BoundaryCosts, Crossing

COSTS = BoundaryCosts(
    {("a", "b"): Crossing(2.0, 0.25), ("a", "a"): Crossing(1.0), ("b", "a"): Crossing(3.0)}, {"a": 0.5}, 0.125
)


def test_nothing_is_known_of_a_host_before_it_is_measured() -> None:
    assert NO_BOUNDARIES.dispatch("a") == NO_BOUNDARIES.run_seconds == 0
    transition = NO_BOUNDARIES.transition(["a", "b"])
    assert transition.outside == 2
    assert all(transition.seconds(one, other, 8) == 0 for one in range(3) for other in range(3))
    assert (FREE.fixed, FREE.per_byte) == (0.0, 0.0)


def test_matrices_follow_the_order_of_the_specs() -> None:
    found = COSTS.transition(["b", "a", "b"])
    rows = [[found.seconds(one, other, 4) for other in range(4)] for one in range(4)]
    assert rows == [[0, 3, 0, 0], [3, 1, 3, 0], [0, 3, 0, 0], [0, 0, 0, 0]]
    assert (COSTS.dispatch("a"), COSTS.dispatch("b")) == (0.5, 0.0)


def test_plain_data() -> None:
    assert json.loads(json.dumps(COSTS.to_json())) == {
        "run_seconds": 0.125,
        "crossings": [
            {"from": "a", "to": "a", "fixed": 1.0, "per_byte": 0.0},
            {"from": "a", "to": "b", "fixed": 2.0, "per_byte": 0.25},
            {"from": "b", "to": "a", "fixed": 3.0, "per_byte": 0.0},
        ],
    }
