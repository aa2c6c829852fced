"""Steps within a program: what its results are if elements near a step fall on the other side.

    y = MatMul(Floor(x), weights)

Engines that differ by rounding in x differ by a whole row of weights in y, and both are right. So the program
is run again with the results of its steps forced to either side wherever both are within noise. What changes
may differ in an engine, too, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, Expr, Function, IRModule, Tuple, TupleGetItem, post_order, substitute
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.arguments import static_shape
from intarsia.measure.judge.steps.bounds import bounds_of, has_step, is_step, is_stepped, leaves
from intarsia.measure.judge.steps.movement import moved_from, operator_name, outputs_of
from intarsia.op.infer import infer_types
from intarsia.op.known_value import known_value
from intarsia.support.errors import IntarsiaError

_BOUNDING: Final = frozenset({"Clip", "Max", "Min"})
_APPROXIMATED: Final = frozenset(
    {
        *("Erf", "Gelu", "LogSoftmax", "Mish", "Sigmoid", "Softmax", "Softplus", "Softsign", "Swish", "Tanh"),
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan"),
        *("Celu", "Elu", "Exp", "Log", "Pow", "Selu"),
    }
)
_FORCED_RUNS: Final = 4
MOST_STEPS: Final = 32
MOST_ELEMENTS: Final = 1 << 22
"""Steps of a program that are looked at, and elements of one of them: their arguments become outputs."""


class InnerStepRule:
    """Rule that exposes arguments of inner steps, and claims no output."""

    def exposed(self, module: IRModule) -> Mapping[str, Expr]:
        """See CheckRule.exposed."""
        keys = _keys(module)
        return {key: expr for names in keys.values() for expr, key in names.items()}

    def checks(self, module: IRModule, runs: ReferenceRuns) -> tuple[OutputCheck, ...]:  # noqa: ARG002  # of outputs
        """See CheckRule.checks."""
        return ()


def forced_programs(module: IRModule, exposing: IRModule, runs: ReferenceRuns) -> Iterator[IRModule]:
    """Yield programs in which undecided elements of steps fall on either side; of each two, on both.

    Args:
        module: The program.
        exposing: Program with the exposed values as further outputs.
        runs: Results of a judge for it, with the noise of the exposed values.
    """
    sides: dict[Call, tuple[Array, Array]] = {}
    for step, keys in _keys(module).items():
        try:
            bounds = bounds_of(step, keys, runs)
        except IntarsiaError:
            continue
        if bounds is None:
            continue
        is_open = (bounds.low != bounds.high) & _moves(step, keys, runs)
        if is_open.any():
            low = np.where(is_open, bounds.low, bounds.high)
            sides[step] = (low.astype(bounds.low.dtype), bounds.high)
    if not sides:
        return
    main = exposing["main"]
    for number in range(_FORCED_RUNS):
        generator, is_flipped = np.random.default_rng(number // 2), bool(number % 2)
        forced: dict[Expr, Expr] = {}
        for step, (low, high) in sides.items():
            is_high = (generator.random(low.shape) < 0.5) ^ is_flipped
            forced[step] = Constant(np.where(is_high, high, low).astype(low.dtype))
        function = substitute(main, forced)
        assert isinstance(function, Function)
        # What is computed of integers that were replaced has no type; what has none does not compile.
        yield infer_types(exposing.with_function("main", function))


def _keys(module: IRModule) -> dict[Call, dict[Expr, str]]:
    """The inner steps, each with the names of the values that its bounds need."""
    return {
        step: {leaf: f"inner{number}.{i}" for i, leaf in enumerate(leaves(step))}
        for number, step in enumerate(_inner_steps(module))
    }


def _inner_steps(module: IRModule) -> list[Call]:
    """Steps of @main, outside of branches and bodies, behind outputs that are no steps themselves."""
    waiting: list[Expr] = [output for output in outputs_of(module) if not has_step(output)]
    seen: set[Expr] = set()
    steps: list[Call] = []
    while waiting and len(steps) < MOST_STEPS:
        expr = waiting.pop()
        if expr in seen:
            continue
        seen.add(expr)
        match expr:
            case Call() as call:
                if is_step(call) and _is_small(call) and not _follows_step(call):
                    steps.append(call)
                waiting.extend(call.args)
            case TupleGetItem(tuple_value=value):
                waiting.append(value)
            case Tuple(fields=fields):
                waiting.extend(fields)
            case _:
                pass
    return steps


def _follows_step(step: Call) -> bool:
    """Whether a step only jumps where one before it does, which is forced itself."""
    return all(isinstance(arg, Constant) or is_stepped(arg) for arg in step.args)


def _is_small(step: Call) -> bool:
    shape = static_shape(step)
    return shape is not None and int(np.prod(shape)) <= MOST_ELEMENTS


def _moves(step: Call, keys: Mapping[Expr, str], runs: ReferenceRuns) -> Array:
    """Where an argument may differ between engines.

    That no run differs in an element says little: numbers on a coarse grid stay equal by chance. It says that
    the element is exact where no run differs in any other element either, and of zeros behind a Relu and the
    bounds of a Clip. Of a Sigmoid that saturates, it says nothing: another engine may give 0.99999994 for 1.
    """
    moved = np.zeros((), np.bool_)
    for arg in step.args:
        value, spread = runs.exposed.get(keys[arg]), runs.exposed_spreads.get(keys[arg])
        if value is None or spread is None or not (spread.any() or _is_approximated(arg)):
            continue
        moved = moved | (spread > 0) | ~np.isin(value, _exact_values(arg))
    return moved


def _is_approximated(arg: Expr) -> bool:
    """Whether a function is on the way to an argument that engines approximate in their own ways."""
    return any(operator_name(node) in _APPROXIMATED for node in post_order(arg))


def _exact_values(arg: Expr) -> Array:
    """Numbers that elements of an argument have for certain where no run differs: zero, and bounds of it."""
    source = moved_from(arg)[0]
    values = [np.zeros(1)]
    if isinstance(source, Call) and operator_name(source) in _BOUNDING:
        bounds = (known_value(item) for item in source.args)
        values += [bound.reshape(-1) for bound in bounds if bound is not None and bound.size == 1]
    return np.concatenate(values)
