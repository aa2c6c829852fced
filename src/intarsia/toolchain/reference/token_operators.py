"""Operators of the domain "intarsia" on the tokens of texts for onnx.reference."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


@cache
def token_operators() -> tuple[type[OpRun], ...]:
    """Return the classes, by the naming rule of the evaluator."""
    from onnx.reference.op_run import OpRun

    class token_attention(OpRun):  # type: ignore[misc]  # noqa: N801 - onnx is not typed for us; the operator's name
        op_domain = "intarsia"

        def _run(self, q: Any, *rest: Any, anchor: str = "query", **numbers: Any) -> tuple[Any]:
            from intarsia.op.token_attention_op import token_attention_value

            clears, replaces = (bool(numbers.get(name)) for name in ("clears", "replaces"))
            scale = numbers.get("scale", 1.0)
            return (
                token_attention_value(q, *rest, replaces=replaces, scale=scale, clears=clears, anchor=anchor),
            )

    class token_append(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, past: Any, new: Any, *starts: Any, **_: Any) -> tuple[Any]:
            from intarsia.op.token_append_op import token_append_value

            return (token_append_value(past, new, *starts),)

    class token_filter(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, x: Any, taps: Any, first: int = 0, step: int = 1, **_: Any) -> tuple[Any]:
            from intarsia.op.token_filter_op import token_filter_value

            return (token_filter_value(x, taps, first, step),)

    class token_pool(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, x: Any, axis: int = 0, keepdims: int = 0, mode: str = "sum", **_: Any) -> tuple[Any]:
            from intarsia.op.token_pool_op import token_pool_value

            return (token_pool_value(x, axis, keepdims == 1, mode),)

    class token_positions(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, x: Any, like: Any, mode: str = "sum", **_: Any) -> tuple[Any]:
            from intarsia.op.token_positions_op import token_positions_value

            return (token_positions_value(x, like, mode),)

    class token_window(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, x: Any, first: int = 0, count: int = 1, step: int = 1, **_: Any) -> tuple[Any]:
            from intarsia.op.token_window_op import token_window_value

            return (token_window_value(x, first, count, step),)

    return token_append, token_attention, token_filter, token_pool, token_positions, token_window
