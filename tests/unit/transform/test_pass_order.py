"""Sequences whose passes do not go together are refused before anything runs."""

from __future__ import annotations

import pytest
from tests.transform_passes import named, program

from intarsia.transform import Pass, PassContext, Sequential
from intarsia.transform.pass_order import PassOrderError
from intarsia.transform.pass_registry import holding_pass


@pytest.fixture
def log() -> list[str]:
    return []


def problems(passes: list[Pass], log: list[str], ctx: PassContext | None = None) -> list[str]:
    """What the checker says, a line a problem; nothing may have run."""
    with pytest.raises(PassOrderError) as caught:
        Sequential(passes, name="mine")(program(), ctx)
    assert log == []
    first, *lines = str(caught.value).splitlines()
    assert first == "the passes of 'mine' cannot run in this order:"
    return [line.strip() for line in lines]


def test_a_required_pass_that_there_is_not(log: list[str]) -> None:
    assert problems([named("user", log, required=("Nowhere",))], log) == [
        "user requires Nowhere, which is not registered: register it, or check the name"
    ]


def test_requirements_in_a_circle(log: list[str]) -> None:
    left, right = named("left", log, required=("right",)), named("right", log, required=("left",))
    with holding_pass("left", left), holding_pass("right", right):
        assert problems([left], log) == [
            "right requires itself (left requires right requires left): remove one of the requirements"
        ]


def test_a_requirement_of_a_nested_sequence(log: list[str]) -> None:
    inner = Sequential([named("b", log)], name="inner", required=("Nowhere",))
    assert problems([named("a", log), inner], log) == [
        "inner requires Nowhere, which is not registered: register it, or check the name"
    ]


def test_a_circle_through_a_registered_sequence(log: list[str]) -> None:
    outer = Sequential([named("inner", log, required=("outer",))], name="outer")
    with holding_pass("outer", outer), pytest.raises(PassOrderError, match="outer requires inner requires o"):
        outer(program())
    with holding_pass("outer", outer):
        found = problems([named("user", log, required=("outer",))], log)
    assert found == [
        "inner requires itself (outer requires inner requires outer): remove one of the requirements"
    ]


def test_what_required_passes_ask_for(log: list[str]) -> None:
    calibrate = named("calibrate", log, after=("annotate",), conflicts=("fold",))
    inner = Sequential([calibrate], name="inner")
    with holding_pass("inner", inner):
        user = named("user", log, required=("inner",))
        assert problems([named("fold", log), user], log) == [
            "calibrate must come after annotate, which does not run: add annotate before it",
            "calibrate conflicts with fold: run one of the two, disable the other",
        ]
        Sequential([named("annotate", log), user])(program())
    assert log == ["annotate", "calibrate", "user"]


def test_a_missing_predecessor(log: list[str]) -> None:
    assert problems([named("fuse", log, after=("annotate",))], log) == [
        "fuse must come after annotate, which does not run: add annotate before it"
    ]


def test_a_predecessor_above_the_level_vetoes_nothing(log: list[str]) -> None:
    passes: list[Pass] = [named("annotate", log, opt_level=3), named("fuse", log, after=("annotate",))]
    Sequential(passes)(program())
    assert log == ["fuse"]
    Sequential(passes)(program(), PassContext(opt_level=3))
    assert log == ["fuse", "annotate", "fuse"]


def test_a_predecessor_in_a_sequence_above_the_level(log: list[str]) -> None:
    inner = Sequential([named("annotate", log)], name="inner", opt_level=3)
    Sequential([inner, named("fuse", log, after=("annotate",))])(program())
    assert log == ["fuse"]


def test_a_neighbour_above_the_level_vetoes_nothing(log: list[str]) -> None:
    passes: list[Pass] = [
        named("annotate", log, opt_level=3),
        named("fuse", log, directly_after="annotate", directly_before="realize"),
        named("realize", log, opt_level=3),
    ]
    Sequential(passes)(program())
    assert log == ["fuse"]


def test_a_predecessor_that_is_disabled(log: list[str]) -> None:
    passes: list[Pass] = [named("annotate", log), named("fuse", log, after=("annotate",))]
    assert problems(passes, log, PassContext(disabled_pass=["annotate"])) == [
        "fuse must come after annotate, which does not run: add annotate before it"
    ]
    Sequential(passes)(program())
    assert log == ["annotate", "fuse"]


def test_the_wrong_order(log: list[str]) -> None:
    assert problems([named("fuse", log, after=("annotate",)), named("annotate", log)], log) == [
        "fuse must come after annotate, but comes before it: move annotate before it"
    ]


def test_a_requirement_is_a_predecessor_too(log: list[str]) -> None:
    with holding_pass("annotate", named("annotate", log)):
        Sequential([named("fuse", log, after=("annotate",), required=("annotate",))])(program())
    assert log == ["annotate", "fuse"]


class TestQuantisation:
    """The example of the seed: annotate, calibrate and realize have to follow one another."""

    @pytest.fixture
    def passes(self, log: list[str]) -> dict[str, Pass]:
        return {
            "annotate": named("annotate", log, directly_before="calibrate"),
            "calibrate": named("calibrate", log, directly_after="annotate", directly_before="realize"),
            "realize": named("realize", log, directly_after="calibrate"),
            "other": named("other", log),
        }

    def test_in_order(self, passes: dict[str, Pass], log: list[str]) -> None:
        order = ["other", "annotate", "calibrate", "realize", "other"]
        Sequential([passes[name] for name in order])(program())
        assert log == order

    def test_across_nested_sequences(self, passes: dict[str, Pass], log: list[str]) -> None:
        inner = Sequential([passes["calibrate"], passes["realize"]])
        Sequential([passes["annotate"], inner])(program())
        assert log == ["annotate", "calibrate", "realize"]

    def test_required_passes_may_stand_between(self, passes: dict[str, Pass], log: list[str]) -> None:
        calibrate = passes["calibrate"].with_info(required=("other",))
        with holding_pass("other", passes["other"]):
            Sequential([passes["annotate"], calibrate, passes["realize"]])(program())
        assert log == ["annotate", "other", "calibrate", "realize"]

    def test_something_between(self, passes: dict[str, Pass], log: list[str]) -> None:
        order = ["annotate", "other", "calibrate", "realize"]
        assert problems([passes[name] for name in order], log) == [
            "annotate must come directly before calibrate, but other comes next: put calibrate just after it",
            "calibrate must come directly after annotate, but comes after other: put annotate just before it",
        ]

    def test_one_alone(self, passes: dict[str, Pass], log: list[str]) -> None:
        assert problems([passes["calibrate"]], log) == [
            "calibrate must come directly after annotate, but comes after nothing: "
            "put annotate just before it",
            "calibrate must come directly before realize, but nothing comes next: put realize just after it",
        ]


def test_conflicts(log: list[str]) -> None:
    passes: list[Pass] = [named("taso", log, conflicts=("simplify",)), named("simplify", log)]
    assert problems(passes, log) == ["taso conflicts with simplify: run one of the two, disable the other"]
    Sequential(passes)(program(), PassContext(disabled_pass=["simplify"]))
    assert log == ["taso"]
