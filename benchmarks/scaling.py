"""Growth of the time of algorithms on the IR: a chain of 10,000 calls against one of 100,000.

Linear growth is a ratio of 10; the goal is below 13. Both lengths are timed interleaved (A B A B), medians
are compared. Usage: python -m benchmarks.scaling [--json] [--rounds N]
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from intarsia.ir import (
    Function,
    IRModule,
    TensorType,
    Var,
    post_order,
    rewrite,
    structural_digest,
    structural_equal,
)
from intarsia.ir.dtype import DType
from intarsia.ir.expr import Call, Expr, Op, with_fields
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.op import infer_types, verify

SHORT, LONG, GOAL = 10_000, 100_000, 13.0


@dataclass(frozen=True)
class Row:
    """Growth of one algorithm: medians in seconds, ratios of 100k to 10k."""

    algorithm: str
    seconds_10k: float
    seconds_100k: float
    ratio: float
    lowest: float
    highest: float


def chain(length: int, *, typed: bool = True) -> IRModule:
    type_ = TensorType((8, 8), DType.FLOAT32)
    x = Var("x", checked_type=type_)
    expr: Expr = x
    for position in range(length):
        name = "Relu" if position % 2 else "Neg"
        expr = Call(Op(name), (expr,), checked_type=type_ if typed else None)
    return IRModule.from_expr(Function((x,), expr))


def swap(expr: Expr) -> Expr:
    if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "Neg":
        return with_fields(expr, op=Op("Abs"))
    return expr


def workloads(module: IRModule) -> dict[str, Callable[[], object]]:
    main = module["main"]
    length = sum(isinstance(expr, Call) for expr in post_order(main))
    other, untyped = chain(length), chain(length, typed=False)
    text = print_module(module).text
    return {
        "post_order": lambda: sum(1 for _ in post_order(main)),
        "rewrite": lambda: rewrite(main, swap),
        "structural_digest": lambda: structural_digest(module),
        "structural_equal": lambda: structural_equal(module, other),
        "print": lambda: print_module(module),
        "parse": lambda: parse_module(text),
        "infer_types": lambda: infer_types(untyped),
        "verify": lambda: verify(module),
    }


def time_call(function: Callable[[], object]) -> float:
    """Time one run; objects that exist before it are hidden from the garbage collector."""
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    short, long = workloads(chain(SHORT)), workloads(chain(LONG))
    rows = []
    for name in short:
        pairs = [(time_call(short[name]), time_call(long[name])) for _ in range(options.rounds)]
        ratios = sorted(b / a for a, b in pairs)
        a, b = (statistics.median(item[i] for item in pairs) for i in (0, 1))
        rows.append(Row(name, a, b, statistics.median(ratios), ratios[0], ratios[-1]))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'algorithm':18} {'10k, s':>8} {'100k, s':>8} {'ratio':>6}  range          goal < {GOAL:.0f}")
    for row in rows:
        print(
            f"{row.algorithm:18} {row.seconds_10k:8.3f} {row.seconds_100k:8.3f} {row.ratio:6.1f}  "
            f"{row.lowest:.1f} to {row.highest:.1f}"
        )


if __name__ == "__main__":
    main()
