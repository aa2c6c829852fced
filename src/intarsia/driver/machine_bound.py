"""How fast a program could be on this machine at best: no mix and no rewrite gets below that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Constant, IRModule, TensorType, post_order
from intarsia.measure.work import work_of
from intarsia.native.host_rates import host_bandwidth, host_peak
from intarsia.native.least_work import least_multiply_adds
from intarsia.native.machine.isa import Isa
from intarsia.op.work import multiply_adds

_LEAST_PRODUCTS: Final = 1e8
"""Number of multiply-adds below which a program is not bound by arithmetic."""

_UNCACHED: Final = 2.0
"""Ratio of all weights to the last-level cache above which they are read from memory in each run."""


@dataclass(frozen=True, slots=True)
class MachineBound:
    """The time of a program's products at this machine's peak rates of arithmetic and of reading weights.

    Attributes:
        seconds: Least seconds per run with float32 weights and arithmetic; 0 if nothing is known.
    """

    seconds: float

    def share(self, seconds: float) -> float:
        """Return the share of this bound that a program reaches, 0 to 1.

        Args:
            seconds: Seconds per run of the program.
        """
        return min(1.0, self.seconds / seconds) if seconds > 0 else 0.0

    def text(self, seconds: float) -> str:
        """Return a sentence on a program that takes some seconds per run."""
        share = self.share(seconds)
        return (
            f"it runs at {100 * share:.0f} % of the bound of this machine's arithmetic and memory: "
            f"at most a factor of {1 / share:.2f} is to gain"
        )


def machine_bound(mod: IRModule, threads: int) -> MachineBound:
    """Return the bound of a program: its products, and reads of weights, at the peak rates measured here.

    A run reads all weights, but for those that the last-level cache keeps from one run to the next. Kernels
    run one after the other, and each takes at least as long as its products, and as its weights.
    Convolutions that algorithms of Winograd's fit count with what these leave. Operators without products
    count as nothing, and programs with integer products have no bound, so that it is never too high.

    Args:
        mod: The program, with types.
        threads: Number of threads that may run it.
    """
    if work_of(mod).quantized:
        return MachineBound(0.0)
    calls = [
        expr
        for function in mod.graph_functions.values()
        for expr in post_order(function)
        if isinstance(expr, Call) and multiply_adds(expr)
    ]
    if not all(map(_is_static, calls)):
        return MachineBound(0.0)
    products = [least_multiply_adds(call) for call in calls]
    weights, kept = [_weight_bytes(call) for call in calls], _cached_bytes()
    streams = sum(weights) > _UNCACHED * kept
    if sum(products) < _LEAST_PRODUCTS and not streams:
        return MachineBound(0.0)
    peak = host_peak(Isa.host(), threads)
    seconds = [2 * count / peak for count in products]
    if not streams:
        return MachineBound(sum(seconds))
    bandwidth = host_bandwidth(Isa.host(), threads)
    slower = sum(max(item, size / bandwidth) for item, size in zip(seconds, weights, strict=True))
    return MachineBound(max(sum(seconds), slower - kept / bandwidth))


def _weight_bytes(call: Call) -> int:
    return sum(arg.data.nbytes for arg in call.args if isinstance(arg, Constant))


def _is_static(call: Call) -> bool:
    types = [call.checked_type, *(arg.checked_type for arg in call.args)]
    return all(not isinstance(type_, TensorType) or type_.is_static for type_ in types)


def _cached_bytes() -> int:
    return Isa.host().caches.third
