"""Programs with inner values as further outputs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from intarsia.ir import AttrValue, Expr, Function, IRModule, Tuple
from intarsia.support.free_names import numbered_names


def exposing(module: IRModule, exprs: Sequence[Expr]) -> IRModule:
    """Return the program with further values as outputs.

    Args:
        module: Program whose result is a tensor or a flat tuple.
        exprs: Values of @main, outside of branches and bodies.
    """
    if not exprs:
        return module
    main = module["main"]
    fields = main.body.fields if isinstance(main.body, Tuple) else (main.body,)
    attrs = main.attrs.updated(output_names=_with_fresh_names(main.attrs.get("output_names"), len(exprs)))
    return module.with_function("main", Function(main.params, Tuple((*fields, *exprs)), attrs))


def _with_fresh_names(names: AttrValue | None, count: int) -> tuple[str, ...] | None:
    """Return the names of outputs and `count` further names; None if the outputs have no names."""
    if not isinstance(names, tuple):
        return None
    kept = tuple(map(str, names))
    return (*kept, *itertools.islice(numbered_names("exposed_", kept), count))
