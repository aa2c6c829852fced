"""The instruments that come with the infrastructure."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.ir_programs import add, module, var
from tests.transform_passes import add_relu, failing, first, program, second

from intarsia.ir import Call, Constant, DType, Function, IRModule, Op, TensorType
from intarsia.support.errors import UsageError, VerifyError
from intarsia.transform import (
    Pass,
    PassContext,
    Sequential,
    function_pass,
    module_pass,
)
from intarsia.transform.instrument import (
    ChangeTracking,
    DumpIR,
    PassChange,
    PassMemoryInstrument,
    PassStatistics,
    PassTimingInstrument,
    PrintAfter,
    PrintBefore,
    PrintChanged,
    StopAfter,
    VerifyAfterPass,
)


def shifted(value: float) -> IRModule:
    """A program that adds a constant of one value."""
    x = var()
    return module(x, body=add(x, Constant(np.full((2, 3), value, np.float32))))


class TestTiming:
    def test_a_tree_with_total_and_own_time(self) -> None:
        now = [0]

        def taking(name: str, cost: int) -> Pass:
            @module_pass(opt_level=0, name=name)
            def timed(mod: IRModule, ctx: PassContext) -> IRModule:
                now[0] += cost
                return mod

            return timed

        timing = PassTimingInstrument(lambda: now[0])
        short, long = taking("short", 1_000_000), taking("long", 3_000_000)
        with PassContext(instruments=[timing]):
            Sequential([short, Sequential([long], name="inner")], name="outer")(program())
            short(program())
        outer, alone = timing.runs
        assert (outer.name, outer.total, outer.own) == ("outer", 4_000_000, 0)
        assert [(run.name, run.total) for run in outer.inner] == [("short", 1_000_000), ("inner", 3_000_000)]
        assert alone.total == alone.own == 1_000_000
        assert timing.render() == (
            "pass             total          self  of all  of outer\n"
            "outer         4.000 ms      0.000 ms   80.0%     80.0%\n"
            "  short       1.000 ms      1.000 ms   20.0%     25.0%\n"
            "  inner       3.000 ms      0.000 ms   60.0%     75.0%\n"
            "    long      3.000 ms      3.000 ms   60.0%    100.0%\n"
            "short         1.000 ms      1.000 ms   20.0%     20.0%"
        )

    def test_a_pass_that_raises_is_closed_with_the_context(self) -> None:
        timing = PassTimingInstrument()
        with pytest.raises(RuntimeError), PassContext(instruments=[timing]):
            Sequential([first, failing])(program())
        assert [run.name for run in timing.runs[0].inner] == ["first", "failing"]
        assert timing.runs[0].total >= timing.runs[0].inner[1].total

    def test_nothing_ran(self) -> None:
        assert PassTimingInstrument().render() == ""


class TestPrinting:
    def test_all_passes(self) -> None:
        before: list[str] = []
        after: list[str] = []
        mod = program()
        with PassContext(instruments=[PrintBefore(write=before.append), PrintAfter(write=after.append)]):
            changed = add_relu(mod)
        assert before == [f"# before add_relu\n{mod}\n"]
        assert after == [f"# after add_relu\n{changed}\n"]

    def test_one_name_is_no_list(self) -> None:
        with pytest.raises(UsageError, match="passes is the string 'second', expected a list of pass names"):
            PrintAfter("second")

    def test_named_passes(self, capsys: pytest.CaptureFixture[str]) -> None:
        with PassContext(instruments=[PrintAfter(["second"])]):
            Sequential([first, second])(program())
        assert capsys.readouterr().out == f"# after second\n{program()}\n"


class TestDump:
    def test_files_are_numbered_and_only_changes_are_written(self, tmp_path: Path) -> None:
        folder = tmp_path / "dump"
        folder.mkdir()
        (folder / "007_old.txt").write_text("from an earlier run")
        (folder / "notes.txt").write_text("mine")
        with PassContext(instruments=[DumpIR(folder, refresh=True)]):
            Sequential([first, first, add_relu], name="a/b")(program())
        assert sorted(path.name for path in folder.iterdir()) == [
            "000_first.txt",
            "002_add_relu.txt",
            "notes.txt",
        ]
        assert (folder / "002_add_relu.txt").read_text().count("Relu") == 2


class TestVerify:
    def test_names_the_pass_that_broke_the_program(self) -> None:
        @function_pass(opt_level=0)
        def unbind(function: Function, mod: IRModule, ctx: PassContext) -> Function:
            return Function((), function.body)

        with (
            pytest.raises(VerifyError, match="broken by pass unbind"),
            PassContext(instruments=[VerifyAfterPass()]),
        ):
            Sequential([add_relu, unbind, first])(program())

    def test_types_of_operator_calls_are_checked(self) -> None:
        x = var()
        wide = TensorType((7, 7), DType.FLOAT32)

        @module_pass(opt_level=0)
        def mistypes(mod: IRModule, ctx: PassContext) -> IRModule:
            return module(x, body=Call(Op("Relu"), (x,), checked_type=wide))

        with (
            pytest.raises(VerifyError, match="annotated") as caught,
            PassContext(instruments=[VerifyAfterPass()]),
        ):
            Sequential([mistypes, first])(program())
        assert "broken by pass mistypes" in caught.value.__notes__

    def test_a_program_that_was_broken_before(self) -> None:
        function = program()["main"]
        broken = IRModule.from_expr(Function((), function.body))
        with (
            pytest.raises(VerifyError, match="before pass first"),
            PassContext(instruments=[VerifyAfterPass()]),
        ):
            first(broken)


@module_pass(opt_level=0)
def raises(mod: IRModule, ctx: PassContext) -> IRModule:
    raise ValueError("not this one")


@module_pass(opt_level=0)
def catches(mod: IRModule, ctx: PassContext) -> IRModule:
    """Tries a pass that raises, and does without it."""
    with suppress(ValueError):
        raises(mod, ctx)
    return add_relu(mod, ctx)


class TestChanges:
    def test_a_pass_inside_that_raises_and_is_caught(self) -> None:
        tracking, memory = ChangeTracking(), PassMemoryInstrument()
        mod = program()
        with PassContext(instruments=[tracking, memory]):
            after = Sequential([catches], name="all")(mod)
        found = [(item.name, item.before is mod, item.after is after) for item in tracking.changes]
        assert found == [("add_relu", True, True), ("catches", True, True), ("all", True, True)]
        assert [run.name for run in memory.runs] == ["add_relu", "catches", "all"]

    def test_a_changed_constant_is_a_change(self) -> None:
        tracking = ChangeTracking()

        @module_pass(opt_level=0)
        def double(mod: IRModule, ctx: PassContext) -> IRModule:
            return shifted(2.0)

        with PassContext(instruments=[tracking]):
            double(shifted(1.0))
        lines = tracking.changes[0].diff().splitlines()
        changed = [line for line in lines if line[0] in "+-" and "Add(" in line]
        assert [line[0] for line in changed] == ["-", "+"]
        assert "unchanged" not in str(tracking)

    def test_a_constant_that_comes_first_changes_no_other_line(self) -> None:
        x = var()
        sums = add(add(x, Constant(np.full((2, 3), 1, np.float32))), Constant(np.full((2, 3), 2, np.float32)))
        before = module(x, body=sums)
        after = module(x, body=add(Constant(np.full((2, 3), 3, np.float32)), sums))
        diff = PassChange("p", before, after, is_innermost=True).diff()
        assert [line for line in diff.splitlines() if line.startswith("-")] == [
            "--- before p",
            "-  %1",
        ]

    def test_another_program_with_the_same_text(self) -> None:
        change = PassChange("rebuild", program(), program(), is_innermost=True)
        assert str(change) == "# rebuild: another program with the same text"

    def test_each_pass_with_its_diff(self) -> None:
        tracking = ChangeTracking()
        with PassContext(instruments=[tracking]):
            Sequential([first, add_relu], name="all")(program())
        assert [(item.name, item.is_changed, item.is_innermost) for item in tracking.changes] == [
            ("first", False, True),
            ("add_relu", True, True),
            ("all", True, False),
        ]
        assert tracking.changes[0].diff() == ""
        added = [line for line in tracking.changes[1].diff().splitlines() if line.startswith("+ ")]
        assert sum("Relu" in line for line in added) >= 1
        assert str(tracking).startswith("# first: unchanged\n--- before add_relu\n+++ after add_relu\n")


class TestContextsInsidePasses:
    """Passes enter the context that they run under, and replace its instruments."""

    @staticmethod
    def re_entering() -> Pass:
        @module_pass(opt_level=0)
        def enters(mod: IRModule, ctx: PassContext) -> IRModule:
            with PassContext.current():
                return first(mod)

        return Sequential([add_relu, enters, second], name="all")

    def test_the_current_context_is_entered_again(self) -> None:
        tracking, timing, memory = ChangeTracking(), PassTimingInstrument(), PassMemoryInstrument()
        with PassContext(instruments=[tracking, timing, memory]):
            self.re_entering()(program())
        names = ["add_relu", "first", "enters", "second", "all"]
        assert [item.name for item in tracking.changes] == names
        assert [item.name for item in memory.runs] == names
        assert [run.name for run in timing.runs] == ["all"]
        assert [run.name for run in timing.runs[0].inner] == ["add_relu", "enters", "second"]

    def test_an_instrument_in_a_context_inside(self) -> None:
        tracking, timing, memory = ChangeTracking(), PassTimingInstrument(), PassMemoryInstrument()

        @module_pass(opt_level=0)
        def opens(mod: IRModule, ctx: PassContext) -> IRModule:
            with PassContext(instruments=[tracking, timing, memory]):
                return first(mod)

        with PassContext(instruments=[tracking, timing, memory]):
            Sequential([opens, second], name="all")(program())
        assert [item.name for item in tracking.changes] == ["first", "opens", "second", "all"]
        assert [item.name for item in memory.runs] == ["first", "opens", "second", "all"]
        assert [run.name for run in timing.runs[0].inner] == ["opens", "second"]

    def test_instruments_that_a_pass_replaces(self) -> None:
        tracking, timing, memory = ChangeTracking(), PassTimingInstrument(), PassMemoryInstrument()

        @module_pass(opt_level=0)
        def replaces(mod: IRModule, ctx: PassContext) -> IRModule:
            PassContext.current().override_instruments([tracking, timing, memory])
            return first(mod)

        with PassContext(instruments=[ChangeTracking(), PassTimingInstrument(), PassMemoryInstrument()]):
            Sequential([replaces, second], name="all")(program())
        assert [item.name for item in tracking.changes] == ["first", "second"]
        assert [item.name for item in memory.runs] == ["first", "second"]
        assert [run.name for run in timing.runs] == ["first", "second"]

    def test_a_context_that_a_pass_has_left_by_an_exception(self) -> None:
        tracking = ChangeTracking()

        @module_pass(opt_level=0)
        def recovers(mod: IRModule, ctx: PassContext) -> IRModule:
            with suppress(ValueError), PassContext(instruments=[tracking]):
                raises(mod)
            return mod

        with PassContext(instruments=[tracking]):
            Sequential([recovers, second], name="all")(program())
        assert [item.name for item in tracking.changes] == ["recovers", "second", "all"]
        assert [name for name, _ in tracking.raised] == ["raises"]


class TestMemory:
    def test_retained_and_peak(self) -> None:
        kept: list[bytes] = []

        @module_pass(opt_level=0)
        def keeps(mod: IRModule, ctx: PassContext) -> IRModule:
            kept.append(bytes(1 << 20))
            return mod

        @module_pass(opt_level=0)
        def borrows(mod: IRModule, ctx: PassContext) -> IRModule:
            assert bytes(4 << 20)
            return mod

        memory = PassMemoryInstrument()
        with PassContext(instruments=[memory]):
            Sequential([keeps, borrows], name="both")(program())
        found = {run.name: run for run in memory.runs}
        assert 1 << 20 <= found["keeps"].retained < 2 << 20
        freed = 4096  # what a pass itself may free meanwhile
        assert found["borrows"].retained < 1 << 20
        assert found["borrows"].peak > (4 << 20) - freed
        assert found["both"].peak > (5 << 20) - freed
        assert memory.render().count("KiB") == 6


class TestStatistics:
    def test_operators_and_constants_before_and_after(self) -> None:
        statistics = PassStatistics()

        @module_pass(opt_level=0)
        def shift(mod: IRModule, ctx: PassContext) -> IRModule:
            return shifted(1.0)

        with PassContext(instruments=[statistics]):
            Sequential([first, shift, add_relu], name="all")(program())
        runs = {run.name: run for run in statistics.runs}
        assert not runs["first"].is_changed
        assert runs["first"].change == ""
        assert runs["shift"].change == "-Relu, +Add"
        assert (runs["shift"].before.constant_bytes, runs["shift"].after.constant_bytes) == (0, 24)
        assert runs["all"].change == "+Add"
        assert [run.is_innermost for run in statistics.runs] == [True, True, True, False]


class TestStopAfter:
    def test_later_passes_do_not_run(self) -> None:
        stop, tracking = StopAfter("first"), ChangeTracking()
        with PassContext(instruments=[stop, tracking]):
            Sequential([first, add_relu], name="all")(program())
        assert stop.is_stopped
        assert [item.name for item in tracking.changes] == ["first", "all"]


def test_only_changed_programs_are_printed() -> None:
    printed: list[str] = []
    with PassContext(instruments=[PrintChanged(write=printed.append)]):
        Sequential([first, add_relu, second], name="all")(program())
    assert [text.splitlines()[0] for text in printed] == ["# after add_relu"]
