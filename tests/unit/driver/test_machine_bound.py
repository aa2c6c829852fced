"""The bound of a program: what its products take at the machine's peak."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.driver import machine_bound as bounds
from intarsia.driver.machine_bound import MachineBound, machine_bound
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.op import call


@pytest.fixture(autouse=True)
def _peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "host_peak", lambda _isa, threads: 1e9 * threads)
    monkeypatch.setattr(bounds, "host_bandwidth", lambda _isa, _threads: 1e6)
    monkeypatch.setattr(bounds, "_cached_bytes", lambda: 1 << 40)


def product(rows: int) -> IRModule:
    x = Var("x", checked_type=TensorType((rows, 1000), DType.FLOAT32))
    weights = Constant(np.zeros((1000, 500), np.float32))
    return IRModule.from_expr(Function((x,), call("MatMul", x, weights)))


def convolution(taps: int) -> IRModule:
    x = Var("x", checked_type=TensorType((1, 128, 112, 112), DType.FLOAT32))
    weights = Constant(np.zeros((128, 128, taps, taps), np.float32))
    pads = (taps // 2,) * 4
    return IRModule.from_expr(Function((x,), call("Conv", x, weights, pads=pads, kernel_shape=(taps, taps))))


def test_products_at_the_peak_rate() -> None:
    assert machine_bound(product(1000), 1).seconds == pytest.approx(2 * 1000 * 1000 * 500 / 1e9)
    assert machine_bound(product(1000), 2).seconds == pytest.approx(1000 * 1000 * 500 / 1e9)


def test_what_saves_products_is_counted() -> None:
    channels = 128 * 128
    reads = 5 * 112 - 6  # of elements in each dimension, without those of padding
    assert machine_bound(convolution(5), 1).seconds == pytest.approx(2 * channels * reads**2 / 1e9)
    # F(4, 3): 36 products for 16 results; 120 operations transform an input tile, 60 a tile of results.
    operations = 28 * 28 * (36 * channels + (120 + 60) * 128)
    assert machine_bound(convolution(3), 1).seconds == pytest.approx(2 * operations / 1e9)


def test_a_program_with_few_products_has_no_bound() -> None:
    assert machine_bound(product(10), 1) == MachineBound(0.0)


def test_the_text_says_what_is_to_gain() -> None:
    assert "at 80 % of the bound" in MachineBound(0.8).text(1.0)
    assert "a factor of 1.25 is to gain" in MachineBound(0.8).text(1.0)


def test_weights_that_no_cache_keeps_are_read_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two million bytes at a megabyte per second, less what the cache keeps; products take a hundredth."""
    monkeypatch.setattr(bounds, "_cached_bytes", lambda: 500_000)
    assert machine_bound(product(10), 1).seconds == pytest.approx(2.0 - 0.5)
    assert machine_bound(product(10_000), 1).seconds == pytest.approx(10.0), "products take longer"
    monkeypatch.setattr(bounds, "_cached_bytes", lambda: 1_500_000)
    assert machine_bound(product(10), 1) == MachineBound(0.0), "the cache keeps most of them"
