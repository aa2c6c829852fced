"""Sources on texts of any length: the tokens are the items that kernels are compiled for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.ir import Function, SymbolicDim, TensorType
from intarsia.native.execution.most_items import MOST_TOKENS
from intarsia.passes.batches.item_axes import ITEMS
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.tokens import MixedTokensError, TokenProgram, token_program
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.errors import CompileError, InvalidModelError
from intarsia.toolchain.native.batches.item_region import ItemRegion
from intarsia.toolchain.native.region import NativeRegion
from intarsia.toolchain.onnx_port import parse_model
from intarsia.toolchain.source_function import source_function


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A source on texts of any length.

    Attributes:
        symbol: Name of the dimension that counts tokens.
        program: The program in a form whose tokens are items.
    """

    symbol: str
    program: TokenProgram

    @property
    def program_of_one(self) -> Function:
        """The program for one token."""
        return bind_function(self.program.function, {SymbolicDim(self.symbol): 1})

    @property
    def carrying(self) -> Sequence[bool]:
        """For each parameter of the program whether it has tokens."""
        return tuple(axis is not None for axis in self.program.axes)

    @property
    def tables(self) -> Sequence[Array]:
        """Values of the last parameters, which the caller does not pass."""
        return self.program.tables

    def region_of_any(self, region: NativeRegion) -> ItemRegion:
        """Return the region for any number of tokens, given that for one of them."""
        program = self.program
        axes = program.axes[: len(program.axes) - len(program.tables)]
        return ItemRegion(axes, program.result_axes, program.most_tokens, region)


def token_source(source: KernelSource) -> TokenSource | None:
    """Return a source as one on texts of any length.

    None if no parameter has one dimension of any size behind axes of extent 1, as (1, length, 64) has.

    Raises:
        CompileError: It does more with its tokens than to compute each by itself and to attend.
    """
    if not _may_have_tokens(source):
        return None
    function = source_function(source)
    symbol = _inner_symbol(function)
    if symbol is None:
        return None
    try:
        return TokenSource(symbol, token_program(function, symbol, MOST_TOKENS))
    except (MixedTokensError, InvalidModelError) as error:
        reason = error.problem if isinstance(error, InvalidModelError) else str(error)
        refusal = CompileError(
            "native cannot compile this: it runs texts of any length token by token, but "
            + reason.replace(str(ITEMS), symbol),
            help=f"give the length a size: --shape {symbol}=128",
        )
        for note in getattr(error, "__notes__", ()):
            refusal.add_note(note)
        raise refusal from error


def _inner_symbol(function: Function) -> str | None:
    """Return the only symbolic dimension of the parameters, if it stands behind axes of extent 1."""
    symbols, axes = set[str](), set[int]()
    for param in function.params:
        type_ = param.checked_type
        dims = type_.shape if isinstance(type_, TensorType) else None
        named = [(axis, dim.name) for axis, dim in enumerate(dims or ()) if isinstance(dim, SymbolicDim)]
        if len(named) > 1 or any(extent != 1 for axis, _ in named for extent in (dims or ())[:axis]):
            return None
        symbols |= {name for _, name in named}
        axes |= {axis for axis, _ in named}
    return symbols.pop() if len(symbols) == 1 and max(axes) > 0 else None


def _may_have_tokens(source: KernelSource) -> bool:
    """Return whether a parameter has a symbolic dimension behind its first axis."""
    model = parse_model(source, "native")
    weights = {tensor.name for tensor in model.graph.initializer}
    shapes = (item.type.tensor_type.shape.dim for item in model.graph.input if item.name not in weights)
    return any(dim.dim_param for shape in shapes for dim in list(shape)[1:])
