"""Which calls give another value each time they are evaluated: draws of random numbers, and what makes them.

Such a call is never merged with an equal one, evaluated at compile time, or moved to where it is evaluated
more or less often. It may be dropped where nothing uses its value: ONNX's random operators share no state.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from intarsia.ir import Call, Expr, Function, GlobalVar, IRModule, Op, children, post_order
from intarsia.op.known_value import known_value
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of

_pure: WeakKeyDictionary[IRModule, frozenset[str]] = WeakKeyDictionary()


def is_random(call: Call) -> bool:
    """Whether a call is of an operator that draws random numbers, with a seed or without.

    Dropout does, unless its training mode is absent or known to be false.
    """
    if not isinstance(call.op, Op):
        return False
    facts = facts_of(call.op)
    if facts.has(OperatorTrait.RANDOM_IN_TRAINING) and len(call.args) > 2:
        mode = known_value(call.args[2])
        return mode is None or bool(mode.any())
    return facts.has(OperatorTrait.RANDOM)


def is_pure(expr: Expr, mod: IRModule | None = None) -> bool:
    """Whether an expression certainly has the same value each time it is evaluated.

    Linear in the expression, and once in the module; for all expressions of a program see `impure_calls`.

    Args:
        expr: The expression. A function is pure if calls of it are.
        mod: Module with the global functions that it calls; without it they count as impure.
    """
    pure = frozenset() if mod is None else pure_functions(mod)
    return not any(_is_source(node, pure) for node in post_order(expr))


def impure_calls(root: Expr, mod: IRModule | None = None) -> set[Expr]:
    """Every call below `root` that may have another value each time.

    These are random operators, calls of functions that contain one, and calls of unknown functions.
    A call is not impure because an argument's value is. Linear in the expression, and once in the module.
    """
    pure = frozenset() if mod is None else pure_functions(mod)
    impure: set[Expr] = set()
    tainted: set[Expr] = set()
    for node in post_order(root):
        below = children(node)
        if _is_source(node, pure) or (
            isinstance(node, Call) and any(isinstance(item, Function) and item in tainted for item in below)
        ):
            impure.add(node)
            tainted.add(node)
        elif any(item in tainted for item in below):
            tainted.add(node)
    return impure


def pure_functions(mod: IRModule) -> frozenset[str]:
    """Names of the global functions whose calls have the same value each time.

    Loop functions are pure: their language cannot draw. Linear in the module, and remembered.
    """
    if mod not in _pure:
        names = frozenset(var.name for var in mod.functions)
        _pure[mod] = names - _find_impure(mod, names)
    return _pure[mod]


def _find_impure(mod: IRModule, names: frozenset[str]) -> frozenset[str]:
    callers: dict[str, list[str]] = {}
    impure: set[str] = set()
    for var, function in mod.graph_functions.items():
        for node in post_order(function):
            if isinstance(node, Call) and isinstance(node.op, GlobalVar):
                callers.setdefault(node.op.name, []).append(var.name)
            if _is_source(node, names):
                impure.add(var.name)
    waiting = list(impure)
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller not in impure:
                impure.add(caller)
                waiting.append(caller)
    return frozenset(impure)


def _is_source(expr: Expr, pure: frozenset[str]) -> bool:
    """Whether a call is impure by itself, whatever the function literals are that it calls or is given.

    Args:
        expr: Any expression.
        pure: Names of the global functions that count as pure.
    """
    if not isinstance(expr, Call):
        return False
    match expr.op:
        case Op() if facts_of(expr.op).has(OperatorTrait.HAS_BODY):
            return not isinstance(expr.args[-1], Function)
        case Op():
            return is_random(expr)
        case GlobalVar(name=name):
            return name not in pure
        case Function():
            return False
        case _:
            return True
