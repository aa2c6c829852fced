"""The convolutions of an artifact as a table."""

from __future__ import annotations

from pathlib import Path

from intarsia.cli.arguments.trust import TRUSTED, Trust
from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table
from intarsia.cli.reports.units import error_text
from intarsia.driver.convolution_layers import measure_convolution_layers

_HEADERS = ("rows x columns", "channels", "made", "count", "algorithm", "error", "of direct sums")


def layers_report(path: Path, trust: Trust = TRUSTED) -> Report:
    """By which algorithm an artifact computes convolutions of 3 by 3, with measured errors.

    Raises:
        ArtifactError: It cannot be read.
        IntarsiaError: A layer cannot be built here.
    """
    with trust.load(path) as executable:
        layers = measure_convolution_layers(executable.kernels)
    rows = []
    for each in layers:
        read, height, width, made = each.shape.split("x")
        errors = error_text(each.error), error_text(each.direct_error)
        rows.append((f"{height} x {width}", read, made, str(each.count), each.algorithm, *errors))
    data = {"convolutions": [each.to_json() for each in layers]}
    if not rows:
        return Report(data, ("native computes no convolution of 3 by 3 here",))
    table = Table(_HEADERS, tuple(rows), numeric=frozenset(range(len(_HEADERS))) - {4})
    return Report(
        data, ("convolutions of 3 by 3, and their largest errors relative to the largest result", table)
    )
