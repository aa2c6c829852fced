"""How the time of every registered pass grows: programs of 2,000 calls against programs of 20,000.

Linear growth is a ratio of 10; the goal is below 13. Four programs: a network of the operators that passes
rewrite, a chain of elementwise operators, a chain of lets, and many global functions. Both sizes are timed
interleaved (A B A B), each run on a fresh copy of the program without cached results; medians are compared.

Times are CPU times of this process. Python's garbage collector is off while a pass runs, unless --gc is
given: full collections start at a size between the two, so that with them a linear pass grows by up to 15.
Finally a sequence of 100 passes that do nothing is timed on the large network: the goal is below 5 ms.

Usage: python -m benchmarks.passes [--json] [--rounds N] [--gc] [--pass NAME]... [--program NAME]...
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from intarsia.ir import (
    NO_ATTRS,
    Attrs,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Let,
    Op,
    TensorType,
    Var,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.ir.pattern import is_constant, is_op, wildcard
from intarsia.op import call
from intarsia.op.pattern_table import CompositePattern, holding_pattern_table
from intarsia.support.errors import IntarsiaError
from intarsia.transform import FunctionPass, Pass, PassContext, Sequential, get_pass, pass_names

SHORT, LONG, GOAL, NO_OP_GOAL_MS = 2_000, 20_000, 13.0, 5.0

ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "AnnotateTarget": {"toolchains": ("openvino", "onnxruntime")},
    "ConvertLayout": {"layout": "NHWC"},
    "MergeComposite": {"toolchain": "reference"},
    "PartitionWhole": {"target": "cpu -toolchain=onnxruntime"},
}
"""Options of passes that need them, or would have nothing to do without them."""

PREPARED_BY: Mapping[str, tuple[str, ...]] = {
    "DefuseOps": ("FuseOps",),
    "MergeCompilerRegions": ("AnnotateTarget",),
    "PartitionGraph": ("AnnotateTarget", "MergeCompilerRegions"),
    "ToGraphNormalForm": ("ToANormalForm",),
}
"""Passes to run first, besides the required ones, so that a pass has something to do."""

LEFT_OUT = ("ApplyPassToFunction", "CollagePartition")
"""Passes that are not timed: the first only applies another pass, the second searches."""

PATTERNS = (
    CompositePattern("conv_relu", is_op("Relu")(is_op("Conv")(wildcard(), is_constant()))),
    CompositePattern("relu_neg", is_op("Neg")(is_op("Relu")(wildcard()))),
)
"""Patterns for MergeComposite."""


@dataclass(frozen=True)
class Row:
    """A pass on a program.

    Attributes:
        name: Name of the pass.
        program: Name of the program.
        ms_2k: Median milliseconds per 1,000 calls of the program of 2,000 calls.
        ms_20k: Median milliseconds per 1,000 calls of the program of 20,000 calls.
        ratio: Median ratio of the time of the larger program to that of the smaller one.
        lowest: Lowest ratio of all rounds.
        highest: Highest ratio of all rounds.
        problem: Error because of which the pass was not measured, or "".
    """

    name: str
    program: str
    ms_2k: float = 0.0
    ms_20k: float = 0.0
    ratio: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0
    problem: str = ""


def weight(*shape: int) -> Constant:
    return Constant(np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32) * 0.1)


def ints(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


def network(calls: int) -> IRModule:
    """Return blocks of convolutions, normalizations, pairs of inverse reshapes, and parallel branches."""
    image = TensorType((1, 8, 4, 4), DType.FLOAT32)
    x = Var("x", checked_type=image)
    count, expr = 0, call("Relu", x)
    while count < calls:
        expr, added = block(expr)
        count += added
    return IRModule.from_expr(Function((x,), expr))


def block(x: Expr) -> tuple[Call, int]:
    """Return one block, and its number of calls."""
    channels = [weight(8) for _ in range(3)]
    body = call("Conv", x, weight(8, 8, 1, 1))
    body = call("BatchNormalization", body, *channels, Constant(np.ones(8, np.float32)))
    body = call("Identity", call("Relu", body))
    body = call("Conv", call("Mul", body, weight(8, 1, 1)), weight(8, 8, 1, 1))
    body = call("Mul", body, weight(8, 1, 1))
    body = call("Transpose", call("Transpose", body, perm=(0, 2, 3, 1)), perm=(0, 3, 1, 2))
    body = call("Add", call("Mul", body, Constant(np.ones((), np.float32))), call("Neg", weight(8, 1, 1)))
    branches = [call("Relu", call("Conv", body, weight(8, 8, 1, 1))) for _ in range(3)]
    body = call("Add", call("Add", branches[0], branches[1]), branches[2])
    body = call("Add", call("Tanh", body), call("Tanh", body))
    rows = call("Reshape", call("Reshape", body, ints(1, 128)), ints(8, 16))
    products = [call("MatMul", rows, weight(16, 16)) for _ in range(3)]
    rows = call("Sum", *products)
    rows = call("Gemm", rows, weight(16, 16), weight(16), alpha=0.5)
    body = call("Dropout", call("Reshape", rows, ints(1, 8, 4, 4)))
    return call("Add", body, x), 29


def elementwise(calls: int) -> IRModule:
    """Return a chain of unary operators and additions of a constant."""
    type_ = TensorType((8, 8), DType.FLOAT32)
    x = Var("x", checked_type=type_)
    constant = weight(8, 8)
    expr: Expr = x
    for position in range(calls):
        args = (expr, constant) if position % 4 == 2 else (expr,)
        expr = Call(Op(("Relu", "Neg", "Add", "Tanh")[position % 4]), args, checked_type=type_)
    return IRModule.from_expr(Function((x,), expr))


def lets(calls: int) -> IRModule:
    """Return a chain of lets, one for each call; every other one is unused."""
    type_ = TensorType((4,), DType.FLOAT32)
    x = Var("x", checked_type=type_)
    variables = [Var(f"v{position}", checked_type=type_) for position in range(calls)]
    values: list[Call] = []
    last = x
    for position, variable in enumerate(variables):
        values.append(Call(Op("Relu" if position % 3 else "Neg"), (last,), checked_type=type_))
        last = variable if position % 2 else last
    expr: Expr = last
    for variable, value in zip(reversed(variables), reversed(values), strict=True):
        expr = Let(variable, value, expr, checked_type=type_)
    return IRModule.from_expr(Function((x,), expr))


def functions(calls: int) -> IRModule:
    """Return functions of four calls; @main calls every other one of them, and function literals."""
    type_ = TensorType((4,), DType.FLOAT32)
    x = Var("x", checked_type=type_)
    new_functions: dict[GlobalVar, Function] = {}
    expr: Expr = x
    for position in range(calls // 5):
        p = Var("p", checked_type=type_)
        inner = call("Relu", call("Neg", call("Tanh", p)))
        attrs = Attrs({"Inline": 1}) if position % 4 == 1 else NO_ATTRS
        function = Function((p,), call("Add", inner, p), attrs=attrs)
        variable = GlobalVar(f"f{position}", checked_type=function.checked_type)
        new_functions[variable] = function
        if position % 2:
            expr = Call(variable, (expr,), checked_type=type_)
        else:
            expr = Call(Function((p,), call("Abs", p)), (expr,), checked_type=type_)
    main = Function((x,), expr)
    return IRModule({GlobalVar("main", checked_type=main.checked_type): main, **new_functions})


PROGRAMS: Mapping[str, Callable[[int], IRModule]] = {
    "network": network,
    "elementwise": elementwise,
    "lets": lets,
    "functions": functions,
}


def calls_in(mod: IRModule) -> int:
    return sum(
        isinstance(expr, Call) for function in mod.graph_functions.values() for expr in post_order(function)
    )


def copied(mod: IRModule) -> IRModule:
    """Copy a module with new expressions, so that no cached result of an earlier run applies."""
    new: dict[Expr, Expr] = {}
    for function in mod.graph_functions.values():
        for expr in post_order(function):
            if isinstance(expr, GlobalVar):
                new[expr] = expr
            else:
                changed = with_children(expr, tuple(new[child] for child in children(expr)))
                changed = with_fields(changed, checked_type=expr.checked_type)
                new[expr] = replace(expr) if changed is expr else changed
    return IRModule({var: new.get(function, function) for var, function in mod.functions.items()}, mod.attrs)  # type: ignore[arg-type, misc]  # a copy has the class of its original


def make_pass(name: str) -> Pass:
    return get_pass(name, **ARGUMENTS.get(name, {}))


def prepare(item: Pass, mod: IRModule) -> IRModule:
    """Run the passes that a pass needs before it."""
    for name in (*PREPARED_BY.get(item.info.name, ()), *item.info.required):
        mod = make_pass(name)(prepare(make_pass(name), mod))
    return mod


def time_pass(function: Callable[[IRModule], object], mod: IRModule, *, collect: bool = False) -> float:
    """Time one run, with or without the garbage collector; objects that exist before are frozen."""
    mod = copied(mod)
    gc.collect()
    gc.freeze()
    if not collect:
        gc.disable()
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):  # PrintIR writes
        function(mod)
    after = time.process_time()
    gc.enable()
    return after - start


def measure(name: str, program: str, sizes: tuple[IRModule, IRModule], rounds: int, collect: bool) -> Row:
    try:
        item = make_pass(name)
        short, long = (prepare(item, mod) for mod in sizes)
        pairs = [[time_pass(item, mod, collect=collect) for mod in (short, long)] for _ in range(rounds)]
    except IntarsiaError as error:
        return Row(name, program, problem=error.problem)
    ratios = sorted(b / a for a, b in pairs)
    a, b = (statistics.median(pair[i] for pair in pairs) * 1e6 / calls_in(sizes[i]) for i in (0, 1))
    return Row(name, program, a, b, statistics.median(ratios), ratios[0], ratios[-1])


class Nothing(FunctionPass, opt_level=0):
    """A pass that returns each function unchanged."""

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:  # noqa: ARG002
        """Return the function."""
        return function


def measure_no_ops(mod: IRModule, rounds: int) -> float:
    """Time a sequence of 100 function passes that change nothing, in milliseconds."""
    sequence = Sequential([Nothing()] * 100)
    return statistics.median(time_pass(sequence, mod) for _ in range(rounds)) * 1e3


def format_row(row: Row) -> str:
    if row.problem:
        return f"{row.name:24} {row.program:12} {row.problem}"
    mark = "" if row.ratio < GOAL else "  above the goal"
    return (
        f"{row.name:24} {row.program:12} {row.ms_2k:9.2f} {row.ms_20k:9.2f} {row.ratio:6.1f}  "
        f"{row.lowest:.1f} to {row.highest:.1f}{mark}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gc", action="store_true", help="leave the garbage collector on")
    parser.add_argument("--pass", action="append", default=[], dest="names", metavar="NAME")
    parser.add_argument("--program", action="append", default=[], choices=list(PROGRAMS), metavar="NAME")
    options = parser.parse_args()
    names = options.names or [name for name in pass_names() if name not in LEFT_OUT]
    rows = []
    if not options.json:
        head = ("pass", "program", "2k, ms", "20k, ms", "ratio")
        print("{:24} {:12} {:>9} {:>9} {:>6}  range, goal < {:.0f}".format(*head, GOAL))
    for program in options.program or PROGRAMS:
        sizes = (PROGRAMS[program](SHORT), PROGRAMS[program](LONG))
        for name in names:
            with holding_pattern_table("reference", PATTERNS):
                rows.append(measure(name, program, sizes, options.rounds, options.gc))
            if not options.json:
                print(format_row(rows[-1]), flush=True)
    idle = measure_no_ops(network(LONG), options.rounds)
    if options.json:
        print(json.dumps({"passes": [asdict(row) for row in rows], "no_op_sequence_ms": idle}, indent=2))
    else:
        note = f"100 passes that do nothing: {idle:.2f} ms (goal < {NO_OP_GOAL_MS:.0f})"
        print(f"\nms are per 1,000 calls. {note}")


if __name__ == "__main__":
    main()
