"""Models that are damaged at random are imported and built, or refused with an error that names the node."""

from __future__ import annotations

import re
from random import Random

import pytest
from tests.model_seeds import SEEDS
from tests.mutated_models import mutated

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.support.errors import CompileError, IntarsiaError
from intarsia.target import Target
from intarsia.toolchain.registered import usable_toolchains

NAMES = tuple(SEEDS)
NOT_OF_A_NODE = re.compile(
    r"the graph's output '\w*' is produced by no node"
    r"|the model has (version|the opset|two inputs)"
    r"|the model's functions"
    r"|weight '\w*' is stored in the file"
    r"|tensor '\w*' (is no|has the shape|has \d+ bytes)"
    r"|unknown ONNX element type"
    r"|the value '\w*' has \d+ elements"
)
"""Errors of the model, of a weight, of an input or of a value, which they name."""
NATIVE_BORDER = re.compile(
    r"native cannot compile this: "
    r"(a parameter of|a constant of|parameter '\w*' has|axis \d+ of parameter '|the first axes of )"
)
"""Refusals of what a region is given, which are of no node."""


def names_the_culprit(error: IntarsiaError) -> bool:
    """Whether an error says which node is wrong; engines that refuse a program use words of their own."""
    text = str(error)
    if re.search("node '|cycle: |two nodes produce", text):  # onnx names nodes that it inserts itself
        return True
    if NOT_OF_A_NODE.match(error.problem):
        return True
    if not isinstance(error, CompileError):
        return False
    is_native = error.problem.startswith("native ")
    return not is_native or NATIVE_BORDER.match(error.problem) is not None


def check_error(error: IntarsiaError, what: str) -> None:
    assert "internal error" not in str(error).lower(), what
    assert names_the_culprit(error), f"{what}: {error}"


def imported(number: int) -> tuple[IRModule | None, str]:
    """A mutant as a program, None if the import refuses it as it should; and what it is."""
    name = NAMES[number % len(NAMES)]
    model, mutations = mutated(SEEDS[name], Random(number))
    what = f"mutant {number} of {name} by {mutations}"
    try:
        return from_onnx(model), what
    except IntarsiaError as error:
        check_error(error, what)
        return None, what


def check_builds(module: IRModule, toolchain: str, what: str) -> None:
    """Build a program for a toolchain; fail unless it works or is refused as it should be."""
    target = Target.for_toolchain(toolchain, threads=1)
    try:
        with build(partition_whole(module, target)):
            return
    except IntarsiaError as error:
        check_error(error, f"{what} for {toolchain}")


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize("name", NAMES)
def test_the_models_are_valid(name: str) -> None:
    from_onnx(SEEDS[name].model())


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(4))
def test_mutants_are_imported_or_refused(part: int) -> None:
    outcomes = [imported(number)[0] is None for number in range(part * 200, (part + 1) * 200)]
    assert 40 < sum(outcomes) < 190  # both happen


@pytest.mark.slow
def test_mutants_are_built_or_refused() -> None:
    for number in range(10_000, 10_120):
        module, what = imported(number)
        if module is not None:
            for toolchain in ("native", "reference"):
                check_builds(module, toolchain, what)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(12))
def test_many_mutants_are_built_or_refused_by_every_toolchain(part: int) -> None:
    toolchains = [toolchain.name for toolchain in usable_toolchains()]
    for number in range(20_000 + part * 250, 20_000 + (part + 1) * 250):
        module, what = imported(number)
        if module is not None:
            for toolchain in toolchains:
                check_builds(module, toolchain, what)
