"""Names of a program's results, and arrays of its example inputs, from the structure of a call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree

from intarsia.frontend.torch.tensors import as_array


def result_names(exported: Any) -> tuple[str, ...]:
    """Return a name for each tensor that an exported program returns.

    The name is the path in what the module returns: "last_hidden_state" for a field, "output_0" for the
    first of a tuple, "output" for the only result.

    Args:
        exported: The ExportedProgram.
    """
    specs = [spec for spec in exported.graph_signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    paths = _paths(exported, len(specs))
    return tuple(
        name
        for spec, name in zip(specs, paths, strict=True)
        if not isinstance(spec.arg, ConstantArgument)  # None and numbers are not computed
    )


def example_arrays(exported: Any) -> list[Any]:
    """Return the example inputs of an exported program as arrays, in the order of the program's inputs."""
    leaves = _pytree.tree_leaves(exported.example_inputs)
    specs = [spec for spec in exported.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    if len(leaves) != len(specs):
        return []
    return [
        as_array(leaf) if isinstance(leaf, torch.Tensor) else np.asarray(leaf)
        for leaf, spec in zip(leaves, specs, strict=True)
        if not isinstance(spec.arg, ConstantArgument)
    ]


def _paths(exported: Any, count: int) -> Sequence[str]:
    structure = exported.call_spec.out_spec
    plain = ["output"] if count == 1 else [f"output_{number}" for number in range(count)]
    try:
        keyed, _ = _pytree.tree_flatten_with_path(_pytree.tree_unflatten(range(count), structure))
    except Exception:  # a class of the user's own may not take numbers in place of tensors
        return plain
    if len(keyed) != count:
        return plain
    return [_name(path) or number for (path, _), number in zip(keyed, plain, strict=True)]


def _name(path: Any) -> str:
    text = re.sub(r"\W+", "_", _pytree.keystr(path)).strip("_")
    return f"output_{text}" if text[:1].isdigit() else text
