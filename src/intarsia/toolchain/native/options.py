"""Options of native's targets, announced by entry points `intarsia.target_options`."""

from __future__ import annotations

from typing import Final

from intarsia.native.machine.named_cpus import NAMED_CPUS
from intarsia.target import TargetOption
from intarsia.target.option import register_option

_OWNER: Final = ("native",)
_ALGORITHM: Final = "(auto|direct|winograd_[246])"
_FORM: Final = "form=(merged|padded|table|plain)"
_PACKING: Final = "packing=(unpacked|panels|along_sum)"
_SWITCHES: Final = "in_place=false|merge=true"
_DECISION: Final = (
    rf"[0-9a-f]{{12}}(:(lanes=(0|4|8|16)|threads=1|borders=\d+(\+\d+)*|{_FORM}|{_PACKING}|{_SWITCHES}))+"
)

LLVM_PASSES: Final = TargetOption(
    "llvm_passes",
    str,
    "what LLVM does to kernels before it generates code",
    choices=("none", "light", "O2", "O3"),
    toolchains=_OWNER,
    default="none",
)

LLVM_LEVEL: Final = TargetOption(
    "llvm_level",
    int,
    "how hard LLVM tries to generate good code",
    choices=(1, 2, 3),
    toolchains=_OWNER,
    default=1,
)


def _switch(name: str, text: str) -> TargetOption:
    """Return an optimisation that is done unless a target says `-name=false`."""
    return TargetOption(name, bool, text, toolchains=_OWNER, default=True)


BLOCKED: Final = _switch("blocked", "whether images are kept in blocks of as many channels as a vector has")
FUSED: Final = _switch("fused", "whether operators that follow each other become one kernel")
ATTENTION: Final = _switch("attention", "whether attention is one kernel that keeps its scores in a cache")
PREFETCH: Final = _switch("prefetch", "whether products ask memory for the weights that they need next")
WIDE_VECTORS: Final = _switch("wide_vectors", "whether vectors of 64 bytes are used, where the CPU has them")

MCPU: Final = TargetOption(
    "mcpu",
    str,
    "the CPU that kernels are compiled for, by LLVM's name, in place of this machine's; it may be of another "
    "architecture, and then kernels can be saved and not run here",
    choices=tuple(NAMED_CPUS),
    toolchains=_OWNER,
    is_tuned=False,
)
"""No pass decides on it: what is measured here says nothing about another CPU."""

CONVOLUTIONS: Final = TargetOption(
    "convolutions",
    str,
    "by which algorithm windows of 3 by 3 are computed, such as auto,64x56x56x64=direct: auto is by an "
    "estimate, others are direct, winograd_2, winograd_4 and winograd_6; and which for those that read "
    "64 channels of 56 by 56 and make 64",
    pattern=rf"{_ALGORITHM}(,\d+x\d+x\d+x\d+(/\d+)?(d\d+)?={_ALGORITHM})*",
    toolchains=_OWNER,
    default="auto",
    keeps_results=False,
)
"""`TuneConvolutions` decides on it."""

LIBS: Final = TargetOption(
    "libs",
    str,
    "the library that computes matrix products in native's regions, such as openblas: all products, or "
    "those of some shapes (rows, depth, columns): openblas:128x768x3072,128x3072x768",
    pattern=r"openblas(:\d+x\d+x\d+(x\d+)?(,\d+x\d+x\d+(x\d+)?)*)?",
    toolchains=_OWNER,
)
"""`TuneLibraries` decides on it."""

DECISIONS: Final = register_option(
    TargetOption(
        "decisions",
        str,
        "decisions on single kernels in place of native's rules, such as 3f9a0c11b2d4:lanes=0:threads=1, by "
        "the key of the kernel's operators: channels of a block, threads, borders of kernels, "
        "form of a grouped convolution, packing of matrices, in place, merged with the reader",
        pattern=rf"{_DECISION}(,{_DECISION})*",
        toolchains=_OWNER,
        is_tuned=False,
    )
)
"""The passes on kernels decide on it, such as `TuneChannelBlocks`. Registered here as well as announced, so
that programs with decisions are read wherever native is imported."""

WEIGHTS: Final = TargetOption(
    "weights",
    str,
    "in which type native stores large weights of matrix products with few rows; they are computed in "
    "float32 all the same",
    choices=("f32", "f16", "bf16", "int8"),
    toolchains=_OWNER,
    default="f32",
    keeps_results=False,
)
"""`TuneWeights` decides on it. Such products are memory-bound: half of the bytes take half of the time."""

MULTIPLY_IN: Final = TargetOption(
    "multiply_in",
    str,
    "the type in which convolutions and products with constant weights multiply float32; sums stay in "
    "float32, and what such operators read is stored in that type",
    choices=("float32", "bfloat16"),
    toolchains=_OWNER,
    default="float32",
    keeps_results=False,
)
"""`TunePrecision` decides on it. With instructions for bfloat16, products take half of the time."""

BATCHES: Final = TargetOption(
    "batches",
    str,
    "sizes for which native compiles a model whose batch has any size, such as 1+4+16: a batch of 6 is run "
    "as 4, 1 and 1; any: once, for code that reads the size",
    pattern=r"any|\d+(\+\d+)*",
    toolchains=_OWNER,
    is_tuned=False,
)
"""Where a target has none, `sizes_up_to` decides by the range of the batch."""

CHECKED: Final = TargetOption(
    "checked",
    bool,
    "whether computed indices that are out of range are an error; else native clamps them",
    toolchains=_OWNER,
    default=False,
    is_tuned=False,
)
"""No pass decides on it: it finds errors in data, and costs time."""

SCHEDULES: Final = TargetOption(
    "schedules", str, "digest of the schedule log with the schedules of native kernels"
)
"""Every target may carry it; the other toolchains ignore it."""
