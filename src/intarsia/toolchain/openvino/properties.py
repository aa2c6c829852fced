"""Options of a target in OpenVINO's words, and whether a compiled model does what they say.

OpenVINO takes every value of its properties and silently does otherwise where the machine lacks something:
on a CPU without float16 instructions a float16 hint is computed in bfloat16 or float32. A compiled model
reports what it really does, so that is compared instead of a list of CPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from intarsia.native.machine.isa import Isa
from intarsia.support.errors import CompileError
from intarsia.target import TARGET_OPTIONS, OptionValue, Target
from intarsia.target.cpu import usable_cores
from intarsia.target.option import option_text

_PROPERTIES: Final[Mapping[str, tuple[str, Mapping[OptionValue | None, str]]]] = {
    "core_type": (
        "SCHEDULING_CORE_TYPE",
        {"any": "ANY_CORE", "performance": "PCORE_ONLY", "efficient": "ECORE_ONLY"},
    ),
    "hyper_threading": ("ENABLE_HYPER_THREADING", {True: "YES", False: "NO"}),
    "partitioner": ("TBB_PARTITIONER", {"static": "STATIC", "auto": "AUTO"}),
    "inference_precision": (
        "INFERENCE_PRECISION_HINT",
        {"float32": "f32", "bfloat16": "bf16", "float16": "f16"},
    ),
}
"""For options of a target OpenVINO's name, and how OpenVINO writes their values."""


def model_options(target: Target) -> dict[str, str]:
    """Return OpenVINO's properties for a target (`threads`, `inference_precision`, those of `options`).

    Raises:
        CompileError: The target has an option that OpenVINO cannot follow.
    """
    if target.option("optimize", 1) == 0:
        raise CompileError("openvino cannot switch its optimisations off", help="leave out -optimize=0")
    given = {name: _PROPERTIES[name] for name, _ in target.options if name in _PROPERTIES}
    return {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": "1",
        "INFERENCE_NUM_THREADS": str(target.option("threads", usable_cores(Path("/")))),
        "ENABLE_CPU_PINNING": "NO",
        "EXECUTION_MODE_HINT": "ACCURACY",
        "INFERENCE_PRECISION_HINT": "f32",
        **_exact_products_of_bytes(),
        **{name: values[target.option(option)] for option, (name, values) in given.items()},
    }


def _exact_products_of_bytes() -> dict[str, str]:
    """Return the property that keeps quantised models from products of bytes where these saturate.

    x86 without VNNI sums products of uint8 and int8 in 16 bits: a small network lost 10 % of its result.
    """
    return {} if Isa.host().has_int8_dot else {"LP_TRANSFORMS_MODE": "NO"}


def refuse_unmet_options(compiled: Any, target: Target, *, only_results: bool = False) -> None:
    """Refuse a compiled model that does otherwise than the options of its target say.

    Args:
        compiled: OpenVINO's `CompiledModel`.
        target: The target that it was compiled for.
        only_results: Whether options that change speed alone are let pass: a saved artifact is still right
            on a machine where they mean nothing.

    Raises:
        CompileError: An option has another value in the compiled model.
    """
    for name, wanted, actual in _unmet_options(compiled, target):
        if only_results and TARGET_OPTIONS[name].keeps_results:
            continue
        raise CompileError(
            f"openvino computes -{name}={wanted} as {actual} on this machine",
            help=f"leave out -{name}, or set it to {actual}",
        )


def _unmet_options(compiled: Any, target: Target) -> Iterator[tuple[str, str, str]]:
    for name, value in target.options:
        if name not in _PROPERTIES:
            continue
        property_name, texts = _PROPERTIES[name]
        actual = _property_text(compiled.get_property(property_name))
        if actual != texts[value]:
            values = {text: option_text(choice) for choice, text in texts.items() if choice is not None}
            yield name, option_text(value), values.get(actual, actual)


def _property_text(value: Any) -> str:
    """The value of a property in the words in which OpenVINO is given it."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if hasattr(value, "to_string"):  # an element type
        return str(value.to_string())
    return str(value).rpartition(".")[2]  # an enumeration: SchedulingCoreType.ANY_CORE
