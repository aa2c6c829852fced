"""Functions to blocks of a plan: main, and every global function that is called from it."""

from __future__ import annotations

from collections.abc import Iterator

from intarsia.build.device_map import device_map
from intarsia.build.kernel_table import SYMBOL, FunctionTable, is_marked, marked_target
from intarsia.build.lowering import BlockLowering
from intarsia.build.marked import without_marked
from intarsia.build.repeated import can_repeat, is_repeated
from intarsia.build.slot_value import leaf_types, slot_info, structure, tensor_info, value_like
from intarsia.build.step_order import overlapping
from intarsia.build.task import run_task
from intarsia.ir import (
    Call,
    Constant,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Op,
    TupleType,
    Type,
    Var,
    dim_ranges,
    post_order,
)
from intarsia.ir.cache import cache_of
from intarsia.ir.variant import variant_sizes
from intarsia.runtime.kernel import Array
from intarsia.runtime.plan import ExecutionPlan, PlanBlock, PlanVariant, RunKernel, TensorInfo
from intarsia.support.errors import InvalidModelError, UnsupportedModelError
from intarsia.support.free_names import numbered_names
from intarsia.target import Target

_MAIN = "main"


class ProgramLowering:
    """Lowers a module to a plan with its kernels and constants.

    Args:
        kernels: Gets the functions that are kernels; its module is the program, execution starts at @main.
        target: For code that is not marked.
        whole_control_flow: Whether the target's toolchain takes functions with an If as a whole.

    Attributes:
        devices: Device of each expression.

    Raises:
        UnsupportedModelError: The program names several devices and is not planned.
    """

    def __init__(self, kernels: FunctionTable, target: Target, whole_control_flow: bool) -> None:
        module = kernels.module
        self.devices = device_map(module)
        self.target = target
        self.kernels = kernels
        self.constants: list[Array] = []
        self._functions = {var.name: function for var, function in module.graph_functions.items()}
        self._global_names = frozenset(var.name for var in module.functions)
        self._loops = frozenset(var.name for var in module.prim_funcs)
        self._literals: dict[str, Function] = {}
        self._whole_control_flow = whole_control_flow
        self._numbers: dict[Constant, int] = {}
        self._blocks: dict[str, PlanBlock] = {}
        self._waiting: list[str] = []
        self._required: set[str] = set()
        self._names: dict[str, Iterator[str]] = {}

    def plan(self) -> ExecutionPlan:
        """The plan of the whole program."""
        main = self.function(_MAIN)
        sizes = {name: variant_sizes(function) for name, function in self._functions.items()}
        entries = {_MAIN: {}, **{name: item for name, item in sizes.items() if item}}
        for name in entries:
            self.require_block(name)
        slot_types: dict[str, tuple[TensorInfo | None, ...]] = {}
        while self._waiting:
            name = self._waiting.pop()
            block, types = self._lowered(name, self._functions[name])
            self._blocks[name] = block
            if name in entries:
                slot_types[name] = types
        leaves = sum(1 for _ in leaf_types(main.result_type))
        if leaves != len(self._blocks[_MAIN].results):
            raise UnsupportedModelError("the result type of @main is unknown", help="run InferType")
        shape = structure(value_like(main.result_type, lambda _: 0))
        for name in entries:
            self._blocks[name] = overlapping(self._blocks[name])
        return ExecutionPlan(
            self._blocks,
            _inputs(main),
            _outputs(main),
            shape,
            slot_types[_MAIN],
            self.devices.plan_names,
            dim_ranges(main),
            tuple(PlanVariant(item, name, slot_types[name]) for name, item in entries.items() if item),
            cache_of(main),
        )

    def function(self, name: str) -> Function:
        """The function that a GlobalVar stands for.

        Raises:
            InvalidModelError: There is none.
            UnsupportedModelError: It is a loop function.
        """
        if name in self._loops:
            raise UnsupportedModelError(
                f"@{name} is a loop function; loop functions need the native toolchain"
            )
        function = self._literals.get(name) or self._functions.get(name)
        if function is None:
            raise InvalidModelError(f"the program has no function @{name}")
        return function

    def repeats(self, call: Call) -> bool:
        """Whether an operator becomes a step that repeats a block; on devices it is a kernel as a whole."""
        functions = {**self._functions, **self._literals}
        return not self.devices.names and is_repeated(call, functions) and can_repeat(call)

    def require_block(self, name: str) -> None:
        """See to it that a global function gets a block."""
        if name not in self._required:
            self._required.add(name)
            self._waiting.append(name)

    def add_literal(self, prefix: str, lowered: BlockLowering) -> str:
        """Make a block of a function literal; the block's name."""
        name = self.fresh_name(f"{prefix}.fn")
        self._blocks[name] = lowered.block()
        return name

    def fresh_name(self, prefix: str) -> str:
        """A name that no function has, nor any other name given here: the prefix and a number."""
        if prefix not in self._names:
            self._names[prefix] = numbered_names(prefix, self._global_names)
        return next(self._names[prefix])

    def constant_number(self, constant: Constant) -> int:
        """The number of a constant in the plan."""
        if constant not in self._numbers:
            self._numbers[constant] = len(self.constants)
            self.constants.append(constant.data)
        return self._numbers[constant]

    def _lowered(self, name: str, function: Function) -> tuple[PlanBlock, tuple[TensorInfo | None, ...]]:
        if is_marked(function):
            label = str(function.attrs.get(SYMBOL, name))
            device = self.devices.number(function.params[0] if function.params else function)
            target = self.devices.with_threads(marked_target(function), device)
            return self._one_kernel(function, target, label, device)
        only = self.devices.only_device(function)
        if only is not None and self._is_one_region(function):
            target = self.devices.unmarked_target(function.body, self.target)
            return self._one_kernel(function, target, name, only)
        split = without_marked(function, lambda: self.fresh_name(f"{name}.marked"))
        self._literals.update(split.literals)
        if split.literals:
            extra = {GlobalVar(key, checked_type=f.checked_type): f for key, f in split.literals.items()}
            self.kernels.module = IRModule({**self.kernels.module.functions, **extra})
        lowering = BlockLowering(self, name, split.function)
        run_task(lowering.lower())
        return lowering.block(), tuple(lowering.table.types)

    def _one_kernel(
        self, function: Function, target: Target, label: str, device: int
    ) -> tuple[PlanBlock, tuple[TensorInfo | None, ...]]:
        types = [*_param_types(function), *leaf_types(function.result_type)]
        slots = tuple(range(len(types)))
        count = len(list(_param_types(function)))
        number = self.kernels.number(function, target, label, device)
        step = RunKernel(number, slots[:count], slots[count:], device)
        devices = (device,) * len(slots) if self.devices.names else ()
        block = PlanBlock(slots[:count], (), (step,), slots[count:], len(slots), devices)
        return block, tuple(map(slot_info, types))

    def _is_one_region(self, function: Function) -> bool:
        """Whether there is nothing to decide: operators only, all for one toolchain."""
        calls_operator = False
        for expr in post_order(function):
            if isinstance(expr, GlobalVar) or (isinstance(expr, Function) and is_marked(expr)):
                return False
            if isinstance(expr, If) and not (self._whole_control_flow and _gives_tensors(expr)):
                return False
            calls_operator |= isinstance(expr, Call) and isinstance(expr.op, Op)
        has_tuple = any(isinstance(param.checked_type, TupleType) for param in function.params)
        return calls_operator and not has_tuple and function.result_type is not None


