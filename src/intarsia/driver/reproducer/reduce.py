"""The same failure of a pass on a smaller program: delta debugging of @main (Zeller and Hildebrandt, 2002).

Three steps repeat until none helps: a value inside becomes the result; values become parameters; operators
become one of their arguments. Each step is tried on a candidate, and kept if the pass still fails in the same
way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from intarsia.driver.reproducer.pass_failure import CheckLimits, PassFailure, check_pass
from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    TupleType,
    Var,
    free_vars,
    post_order,
    with_fields,
)
from intarsia.ir.scope import place
from intarsia.ir.traversal import substitute
from intarsia.support.callbacks import silent
from intarsia.support.errors import IntarsiaError
from intarsia.transform import Pass, PassContext
from intarsia.transform.program_check import check_program


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduced program.

    Attributes:
        mod: The program.
        failure: The failure on it.
        operators: Number of its operators.
        checks: Number of candidates that were tried.
    """

    mod: IRModule
    failure: PassFailure
    operators: int
    checks: int


def count_operators(mod: IRModule) -> int:
    """Return the number of calls of operators in a program."""
    return sum(
        isinstance(expr, Call) and isinstance(expr.op, Op)
        for function in mod.graph_functions.values()
        for expr in post_order(function)
    )


def reduce_program(
    item: Pass,
    mod: IRModule,
    failure: PassFailure,
    ctx: PassContext,
    limits: CheckLimits,
    on_progress: Callable[[int], object] = silent,
) -> Reduction:
    """Reduce a program on which a pass fails.

    Args:
        item: The pass.
        mod: The program.
        failure: The failure of the pass on it.
        ctx: Context of the pass.
        limits: Limits of each check.
        on_progress: Called with the number of operators after each step that helped.
    """
    reducer = _Reducer(item, mod, failure, ctx, limits.for_failure(failure), on_progress)
    reducer.run()
    return Reduction(reducer.mod, reducer.failure, count_operators(reducer.mod), reducer.checks)


class _Reducer:
    """The smallest program so far.

    Attributes:
        mod: The program.
        failure: The failure of the pass on it.
        checks: Number of candidates that were tried.
    """

    def __init__(
        self,
        item: Pass,
        mod: IRModule,
        failure: PassFailure,
        ctx: PassContext,
        limits: CheckLimits,
        on_progress: Callable[[int], object],
    ) -> None:
        self.mod, self.failure, self.checks = mod, failure, 0
        self._item, self._ctx, self._limits, self._on_progress = item, ctx, limits, on_progress

    def run(self) -> None:
        """Repeat the steps until none of them helps."""
        self._keep_main_only()
        while True:
            before = self.mod
            self._shorten_end()
            self._shorten_start()
            self._cut_values()
            self._bypass_operators()
            if self.mod is before:
                return

    def _fails(self, candidate: IRModule | None) -> bool:
        """Try a candidate, and keep it if the pass fails on it in the same way."""
        if candidate is None:
            return False
        try:
            check_program(candidate)
        except IntarsiaError:
            return False
        self.checks += 1
        failure = check_pass(self._item, candidate, self._ctx, self._limits)
        if failure is None or not self.failure.is_like(failure):
            return False
        self.mod, self.failure = candidate, failure
        self._on_progress(count_operators(candidate))
        return True

    def _keep_main_only(self) -> None:
        if len(self.mod.functions) > 1:
            self._fails(IRModule.from_expr(self.mod["main"]))

    def _shorten_end(self) -> None:
        """Find the first value that can be the result, by bisection."""
        main = self.mod["main"]
        values = [expr for expr in _values(main) if isinstance(expr.checked_type, TensorType | TupleType)]
        low, high = 0, len(values) - 1
        while low < high:
            middle = (low + high) // 2
            if self._fails(_module(main, values[middle], {})):
                high = middle
            else:
                low = middle + 1

    def _shorten_start(self) -> None:
        """Find how many of the first values can be parameters, by bisection."""
        main = self.mod["main"]
        values = [expr for expr in _values(main) if expr is not main.body]
        low, high = 0, len(values)
        while low < high:
            middle = (low + high + 1) // 2
            if self._fails(_with_params(main, values[:middle])):
                low = middle
            else:
                high = middle - 1

    def _cut_values(self) -> None:
        """Make values parameters one by one, from the result to the inputs."""
        self._try_each(lambda main, value: _with_params(main, [value]))

    def _bypass_operators(self) -> None:
        """Replace operators by an argument of the same type, one by one."""
        self._try_each(_bypassed)

    def _try_each(self, candidate: Callable[[Function, Expr], IRModule | None]) -> None:
        """Try a step on each value, counted from the result: so positions survive what goes before them."""
        position = 0
        while True:
            main = self.mod["main"]
            values = _values(main)[::-1]
            if position >= len(values):
                return
            if not self._fails(candidate(main, values[position])):
                position += 1


def _values(main: Function) -> Sequence[Expr]:
    """Values that are computed in the body of a function itself, each after those that it uses."""
    placed = place(main)
    return placed.members[placed.inner[main, len(main.params)]]


def _with_params(main: Function, values: Iterable[Expr]) -> IRModule | None:
    """The program with values as parameters; None if there is nothing to replace."""
    params: dict[Expr, Expr] = {
        value: Var(f"v{number}", checked_type=value.checked_type, virtual_device=value.virtual_device)
        for number, value in enumerate(values)
        if isinstance(value.checked_type, TensorType) and value is not main.body
    }
    return _module(main, main.body, params) if params else None


def _bypassed(main: Function, value: Expr) -> IRModule | None:
    """The program with the first argument of the same type in place of a call; None if it has none."""
    if not isinstance(value, Call):
        return None
    args = (arg for arg in value.args if not isinstance(arg, Constant))
    same = next((arg for arg in args if arg.checked_type == value.checked_type), None)
    return None if same is None else _module(main, main.body, {value: same})


def _module(main: Function, body: Expr, replaced: dict[Expr, Expr]) -> IRModule:
    """A program with another body, with the parameters that it uses, in order, under different names."""
    new = substitute(body, replaced)
    used = set(free_vars(new))
    params = [param for param in (*main.params, *replaced.values()) if param in used]
    names: dict[str, int] = {}
    fresh: dict[Expr, Expr] = {}
    for param in params:
        assert isinstance(param, Var)
        count = names[param.name] = names.get(param.name, 0) + 1
        fresh[param] = param if count == 1 else with_fields(param, name=f"{param.name}_{count}")
    return IRModule.from_expr(
        Function(
            tuple(param for param in fresh.values() if isinstance(param, Var)),
            substitute(new, fresh),
            main.attrs.updated(output_names=None, input_ranges=None),
            virtual_device=new.virtual_device,
        )
    )
