"""Contexts nest, are private to threads and tasks, and check their options."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.transform_passes import AppendRelu, add_abs

from intarsia.support.errors import UsageError
from intarsia.transform import (
    PassContext,
    register_config_option,
)
from intarsia.transform.immutable_module import IMMUTABLE_MODULE
from intarsia.transform.instrument import PassInstrument, PassTimingInstrument


class TestContext:
    def test_the_innermost_is_current(self) -> None:
        default = PassContext.current()
        assert default.opt_level == 2
        with PassContext(opt_level=3) as outer:
            assert PassContext.current() is outer
            with PassContext() as inner:
                assert PassContext.current() is inner
            assert PassContext.current() is outer
        assert PassContext.current() is default

    def test_one_context_can_be_entered_twice(self) -> None:
        ctx = PassContext()
        with ctx:
            with ctx:
                assert PassContext.current() is ctx
            assert PassContext.current() is ctx
        assert PassContext.current() is not ctx

    def test_instruments_are_entered_once_by_a_context_that_is_entered_twice(self) -> None:
        log: list[str] = []

        class Notes(PassInstrument):
            def enter_pass_ctx(self) -> None:
                log.append("enter")

            def exit_pass_ctx(self) -> None:
                log.append("exit")

        with PassContext(instruments=[Notes()]) as ctx:
            with ctx:
                pass
            log.append("left")
        assert log == ["enter", "left", "exit"]

    def test_a_context_left_out_of_order(self) -> None:
        default, outer, inner = PassContext.current(), PassContext(), PassContext()
        outer.__enter__()
        inner.__enter__()
        with pytest.raises(UsageError, match="left before one that was entered inside it"):
            outer.__exit__(None, None, None)
        assert PassContext.current() is inner
        inner.__exit__(None, None, None)
        assert PassContext.current() is default

    def test_a_context_left_that_was_not_entered(self) -> None:
        with pytest.raises(UsageError, match="was not entered in this thread or task") as caught:
            PassContext().__exit__(None, None, None)
        assert caught.value.help.startswith("write `with PassContext(...):`")

    def test_threads_have_their_own(self) -> None:
        seen: list[int] = []
        with PassContext(opt_level=3):
            thread = threading.Thread(target=lambda: seen.append(PassContext.current().opt_level))
            thread.start()
            thread.join()
        assert seen == [2]

    def test_tasks_have_their_own(self) -> None:
        async def level(wanted: int) -> int:
            with PassContext(opt_level=wanted):
                await asyncio.sleep(0)
                found = PassContext.current().opt_level
                await asyncio.sleep(0)
            return found

        async def several() -> list[int]:
            return await asyncio.gather(*(level(wanted) for wanted in range(8)))

        assert asyncio.run(several()) == list(range(8))

    def test_names_are_a_list(self) -> None:
        with pytest.raises(UsageError, match="disabled_pass is the string 'FuseOps', expected a list"):
            PassContext(disabled_pass="FuseOps")

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"opt_level": "2"}, "opt_level is '2', expected a whole number"),
            ({"required_pass": 3}, "required_pass is of type int, expected a list of pass names"),
            ({"disabled_pass": [add_abs]}, "disabled_pass has a add_abs in it, expected the names of passes"),
            ({"disabled_pass": [AppendRelu]}, "disabled_pass has the class AppendRelu in it"),
            ({"config": ["test.steps"]}, "config is a list, expected a dict"),
            ({"instruments": PassTimingInstrument()}, "type PassTimingInstrument, expected a list"),
            ({"instruments": [PassTimingInstrument]}, "the class PassTimingInstrument, expected an instance"),
            ({"instruments": [object()]}, "entry of type object, which is no instrument"),
        ],
    )
    def test_settings_of_the_wrong_type(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            PassContext(**settings)

    def test_a_wrong_list_of_instruments_leaves_those_in_use(self) -> None:
        watch = PassTimingInstrument()
        ctx = PassContext(instruments=[watch])
        with pytest.raises(UsageError, match="expected an instance"):
            ctx.override_instruments([PassTimingInstrument])  # type: ignore[list-item]  # the mistake
        assert ctx.instruments == (watch,)


@dataclass(frozen=True)
class UnrollOptions:
    steps: int = 1
    ratio: float = 1.0
    names: tuple[str, ...] = ()


STEPS = register_config_option("test.steps", int, 7, "how many")
OPTIONS = register_config_option("test.options", UnrollOptions, UnrollOptions(), "a group")
RATIO = register_config_option("test.ratio", float, 0.5, "a ratio")


class TestConfig:
    def test_a_value_or_the_default(self) -> None:
        assert PassContext().option(STEPS) == 7
        assert PassContext(config={"test.steps": 3}).option(STEPS) == 3

    def test_numbers_of_numpy_and_dicts_are_converted(self) -> None:
        ctx = PassContext(config={"test.steps": np.int64(4), "test.options": {"steps": 2}, "test.ratio": 1})
        assert (type(ctx.option(STEPS)), ctx.option(STEPS)) == (int, 4)
        assert ctx.option(OPTIONS) == UnrollOptions(2)
        assert (type(ctx.option(RATIO)), ctx.option(RATIO)) == (float, 1.0)

    def test_an_unknown_key_lists_all(self) -> None:
        with pytest.raises(UsageError, match=r"unknown config key 'test.step'") as caught:
            PassContext(config={"test.step": 1})
        assert caught.value.help.startswith("the keys are: ")
        assert "test.steps" in caught.value.help

    @pytest.mark.parametrize("value", [None, "3", 3.5, True])
    def test_a_value_of_another_type(self, value: object) -> None:
        with pytest.raises(UsageError, match=r"config key 'test.steps' has the value .*, expected int"):
            PassContext(config={"test.steps": value})

    def test_an_unknown_field_of_a_group(self) -> None:
        with pytest.raises(UsageError, match=r"config key 'test.options' has no field 'step'") as caught:
            PassContext(config={"test.options": {"step": 1}})
        assert caught.value.help == "its fields: names, ratio, steps"

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ({"steps": "three"}, "field 'steps' is 'three', expected a whole number"),
            ({"steps": True}, "field 'steps' is True, expected a whole number"),
            ({"steps": None}, "field 'steps' is None, expected a whole number"),
            ({"ratio": "1"}, "field 'ratio' is '1', expected a number"),
            ({"names": "abc"}, "field 'names' is 'abc', expected a list"),
            (UnrollOptions(steps="three"), "field 'steps' is 'three'"),  # type: ignore[arg-type]  # the mistake
        ],
    )
    def test_a_field_of_another_type(self, value: object, message: str) -> None:
        with pytest.raises(UsageError, match=f"config key 'test.options': {message}") as caught:
            PassContext(config={"test.options": value})
        assert caught.value.help == "a group"

    def test_fields_are_converted_as_values_are(self) -> None:
        given = {"steps": np.int64(3), "ratio": 2, "names": ["a"]}
        options = PassContext(config={"test.options": given}).option(OPTIONS)
        assert options == UnrollOptions(3, 2.0, ("a",))
        assert (type(options.steps), type(options.ratio)) == (int, float)

    def test_every_key_is_listed(self) -> None:
        keys = {option.key: option for option in PassContext.list_configs()}
        assert keys["test.steps"].type is int
        assert keys[IMMUTABLE_MODULE.key].default is False

    def test_the_same_key_twice(self) -> None:
        assert register_config_option("test.steps", int, 7, "how many") is STEPS
        with pytest.raises(UsageError, match=r"config key 'test.steps' is already registered"):
            register_config_option("test.steps", int, 8, "how many")

    def test_a_default_of_another_type(self) -> None:
        with pytest.raises(UsageError, match=r"'test.wrong' has the value 'no' of str, expected int"):
            register_config_option("test.wrong", int, "no", "wrong")
        assert "test.wrong" not in [option.key for option in PassContext.list_configs()]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "code",
        [
            "PassContext(config={'FuseOps.max_depth': 3})",
            "assert 'FuseOps.max_depth' in [option.key for option in PassContext.list_configs()]",
        ],
    )
    def test_keys_of_passes_that_are_not_imported_yet(self, code: str) -> None:
        program = f"from intarsia.transform import PassContext\n{code}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_short_form_has_what_differs_from_the_defaults() -> None:
    assert repr(PassContext()) == "PassContext(opt_level=2)"
    context = PassContext(
        3, disabled_pass=["FoldConstant"], instruments=[PassTimingInstrument()], record=True
    )
    assert repr(context) == (
        "PassContext(opt_level=3, disabled_pass=['FoldConstant'], instruments=[PassTimingInstrument], "
        "record=True)"
    )
