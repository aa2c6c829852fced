"""Input arrays for programs, and their distributions.

random_inputs   seeded arrays for the parameters of a function
integer_use     ranges of integer inputs, derived from their uses in the program
integer_demands ranges that operators demand of integers
index_ranges    ranges of inputs for which computed indices lie within their tables
known_shapes    programs with the sizes that shapes of their inputs give to symbolic dimensions
input_kinds     ordinary, large and edge cases: sets of inputs that show different mistakes
"""

from intarsia.measure.inputs.input_kinds import ATTEMPTS, InputKind, input_set
from intarsia.measure.inputs.known_shapes import with_shapes
from intarsia.measure.inputs.random_inputs import example_shape, random_inputs, with_input_ranges

__all__ = [
    "ATTEMPTS",
    "InputKind",
    "example_shape",
    "input_set",
    "random_inputs",
    "with_input_ranges",
    "with_shapes",
]
