"""Windows of convolutions against counting, and convolutions that lose the taps which read only padding."""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from intarsia.ir import Call, Constant, TensorType, Var
from intarsia.op import call
from intarsia.op.window import AxisWindow, convolution_windows
from intarsia.op.work import multiply_adds
from intarsia.passes.simplify.windows import conv_with_less_taps

CASES = 300


def _drawn(rng: Random) -> tuple[Call, npt.NDArray[np.float64]]:
    """Return a convolution along one dimension with its weight, at least one window long."""
    while True:
        extent, taps, stride, dilation = (
            rng.randint(1, 9),
            rng.randint(1, 5),
            rng.randint(1, 4),
            rng.randint(1, 7),
        )
        pads = rng.randint(0, 9), rng.randint(0, 9)
        if extent + sum(pads) > dilation * (taps - 1):
            break
    weight = np.random.default_rng(rng.getrandbits(32)).standard_normal((2, 3, taps))
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 3, extent), np.float32)))
    given = Constant(weight.astype(np.float32))
    return call("Conv", x, given, pads=pads, strides=(stride,), dilations=(dilation,)), weight


def _positions(window: AxisWindow) -> list[list[bool]]:
    """Return for each tap whether it reads an element, by position."""
    starts = [position * window.stride - window.begin for position in range(window.count)]
    return [
        [0 <= start + tap * window.dilation < window.extent for start in starts] for tap in range(window.taps)
    ]


def _computed(made: Call, image: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute a convolution from its definition."""
    source, given = made.args[0], made.args[1]
    if isinstance(source, Call):
        first, behind = (int(item.data[0]) for item in source.args[1:3] if isinstance(item, Constant))
        image = image[:, :, first:behind]
    assert isinstance(given, Constant)
    (window,) = convolution_windows(made) or ()
    pads = made.attrs["pads"]
    assert isinstance(pads, tuple)
    padded = np.pad(image, ((0, 0), (0, 0), tuple(map(int, pads))))  # type: ignore[arg-type]
    count = (padded.shape[2] - (window.taps - 1) * window.dilation - 1) // window.stride + 1
    result = np.zeros((1, 2, count))
    for position in range(count):
        for tap in range(window.taps):
            column = padded[0, :, position * window.stride + tap * window.dilation]
            result[0, :, position] += given.data[:, :, tap].astype(float) @ column
    return result


def test_reads_are_counted() -> None:
    rng = Random(1)
    for _ in range(CASES):
        made, _ = _drawn(rng)
        (window,) = convolution_windows(made) or ()
        positions = _positions(window)
        assert window.reads == tuple(map(sum, positions)), window
        assert multiply_adds(made) == 2 * 3 * sum(map(sum, positions)), window


def test_taps_that_read_padding_only_are_cut_off() -> None:
    rng, cut, sliced = Random(2), 0, 0
    for _ in range(CASES):
        made, _ = _drawn(rng)
        after = conv_with_less_taps(made)
        if after is None:
            (window,) = convolution_windows(made) or ()
            assert (window.reads[0] and window.reads[-1]) or not any(window.reads)
            continue
        assert isinstance(after, Call)
        cut, sliced = cut + 1, sliced + isinstance(after.args[0], Call)
        image = np.random.default_rng(3).standard_normal((1, 3, _extent(made)))
        assert _computed(after, image) == pytest.approx(_computed(made, image)), made
    assert cut > CASES // 10
    assert sliced > CASES // 100


def _extent(made: Call) -> int:
    (window,) = convolution_windows(made) or ()
    return window.extent


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_automatic_padding_is_read(mode: str) -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 3, 6), np.float32)))
    weight = Constant(np.zeros((2, 3, 4), np.float32))
    (window,) = convolution_windows(call("Conv", x, weight, auto_pad=mode)) or ()
    assert window.begin == {"SAME_UPPER": 1, "SAME_LOWER": 2, "VALID": 0}[mode]


def test_weights_that_are_not_finite_stay() -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 1, 2), np.float32)))
    weight = np.ones((1, 1, 3), np.float32)
    assert conv_with_less_taps(call("Conv", x, Constant(weight), pads=(4, 4), dilations=(4,))) is not None
    weight[0, 0, 0] = np.inf
    assert conv_with_less_taps(call("Conv", x, Constant(weight), pads=(4, 4), dilations=(4,))) is None
