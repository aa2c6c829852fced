"""Running every pass on the program of one backend test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from tests.backend.cases import Case
from tests.backend.similar import mismatch
from tests.every_pass import every_pass

from intarsia.build import build
from intarsia.collage.collage_partition import CollagePartition
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Constant, Expr, Function, IRModule, post_order, substitute
from intarsia.op import infer_types, verify
from intarsia.op.purity import is_random
from intarsia.passes import PartitionWhole, partition_sequence
from intarsia.support.errors import IntarsiaError
from intarsia.transform import Pass, PassContext, Sequential, load_pass_sequence

LEVEL = PassContext(opt_level=9)
HALF_RTOL = 2.0**-9
"""Results of float16 may differ by two units in the last place where sums change their order."""

_OTHER_RESULTS = frozenset({"ToMixedPrecision"})
_NOT_BUILT = frozenset({"AnnotateTarget"})
"""What it writes is read by the partitioning after it; `build` asks for marks on functions."""


def passes_on_cases() -> list[Pass]:
    """Every pass and pipeline, with the reference toolchain in place of engines, which may be wrong."""
    skipped = ("CollagePartition", "PartitionWhole", "PrintIR")
    return [
        *(item for item in every_pass() if item.info.name not in skipped),
        CollagePartition(("reference",), "mock"),
        PartitionWhole("cpu -toolchain=reference"),
        partition_sequence("reference"),
        load_pass_sequence("default_heuristic"),
        load_pass_sequence("experiment_heuristic"),
    ]


def verdicts(case: Case, passes: Sequence[Pass]) -> Iterator[tuple[str, str]]:
    """The passes that change the program, or fail, each with what is wrong; empty if nothing is.

    The program is taken as it is, and once more with all inputs but the first as constants, which many
    passes ask for. One that cannot be imported, or does not run before any pass, has no verdicts.
    """
    inputs = [np.asarray(item) if isinstance(item, np.generic) else item for item in case.data_sets[0][0]]
    try:
        mod = from_onnx(case.model)
    except IntarsiaError:
        return
    for before, given in _variants(mod, inputs):
        try:
            expected = _run(before, given)
        except IntarsiaError:
            continue
        for item in passes:
            text = _complaint(item, before, given, expected, case)
            if text is not None:
                yield item.info.name, text


def _variants(mod: IRModule, inputs: list[Any]) -> Iterator[tuple[IRModule, list[Any]]]:
    yield mod, inputs
    main = mod["main"]
    bound = inputs[1:]
    if bound and len(inputs) == len(main.params) and all(isinstance(item, np.ndarray) for item in bound):
        values: dict[Expr, Expr] = dict(zip(main.params[1:], map(Constant, bound), strict=True))
        body = substitute(main.body, values)
        fewer = Function(main.params[:1], body, main.attrs, span=main.span)
        yield infer_types(mod.with_function("main", fewer)), inputs[:1]


def _complaint(item: Pass, mod: IRModule, inputs: list[Any], expected: list[Any], case: Case) -> str | None:
    try:
        after = item(mod, LEVEL)
        if after is mod:
            return None
        verify(after)
        if item.info.name in _NOT_BUILT:
            return ""
        found = _run(after, inputs)
        if not isinstance(item, Sequential) and item(after, LEVEL) is not after:
            return "a second run changes the program again"
    except Exception as error:  # whatever escapes is what is looked for
        return f"{type(error).__name__}: {error}"
    if item.info.name in _OTHER_RESULTS or _is_random(mod):
        return ""
    return mismatch(found, expected, _rtol(case, expected), case.atol)


def _run(mod: IRModule, inputs: list[Any]) -> list[Any]:
    np.random.seed(0)  # noqa: NPY002 - the state that onnx's evaluator draws random numbers from
    with closing(build(mod)) as executable:
        return executable.run_flat(*inputs)


def _is_random(mod: IRModule) -> bool:
    functions = mod.graph_functions.values()
    return any(isinstance(node, Call) and is_random(node) for item in functions for node in post_order(item))


def _rtol(case: Case, expected: list[Any]) -> float:
    is_half = any(isinstance(item, np.ndarray) and item.dtype == np.float16 for item in expected)
    return max(case.rtol, HALF_RTOL) if is_half else case.rtol
