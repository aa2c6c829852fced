"""Every tuning pass is data: it can be written down, and made again in any process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.parallel_programs import convolutions, image
from tests.parallel_programs import program as results_of
from tests.tuning_passes import CostTable, NoteHeuristic, layout, program

from intarsia.collage.tune_device_placement import CopyCost
from intarsia.ir import structural_digest
from intarsia.passes import FoldConstant, InferType
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential, get_pass, pass_names
from intarsia.transform.pass_registry import holding_pass, registered_pass
from intarsia.transform.pass_trace import plain_options
from intarsia.transform.replay import made_pass
from intarsia.tune import (
    Choice,
    HeuristicPass,
    Instruction,
    Trace,
    TuneInTurns,
    TuningContext,
    TuningPass,
    strategy,
)
from intarsia.tune.passes import TuneCombineParallel, TuneLayout, TuneSubgraphs
from intarsia.tune.strategy import Beam, SearchLimits, Strategy

WITH_OPTIONS: dict[str, dict[str, Any]] = {
    "TuneDevicePlacement": {
        "devices": tuple(
            f'VirtualDevice(cpu:{number}, target="cpu -toolchain=reference")' for number in (0, 1)
        ),
        "copy_cost": CopyCost(1e-5, 1e-10),
    },
    "TunePrecision": {"tolerance": 1e-2},
    "TuneQuantization": {"tolerance": 1e-2, "record": '{"0":[-1.0,2.5]}'},
    "TuneWeights": {"tolerance": 1e-2},
    "TuneSubgraphs": {"passes": (Sequential([FoldConstant()], name="row"), TuneLayout(strategy=Beam(2)))},
}
"""Options of passes that cannot do without."""


def tuning_passes() -> list[str]:
    """Names of all that come with this package."""
    kinds = {name: registered_pass(name) for name in pass_names()}
    return [
        name
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, TuningPass) and kind.__module__.startswith("intarsia.")
    ]


def again(item: TuningPass) -> Pass:
    """The pass made of its data."""
    return made_pass(item.info.name, json.loads(json.dumps(plain_options(item), allow_nan=False)))


@pytest.mark.parametrize("name", tuning_passes())
def test_every_tuning_pass_is_made_again(name: str) -> None:
    item = get_pass(name, **WITH_OPTIONS.get(name, {}))
    assert isinstance(item, TuningPass)
    changed = replace(
        item,
        eval_passes=(FoldConstant(), TuneCombineParallel((TuneLayout(layouts=("NHWC",)),))),
        strategy=Beam(width=3),
        limits=SearchLimits(trials=5, seconds=2.5),
    )
    for each in (item, changed):
        assert plain_options(again(each)) == plain_options(each)
    assert "should_stop" not in str(changed)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in strategy.__all__
        if hasattr(getattr(strategy, name), "search") and name != Strategy.__name__
    ],
)
def test_every_strategy_is_made_again(name: str) -> None:
    item = TuneLayout(strategy=getattr(strategy, name)())
    assert again(item) == item


def test_passes_in_turns_are_data() -> None:
    item = TuneInTurns((TuneLayout(), FoldConstant()), SearchLimits(seconds=3.0))
    with holding_pass("TuneInTurns", TuneInTurns):
        made = made_pass("TuneInTurns", json.loads(json.dumps(plain_options(item), allow_nan=False)))
    assert isinstance(made, TuneInTurns)
    assert (made.passes, made.limits) == (item.passes, item.limits)


def test_a_tuning_pass_is_a_choice_that_replays() -> None:
    item = TuneLayout(strategy=Beam(1), layouts=("NHWC", "none"))
    x = image()
    mod = InferType()(results_of(x, *convolutions(x)))
    trace = Trace(mod)
    with TuningContext(CostTable()):
        trace.add(Instruction("tune", {"yes": Choice(item.info.name, plain_options(item))}), "yes")
        replayed = Trace.from_json(trace.to_json(), mod)
    assert "Transpose" in str(replayed.out_mod)
    assert structural_digest(replayed.out_mod) == structural_digest(trace.out_mod)


def test_a_choice_may_name_a_pass_with_its_options() -> None:
    mod, small = program(), FoldConstant(max_bytes=8)
    choice = Choice(str(small))
    assert str(choice.apply(mod)) == str(small(mod))
    assert Choice.from_json(choice.to_json()) == choice


@pytest.mark.slow
def test_transformations_of_passes_are_found_in_a_new_process() -> None:
    item = HeuristicPass(get_pass("SimplifyExpr")).choice.to_json()
    script = f"""
from tests.ir_programs import relu, var
from intarsia.ir import Function, IRModule
from intarsia.tune.choice import Choice
x = var()
mod = IRModule.from_expr(Function((x,), relu(relu(x))))
print(str(Choice.from_json({item!r}).apply(mod)).count("Relu("))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "1"


class TestHeuristicPass:
    def test_it_is_an_instruction_with_one_choice(self) -> None:
        applied = HeuristicPass(NoteHeuristic()).applied
        assert (applied.name, applied.decisions) == ("NoteHeuristic", ("Applied",))
        assert applied.apply(program(), "Applied").attrs["heuristic"] == "yes"

    @pytest.mark.parametrize(
        ("item", "message"),
        [
            (Sequential([NoteHeuristic()], name="row"), "the sequence row is no single pass"),
            (layout(), "Deciding decides by itself"),
            (TuneSubgraphs(passes=(TuneLayout(),)), "TuneSubgraphs decides by itself"),
            (TuneInTurns((layout(),)), "TuneInTurns decides by itself"),
        ],
        ids=["sequence", "tuning pass", "tuning pass of ours", "row of tuning passes"],
    )
    def test_what_is_none_is_refused(self, item: Pass, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            HeuristicPass(item)
