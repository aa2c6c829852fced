"""The examples in the docstrings of sketch rules are run."""

import inspect
import json
import re
import textwrap

import pytest
from tests.gpu_schedules import gpu_task
from tests.searched_programs import task_of

from intarsia.autoschedule import sketch
from intarsia.autoschedule.sketch import (
    CPU_RULES,
    GPU_RULES,
    Condition,
    SketchContext,
    SketchRule,
    gpu,
)
from intarsia.autoschedule.sketch.gpu import GPU_STRUCTURE
from intarsia.autoschedule.task import SearchTask
from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.te.op_attrs import SIMPLIFY_CONST


def task() -> SearchTask:
    a, b, k = te.placeholder((8, 64), name="A"), te.placeholder((64, 8), name="B"), te.reduce_axis(64, "k")
    attrs = {SIMPLIFY_CONST: ("i",)}
    s = te.compute((8, 64), lambda i, j: a[i, j] * 2.0, name="S", attrs=attrs)
    return task_of((a, b, te.compute((8, 8), lambda i, j: te.sum(s[i, k] * b[k, j], axis=k), name="C")))


def sections(text: str, name: str) -> list[str]:
    found = re.findall(rf"^{name}:\n((?:    .*\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(each) for each in found]


def test_the_dag_of_the_examples_is_shown() -> None:
    assert str(task().dag) in f"{inspect.getdoc(sketch)}\n"


def task_of_gpu() -> SearchTask:
    half, wide, k = DType.FLOAT16, DType.FLOAT32, te.reduce_axis(256, "k")
    a = te.placeholder((64, 256), dtype=half, name="A")
    b = te.placeholder((256, 64), dtype=half, name="B")
    s = te.compute((64, 256), lambda i, j: a[i, j] + a[i, j], name="S")
    c = te.compute(
        (64, 64), lambda i, j: te.sum(s[i, k].astype(wide) * b[k, j].astype(wide), axis=k), name="C"
    )
    return gpu_task((a, b, c))


def test_the_dag_of_the_examples_for_gpus_is_shown() -> None:
    assert str(task_of_gpu().dag) in f"{inspect.getdoc(gpu)}\n"


@pytest.mark.parametrize("rule", dict.fromkeys((*CPU_RULES, *GPU_RULES)), ids=lambda rule: rule.name)
def test_a_rule_shows_what_it_does(rule: SketchRule) -> None:
    context = SketchContext(task()) if rule in CPU_RULES else SketchContext(task_of_gpu(), GPU_STRUCTURE)
    text = f"{inspect.getdoc(type(rule))}\n"
    lines = "".join(sections(text, "Steps")).splitlines()
    before = LoopState.replay(context.task.dag, [step_from_json(json.loads(line)) for line in lines])
    (stage,) = sections(text, "Stage")
    stage_id = before.stage_id(stage.strip())
    assert rule.meets(context, before, stage_id) is not Condition.PASS
    assert [str(before)] == sections(text, "Before")
    after = [str(state) for state, _ in rule.apply(context, before, stage_id)]
    assert after == sections(text, "After")
