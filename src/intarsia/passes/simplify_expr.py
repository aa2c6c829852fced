"""Local simplification, by rules that look at a call and its arguments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Expr, Function, IRModule, Op, TupleGetItem
from intarsia.passes.rules.rewrite_original import count_uses, rewrite_original
from intarsia.passes.rules.rule_table import IsPrivate, merged
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.passes.simplify import (
    arithmetic,
    casting,
    clamping,
    data_movement,
    padding,
    reassociation,
    reducing,
    reshaping,
    transposing,
    windows,
)
from intarsia.transform import FunctionPass, PassContext, register_pass

RULES: Final = merged(
    (
        arithmetic.RULES,
        clamping.RULES,
        casting.RULES,
        reshaping.RULES,
        transposing.RULES,
        data_movement.RULES,
        padding.RULES,
        reducing.RULES,
        windows.RULES,
    )
)
SHARING_RULES: Final = data_movement.SHARING_RULES
REASSOCIATION_RULES: Final = merged((SHARING_RULES, reassociation.SHARING_RULES))


@register_pass
@dataclass(frozen=True)
class SimplifyExpr(FunctionPass, opt_level=1, required=("InferType",)):
    """Removes and merges operators, by the rules of `passes.simplify`.

    Rules are found by operator, and applied bottom-up until none applies any more. Linear in the program for
    each round; a second round finds that there is nothing left, or what has become unshared in the first.

    Before:
        def @main(%x: Tensor[(2, 3), float32]) { Neg(Neg(Transpose(Transpose(%x)))) }
    After:
        def @main(%x: Tensor[(2, 3), float32]) { %x }

    Attributes:
        reassociate: Whether `(x + c1) + c2` becomes `x + (c1 + c2)`, which rounds differently.
    """

    reassociate: bool = True

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function to which no rule applies."""
        while True:
            after = self._round(function)
            if after is function:
                return function
            function = after

    def _round(self, function: Function) -> Function:
        before, uses = count_uses(function), Counter[Expr]()

        def rule(_: Expr, current: Expr) -> Expr:
            return self._simplified(current, lambda arg: uses[arg] == 1)

        def on_done(old: Expr, new: Expr) -> None:
            uses[new] += before[old]

        return rewrite_original(function, rule, on_done)

    def _simplified(self, expr: Expr, is_private: IsPrivate) -> Expr:
        """What is left when no rule applies to the expression itself any more."""
        while True:
            simpler = self._step(expr, is_private)
            if simpler is None or simpler is expr:
                return expr
            expr = simpler

    def _step(self, expr: Expr, is_private: IsPrivate) -> Expr | None:
        match expr:
            case TupleGetItem():
                return data_movement.part_of_one(expr) or tuple_field(expr)
            case Call(op=Op(name=name, domain="")):
                return self._call_step(expr, name, is_private)
            case _:
                return None

    def _call_step(self, call: Call, name: str, is_private: IsPrivate) -> Expr | None:
        for rule in RULES.get(name, ()):
            simpler = rule(call)
            if simpler is not None:
                return simpler
        sharing_rules = REASSOCIATION_RULES if self.reassociate else SHARING_RULES
        for sharing_rule in sharing_rules.get(name, ()):
            simpler = sharing_rule(call, is_private)
            if simpler is not None:
                return simpler
        return None
