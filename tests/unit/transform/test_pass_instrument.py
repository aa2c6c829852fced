"""The scenarios of the seed and of upstream's tests for instruments."""

from __future__ import annotations

import pytest
from tests.transform_passes import add_relu, failing, first, program, second

from intarsia.ir import IRModule
from intarsia.transform import (
    PassContext,
    PassInfo,
    PassInstrument,
    Sequential,
    pass_instrument,
    register_pass,
)
from intarsia.transform.pass_registry import holding_pass


class Recorder(PassInstrument):
    """Writes down every call; may raise in one hook, or refuse passes."""

    def __init__(
        self, log: list[str], tag: str = "", raises: str = "", refuses: tuple[str, ...] = ()
    ) -> None:
        self.log, self.tag, self.raises, self.refuses = log, tag, raises, refuses

    def _note(self, hook: str) -> None:
        self.log.append(f"{self.tag}{hook}")
        if hook.split(maxsplit=1)[0] == self.raises:
            raise RuntimeError(f"{self.tag}{hook} fails")

    def enter_pass_ctx(self) -> None:
        self._note("enter")

    def exit_pass_ctx(self) -> None:
        self._note("exit")

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        self._note(f"should_run {info.name}")
        return info.name not in self.refuses

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._note(f"before {info.name}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._note(f"after {info.name}")


def test_call_sequence() -> None:
    log: list[str] = []
    with PassContext(instruments=[Recorder(log)]):
        log.append("in")
        first(program())
        second(program())
        log.append("out")
    assert log == [
        "enter",
        "in",
        *("should_run first", "before first", "after first"),
        *("should_run second", "before second", "after second"),
        "out",
        "exit",
    ]


def test_call_sequence_with_nested_passes() -> None:
    log: list[str] = []
    with PassContext(instruments=[Recorder(log)]):
        Sequential([first, Sequential([second], name="inner")], name="outer")(program())
    assert log == [
        "enter",
        *("should_run outer", "before outer"),
        *("should_run first", "before first", "after first"),
        *("should_run inner", "before inner"),
        *("should_run second", "before second", "after second"),
        *("after inner", "after outer"),
        "exit",
    ]


def test_call_sequence_of_several_instruments() -> None:
    log: list[str] = []
    with PassContext(instruments=[Recorder(log, "a "), Recorder(log, "b ")]):
        first(program())
    assert log == [
        *("a enter", "b enter"),
        *("a should_run first", "b should_run first"),
        *("a before first", "b before first"),
        *("a after first", "b after first"),
        *("a exit", "b exit"),
    ]


def test_a_refused_pass_does_not_run_and_its_input_comes_back() -> None:
    log: list[str] = []
    mod = program()
    with PassContext(instruments=[Recorder(log, refuses=("failing",))]):
        assert failing(mod) is mod
    assert log == ["enter", "should_run failing", "exit"]


def test_every_should_run_is_asked_and_one_no_is_enough() -> None:
    log: list[str] = []
    refusing = Recorder(log, "a ", refuses=("add_relu",))
    mod = program()
    with PassContext(instruments=[refusing, Recorder(log, "b ")]):
        assert add_relu(mod) is mod
        assert first(mod) is mod
    assert log[2:4] == ["a should_run add_relu", "b should_run add_relu"]
    assert "a before add_relu" not in log
    assert "b before first" in log


def test_required_passes_are_not_asked() -> None:
    log: list[str] = []
    with PassContext(required_pass=["add_relu"], instruments=[Recorder(log, refuses=("add_relu",))]):
        assert add_relu(program()) is not None
    assert log == ["enter", "before add_relu", "after add_relu", "exit"]


def test_an_instrument_may_be_a_decorated_class_with_some_hooks() -> None:
    @pass_instrument
    class Count:
        def __init__(self, start: int) -> None:
            self.count = start

        def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
            self.count += 1

    counter = Count(10)
    assert isinstance(counter, PassInstrument)
    with PassContext(instruments=[counter]):
        Sequential([first, second])(program())
    assert counter.count == 13  # the sequence is a pass too


def test_decorating_an_instrument_changes_nothing() -> None:
    assert pass_instrument(Recorder) is Recorder


def test_an_exception_on_entering_leaves_those_entered_in_reverse_order() -> None:
    log: list[str] = []
    tags = [
        Recorder(log, "a "),
        Recorder(log, "b "),
        Recorder(log, "c ", raises="enter"),
        Recorder(log, "d "),
    ]
    ctx = PassContext(instruments=tags)
    outer = PassContext.current()
    with pytest.raises(RuntimeError, match="c enter fails"), ctx:
        pytest.fail("the context must not be entered")
    assert log == ["a enter", "b enter", "c enter", "b exit", "a exit"]
    assert PassContext.current() is outer
    assert ctx.instruments == ()


def test_an_exception_on_entering_a_nested_context_leaves_the_outer_one_alone() -> None:
    log: list[str] = []
    with PassContext(instruments=[Recorder(log, "outer ")]) as outer:
        with pytest.raises(RuntimeError), PassContext(instruments=[Recorder(log, "inner ", raises="enter")]):
            pytest.fail("the context must not be entered")
        assert PassContext.current() is outer
        first(program())
    assert log[:2] == ["outer enter", "inner enter"]
    assert log[-1] == "outer exit"


def test_an_exception_on_entering_the_default_context() -> None:
    log: list[str] = []
    ctx = PassContext.current()
    with pytest.raises(RuntimeError, match="b enter fails"):
        ctx.override_instruments([Recorder(log, "a "), Recorder(log, "b ", raises="enter")])
    assert log == ["a enter", "b enter", "a exit"]
    assert ctx.instruments == ()


def test_an_exception_on_exiting_skips_the_later_ones() -> None:
    log: list[str] = []
    tags = [Recorder(log, "a "), Recorder(log, "b ", raises="exit"), Recorder(log, "c ")]
    ctx = PassContext(instruments=tags)
    outer = PassContext.current()
    with pytest.raises(RuntimeError, match="b exit fails"), ctx:
        pass
    assert log == ["a enter", "b enter", "c enter", "a exit", "b exit"]
    assert ctx.instruments == ()
    assert PassContext.current() is outer


def test_an_exception_on_exiting_the_default_context() -> None:
    log: list[str] = []
    ctx = PassContext.current()
    ctx.override_instruments([Recorder(log, "a ", raises="exit"), Recorder(log, "b ")])
    with pytest.raises(RuntimeError, match="a exit fails"):
        ctx.override_instruments([Recorder(log, "c ")])
    assert log == ["a enter", "b enter", "a exit"]
    assert ctx.instruments == ()


def test_an_exception_in_a_pass_exits_every_instrument() -> None:
    log: list[str] = []
    with (
        pytest.raises(RuntimeError, match="the pass fails"),
        PassContext(instruments=[Recorder(log, "a "), Recorder(log, "b ")]),
    ):
        failing(program())
    assert log[-4:] == ["a before failing", "b before failing", "a exit", "b exit"]


@pytest.mark.parametrize(
    ("hook", "called"),
    [
        ("should_run", ["a should_run first"]),
        ("before", ["a should_run first", "b should_run first", "a before first"]),
        (
            "after",
            [
                *("a should_run first", "b should_run first"),
                *("a before first", "b before first", "a after first"),
            ],
        ),
    ],
)
def test_an_exception_in_a_hook_goes_up_at_once_and_exits_every_instrument(
    hook: str, called: list[str]
) -> None:
    log: list[str] = []
    with (
        pytest.raises(RuntimeError, match=f"a {hook} first fails"),
        PassContext(instruments=[Recorder(log, "a ", raises=hook), Recorder(log, "b ")]),
    ):
        first(program())
    assert log == ["a enter", "b enter", *called, "a exit", "b exit"]


def test_overriding_instruments_exits_the_old_and_enters_the_new() -> None:
    log: list[str] = []
    with PassContext(instruments=[Recorder(log, "old ")]) as ctx:
        ctx.override_instruments([Recorder(log, "new ")])
        first(program())
    assert log == [
        *("old enter", "old exit", "new enter"),
        *("new should_run first", "new before first", "new after first"),
        "new exit",
    ]


def test_overriding_instruments_of_the_default_context() -> None:
    log: list[str] = []
    ctx = PassContext.current()
    ctx.override_instruments([Recorder(log)])
    first(program())
    ctx.override_instruments([])
    first(program())
    assert log == ["enter", "should_run first", "before first", "after first", "exit"]


def test_required_passes_of_a_sequence_are_seen_by_instruments() -> None:
    log: list[str] = []
    with holding_pass("first", first), PassContext(instruments=[Recorder(log)]):
        Sequential([second.with_info(required=("first",))])(program())
    assert [entry for entry in log if entry.startswith("before")] == [
        "before sequential",
        "before first",
        "before second",
    ]


def test_registering_the_same_pass_twice_is_harmless() -> None:
    with holding_pass("first", first):
        assert register_pass(first) is first
