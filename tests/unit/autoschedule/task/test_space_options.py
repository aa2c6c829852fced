from typing import Any

import pytest

from intarsia.autoschedule.task import SpaceOptions
from intarsia.support.errors import UsageError


def test_defaults_are_the_fields() -> None:
    options = SpaceOptions()
    assert (options.max_innermost_split_factor, options.max_vectorize_size) == (64, 16)
    assert options.unroll_steps == (0, 16, 64, 512)
    assert options.weights == (0.90, 0.04, 0.05, 0.01)
    assert options.micro_kernels is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"max_vectorize_size": 0}, "option max_vectorize_size is 0; expected at least 1"),
        ({"structure": "SXR"}, "structure 'SXR' is no sequence of S and R"),
        ({"imperfect_share": 2.0}, "option imperfect_share is 2.0; expected 0 to 1"),
        ({"unroll_steps": ()}, "unroll_steps is empty"),
        ({"parallel_weight": -1.0}, "none below 0"),
        ({"micro_kernel_share": -0.5}, "option micro_kernel_share is -0.5; expected 0 to 1"),
        ({"micro_kernel_weight": -1.0}, "none below 0"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        SpaceOptions(**changes)
