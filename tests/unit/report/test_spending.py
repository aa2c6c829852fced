"""What the time of a run was spent on."""

from __future__ import annotations

from dataclasses import replace

from tests.explanations import EXPLANATION, RUN

from intarsia.report.reproduction import command
from intarsia.report.spending import SpentOn, spending


def test_measurements_by_kind() -> None:
    assert spending(RUN) == (
        SpentOn("one toolchain for the whole model", 2.0, 2, 1),
        SpentOn("the interleaved race", 2.0, 1, 0),
        SpentOn("mixes of toolchains", 1.5, 1, 0),
        SpentOn("parts of the model", 0.5, 1, 0),
    )
    assert sum(item.seconds for item in spending(RUN)) == RUN.trials[-1].at


def test_the_command_quotes_names() -> None:
    assert command(replace(RUN, model="my model")) == (
        "intarsia tune 'my model' --budget 5s --shape x=1,3 --exact"
    )
    assert command(EXPLANATION) == ""
