import io
import math

import pytest

from intarsia.cli.console.progress import BarProgress, LineProgress, step_text
from intarsia.driver.progress import Progress, TuneStage
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measure_result import MeasureError

MEASURED = MeasureProgress(
    5, 2, 12, {MeasureError.CRASH: 1, MeasureError.WRONG_ANSWER: 2}, 6.75e-3, 10.0, 20.4
)


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(TuneStage.IMPORT), "importing the model"),
        (Progress(TuneStage.REFERENCE), "computing the reference result"),
        (Progress(TuneStage.RACE, 0.5), "racing the best"),
        (
            Progress(TuneStage.MEASURE, 0.5, MEASURED),
            "measuring 5 of 12, 2 known, 3 failed (crash, 2 wrong answer), best 6.75 ms, about 20 s left",
        ),
        (
            Progress(TuneStage.MEASURE, 0.0, MeasureProgress(0, 0, 2, {}, math.inf, 0, 0)),
            "measuring 0 of 2",
        ),
        (
            Progress(TuneStage.TUNE, 0.0, MeasureProgress(0, 0, 0, {}, math.inf, 0, 0)),
            "tuning the program",
        ),
    ],
)
def test_words(progress: Progress, text: str) -> None:
    assert step_text(progress) == text


def test_every_stage_has_words() -> None:
    assert len({step_text(Progress(stage)) for stage in TuneStage}) == len(TuneStage)


def test_a_line_for_each_new_step_and_every_few_seconds() -> None:
    def counted(done: int) -> Progress:
        return Progress(TuneStage.MEASURE, done / 9, MeasureProgress(done, 0, 9, {}, math.inf, 0, 1))

    stream, times = io.StringIO(), iter([100.0, 100.0, 112.34, 113.0, 118.0, 119.0, 120.0])
    show = LineProgress(stream, lambda: next(times))
    for progress in (Progress(TuneStage.IMPORT), *map(counted, (0, 1, 2, 9)), Progress(TuneStage.RACE)):
        show(progress)
    assert stream.getvalue() == (
        "[0.0s] importing the model\n[12.3s] measuring 0 of 9\n"
        "[18.0s] measuring 2 of 9, about 1 s left\n[19.0s] measuring 9 of 9\n[20.0s] racing the best\n"
    )


def test_the_bar_shows_the_step_and_goes_away() -> None:
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80)
    with BarProgress(console) as bar:
        bar(Progress(TuneStage.RACE, 0.5))
    shown = stream.getvalue()
    assert "racing the best" in shown
    assert shown.endswith("\x1b[1A\x1b[2K")  # the line it was drawn on is erased
