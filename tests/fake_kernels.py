"""Kernels that are NumPy functions, from a toolchain named "fake": tests of the runtime need no engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from intarsia.runtime.availability import Available, Unavailable
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.runtime.plan import ExecutionPlan, PlanBlock, Step, TensorInfo

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "double": lambda a: a * 2,
    "increment": lambda a: a + 1,
    "decrement": lambda a: a - 1,
    "positive": lambda a: np.array(a.max() > 0),
    "view": lambda a: a[...],
    "same": lambda a: a,
    "split": lambda a: (a[:1], a[1:]),
    "weighted": lambda a, weight: a * weight,
    "broken": lambda a: 1 // 0,
}


class FakeKernel:
    """Runs one of `FUNCTIONS`; remembers how often it ran and which arrays it was given."""

    def __init__(self, source: KernelSource, blob: bytes | None = None) -> None:
        self.source = source
        self.from_blob = blob
        self.calls = 0
        self.closed = 0
        self.given: list[tuple[list[Value], list[Array | None]]] = []
        spec = json.loads(source.model)
        self._function = FUNCTIONS[spec["function"]]
        self._blob = bytes(spec["blob"], "ascii") if "blob" in spec else None

    def blob(self) -> bytes | None:
        return self._blob

    def close(self) -> None:
        self.closed += 1

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        self.calls += 1
        self.given.append((list(inputs), list(outputs)))
        found = self._function(*inputs, **self.source.weights)
        results = list(found) if isinstance(found, tuple) else [found]
        for index, output in enumerate(outputs):
            if output is not None:
                output[...] = results[index]
                results[index] = output
        return results


class FakeToolchain:
    """Loads `FakeKernel`s; tests change its version and availability."""

    version: ClassVar[str] = "1.0"
    reason: ClassVar[str] = ""

    def availability(self) -> Available | Unavailable:
        return Unavailable(self.reason) if self.reason else Available(self.version)

    def load(self, source: KernelSource, blob: bytes | None = None) -> FakeKernel:
        return FakeKernel(source, blob)


def fake(name: str, weights: Mapping[str, Array] | None = None, blob: str | None = None) -> FakeKernel:
    """A kernel that runs the function of that name."""
    spec = {"function": name} | ({} if blob is None else {"blob": blob})
    return FakeKernel(KernelSource("fake", "cpu -toolchain=fake", json.dumps(spec).encode(), weights or {}))


def f32(name: str, *shape: int | str) -> TensorInfo:
    """A float32 tensor."""
    return TensorInfo(name, "float32", shape)


def plan_of(
    steps: Sequence[Step],
    inputs: Sequence[TensorInfo],
    results: Sequence[int],
    slots: Sequence[TensorInfo | None],
    constants: Sequence[tuple[int, int]] = (),
    blocks: Mapping[str, PlanBlock] | None = None,
) -> ExecutionPlan:
    """A plan whose parameters are the first slots and whose results are not nested."""
    params = tuple(range(len(inputs)))
    main = PlanBlock(params, tuple(constants), tuple(steps), tuple(results), len(slots))
    outputs = tuple(slots[slot] or f32(f"y{index}") for index, slot in enumerate(results))
    named = tuple(
        TensorInfo(f"y{index}", info.dtype, info.shape)
        if slots[slot]
        else TensorInfo(f"y{index}", "float32", None)
        for index, (slot, info) in enumerate(zip(results, outputs, strict=True))
    )
    structure = 0 if len(results) == 1 else tuple(range(len(results)))
    return ExecutionPlan({"main": main, **(blocks or {})}, tuple(inputs), named, structure, tuple(slots))
