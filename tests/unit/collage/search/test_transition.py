from __future__ import annotations

import math

import numpy as np
import pytest

from intarsia.collage.search import Transition


def test_seconds_are_fixed_plus_per_byte() -> None:
    transition = Transition.of([[0, 2], [3, 0]], [[0, 0.5], [0.25, 0]])
    assert transition.seconds(0, 1, 8) == 6.0
    assert transition.seconds(1, 0, 8) == 5.0
    assert transition.outside == 1


def test_arrays_are_taken_as_well() -> None:
    assert Transition.of(np.zeros((3, 3)), np.zeros((3, 3))) == Transition.free(2)


def test_specs_that_cost_all_consumers_the_same_are_one_class() -> None:
    fixed = [[1, 2, 3, 9], [1, 2, 3, 7], [1, 2, 4, 9], [0, 0, 0, 0]]
    transition = Transition.of(fixed, np.zeros((4, 4)))
    assert transition.producer_classes() == (0, 0, 1)


@pytest.mark.parametrize(
    ("fixed", "per_byte"),
    [
        (((0.0,),), ((0.0, 0.0), (0.0, 0.0))),
        (((0.0, 0.0),), ((0.0, 0.0),)),
        (((-1.0,),), ((0.0,),)),
        (((0.0,),), ((math.inf,),)),
        (((math.nan,),), ((0.0,),)),
    ],
)
def test_wrong_matrices_are_refused(
    fixed: tuple[tuple[float, ...], ...], per_byte: tuple[tuple[float, ...], ...]
) -> None:
    with pytest.raises(ValueError, match="transition"):
        Transition(fixed, per_byte)
