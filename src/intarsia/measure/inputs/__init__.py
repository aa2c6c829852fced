"""Arrays that programs are run on, and what they are drawn from.

random_inputs   seeded arrays for the parameters of a function
integer_use     which integers an input may hold, by what the program does with them
integer_demands what operators demand of integers
index_ranges    ranges of inputs for which computed indices lie within their tables
input_kinds     ordinary, large and edge cases: sets of inputs that show different mistakes
"""

from intarsia.measure.inputs.input_kinds import ATTEMPTS, InputKind, input_set
from intarsia.measure.inputs.random_inputs import example_shape, random_inputs, with_input_ranges

__all__ = ["ATTEMPTS", "InputKind", "example_shape", "input_set", "random_inputs", "with_input_ranges"]
