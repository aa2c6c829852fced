import subprocess
import sys

import pytest

import intarsia.autoschedule as ansor
from intarsia.autoschedule.policy import tune_task


@pytest.mark.slow
def test_names_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys, intarsia.autoschedule as ansor; "
        "assert 'intarsia.autoschedule.policy' not in sys.modules; "
        "assert ansor.SketchPolicy.__module__ in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_is_there() -> None:
    assert set(ansor.__all__) <= set(dir(ansor))
    assert all(hasattr(ansor, name) for name in ansor.__all__)
    assert ansor.tune is tune_task.tune


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'sketches'"):
        _ = ansor.sketches
