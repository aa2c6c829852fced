"""A pass that changes its input in place is found."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ir_programs import relu
from tests.transform_passes import AppendRelu, program

from intarsia.ir import (
    Constant,
    Function,
    IRModule,
)
from intarsia.support.errors import UsageError
from intarsia.transform import (
    ModulePass,
    PassContext,
    module_pass,
)


class TestImmutability:
    @staticmethod
    def spoiled() -> tuple[IRModule, ModulePass]:
        weights = np.ones((2, 3), np.float32)
        mod = IRModule.from_expr(Function((), relu(Constant(weights))))

        @module_pass(opt_level=0)
        def spoils(mod: IRModule, ctx: PassContext) -> IRModule:
            weights[0, 0] = 2
            return mod

        return mod, spoils

    def test_a_constant_changed_in_place_is_found(self) -> None:
        mod, spoils = self.spoiled()
        with (
            PassContext(config={"transform.immutable_module": True}),
            pytest.raises(UsageError, match="the pass changed its input in place"),
        ):
            spoils(mod)

    def test_not_looked_for_unless_asked(self) -> None:
        mod, spoils = self.spoiled()
        assert spoils(mod) is mod

    def test_a_pass_that_keeps_to_the_rules(self) -> None:
        with PassContext(config={"transform.immutable_module": True}):
            assert AppendRelu()(program()) is not None
