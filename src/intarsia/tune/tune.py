"""`tune`: measure every toolchain on the whole model, and keep the fastest one that is right.

Imports stand inside the functions: `import intarsia` binds `tune` without loading the compiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from onnx import ModelProto

    from intarsia.ir import IRModule
    from intarsia.target import Target
    from intarsia.tune.records import Progress
    from intarsia.tune.result import TuneResult


def tune(
    model: str | Path | bytes | ModelProto | IRModule,
    *,
    budget: str | float = "60s",
    targets: Sequence[Target | str] | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> TuneResult:
    """Run the whole model on each toolchain, verify, measure interleaved, and keep the fastest right one.

    Args:
        model: What `from_onnx` takes, or a module.
        budget: Time for measuring, in seconds or as text ("90s", "5m").
        targets: Candidates; every registered toolchain if not given.
        shapes: Shapes of inputs to fix, by name.
        inputs: Arrays to verify and measure with; seeded random ones if not given.
        seed: Of random inputs and of the order of measurement.
        threads: Threads of each candidate; all usable cores if not given.
        on_progress: Told what is being done.

    Returns:
        The winner and all candidates. A candidate that is wrong, refuses the model or fails cannot win.

    Raises:
        UsageError: Bad budget, targets, shapes or inputs.
        ModelError: The model is invalid or unsupported, or no candidate computes it right.
    """
    from intarsia.frontend.onnx import from_onnx
    from intarsia.ir import IRModule
    from intarsia.measure.inputs import random_inputs
    from intarsia.runtime.self_test import SelfTest
    from intarsia.toolchain.this_host import this_host
    from intarsia.tune.budget import parse_budget
    from intarsia.tune.contest import Contest
    from intarsia.tune.records import Progress, Stage
    from intarsia.tune.result import TuneResult

    start = time.perf_counter()
    seconds = parse_budget(budget)
    candidates = _targets(targets, threads)
    report = on_progress or _silent
    report(Progress(Stage.IMPORT))
    module = model if isinstance(model, IRModule) else from_onnx(model, shapes)
    arrays = dict(inputs) if inputs is not None else random_inputs(module["main"], seed)
    contest = Contest(module, arrays, candidates, report)
    winner = contest.decide(seconds, seed)
    return TuneResult(
        model=str(module.attrs.get("name", "model")),
        executable=winner,
        candidates=contest.records(),
        reference=contest.gate.reference,
        self_test=SelfTest(tuple(arrays[item.name].copy() for item in winner.inputs), contest.gate.expected),
        host=this_host(),
        seconds=time.perf_counter() - start,
        seed=seed,
    )


def _targets(targets: Sequence[Target | str] | None, threads: int | None) -> tuple[Target, ...]:
    """The candidates' targets; without a request, those that are unusable here take part to say why."""
    from intarsia.support.errors import UsageError
    from intarsia.target import Target
    from intarsia.toolchain import installed_toolchains

    if targets is None:
        chosen = [Target.for_toolchain(status.name) for status in installed_toolchains()]
    else:
        chosen = [item if isinstance(item, Target) else Target.parse(item) for item in targets]
    if not chosen:
        raise UsageError(
            "there is no target to tune for", help="pass at least one, or none for all toolchains"
        )
    unnamed = [str(target) for target in chosen if target.toolchain is None]
    if unnamed:
        raise UsageError(
            f"the target {unnamed[0]!r} names no toolchain", help='such as "cpu -toolchain=openvino"'
        )
    if threads is not None:
        chosen = [target.with_options(threads=threads) for target in chosen]
    return tuple(dict.fromkeys(chosen))


def _silent(_: Progress) -> None:
    return None
