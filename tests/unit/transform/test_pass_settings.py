"""Settings of contexts are plain data that is equal for equal contexts, and makes them again."""

from __future__ import annotations

from typing import Any

import pytest

from intarsia.native.tir.unroll_loop import UNROLL_LOOP, UnrollLoopConfig
from intarsia.passes.fuse_ops import MAX_DEPTH
from intarsia.support.errors import UsageError
from intarsia.transform import PassContext, PassSettings
from intarsia.transform.instrument import PassTimingInstrument


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"config": {MAX_DEPTH.key: MAX_DEPTH.default, UNROLL_LOOP.key: {}}},
        {"instruments": [PassTimingInstrument()], "record": True},
    ],
    ids=["none", "values that are the defaults", "what is no setting"],
)
def test_default_settings_have_no_text_and_no_part_in_digests(settings: dict[str, Any]) -> None:
    found = PassSettings.of(PassContext(**settings))
    assert found == PassSettings()
    assert (found.text, found.digest_parts) == ("", ())


def test_each_setting_makes_another_text() -> None:
    contexts = [
        PassContext(opt_level=1),
        PassContext(required_pass=["FuseOps"]),
        PassContext(disabled_pass=["FuseOps"]),
        PassContext(config={MAX_DEPTH.key: 3}),
        PassContext(config={UNROLL_LOOP.key: {"auto_max_step": 4}}),
    ]
    found = [PassSettings.of(context) for context in contexts]
    assert len({each.digest_parts for each in found}) == 5


def test_order_and_repetitions_do_not_matter() -> None:
    one = PassContext(
        disabled_pass=["a", "b"], config={MAX_DEPTH.key: 3, UNROLL_LOOP.key: {"auto_max_step": 4}}
    )
    config = {UNROLL_LOOP.key: UnrollLoopConfig(auto_max_step=4), MAX_DEPTH.key: 3}
    other = PassContext(disabled_pass=["b", "a", "b"], config=config)
    assert PassSettings.of(one) == PassSettings.of(other)


def test_a_text_makes_an_equal_context() -> None:
    config = {UNROLL_LOOP.key: UnrollLoopConfig(auto_max_step=4), "transform.immutable_module": True}
    ctx = PassContext(1, ["FuseOps"], ["Inline"], config)
    again = PassSettings(PassSettings.of(ctx).text).context()
    assert (again.opt_level, again.required_pass, again.disabled_pass) == (1, ("FuseOps",), ("Inline",))
    assert dict(again.config) == config
    assert again.option(UNROLL_LOOP) == config[UNROLL_LOOP.key]


def test_the_settings_in_use_are_those_of_the_innermost_context() -> None:
    assert PassSettings.current() == PassSettings()
    with PassContext(opt_level=1) as outer, PassContext(opt_level=3) as inner:
        assert PassSettings.current() == PassSettings.of(inner) != PassSettings.of(outer)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "damaged pass settings"),
        ("[1]", "damaged pass settings"),
        ('{"level": 1}', "no 'level'"),
        ('{"config": {"nobody.has": 1}}', "unknown config key 'nobody.has'"),
        ('{"config": {"tir.UnrollLoop": {"auto_max_step": "x"}}}', "expected a whole number"),
        ('{"config": {"FuseOps.max_depth": "deep"}}', "expected int"),
    ],
)
def test_other_texts_are_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        PassSettings(text).context()


class TestInnerContext:
    def test_it_has_settings_and_instruments_but_no_trace(self) -> None:
        timing = PassTimingInstrument()
        outer = PassContext(1, ["A"], ["B"], {MAX_DEPTH.key: 3}, [timing], record=True)
        inner = outer.inner(["C"])
        assert (inner.opt_level, inner.required_pass, inner.disabled_pass) == (1, ("A", "C"), ("B",))
        assert (inner.option(MAX_DEPTH), inner.instruments, inner.trace) == (3, (timing,), None)

    def test_settings_make_a_context_like_it(self) -> None:
        outer = PassContext(1, ["A"], ["B"], {MAX_DEPTH.key: 3}, [PassTimingInstrument()])
        again = PassContext(**outer.settings)
        assert PassSettings.of(again) == PassSettings.of(outer)
        assert again.instruments == outer.instruments
