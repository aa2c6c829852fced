"""Branches that apply equal operators to one value, replaced by one operator whose result is split.

Shared by the passes that combine convolutions and matrix products; what the operator is, they say.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    Op,
    TensorType,
    TupleGetItem,
    children,
    post_order,
    with_children,
)
from intarsia.ir.scope import Scope, place
from intarsia.op.infer import typed
from intarsia.op.node import OUTPUTS
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.parallel.channel_arguments import Channels, ParallelStage, following_stage
from intarsia.support.errors import UsageError
from intarsia.transform import DiagnosticLevel, DiagnosticNote, PassContext


@dataclass(frozen=True, slots=True)
class ParallelOperator:
    """A heavy operator whose constant weights can be put side by side.

    Attributes:
        agreement: Key that combined calls must share, besides their first argument; None for a
            call that cannot be combined.
        outputs: Number of output channels of such a call.
        arguments: The arguments of the combined call, without the first.
        channel_axis: Axis of the channels in the result.
    """

    agreement: Callable[[Call], Hashable | None]
    outputs: Callable[[Call], int]
    arguments: Callable[[Sequence[Call]], tuple[Constant, ...]]
    channel_axis: int


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Branches to be combined.

    Attributes:
        shared: Their input.
        stages: Stages of the combined branch.
        branches: The calls of each branch, from its first to its last.
        channels: The place of each branch in the combined result.
    """

    shared: Expr
    stages: tuple[ParallelStage, ...]
    branches: tuple[tuple[Call, ...], ...]
    channels: Channels


def check_branch_count(min_num_branches: int) -> None:
    """Refuse a smallest number of branches that makes no sense.

    Raises:
        UsageError: It is below 2.
    """
    if min_num_branches < 2:
        raise UsageError(
            f"min_num_branches is {min_num_branches}, expected 2 or more", help="the field's value is 3"
        )


def combine_parallel(
    function: Function, operator: ParallelOperator, min_num_branches: int, ctx: PassContext
) -> Function:
    """Combine every group of at least that many parallel calls in one scope, on one device.

    The operators that follow are combined as well, as long as each branch continues with the same one, whose
    other arguments are constants per channel (`channel_arguments`), and nothing else uses what is between.
    As all arguments but the shared input are constants, no branch can depend on another, and no cycle arises.
    Calls in sealed functions are left alone.

    Linear in the program.
    """
    candidates = _candidates(function, operator)
    for calls in candidates.values():
        if 1 < len(calls) < min_num_branches:
            count = f"there are {len(calls)}, min_num_branches={min_num_branches}"
            text = f"is not combined with parallel calls: {count}"
            notes = [DiagnosticNote(call, "has the same input") for call in calls[1:]]
            ctx.diagnose(calls[0], DiagnosticLevel.MISSED, text, notes)
    if not any(len(calls) >= min_num_branches for calls in candidates.values()):
        return function
    users = _Users.of(function)
    groups = tuple(
        _grown(tuple(calls), operator, users)
        for together in candidates.values()
        for calls in _by_scope(together, users)
        if len(calls) >= min_num_branches
    )
    return _combined(function, groups) if groups else function


def _candidates(function: Function, operator: ParallelOperator) -> dict[Hashable, list[Call]]:
    """Calls that agree in all but their scope."""
    sealed = {node for node in post_order(function) if node is not function and is_sealed(node)}
    candidates: dict[Hashable, list[Call]] = defaultdict(list)
    for node in post_order(function, stop=sealed):
        if not isinstance(node, Call) or not node.args or isinstance(node.args[0], Constant):
            continue
        agreement = operator.agreement(node)
        devices = {arg.virtual_device for arg in node.args[1:] if isinstance(arg, Constant)}
        if agreement is not None and len(devices) == 1:
            candidates[node.args[0], agreement, node.virtual_device, *devices].append(node)
    return candidates