def _gives_tensors(expr: If) -> bool:
    """Whether no function is chosen, which a toolchain cannot do."""
    return not any(isinstance(leaf, FuncType) for leaf in leaf_types(expr.checked_type))


def _param_types(function: Function) -> Iterator[Type | None]:
    for param in function.params:
        yield from leaf_types(param.checked_type)


def _inputs(main: Function) -> tuple[TensorInfo, ...]:
    return tuple(info for param in main.params for info in _param_infos(param))


def _param_infos(param: Var) -> Iterator[TensorInfo]:
    """One input, or one for each field of a tuple: x.0, x.1."""
    if param.checked_type is None:
        raise UnsupportedModelError(f'the type of parameter "{param.name}" is unknown', help="run InferType")
    is_tuple = isinstance(param.checked_type, TupleType)
    for index, type_ in enumerate(leaf_types(param.checked_type)):
        yield tensor_info(f"{param.name}.{index}" if is_tuple else param.name, type_)


def _outputs(main: Function) -> tuple[TensorInfo, ...]:
    types = list(leaf_types(main.result_type))
    names = main.attrs.get("output_names", ())
    if not isinstance(names, tuple) or len(names) != len(types):
        names = tuple(f"output_{index}" for index in range(len(types)))
    return tuple(tensor_info(str(name), type_) for name, type_ in zip(names, types, strict=True))
