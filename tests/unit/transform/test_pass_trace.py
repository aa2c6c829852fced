"""Passes that were applied can be applied again."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
from tests.transform_passes import AppendRelu, add_abs, program

from intarsia.ir import (
    Function,
    IRModule,
    structural_equal,
)
from intarsia.support.errors import UsageError
from intarsia.transform import (
    ApplyPassToFunction,
    ModulePass,
    PassContext,
    PassTrace,
    Sequential,
    get_pass,
    replay_trace,
)
from intarsia.transform.pass_registry import holding_pass
from intarsia.transform.replay import ReplayError


class TestTrace:
    def test_every_innermost_pass_is_recorded(self) -> None:
        with PassContext(record=True) as ctx:
            Sequential([AppendRelu(2), Sequential([AppendRelu(0)])])(program())
        assert ctx.trace is not None
        first, last = ctx.trace.applied
        assert (first.name, first.options, last.options) == ("AppendRelu", {"times": 2}, {"times": 0})
        assert first.after == last.before == last.after != first.before
        assert str(ctx.trace) == (
            f"AppendRelu{{times=2}}  -> {first.after[:12]}\nAppendRelu{{times=0}}  unchanged"
        )

    def test_replay(self) -> None:
        with holding_pass("AppendRelu", AppendRelu), PassContext(record=True) as ctx:
            after = Sequential([AppendRelu(2), AppendRelu()])(program())
            assert ctx.trace is not None
            again = replay_trace(PassTrace.from_json(ctx.trace.to_json()), program())
        assert structural_equal(again, after)

    def test_a_pass_inside_a_pass(self) -> None:
        inner = AppendRelu(2)
        with holding_pass("AppendRelu", AppendRelu), PassContext(record=True) as ctx:
            after = ApplyPassToFunction(inner, "main")(program())
            assert ctx.trace is not None
            assert [item.name for item in ctx.trace.applied] == ["ApplyPassToFunction"]
            again = replay_trace(PassTrace.from_json(ctx.trace.to_json()), program())
        assert structural_equal(again, after)

    def test_a_sequence_inside_a_pass(self) -> None:
        inner = Sequential([AppendRelu(2), Sequential([AppendRelu()])], name="inner")
        with holding_pass("AppendRelu", AppendRelu), PassContext(record=True) as ctx:
            after = ApplyPassToFunction(inner, "main")(program())
            assert ctx.trace is not None
            again = replay_trace(PassTrace.from_json(ctx.trace.to_json()), program())
        assert structural_equal(again, after)

    def test_a_set_is_a_set_again(self) -> None:
        seen: list[object] = []

        @dataclass(frozen=True)
        class WithSet(ModulePass, opt_level=0):
            names: frozenset[str] = frozenset()

            def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
                seen.append(self.names)
                return mod

        with holding_pass("WithSet", WithSet), PassContext(record=True) as ctx:
            WithSet(frozenset("ba"))(program())
            assert ctx.trace is not None
            replay_trace(PassTrace.from_json(ctx.trace.to_json()), program())
        assert seen == [frozenset("ab"), frozenset("ab")]

    def test_an_option_that_is_no_plain_data_cannot_be_replayed(self) -> None:
        @dataclass(frozen=True)
        class WithObject(ModulePass, opt_level=0):
            what: object

            def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
                return mod

        with holding_pass("WithObject", WithObject), PassContext(record=True) as ctx:
            WithObject(complex(1, 2))(program())
            assert ctx.trace is not None
            with pytest.raises(
                ReplayError, match=r"no plain data, and cannot be made again: complex \(1\+2j\)"
            ):
                replay_trace(ctx.trace, program())

    def test_a_pass_that_is_not_registered(self) -> None:
        with PassContext(record=True) as ctx:
            add_abs(program())
        assert ctx.trace is not None
        with pytest.raises(UsageError, match="pass 0 of the trace; what replays it has to register it first"):
            replay_trace(ctx.trace, program())

    def test_a_record_may_name_a_pass_with_its_options(self) -> None:
        with holding_pass("AppendRelu", AppendRelu), PassContext(record=True) as ctx:
            after = AppendRelu(2)(program())
            assert ctx.trace is not None
            (applied,) = ctx.trace.applied
            written = PassTrace((replace(applied, name="AppendRelu{times=2}", options={}),))
            assert structural_equal(replay_trace(written, program()), after)

    def test_replay_on_another_program(self) -> None:
        with holding_pass("AppendRelu", AppendRelu), PassContext(record=True) as ctx:
            AppendRelu()(program())
            assert ctx.trace is not None
            with pytest.raises(ReplayError, match=r"pass 0 \(AppendRelu\) was given another program"):
                replay_trace(ctx.trace, AppendRelu()(program()))

    def test_replay_with_a_changed_pass(self) -> None:
        class AppendTwo(AppendRelu):
            def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
                return super().transform_function(super().transform_function(function, mod, ctx), mod, ctx)

        with PassContext(record=True) as ctx:
            AppendRelu()(program())
        assert ctx.trace is not None
        with (
            holding_pass("AppendRelu", AppendTwo),
            pytest.raises(ReplayError, match=r"pass 0 \(AppendRelu\) now makes another program"),
        ):
            replay_trace(ctx.trace, program())

    @pytest.mark.slow
    def test_in_another_process(self) -> None:
        mod = add_abs(program())
        with PassContext(record=True) as ctx:
            get_pass("InferType")(mod)
        assert ctx.trace is not None
        code = (
            "import sys, json\n"
            "from intarsia.ir.parser import parse_module\n"
            "from intarsia.transform import PassTrace, replay_trace\n"
            "text, trace = json.load(sys.stdin)\n"
            "print(replay_trace(PassTrace.from_json(trace), parse_module(text)), end='')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps([str(mod), ctx.trace.to_json()]),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == str(mod)

    def test_not_a_trace(self) -> None:
        with pytest.raises(UsageError, match="not a recorded pass trace"):
            PassTrace.from_json('{"a": 1}')