@dataclass(frozen=True, slots=True)
class _Users:
    """Where values are used.

    Attributes:
        last: For each expression, one that uses it.
        count: Number of uses of each expression.
        scopes: The scope that each expression is evaluated in.
    """

    last: dict[Expr, Expr]
    count: Counter[Expr]
    scopes: dict[Expr, Scope]

    @classmethod
    def of(cls, function: Function) -> _Users:
        last: dict[Expr, Expr] = {}
        count: Counter[Expr] = Counter()
        for node in post_order(function):
            for child in children(node):
                last[child] = node
                count[child] += 1
        members = place(function).members
        return cls(last, count, {expr: scope for scope, inside in members.items() for expr in inside})

    def next_call(self, call: Call) -> Call | None:
        """The only use of a call, if that is a call in the same scope on the same device."""
        user = self.last.get(call)
        if not isinstance(user, Call) or self.count[call] != 1 or OUTPUTS in user.attrs:
            return None
        is_beside = self.scopes[user] is self.scopes[call] and user.virtual_device == call.virtual_device
        return user if is_beside else None


def _by_scope(calls: Sequence[Call], users: _Users) -> Iterator[list[Call]]:
    together: dict[Scope, list[Call]] = defaultdict(list)
    for call in calls:
        together[users.scopes[call]].append(call)
    yield from together.values()


def _grown(calls: tuple[Call, ...], operator: ParallelOperator, users: _Users) -> _Group:
    """A group of calls, with what follows them equally."""
    channels = Channels(operator.channel_axis, tuple(map(operator.outputs, calls)), _rank(calls[0]))
    first = calls[0]
    stages = [ParallelStage(first.op, first.attrs, 0, operator.arguments(calls), first.span)]
    branches = [calls]
    while True:
        following = tuple(user for user in map(users.next_call, branches[-1]) if user is not None)
        stage = following_stage(branches[-1], following, channels) if len(following) == len(calls) else None
        if stage is None:
            break
        stages.append(stage)
        branches.append(following)
    return _Group(first.args[0], tuple(stages), tuple(zip(*branches, strict=True)), channels)


def _rank(call: Call) -> int | None:
    own = call.checked_type
    return len(own.shape) if isinstance(own, TensorType) and own.shape is not None else None


def _combined(function: Function, groups: Sequence[_Group]) -> Function:
    """The function in which the last call of each branch is a field of its group's Split."""
    ends = {branch[-1]: (group, i) for group in groups for i, branch in enumerate(group.branches)}
    inside = {call for group in groups for branch in group.branches for call in branch[:-1]}
    splits: dict[_Group, Expr] = {}
    done: dict[Expr, Expr] = {}
    for node in post_order(function):
        if node in inside:
            done[node] = node  # only the end of its branch uses it, which is replaced
        elif isinstance(node, Call) and node in ends:
            group, position = ends[node]
            if group not in splits:
                splits[group] = _split(group, done[group.shared])
            done[node] = TupleGetItem(
                splits[group],
                position,
                checked_type=node.checked_type,
                virtual_device=node.virtual_device,
                span=node.span,
            )
        else:
            current = with_children(node, tuple(done[child] for child in children(node)))
            done[node] = current if current is node else typed(current)
    result = done[function]
    assert isinstance(result, Function)
    return result


def _split(group: _Group, shared: Expr) -> Call:
    device, value = group.branches[0][0].virtual_device, shared
    for stage in group.stages:
        args = (*stage.others[: stage.data], value, *stage.others[stage.data :])
        value = typed(Call(stage.op, args, stage.attrs, virtual_device=device, span=stage.span))
    sizes = np.array(group.channels.sizes, np.int64)
    parts = Constant(sizes, virtual_device=device, span=value.span)
    attrs = Attrs({"axis": group.channels.axis, OUTPUTS: len(sizes)})
    split = typed(Call(Op("Split"), (value, parts), attrs, virtual_device=device, span=value.span))
    assert isinstance(split, Call)
    return split
