"""A table of the features and their meanings, for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

_OPERATIONS: Final = (
    *("products that are added at once (counted in the next two, too)", "sums and differences", "products"),
    *("quotients and remainders", "comparisons, least and greatest", "mathematical functions"),
    "other functions: always 0",
)
_KINDS: Final = ("mad", "addsub", "mul", "divmod", "cmp", "math_func", "other_func")
_LOOPS: Final = (("vec", "vectorised"), ("unroll", "unrolled"), ("parallel", "parallel"))
_PLACES: Final = (
    *("None", "InnerSpatial", "MiddleSpatial", "OuterSpatial"),
    *("InnerReduce", "MiddleReduce", "OuterReduce", "Mixed"),
)

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{f"float_{kind}": f"{what}, on floats" for kind, what in zip(_KINDS, _OPERATIONS, strict=True)},
        **{f"int_{kind}": f"{what}, on integers" for kind, what in zip(_KINDS, _OPERATIONS, strict=True)},
        "bool_op": "logical operations",
        "select_op": "choices between two values",
        **{
            f"{kind}_{name}": text.format(word)
            for kind, word in _LOOPS
            for name, text in (
                ("num", "how many loops are {}"),
                ("prod", "product of the extents of the loops that are {}"),
                ("len", "extent of the innermost loop that is {}"),
                *(
                    (f"type.kPos{place}", f"1 if the innermost loop that is {{}} stands there: {place}")
                    for place in _PLACES
                ),
            )
        },
        "is_gpu": "1 if blocks and threads of a GPU are around the store",
        "blockIdx_x_len": "blocks of the grid; 1 on CPUs",
        "threadIdx_x_len": "threads of a block; 1 on CPUs",
        **{
            f"{kind}_{axis}_len": "always 1: grids and blocks have one dimension"
            for kind in ("blockIdx", "threadIdx")
            for axis in "yz"
        },
        "vthread_len": "virtual threads of a thread; 1 on CPUs",
        "B.acc_type.kRead": "1 if the buffer is read only",
        "B.acc_type.kWrite": "1 if it is written only",
        "B.acc_type.kReadWrite": "1 if it is both",
        "B.bytes": "bytes accessed, an element an iteration",
        "B.unique_bytes": "bytes of distinct elements",
        "B.lines": "lines of the cache accessed",
        "B.unique_lines": "distinct ones",
        "B.reuse_type.kLoopMultipleRead": "1 if a loop comes back to the same elements",
        "B.reuse_type.kSerialMultipleReadWrite": "1 if another statement in a loop does",
        "B.reuse_type.kNoReuse": "1 if nothing does",
        "B.reuse_dis_iter": "iterations until it comes back",
        "B.reuse_dis_bytes": "bytes touched until it comes back",
        "B.reuse_ct": "how often it comes back",
        "B.bytes_d_reuse_ct": "bytes over reuse_ct; twice the bytes without reuse, as in the next three",
        "B.unique_bytes_d_reuse_ct": "unique_bytes over reuse_ct",
        "B.lines_d_reuse_ct": "lines over reuse_ct",
        "B.unique_lines_d_reuse_ct": "unique_lines over reuse_ct",
        "B.stride": "elements from one iteration of the innermost loop to the next",
        "arith_intensity_curve": "operations on floats per byte, from the inner loops to all of them",
        "alloc_size": "bytes of the buffer that is written, 0 if the caller provides it",
        "alloc_prod": "its elements times the iterations of the loops around its allocation",
        "alloc_outer_prod": "those iterations",
        "alloc_inner_prod": "iterations of the store for each allocation",
        "outer_prod": "iterations of the store",
        "num_loops": "loops around the store",
        "auto_unroll_max_step": "the hint up to which size loops are unrolled",
        "machine_vector_fit": "used part of the lanes of a vector register",
        "machine_smooth_share": "part of the buffers that vectors read and write without gathering",
        "machine_tile_vectors": "vectors of results that are updated inside the innermost reduction",
        "machine_tile_loads": "vectors and elements that are loaded for each of them",
        "machine_tile_spill": "vectors of results above the number of registers",
        "machine_cycles_issued": "iterations, vectors counted once",
        "machine_first_traffic": "bytes that come into the first cache",
        "machine_second_traffic": "bytes that come into the second cache",
        "machine_thread_balance": "part of the threads that have work",
        "machine_thread_starts": "how often threads are given work",
    }
)
"""Meanings of features, without the number of a buffer or of a point of the curve."""


def general_name(name: str) -> str:
    """Return the key of a feature in `MEANINGS`: "B.lines" for "B3.lines"."""
    if name.startswith("arith_intensity_curve_"):
        return "arith_intensity_curve"
    buffer, dot, rest = name.partition(".")
    return f"B.{rest}" if dot and buffer[0] == "B" and buffer[1:].isdigit() else name


def feature_table(names: tuple[str, ...]) -> str:
    """Return a Markdown table of features: columns, name and meaning, in the order of the columns."""
    return "\n".join(("| columns | name | what it is |", "|---|---|---|", *_rows(names)))


def _rows(names: tuple[str, ...]) -> Iterator[str]:
    columns: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        columns.setdefault(general_name(name), []).append(column)
    for name, numbers in columns.items():
        if name == "arith_intensity_curve":
            where, shown = f"{numbers[0]}-{numbers[-1]}", f"{name}_0 .. _{len(numbers) - 1}"
        elif name.startswith("B."):
            where, shown = ", ".join(map(str, numbers)), f"B0{name[1:]} .. B{len(numbers) - 1}{name[1:]}"
        else:
            where, shown = str(numbers[0]), name
        yield f"| {where} | `{shown}` | {MEANINGS[name]} |"
