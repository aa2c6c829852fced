"""Programs with the sizes that shapes of their inputs give to symbolic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.ir import ANY, Dim, Function, SymbolicDim, TensorType
from intarsia.passes.bind_dims import bind_function
from intarsia.support.errors import InvalidModelError


def with_shapes(function: Function, shapes: Mapping[str, Sequence[int]]) -> Function:
    """Return a function with numbers in place of the symbolic dimensions that shapes of inputs have.

    Args:
        function: The function.
        shapes: Shapes by parameter name.

    Returns:
        The function itself if they give no sizes, or sizes that its types do not allow: whoever runs the
        program with them refuses them with the input's name.
    """
    sizes: dict[SymbolicDim, Dim] = {}
    for param in function.params:
        type_ = param.checked_type
        if param.name in shapes and isinstance(type_, TensorType) and type_.shape is not None:
            for dim, size in zip(type_.shape, shapes[param.name], strict=False):
                if isinstance(dim, SymbolicDim) and dim != ANY:
                    sizes.setdefault(dim, size)
    if not sizes:
        return function
    try:
        return bind_function(function, sizes)
    except InvalidModelError:
        return function
