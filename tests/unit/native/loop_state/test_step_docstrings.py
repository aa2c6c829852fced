"""The examples in the docstrings of steps are run."""

import inspect
import json
import re
import textwrap

from tests.each_case import each_case

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState, steps
from intarsia.native.loop_state.step_json import step_from_json


def rows() -> ComputeDAG:
    a, k = te.placeholder((8, 6), name="A"), te.reduce_axis(6, "k")
    b = te.compute((8, 6), lambda i, j: a[i, j] * 2, name="B")
    return ComputeDAG((a, te.compute((8,), lambda i: te.sum(b[i, k], axis=k), name="C")))


def section(text: str, name: str) -> str:
    found = re.search(rf"^{name}:\n((?:    .*\n)+)", text, re.MULTILINE)
    assert found is not None, f"there is no section {name}"
    return textwrap.dedent(found[1])


def test_the_dag_of_the_examples_is_shown() -> None:
    assert str(rows()) in inspect.getdoc(steps) + "\n"  # type: ignore[operator]  # the package has a docstring


@each_case("code", steps.STEPS)
def test_a_step_shows_what_it_does(code: str) -> None:
    text = f"{inspect.getdoc(steps.STEPS[code])}\n"
    history = [step_from_json(json.loads(line)) for line in section(text, "Steps").splitlines()]
    assert history[-1].code == code
    before = LoopState.replay(rows(), history[:-1])
    assert str(before) == section(text, "Before")
    assert str(before.apply(history[-1])) == section(text, "After")
