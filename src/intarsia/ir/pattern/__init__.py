"""Patterns of expressions, as values: what a toolchain can run, what a rule rewrites.

expr_pattern   the patterns and how they are written
constraint     conditions on attributes and types
users          the users of an expression
matching       a pattern against an expression: `match`, `find_matches`
dominance      the dominator pattern

A layer with a bias and an activation, and which part is which:

    layer = is_op("Conv")(wildcard(), is_constant().named("weight"), maybe(is_constant()))
    pattern = layer.optional(lambda conv: is_op("Relu")(conv))
    for match in find_matches(pattern, function):
        match.root, match.covered, match.inputs, match.names["weight"]

The language has no schemas of operators: defaults of attributes, commutativity and the number of arguments
are said by the pattern.
"""

from intarsia.ir.pattern.expr_pattern import (
    ExprPattern,
    dominates,
    is_absent,
    is_constant,
    is_op,
    is_tuple,
    is_tuple_get,
    is_var,
    maybe,
    wildcard,
)
from intarsia.ir.pattern.matching import Match, find_matches, match
from intarsia.ir.pattern.users import Users

__all__ = [
    "ExprPattern",
    "Match",
    "Users",
    "dominates",
    "find_matches",
    "is_absent",
    "is_constant",
    "is_op",
    "is_tuple",
    "is_tuple_get",
    "is_var",
    "match",
    "maybe",
    "wildcard",
]
