"""What a rule raises on an expression that it was not made for becomes an error that names the expression."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from intarsia.ir.expr import Call, Expr, Op
from intarsia.support.errors import IntarsiaError, UnsupportedModelError

HELP = (
    "onnx.checker.check_model(model, full_check=True) finds most faults of models; if onnxruntime runs this "
    "one, report what --debug prints: then it is a mistake in Intarsia"
)


def expression_name(expr: Expr) -> str:
    """Return what an error calls an expression: its operator, and its node in the user's model."""
    match expr:
        case Call(op=Op() as op):
            what = f"operator {str(op)!r}"
        case _:
            what = f"a {type(expr).__name__}"
    return what if expr.span is None else f"{what} at node {expr.span.node!r}"


@contextmanager
def named_node(expr: Expr) -> Generator[None]:
    """Add the node of an expression to an error that names none.

    Args:
        expr: Expression that the block transforms.
    """
    try:
        yield
    except IntarsiaError as error:
        _add_node(error, expr)
        raise


def _add_node(error: IntarsiaError, expr: Expr) -> None:
    if expr.span is not None and "node " not in str(error):
        operator = f" ({expr.span.operator})" if expr.span.operator else ""
        error.add_note(f"at node {expr.span.node!r}{operator}")


class NamedFailure:
    """A context that raises an error that names what a rule was applied to, in place of a foreign exception.

    Errors for people get the node as a note. Too little memory and too deep a recursion are not the
    expression's fault, and pass. A class: passes enter it at every expression, and a generator takes longer.

    Args:
        expr: Expression that it is applied to.
        doing: Operation that failed, such as "rewritten".

    Raises:
        UnsupportedModelError: The block raised what is no error for people.
    """

    __slots__ = ("doing", "expr")

    def __init__(self, expr: Expr, doing: str) -> None:
        self.expr = expr
        self.doing = doing

    def __enter__(self) -> None:
        """Do nothing: only failures cost something."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise the error for people."""
        if error is None or not isinstance(error, Exception):
            return
        if isinstance(error, IntarsiaError):
            _add_node(error, self.expr)
        elif not isinstance(error, (MemoryError, RecursionError)):
            detail = " ".join(f"{type(error).__name__}: {error}".split())
            raise UnsupportedModelError(
                f"{expression_name(self.expr)} cannot be {self.doing}: {detail[:300]}", help=HELP
            ) from error
