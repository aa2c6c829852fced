"""Reading the text form of programs: `parse_module(print_module(mod))` is structurally equal to `mod`.

Text written by hand may leave out annotations (what they say stays unknown), nest calls inside each other,
and use temporaries with names (`%y = Relu(%x);`). Names are visible from their definition to the end of
their scope, and may not be defined again there. `//` and `/* */` are comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import numpy.typing as npt

from intarsia.ir.expr import Expr
from intarsia.ir.module import IRModule
from intarsia.ir.program_builder import ProgramBuilder
from intarsia.ir.text_error import syntax_error
from intarsia.support.forks import ForkSafeLock

if TYPE_CHECKING:
    from lark import Lark

_GRAMMAR: Final = ("grammar.lark", "loop_grammar.lark")
# A lark parser is bound to its builder, which holds the program being read.
_ONE_AT_A_TIME: Final = ForkSafeLock()


def parse_module(text: str, constants: Sequence[npt.NDArray[Any]] = ()) -> IRModule:
    """The program that a text describes; `constants` are what it refers to as `meta[Constant][i]`.

    Short constants may stand in the text: `float32(0.5)`, `int64[1, -1]`.

    Raises:
        ProgramTextError: With line, column, the line itself, and what was expected there.
    """
    module = _parse("module", text, constants)
    assert isinstance(module, IRModule)
    return module


def parse_expr(text: str, constants: Sequence[npt.NDArray[Any]] = ()) -> Expr:
    """The expression that a text describes: statements, then the result. Any @name may be referred to.

    Raises:
        ProgramTextError: As parse_module.
    """
    expr = _parse("expression", text, constants)
    assert not isinstance(expr, IRModule)
    return expr


def _parse(start: str, text: str, constants: Sequence[npt.NDArray[Any]]) -> Expr | IRModule:
    from lark.exceptions import UnexpectedInput

    with _ONE_AT_A_TIME:
        parser, builder = _parser()
        builder.begin(text, tuple(constants))
        try:
            program: Expr | IRModule = parser.parse(text, start=start)
        except UnexpectedInput as error:
            raise syntax_error(text, error) from None
        finally:
            builder.begin("", ())
        return program


@cache
def _parser() -> tuple[Lark, ProgramBuilder]:
    from lark import Lark

    folder = files("intarsia.ir")
    parts = (folder.joinpath(name).read_text(encoding="utf-8") for name in _GRAMMAR)
    builder = ProgramBuilder()
    options = {"parser": "lalr", "start": ["module", "expression"], "maybe_placeholders": True}
    return Lark("\n".join(parts), transformer=builder, **options), builder
