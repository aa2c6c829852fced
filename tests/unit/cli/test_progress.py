import io

import pytest

from intarsia.cli.progress import BarProgress, LineProgress, step_text
from intarsia.tune.records import Progress, Stage


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(Stage.IMPORT), "importing the model"),
        (Progress(Stage.COMPILE, "openvino"), "compiling openvino"),
        (Progress(Stage.REFERENCE), "computing the reference result"),
        (Progress(Stage.VERIFY, "openvino"), "verifying openvino"),
        (Progress(Stage.MEASURE, "", 0.5), "measuring"),
    ],
)
def test_words(progress: Progress, text: str) -> None:
    assert step_text(progress) == text


def test_every_stage_has_words() -> None:
    assert len({step_text(Progress(stage)) for stage in Stage}) == len(Stage)


def test_a_line_for_each_new_step() -> None:
    stream, times = io.StringIO(), iter([100.0, 100.0, 112.34, 113.0])
    show = LineProgress(stream, lambda: next(times))
    for progress in (
        Progress(Stage.IMPORT),
        Progress(Stage.MEASURE, "", 0.1),
        Progress(Stage.MEASURE, "", 0.2),
        Progress(Stage.COMPILE, "openvino"),
    ):
        show(progress)
    assert stream.getvalue() == (
        "[0.0s] importing the model\n[12.3s] measuring\n[13.0s] compiling openvino\n"
    )


def test_the_bar_shows_the_step_and_goes_away() -> None:
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80)
    with BarProgress(console) as bar:
        bar(Progress(Stage.VERIFY, "open[vino]", 0.5))
    shown = stream.getvalue()
    assert "verifying open[vino]" in shown
    assert shown.endswith("\x1b[1A\x1b[2K")  # the line it was drawn on is erased
