"""What a kernel of attention among any number of tokens computes, and how it is recognised."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.te.op_attrs import (
    ATTENTION_ANCHOR,
    ATTENTION_CLEARS,
    ATTENTION_INPUTS,
    ATTENTION_REPLACES,
    ATTENTION_SCALE,
)
from intarsia.op.token_attention_op import APART
from intarsia.support.errors import CompileError


@dataclass(frozen=True, slots=True)
class TokenAttention:
    """Attention of each text with itself.

    Attributes:
        heads: Number of heads.
        shared_heads: Number of heads of keys and values, each for as many heads in a row.
        is_joined: Whether keys and values have those of the past in front, head by head.
        size: Number of elements of a query and of a key.
        value_size: Number of elements of a value.
        scale: Factor of the products of queries and keys.
        biases: For each bias of the scores by key its numbers of tokens and of heads; 1 if all have the same.
            With two of them the first is for keys up to the query's position, the second for later ones.
        replaces: Whether the second bias stands in place of scores; else it is added to them.
        arguments: Names of the parameters with queries, keys, values, biases, table and starts.
        params: Names of all parameters that are read, in order, each once.
        result: Name of the parameter that is written.
        clears: Whether a row without a visible key is 0.
        table: Number of heads and of columns of the table by the position of the key; None without one. Where
            it is by distances, a panel of columns is behind those that are used.
        anchor: Origin of the positions in the table (op/token_attention_op).
        starts: Number of texts that have a first position each, 1 if all have the same; None where the last
            query is at the position of the last key.
    """

    heads: int
    shared_heads: int
    is_joined: bool
    size: int
    value_size: int
    scale: float
    biases: tuple[tuple[int, int], ...]
    replaces: bool
    arguments: tuple[str, ...]
    params: tuple[str, ...]
    result: str
    clears: bool = False
    table: tuple[int, int] | None = None
    anchor: str = "query"
    starts: int | None = None

    @property
    def has_other_keys(self) -> bool:
        """Whether keys are those of other texts, token by token."""
        return self.anchor == APART

    @property
    def counts_keys(self) -> bool:
        """Whether the number of keys is another one than that of queries."""
        return self.is_joined or self.has_other_keys


def token_attention_of(dag: ComputeDAG, carrying: Collection[str]) -> TokenAttention | None:
    """Return the attention among items that a DAG for one item stands for; None if there is none.

    Args:
        dag: Computation for one item.
        carrying: Names of the placeholders that have each item.

    Raises:
        CompileError: Queries, keys or values are the same for all items, or positions may be outside a table.
    """
    op = dag.outputs[0].op
    names = op.attrs.get(ATTENTION_INPUTS)
    if not isinstance(names, tuple):
        return None
    placeholders = {tensor.op.name: tensor for tensor in dag.placeholders}
    query, key, value, *others = [placeholders[str(name)] if name else None for name in names]
    *given, table, starts = others
    biases = [bias for bias in given if bias is not None]
    assert query is not None
    assert key is not None
    assert value is not None
    if any(tensor.op.name not in carrying for tensor in (query, key, value)):
        raise CompileError("attention reads what is the same for all tokens")
    if starts is not None and table is not None and op.attrs[ATTENTION_ANCHOR] == "query":
        raise CompileError("attention has a table by distances, and a first position for each text")
    scale = op.attrs[ATTENTION_SCALE]
    assert isinstance(scale, float)
    return TokenAttention(
        query.shape[1],
        key.shape[1],
        key.shape[2] != query.shape[2],
        query.shape[3],
        value.shape[3],
        scale,
        tuple((MOST_ITEMS if bias.op.name in carrying else 1, bias.shape[1]) for bias in biases),
        op.attrs[ATTENTION_REPLACES] == 1,
        tuple(str(name) for name in names if name),
        tuple(placeholders),
        dag.outputs[0].buffer.name,
        op.attrs[ATTENTION_CLEARS] == 1,
        None if table is None else (table.shape[0], table.shape[1]),
        str(op.attrs[ATTENTION_ANCHOR]),
        None if starts is None else MOST_ITEMS if starts.op.name in carrying else 1,
    )
