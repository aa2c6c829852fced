"""What people get wrong when they write an instrument."""

from __future__ import annotations

import pytest
from tests.transform_passes import add_abs, program

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import PassContext, PassInfo, PassInstrument, pass_instrument


def test_a_class_without_a_hook_is_no_instrument() -> None:
    with pytest.raises(UsageError, match="class Misspelt has none of the hooks") as caught:

        @pass_instrument
        class Misspelt:
            def run_afterpass(self, mod: IRModule, info: PassInfo) -> None:
                raise AssertionError("nobody calls it")

    assert "run_after_pass" in caught.value.help


def test_an_answer_that_is_none_is_an_error() -> None:
    @pass_instrument
    class Forgets:
        def should_run(self, mod: IRModule, info: PassInfo) -> None:
            pass

    with (
        pytest.raises(UsageError, match="should_run returned None, expected True or False") as caught,
        PassContext(instruments=[Forgets()]),  # type: ignore[list-item]  # made one by the decorator
    ):
        add_abs(program())
    assert caught.value.__notes__ == ["in should_run of Forgets, for pass add_abs"]


@pytest.mark.parametrize("hook", ["should_run", "run_before_pass", "run_after_pass"])
def test_an_exception_says_which_hook_it_comes_from(hook: str) -> None:
    def fail(_: object, mod: IRModule, info: PassInfo) -> None:
        raise RuntimeError("the hook fails")

    fails = type("Fails", (PassInstrument,), {hook: fail})
    with pytest.raises(RuntimeError, match="the hook fails") as caught, PassContext(instruments=[fails()]):
        add_abs(program())
    assert caught.value.__notes__ == [f"in {hook} of Fails, for pass add_abs"]
