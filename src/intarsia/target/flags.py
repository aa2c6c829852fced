"""How engines do what they do: options of a target that change speed and never what is computed.

What an engine does by itself unless it is told otherwise is the default. Left out are options with effects
beyond the kernel that has them: pinning of threads and flushing of denormals, which engines set for threads
that they share with others, and caches on disk. So are those with which nothing was ever faster: memory
patterns and parallel branches of onnxruntime (another pool of threads), throughput hints of OpenVINO.
"""

from __future__ import annotations

from typing import Final

from intarsia.target.option import OptionValue, TargetOption, register_option


def _flag(name: str, toolchain: str, text: str, default: OptionValue, *choices: OptionValue) -> TargetOption:
    return register_option(
        TargetOption(name, type(default), text, choices=choices, toolchains=(toolchain,), default=default)
    )


FLAGS: Final = (
    _flag(
        "graph_level",
        "onnxruntime",
        "which of its graph optimisations onnxruntime does, each with those before it",
        "all",
        *("basic", "extended", "layout", "all"),
    ),
    _flag("spinning", "onnxruntime", "whether threads wait busily within a run", True),
    _flag("memory_arena", "onnxruntime", "whether memory is kept for later runs", True),
    _flag("prepacking", "onnxruntime", "whether weights are packed when a session is made", True),
    _flag(
        "dynamic_blocks",
        "onnxruntime",
        "pieces of decreasing size that the work of each thread is cut into; 0: of equal size",
        0,
        *(0, 4),
    ),
    _flag(
        "core_type",
        "openvino",
        "on which cores OpenVINO runs, where they are of two kinds",
        "any",
        *("any", "performance", "efficient"),
    ),
    _flag("hyper_threading", "openvino", "whether both threads of a core are used", False),
    _flag(
        "partitioner",
        "openvino",
        "how OpenVINO divides loops among its threads",
        "static",
        *("static", "auto"),
    ),
    _flag(
        "llvm_passes",
        "native",
        "what LLVM does to kernels before it generates code",
        "none",
        *("none", "light", "O2", "O3"),
    ),
    _flag("llvm_level", "native", "how hard LLVM tries to generate good code", 1, 1, 2, 3),
    _flag("blocked", "native", "whether images are kept in blocks of as many channels as a vector has", True),
    _flag("fused", "native", "whether operators that follow each other become one kernel", True),
    _flag("attention", "native", "whether attention is one kernel that keeps its scores in a cache", True),
    _flag("prefetch", "native", "whether products ask memory for the weights that they need next", True),
    _flag("wide_vectors", "native", "whether vectors of 64 bytes are used, where the CPU has them", True),
)
"""Each belongs to one toolchain."""

INFERENCE_PRECISION: Final = register_option(
    TargetOption(
        "inference_precision",
        str,
        "the type in which float32 is multiplied, where the CPU has instructions for it",
        choices=("float32", "bfloat16", "float16"),
        toolchains=("openvino",),
        default="float32",
        keeps_results=False,
    )
)

_ALGORITHM: Final = "(auto|direct|winograd_[246])"

CONVOLUTIONS: Final = register_option(
    TargetOption(
        "convolutions",
        str,
        "by which algorithm windows of 3 by 3 are computed, such as auto,64x56x56x64=direct: auto is by an "
        "estimate, others are direct, winograd_2, winograd_4 and winograd_6; and which for those that read "
        "64 channels of 56 by 56 and make 64",
        pattern=rf"{_ALGORITHM}(,\d+x\d+x\d+x\d+={_ALGORITHM})*",
        toolchains=("native",),
        default="auto",
        keeps_results=False,
    )
)
"""TuneConvolutions decides on it."""

WEIGHTS: Final = register_option(
    TargetOption(
        "weights",
        str,
        "in which type native stores large weights of matrix products with few rows; they are computed in "
        "float32 all the same",
        choices=("f32", "f16", "bf16", "int8"),
        toolchains=("native",),
        default="f32",
        keeps_results=False,
    )
)
"""Such products wait for memory: half of the bytes take half of the time."""

CHECKED: Final = register_option(
    TargetOption(
        "checked",
        bool,
        "whether computed indices that are out of range are an error; else native clamps them",
        toolchains=("native",),
        default=False,
        is_tuned=False,
    )
)
"""No pass decides on it: it finds errors in data, and costs time."""

COMPILED: Final = register_option(
    TargetOption(
        "compiled",
        bool,
        "whether torch.compile makes one program of the operators; it needs a minute and a C++ compiler",
        toolchains=("torch",),
        default=False,
        is_tuned=False,
    )
)
"""No pass decides on it: making it takes longer than most tunings."""
