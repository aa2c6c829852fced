"""What is done after every pass for a fact that most passes know nothing of."""

from __future__ import annotations

import pytest
from tests.ir_programs import module, relu, var

from intarsia.ir import IRModule, with_module_fields
from intarsia.support.errors import UsageError
from intarsia.transform import PassContext, PassInfo, Sequential, module_pass
from intarsia.transform.completion import COMPLETIONS


@module_pass(opt_level=0)
def noted(mod: IRModule, ctx: PassContext) -> IRModule:
    return with_module_fields(mod, attrs=mod.attrs.updated(changed=1))


@module_pass(opt_level=0, places_devices=True)
def placing(mod: IRModule, ctx: PassContext) -> IRModule:
    return with_module_fields(mod, attrs=mod.attrs.updated(changed=1))


@module_pass(opt_level=0)
def unchanged(mod: IRModule, ctx: PassContext) -> IRModule:
    return mod


def completing(before: IRModule, after: IRModule, info: PassInfo, ctx: PassContext) -> IRModule:
    count = after.attrs.get("completed", 0)
    assert isinstance(count, int)
    return with_module_fields(after, attrs=after.attrs.updated(completed=count + 1, after=info.name))


def program() -> IRModule:
    x = var()
    return module(x, body=relu(x))


def test_a_fact_is_completed_after_each_pass_that_changes_something() -> None:
    with COMPLETIONS.holding("test", completing):
        after = Sequential([noted, unchanged, Sequential([noted])])(program())
    assert dict(after.attrs) == {"after": "noted", "changed": 1, "completed": 1}


def test_a_pass_says_whether_it_places_devices() -> None:
    assert not noted.info.places_devices
    assert placing.info.places_devices
    assert placing.with_info(places_devices=False).info.places_devices is False


def test_the_answer_is_yes_or_no() -> None:
    with pytest.raises(UsageError, match="'places_devices' of pass noted is 'yes', expected True or False"):
        noted.with_info(places_devices="yes")
