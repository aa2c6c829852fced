"""What was made of a program is made once."""

from __future__ import annotations

from tests.tuning_passes import CostTable, layout, parallel, program

from intarsia.ir import IRModule
from intarsia.tune import Choice, Instruction, Trace, TuningContext
from intarsia.tune.candidates import extend_trace
from intarsia.tune.program_memo import ProgramMemo
from intarsia.tune.tune_in_turns import TuneInTurns


def test_by_identity_of_the_program_and_by_what_is_made() -> None:
    made, calls = ProgramMemo(), []

    def make(name: str) -> str:
        calls.append(name)
        return name

    one, equal = program(), program()
    assert made.get_or_make(one, "a", lambda: make("first")) == "first"
    assert made.get_or_make(one, "a", lambda: make("second")) == "first"
    assert made.get_or_make(one, "b", lambda: make("third")) == "third"
    assert made.get_or_make(equal, "a", lambda: make("fourth")) == "fourth"
    assert calls == ["first", "third", "fourth"]


def test_choices_are_applied_once_to_a_program() -> None:
    mod = program()
    fact = Instruction("fact", {"yes": Choice("decided", {"what": "fact", "value": "yes"})})
    other = Instruction("fact", {"no": Choice("decided", {"what": "fact", "value": "no"})})
    first, made = TuningContext(CostTable()), ProgramMemo()

    def after(instruction: Instruction, decision: str, ctx: TuningContext) -> IRModule:
        found = extend_trace([instruction], [decision], Trace(mod), ctx)
        assert found is not None
        return found.out_mod

    assert after(fact, "yes", first) is after(fact, "yes", first)
    assert after(fact, "yes", first) is not after(fact, "yes", TuningContext(CostTable()))
    assert after(other, "no", first).attrs["fact"] == "no"
    shared = [after(fact, "yes", TuningContext(CostTable(), made)) for _ in range(2)]
    assert shared[0] is shared[1]


def test_passes_in_turns_make_no_program_twice() -> None:
    """Each slice runs the row again, and gets the same objects."""
    table = CostTable()
    TuneInTurns((parallel(), layout()), slice_trials=1)(program(), TuningContext(table))
    distinct = {str(sorted(mod.attrs.items())) for mod in table.modules}
    assert len(table.modules) > len(distinct)
    assert len({id(mod) for mod in table.modules}) <= len(distinct)
