"""Metrics of outputs: where classes stand, labels, and functions of the user that fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from intarsia.support.errors import UsageError
from intarsia.tune.quantise.metrics import cosine, metric_of, top_1


def scores(*shape: int, axis: int, classes: list[int]) -> Any:
    """Values whose largest along an axis has the given indices, in the order of the other axes."""
    moved = np.zeros((len(classes), shape[axis]), np.float32)
    moved[np.arange(len(classes)), classes] = 1
    rest = [size for number, size in enumerate(shape) if number != axis]
    return np.moveaxis(moved.reshape(*rest, shape[axis]), -1, axis)


@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [
        ((7,), 0, 1),
        ((2, 7), 1, 2),
        ((1, 7, 1, 1), 1, 1),
        ((1, 7, 1), 1, 1),
        ((2, 3, 7), 2, 6),
        ((1, 7, 2, 3), 1, 6),
        ((1, 2, 1, 1), 1, 1),
    ],
)
def test_classes_stand_where_networks_have_them(shape: tuple[int, ...], axis: int, count: int) -> None:
    right = [number % min(shape[axis], 5) for number in range(count)]
    wrong = [*right[1:], (right[0] + 1) % shape[axis]] if count > 1 else [(right[0] + 1) % shape[axis]]
    exact, other = ([scores(*shape, axis=axis, classes=classes)] for classes in (right, wrong))
    assert top_1(exact, exact, None) == 1.0
    expected = float(np.mean(np.array(right) == np.array(wrong)))
    assert expected < 1.0
    assert top_1(other, exact, None) == expected
    assert top_1(other, exact, np.array(wrong)) == 1.0
    assert top_1(exact, other, np.array(wrong)) == expected, "labels count, not float32"


def test_an_output_of_integers_is_the_class() -> None:
    exact = [np.array([3, 4]), np.zeros((2, 5), np.float32)]
    assert top_1([np.array([3, 1])], exact, None) == 0.5


@pytest.mark.parametrize("shape", [(), (1,), (4, 1), (1, 1, 8, 8)])
def test_an_output_without_classes_is_refused(shape: tuple[int, ...]) -> None:
    output = [np.zeros(shape, np.float32)]
    with pytest.raises(UsageError, match=r"^top-1 needs classes, but the first output has the shape"):
        top_1(output, output, None)


def test_another_number_of_labels_is_refused() -> None:
    output = [np.zeros((1, 7), np.float32)]
    with pytest.raises(
        UsageError, match=r"^an example has 2 labels, but the first output has 1 classes for it"
    ):
        top_1(output, output, np.array([1, 1]))


def test_the_cosine_of_the_angle() -> None:
    assert cosine([np.array([1.0, 0.0])], [np.array([1.0, 1.0])], None) == pytest.approx(math.sqrt(0.5))


def test_metrics_that_there_are_not() -> None:
    with pytest.raises(UsageError, match=r"^unknown metric 'f1'"):
        metric_of("f1")
    with pytest.raises(UsageError, match=r"^the ratio of signal to noise is no metric") as raised:
        metric_of("SQNR")
    assert raised.value.help == "limit the noise itself: --tolerance 30dB"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "^the metric given returned nan"),
        (None, "^the metric given raised TypeError: float"),
        ("raise", "^the metric given raised KeyError: 'labels'"),
    ],
)
def test_a_function_that_fails_is_a_wrong_argument(value: Any, message: str) -> None:
    def given(outputs: Any, expected: Any, labels: Any) -> Any:
        if value == "raise":
            raise KeyError("labels")
        return value

    with pytest.raises(UsageError, match=message):
        metric_of(given)([], [], None)
