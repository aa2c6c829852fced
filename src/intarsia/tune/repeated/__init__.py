"""Repeated structure of a program, such as the equal layers of a transformer.

value_graph      the values of @main and their post-dominator tree
runs             repetitions in a sequence of symbols
repeated_block   what lies between two values of a chain, as a function
repeated_parts   the equal blocks along its chains of values
application      decisions applied to each of them
"""

from intarsia.tune.repeated.application import in_repeated_parts
from intarsia.tune.repeated.repeated_parts import RepeatedPart, repeated_parts

__all__ = ["RepeatedPart", "in_repeated_parts", "repeated_parts"]
