"""A choice of a kernel that fails in workers only, in the ways in which choices fail."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.only_in_workers import is_worker

from intarsia.ir import Function, IRModule
from intarsia.op import call
from intarsia.op.infer import infer_types
from intarsia.support.errors import CompileError
from intarsia.tune.kernels import decide_kernels
from intarsia.tune.transformations import TRANSFORMATIONS

NAME = "planted_choice"


def planted_choice(
    mod: IRModule, settings: Mapping[str, Mapping[str, str]], target: str, fault: str
) -> IRModule:
    """Decide as `decide_kernels` does, unless this is a worker."""
    if not is_worker():
        return decide_kernels(mod, settings, target)
    match fault:
        case "refused":
            raise CompileError("planted")
        case "crash":
            os.abort()
        case _:
            main = mod["main"]
            assert isinstance(main, Function)
            return infer_types(mod.with_function("main", Function(main.params, call("Neg", main.body))))


if is_worker():
    TRANSFORMATIONS.register(NAME, planted_choice)
