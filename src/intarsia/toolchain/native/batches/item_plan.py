"""The plan of a region for any number of items: of what each of its values has items.

The plan for one item has a kernel for each step. With several texts, values have an item for each token, for
each text, or for each position in a text. A kernel that reads tokens runs for each token: what it reads of
texts or of positions is copied to their tokens before, once. With a past, masks have an item for each key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Final

from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.item_kind import (
    NUMBER_OF,
    TEXTS_AND_LENGTH,
    WITH_KEYS,
    WITH_PAST,
    ItemKind,
)
from intarsia.native.graph import KernelPlan, RegionPlan, RegionValue
from intarsia.native.sizes import (
    TextLoops,
    spread_dag,
    text_loops_of,
    token_attention_of,
    token_filter_of,
)
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.errors import CompileError

if TYPE_CHECKING:
    from intarsia.toolchain.native.plan import PlannedRegion


_LONG: Final = (ItemKind.KEYS, ItemKind.JOINED)
"""Kinds of values whose memory grows with the past."""
_SPREAD: Final = (ItemKind.TEXTS, ItemKind.POSITIONS)
"""Kinds of values that can be copied to tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemPlan:
    """A plan for one item, and what its kernels need to run any number of them.

    Attributes:
        plan: The plan; calls of kernels that copy items to tokens are among its kernels.
        carrying: Names of the placeholders of each kernel's DAG that have items.
        numbers: Numbers of items that each kernel is given, in order, behind its arrays.
        long_begin: Offset in the arena from which on values have an item for each key.
    """

    plan: RegionPlan
    carrying: Mapping[ComputeDAG, frozenset[str]]
    numbers: Mapping[KernelPlan, tuple[int, ...]]
    long_begin: int


def item_plan(
    planned: PlannedRegion,
    kinds: Sequence[ItemKind | None],
    tables: int = 0,
    results: Sequence[ItemKind] | None = None,
) -> ItemPlan:
    """Return the plan of a region for any number of items.

    All that is computed has items: where nothing of an item was read, the same for all tokens.

    Args:
        planned: Plan for one item.
        kinds: Kind of the items of each parameter of the region; None if it has none.
        tables: Number of parameters, the last ones, that the caller does not pass.
        results: Kind of the items that each result has to have; tokens if not given.

    Raises:
        CompileError: The plan needs what kernels for any number of items cannot do.
    """
    plan = planned.plan
    if planned.counted or planned.checks:
        raise CompileError("kernels for any batch neither count rows nor check indices")
    if any(kernel.product is not None for kernel in plan.kernels):
        raise CompileError("kernels for any batch call no library")
    levels = _Levels(plan, dict(zip(plan.params, kinds, strict=True)))
    for kernel in plan.kernels:
        levels.add(kernel)
    expected = results or (ItemKind.TOKENS,) * len(plan.results)
    not_passed = plan.params[len(plan.params) - tables :]
    for value, kind in zip(plan.results, expected, strict=True):
        root = plan.root(value)
        if root in not_passed or levels.kind(root) is not kind:
            raise CompileError("a result is the same for all items of a batch")
    return levels.finished()


def _among_texts(
    loops: TextLoops, given: Collection[ItemKind | None]
) -> tuple[dict[str, ItemKind], ItemKind, tuple[int, ...]]:
    """Return of what a kernel between texts and tokens reads and writes items, and its numbers of items.

    Args:
        loops: Purpose of the kernel.
        given: Kinds of what it is given.
    """
    (name,) = loops.reads
    has_keys = ItemKind.KEYS in given
    of_all = ItemKind.KEYS if has_keys else ItemKind.TOKENS
    count = (NUMBER_OF[ItemKind.TEXTS], NUMBER_OF[ItemKind.JOINED]) if has_keys else TEXTS_AND_LENGTH
    match loops.mode:
        case "start":
            return {name: ItemKind.TEXTS}, ItemKind.TEXTS, TEXTS_AND_LENGTH
        case "positions":
            return {name: ItemKind.TEXTS}, ItemKind.TOKENS, TEXTS_AND_LENGTH
        case "tail":
            return {name: ItemKind.KEYS}, ItemKind.TOKENS, WITH_KEYS
        case "neighbours":
            return {name: ItemKind.TOKENS}, ItemKind.TOKENS, TEXTS_AND_LENGTH
        case "running sum":
            return {name: of_all}, of_all, count
        case _:
            return {name: of_all}, ItemKind.TEXTS, count


