"""Usual sizes for the symbolic dimensions of which a user says nothing, where a program is run once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from intarsia.cli.arguments.input import Array
from intarsia.cli.arguments.random_rest import Note, of_inputs, sizes_by_dim

if TYPE_CHECKING:
    from intarsia.ir import Function, IRModule


def with_usual_sizes(
    module: IRModule,
    given: Mapping[str, Array],
    shapes: Mapping[str, Sequence[int]],
    note: Note,
) -> Function:
    """Return the main function with a number for each symbolic dimension of its parameters.

    Dimensions have the sizes of arrays and shapes that are given, and the others those that `tune` measures
    first, with a note.

    Args:
        module: The program.
        given: Arrays by parameter name.
        shapes: Shapes by parameter name, or single sizes by name of a symbolic dimension.
        note: Function that is called with a note about sizes that were chosen.

    Raises:
        UsageError: A shape is for an unknown input, or two inputs have two sizes of one dimension.
        InvalidModelError: Types do not fit with the sizes; the error says which ones were chosen.
    """
    from intarsia.driver.shape_samples import shapes_of, sized_program
    from intarsia.passes import bind_sizes
    from intarsia.support.callbacks import silent

    dims = sizes_by_dim(module["main"], shapes)
    measured = {**of_inputs(module["main"], shapes), **shapes_of(given)}
    sized = sized_program(module, dims, measured, silent)
    if not sized.samples:
        return sized.module["main"]
    sizes = sized.samples[0].sizes
    note(f"no --shape: {', '.join(f'{name}={size}' for name, size in sizes.items())}")
    return bind_sizes(sized.module, sizes)["main"]
