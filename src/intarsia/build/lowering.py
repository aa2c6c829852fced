"""Expressions to steps over slots: tuples and lets vanish, an If becomes a Branch, calls become kernels.

Nested scopes are tasks (`build.task`), so that depth does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from intarsia.build.capture import Captures
from intarsia.build.closure import Closure
from intarsia.build.device_map import DeviceMap
from intarsia.build.imports import Imports
from intarsia.build.joined_value import joined_value
from intarsia.build.kernel_table import SYMBOL, is_marked, marked_target
from intarsia.build.repeated import repeat_step
from intarsia.build.slot_value import (
    FUNCTIONS,
    ChosenFunction,
    Leaf,
    SlotValue,
    leaves,
    structure,
    value_as,
)
from intarsia.build.slots import SlotTable
from intarsia.build.task import Task
from intarsia.build.uses import shown, use_counts
from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Type,
    free_vars,
    substitute,
    with_fields,
)
from intarsia.ir.scope import Scope, ScopedProgram, place
from intarsia.op.device_call import is_device_copy, is_shape_operator
from intarsia.runtime.plan import Branch, Copy, Invoke, PlanBlock, RunKernel, Step
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

if TYPE_CHECKING:
    from intarsia.build.program import ProgramLowering


class BlockLowering:
    """Lowers one function to one block.

    Args:
        program: The program that it belongs to: blocks, kernels and constants.
        name: Name of the block, for errors.
        function: The function; marked literals in it have become GlobalVars.
        outer: Lowering of the enclosing function, for a literal that may use what is defined there.

    Attributes:
        table: The slots of the block.
        imports: Values that it uses of the outer function.
        result: The value of the function, once it is lowered.
    """

    def __init__(
        self, program: ProgramLowering, name: str, function: Function, outer: BlockLowering | None = None
    ) -> None:
        self.table = SlotTable()
        self.imports = Imports(self.table, outer.table if outer else self.table)
        self._program, self._name, self._function, self._outer = program, name, function, outer
        self._placed: ScopedProgram = outer._placed if outer else place(function)
        self._captures: Captures = outer._captures if outer else Captures(self._placed)
        self._uses: Counter[Expr] = outer._uses if outer else use_counts(function)
        self._values: dict[Expr, SlotValue] = {}
        self._literals: dict[Function, tuple[str, BlockLowering]] = {}
        self._devices = program.devices
        self._steps: list[Step] = []
        self._hidden: set[int] = set()  # slots of branches that end with functions: not there afterwards
        for param in function.params:
            self._values[param] = self.table.like(param.checked_type, self._devices.number(param))
        self._params = [slot for param in function.params for slot in self._slots(self._values[param])]
        self.result: SlotValue = ()

    def lower(self) -> Task:
        """Lower the body; then `result` and `block` are known."""
        yield self._scope(self._placed.inner[self._function, len(self._function.params)])
        self.result = self._value(self._function.body)

    def block(self) -> PlanBlock:
        """The block, once all is lowered."""
        results = self._slots(self.result)
        number = self._program.constant_number
        constants = tuple((slot, number(constant)) for (constant, _), slot in self.table.constants.items())
        params = (*self._params, *self.imports.captured.values())
        devices = tuple(self.table.devices) if self._devices.names else ()
        return PlanBlock(params, constants, tuple(self._steps), results, len(self.table.types), devices)

    def _scope(self, scope: Scope) -> Task:
        for expr in self._placed.members[scope]:
            match expr:
                case Tuple():
                    self._values[expr] = tuple(map(self._value, expr.fields))
                case TupleGetItem():
                    self._values[expr] = _field_of(self._name, expr, self._value(expr.tuple_value))
                case Call():
                    yield from self._call(expr)
                case Let():
                    self._values[expr.var] = self._value(expr.value)
                    yield self._scope(self._placed.inner[expr, 2])
                    self._values[expr] = self._value(expr.body)
                case If():
                    yield from self._branch(expr)
                case _:
                    pass  # a function is its own value, atoms have no place

    def _value(self, expr: Expr) -> SlotValue:
        match expr:
            case Constant() | Function() | GlobalVar():
                return expr
            case Tuple(fields=()):
                return ()
        if expr in self._values:
            return self._values[expr]
        if self._outer is None:
            raise self._unsupported(f"{shown(expr)} is used before it has a value")
        self._values[expr] = self.imports.taken(expr, self._outer._value(expr))
        return self._values[expr]

    def _call(self, call: Call) -> Task:
        if isinstance(call.op, Op):
            if self._devices.names and is_device_copy(call):
                self._values[call] = self._copied(self._value(call.args[0]), call)
            elif self._program.repeats(call):
                yield from self._repeat(call)
            else:
                self._operator(call)
            return
        yield from self._call_function(call, self._value(call.op))

    def _call_function(self, call: Call, callee: SlotValue, *, is_inlined: bool = True) -> Task:
        if isinstance(callee, GlobalVar):
            function = self._program.function(callee.name)
            if is_marked(function):
                self._run_marked(call, function, callee.name)
            else:
                self._program.require_block(callee.name)
                self._invoke(call, callee.name, function, ())
        elif isinstance(callee, Function):
            yield from self._call_literal(call, callee, is_inlined=is_inlined)
        elif isinstance(callee, ChosenFunction):
            self._check_outside((callee.cond,))
            ways = (callee.true, callee.false)
            tasks = [self._call_function(call, way, is_inlined=False) for way in ways]
            yield from self._either(callee.cond, call, [(task, call) for task in tasks])
        else:
            raise self._unsupported("a function that is only known at run time is called")

    def _call_literal(self, call: Call, function: Function, *, is_inlined: bool) -> Task:
        """A literal that is used once is inlined; others become blocks, so that nothing grows."""
        if (function, len(function.params)) not in self._placed.inner:
            raise self._unsupported("a function that is defined elsewhere is called")
        _check_arity(self._name, call, function)
        if is_inlined and self._uses[function] == 1:
            for param, arg in zip(function.params, call.args, strict=True):
                self._values[param] = self._value(arg)
            yield self._scope(self._placed.inner[function, len(function.params)])
            self._values[call] = self._value(function.body)
            return
        if self._is_inside(function):
            raise self._unsupported("a local function calls itself", "make it a global function")
        lowered = self._literals.get(function)
        if lowered is None or not lowered[1].imports.are_those_of(self._value):
            inner = BlockLowering(self._program, self._name, function, self)
            yield inner.lower()
            lowered = self._program.add_literal(self._name, inner), inner
            self._literals[function] = lowered
        self._invoke(call, lowered[0], function, tuple(lowered[1].imports.captured))

    def _repeat(self, call: Call) -> Task:
        """A Loop or Scan with parts for toolchains in its body: the body is a block."""
        body = call.args[-1]
        assert isinstance(body, Function)
        inner = BlockLowering(self._program, self._name, body, self)
        yield inner.lower()
        name, captured = self._program.add_literal(self._name, inner), tuple(inner.imports.captured)
        self._check_outside(captured)
        repeated = repeat_step(call, name, captured, lambda expr: self._slots(self._value(expr)), self.table)
        self._values[call] = repeated.value
        self._steps.append(repeated.step)

    def _is_inside(self, function: Function) -> bool:
        return self._function is function or (self._outer is not None and self._outer._is_inside(function))

    def _invoke(self, call: Call, name: str, function: Function, captured: tuple[int, ...]) -> None:
        _check_arity(self._name, call, function)
        self._check_outside(captured)
        type_ = call.checked_type or function.result_type
        if type_ is None:
            raise self._unsupported(f"the type of what @{name} returns is unknown", "run InferType")
        pairs = zip(call.args, function.params, strict=True)
        arguments = (
            slot
            for arg, param in pairs
            for slot in self._slots(self._value(arg), self._devices.number(param))
        )
        inputs = (*arguments, *captured)
        self._values[call] = result = self.table.like(type_, self._devices.number(call))
        self._steps.append(Invoke(name, inputs, self._slots(result)))

    def _run_marked(self, call: Call, function: Function, name: str) -> None:
        _check_arity(self._name, call, function)
        device = self._devices.number(call)
        closure = Closure(self._captures, partial(self._in_slots, device), self._unsupported)
        replacements: dict[Expr, Expr] = {var: closure.stand_in(var) for var in free_vars(function)}
        closed = substitute(function, replacements)
        assert isinstance(closed, Function)
        if closure.params:
            params = (*closure.params.values(), *closed.params)
            closed = with_fields(closed, params=params, checked_type=None)
        label = str(function.attrs.get(SYMBOL, name))
        target = self._devices.with_threads(marked_target(function), device)
        number = self._program.kernels.number(closed, target, label, device)
        arguments = (slot for arg in call.args for slot in self._slots(self._value(arg), device))
        type_ = call.checked_type or function.result_type
        self._run(call, number, (*closure.params, *arguments), type_, device)

    def _operator(self, call: Call) -> None:
        """One operator on the toolchain of unmarked code; constants stay inside, bodies are closed."""
        closure = Closure(self._captures, self._value, self._unsupported)
        args = tuple(map(closure.argument, call.args))
        function = Function(tuple(closure.params.values()), with_fields(call, args=args))
        label = call.span.node if call.span else str(call.op)
        inputs = tuple(closure.params)
        where = call.args[0] if inputs and is_shape_operator(call) else call
        device = self._devices.number(where)
        target = self._devices.unmarked_target(where, self._program.target)
        number = self._program.kernels.number(function, target, label, device)
        self._run(call, number, inputs, call.checked_type, device)
        self._values[call] = self._copied(self._values[call], call)

    def _run(self, call: Call, kernel: int, inputs: tuple[int, ...], type_: Type | None, device: int) -> None:
        for slot in inputs:
            if self.table.devices[slot] != device:
                raise _stranger(self._name, call, self._devices, device, self.table.devices[slot])
        self._values[call] = result = self.table.results(call, type_, device)
        self._steps.append(RunKernel(kernel, inputs, self._slots(result), device))

    def _copied(self, value: SlotValue, call: Call) -> SlotValue:
        """The value on the device of a call: copied but for what is there, and for constants."""
        device = self._devices.number(call)
        if isinstance(value, tuple):
            return tuple(self._copied(field, call) for field in value)
        if not isinstance(value, int):
            return self._slot(value, device)
        if self.table.devices[value] == device:
            return value
        copied = self.table.imported(self.table, value, device)
        self._steps.append(Copy(value, copied, device))
        return copied

    def _branch(self, expr: If) -> Task:
        (cond,) = self._slots(self._value(expr.cond))
        ways = ((1, expr.true_branch), (2, expr.false_branch))
        tasks = [(self._scope(self._placed.inner[expr, position]), branch) for position, branch in ways]
        yield from self._either(cond, expr, tasks)

    def _either(self, cond: int, expr: Expr, ways: Sequence[tuple[Task, Expr]]) -> Task:
        """A Branch; then and else are each a task and the expression of its value."""
        around, results = self._steps, []
        lists: list[tuple[Step, ...]] = []
        for task, result in ways:
            first, self._steps = len(self.table.types), []
            yield task
            lists.append(tuple(self._steps))
            results.append(self._value(result))
            if any(isinstance(leaf, FUNCTIONS) for leaf in leaves(results[-1])):
                self._hidden.update(range(first, len(self.table.types)))
        self._steps = around
        if structure(results[0]) != structure(results[1]):
            raise InvalidModelError(f"in @{self._name}, the branches of an If return different tuples")
        slot_of = partial(self._slot, device=self._devices.number(expr))
        joined = joined_value(cond, (results[0], results[1]), expr.checked_type, self.table, slot_of)
        self._values[expr] = joined.value
        if joined.outputs:
            self._steps.append(Branch(cond, lists[0], joined.true, lists[1], joined.false, joined.outputs))

    def _check_outside(self, slots: tuple[int, ...]) -> None:
        if self._hidden.intersection(slots):
            raise self._unsupported(
                "a function that is made in a branch uses what is computed there, and is called elsewhere",
                "compute it before the branch",
            )

    def _in_slots(self, device: int, expr: Expr) -> SlotValue:
        return value_as(self._value(expr), self._slots(self._value(expr), device))

    def _slots(self, value: SlotValue, device: int | None = None) -> tuple[int, ...]:
        """The slots of a value; those of constants are on the given device, else where they are planned."""
        return tuple(self._slot(leaf, device) for leaf in leaves(value))

    def _slot(self, value: Leaf, device: int | None) -> int:
        if isinstance(value, Constant):
            own = self._devices.number(value) if device is None else device
            return self.table.of_constant(value, own)
        if not isinstance(value, int):
            what = f"the function {shown(value)}" if isinstance(value, GlobalVar) else "a function"
            raise self._unsupported(f"{what} is used as a value")
        return value

    def _unsupported(self, problem: str, help_line: str = "") -> UnsupportedModelError:
        return UnsupportedModelError(
            f"in @{self._name}, {problem}; expected that calls can be resolved before the run", help=help_line
        )


def _check_arity(name: str, call: Call, function: Function) -> None:
    """See to it that a call has as many arguments as the function has parameters.

    Args:
        name: The function that the call is in.
        call: The call.
        function: The function that it calls.

    Raises:
        InvalidModelError: It has not.
    """
    if len(call.args) != len(function.params):
        raise InvalidModelError(
            f"in @{name}, {shown(call.op)} is called with {len(call.args)} arguments, "
            f"expected {len(function.params)}"
        )


def _field_of(name: str, expr: TupleGetItem, whole: SlotValue) -> SlotValue:
    """The field that an expression in function `name` takes of a tuple.

    Raises:
        InvalidModelError: There is no such field.
    """
    if not isinstance(whole, tuple) or expr.index >= len(whole):
        raise InvalidModelError(f"in @{name}, field {expr.index} is taken of {shown(expr.tuple_value)}")
    return whole[expr.index]


def _stranger(name: str, expr: Expr, devices: DeviceMap, here: int, there: int) -> InvalidModelError:
    """The error for an expression in function `name` on a device that reads a value of another one."""
    return InvalidModelError(
        f"in @{name}, {shown(expr)} is on {devices.names[here]} and reads a value that is on "
        f"{devices.names[there]}",
        help="a device_copy is missing; run PlanDevices before build",
    )