@dataclass(eq=False)
class _Levels:
    """The kernels so far, of what values have items, and the copies for tokens.

    Attributes:
        plan: Plan for one item.
        kinds: Kind of the items of each value with memory of its own, by its number; others have none.
    """

    plan: RegionPlan
    kinds: dict[int, ItemKind | None]
    _values: list[RegionValue] = field(init=False)
    _arena: dict[int, int] = field(init=False)
    _arena_bytes: int = field(init=False)
    _kernels: list[KernelPlan] = field(default_factory=list)
    _carrying: dict[ComputeDAG, frozenset[str]] = field(default_factory=dict)
    _numbers: dict[KernelPlan, tuple[int, ...]] = field(default_factory=dict)
    _copies: dict[int, int] = field(default_factory=dict)
    _copying: dict[str, ComputeDAG] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values, self._arena = list(self.plan.values), dict(self.plan.arena)
        self._arena_bytes = self.plan.arena_bytes

    def kind(self, root: int) -> ItemKind | None:
        """Return of what a value has items; None if it is the same for all."""
        return self.kinds.get(root)

    def finished(self) -> ItemPlan:
        """Return the plan with all kernels."""
        long_begin = self._arena_bytes
        for root in self._arena:
            if self.kind(root) in _LONG:
                self._arena[root] = self._reserved(self._values[root].size_bytes)
        plan = replace(
            self.plan,
            values=tuple(self._values),
            kernels=tuple(self._kernels),
            arena=self._arena,
            arena_bytes=self._arena_bytes,
        )
        return ItemPlan(plan, self._carrying, self._numbers, long_begin)

    def add(self, kernel: KernelPlan) -> None:
        """Add a kernel, behind the copies that it reads.

        Raises:
            CompileError: It reads what it cannot, or an equal kernel reads items in other arguments.
        """
        given = {self._input(value) for value in kernel.inputs.values()} - {None}
        texts, attention = text_loops_of(kernel.dag), token_attention_of(kernel.dag, kernel.inputs)
        kept = dict.fromkeys(kernel.inputs, ItemKind.TOKENS)
        writes: ItemKind | None = ItemKind.TOKENS
        numbers: tuple[int, ...] = TEXTS_AND_LENGTH
        if attention is not None:
            if attention.counts_keys:
                numbers = WITH_KEYS
                _, *keys = attention.arguments
                read = ItemKind.JOINED if attention.is_joined else ItemKind.KEYS
                kept |= dict.fromkeys(keys[:2], read) | dict.fromkeys(keys[2:], ItemKind.KEYS)
            if attention.starts is not None:
                kept[attention.arguments[-1]] = ItemKind.TEXTS
        elif texts is not None and texts.reads_past:
            writes, numbers = ItemKind.JOINED, WITH_PAST
            kept[texts.reads[0]] = ItemKind.PAST
            kept |= dict.fromkeys(texts.reads[2:], ItemKind.TEXTS)
        elif token_filter_of(kernel.dag) is not None:
            pass  # tokens of tokens
        elif texts is not None:
            kept, writes, numbers = _among_texts(texts, given)
        else:
            (writes,) = given if len(given) == 1 else (ItemKind.TOKENS,)
            assert writes is not None, "it was left out"
            kept, numbers = dict.fromkeys(kernel.inputs, writes), (NUMBER_OF[writes],)
        inputs = {name: self._read(value, kept[name]) for name, value in kernel.inputs.items()}
        if writes in (ItemKind.PAST, ItemKind.JOINED) and texts is None:
            raise CompileError("keys or values of the past are read by another operator than attention")
        self._append(replace(kernel, inputs=inputs), writes, numbers)

    def _input(self, value: int) -> ItemKind | None:
        return self.kind(self.plan.root(value))

    def _read(self, value: int, kind: ItemKind) -> int:
        """Return the number of a value with items of a kind, or without items."""
        root = self.plan.root(value)
        source = self.kind(root)
        if source in (None, kind):
            return value
        assert source is not None, "it has items"
        if kind is not ItemKind.TOKENS or source not in _SPREAD:
            raise CompileError(f"a kernel for {kind} reads what there is for each of {source}")
        if root not in self._copies:
            self._copies[root] = self._copied(root, source)
        return self._copies[root]

    def _copied(self, root: int, source: ItemKind) -> int:
        """Add the copy of a value for each token, and return its number."""
        value = self.plan.values[root]
        if value.order is not None:
            raise CompileError("a value with channels in blocks is read for each token")
        columns, dtype = prod(value.type.static_shape), value.type.dtype
        key = f"{columns} {dtype} {source}"
        is_behind = source is ItemKind.POSITIONS and ItemKind.PAST in self.kinds.values()
        dag = self._copying.setdefault(key, spread_dag(columns, dtype, source, is_behind_past=is_behind))
        number = len(self._values)
        self._values.append(replace(value, same_as=number, constant=None))
        self._arena[number] = self._reserved(columns * dtype.numpy.itemsize)
        (item,) = dag.placeholders
        copy = KernelPlan(dag, {item.op.name: root}, {}, (number,), f"spread {source}", is_conversion=True)
        self._append(copy, ItemKind.TOKENS, WITH_PAST if is_behind else TEXTS_AND_LENGTH)
        return number

    def _reserved(self, size: int) -> int:
        """Return the offset of memory that is added to the arena."""
        begin = self._arena_bytes
        self._arena_bytes += -(-size // ALIGNMENT) * ALIGNMENT
        return begin

    def _append(self, kernel: KernelPlan, kind: ItemKind | None, numbers: tuple[int, ...]) -> None:
        kinds = self.kinds
        names = frozenset(
            name
            for name, value in kernel.inputs.items()
            if kinds.get(self._values[value].same_as) is not None
        )
        if self._carrying.setdefault(kernel.dag, names) != names:
            raise CompileError("two equal kernels read different parameters without a batch")
        self._kernels.append(kernel)
        self._numbers[kernel] = numbers
        for value in kernel.outputs:
            kinds[self._values[value].same_as] = kind
