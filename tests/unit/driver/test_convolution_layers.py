"""What an executable says about its convolutions, with errors that are measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from intarsia.build import build
from intarsia.cli.reports.layers_report import layers_report
from intarsia.cli.reports.table import Table
from intarsia.driver.convolution_layers import measure_convolution_layers
from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.passes import PartitionWhole

NATIVE = "cpu -toolchain=native"


def program() -> IRModule:
    """Two convolutions of one shape, and one of a smaller image."""
    generator = np.random.default_rng(0)
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 32, 24, 24), np.float32)))
    found: Expr = x
    for made in (32, 32, 16):
        weight = Constant((generator.standard_normal((made, 32, 3, 3)) / 17).astype("f4"))
        found = call("Relu", call("Conv", found, weight, pads=(1, 1, 1, 1)))
    return IRModule.from_expr(Function((x,), found))


LARGE, LAST = "32x24x24x32", "32x24x24x16"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "algorithms"),
    [
        ("", ["winograd_4", "winograd_4"]),
        (" -convolutions=direct", ["direct", "direct"]),
        (f" -convolutions=direct,{LAST}=winograd_2", ["direct", "winograd_2"]),
    ],
    ids=["by estimate", "exact", "with an exception"],
)
def test_layers_by_algorithm(options: str, algorithms: list[str]) -> None:
    with build(PartitionWhole(NATIVE + options)(program())) as executable:
        found = measure_convolution_layers(executable.kernels)
    assert [(each.shape, each.count) for each in found] == [(LARGE, 2), (LAST, 1)]
    assert [each.algorithm for each in found] == algorithms
    for each in found:
        assert 0 < each.direct_error < 2e-6
        assert each.error == each.direct_error if each.algorithm == "direct" else 0 < each.error < 5e-6


def test_other_toolchains_have_none() -> None:
    with build(PartitionWhole("cpu -toolchain=reference")(program())) as executable:
        assert measure_convolution_layers(executable.kernels) == ()


@pytest.mark.slow
def test_report_of_an_artifact(tmp_path: Path) -> None:
    with build(PartitionWhole(NATIVE)(program())) as executable:
        executable.save(tmp_path / "model.intarsia")
    report = layers_report(tmp_path / "model.intarsia")
    table = report.blocks[1]
    assert isinstance(table, Table)
    assert [row[:5] for row in table.rows] == [
        ("24 x 24", "32", "32", "2", "winograd_4"),
        ("24 x 24", "32", "16", "1", "winograd_4"),
    ]
    assert json.loads(json.dumps(report.document))["convolutions"][0]["algorithm"] == "winograd_4"


def test_an_artifact_without_such_convolutions(tmp_path: Path) -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((2, 3), np.float32)))
    module = IRModule.from_expr(Function((x,), call("Relu", x)))
    with build(PartitionWhole(NATIVE)(module)) as executable:
        executable.save(tmp_path / "model.intarsia")
    assert layers_report(tmp_path / "model.intarsia").blocks == (
        "native computes no convolution of 3 by 3 here",
    )
