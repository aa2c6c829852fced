"""The convolutions of an artifact as a table."""

from __future__ import annotations

from pathlib import Path

from intarsia.cli.arguments.trust import TRUSTED, Trust
from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table
from intarsia.driver.convolution_layers import measure_convolution_layers
from intarsia.support.units import error_text

_HEADERS = ("rows x columns", "channels", "made", "count", "algorithm", "error", "of direct sums")


def layers_report(path: Path, trust: Trust = TRUSTED) -> Report:
    """Report the algorithms of an artifact's 3x3 convolutions, with measured errors.

    Raises:
        ArtifactError: The artifact cannot be read.
        IntarsiaError: A layer cannot be built here.
    """
    with trust.load(path) as executable:
        layers = measure_convolution_layers(executable.kernels)
    rows = []
    for layer in layers:
        read, height, width, outputs = layer.shape.split("x")
        errors = error_text(layer.error), error_text(layer.direct_error)
        rows.append((f"{height} x {width}", read, outputs, str(layer.count), layer.algorithm, *errors))
    data = {"convolutions": [layer.to_json() for layer in layers]}
    if not rows:
        return Report(data, ("native computes no convolution of 3 by 3 here",))
    table = Table(_HEADERS, tuple(rows), numeric=frozenset(range(len(_HEADERS))) - {4})
    return Report(
        data, ("convolutions of 3 by 3, and their largest errors relative to the largest result", table)
    )
