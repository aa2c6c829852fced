import pytest

from intarsia.autoschedule.policy import PolicyOptions, TuningOptions
from intarsia.support.errors import UsageError


def test_defaults_are_the_fields_but_for_the_population() -> None:
    options = PolicyOptions()
    assert (options.eps_greedy, options.retry_search_one_round_on_empty) == (0.05, 1)
    assert (options.sample_init_min_population, options.sample_init_use_measured_ratio) == (50, 0.2)
    assert options.evolutionary_search_num_iters == 4
    assert options.evolutionary_search_mutation_prob == 0.85
    assert TuningOptions().num_measures_per_round == 64
    assert TuningOptions().num_measure_trials == 0


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("eps_greedy", 1.5, "option eps_greedy is 1.5; expected 0 to 1"),
        ("descent_share", -0.1, "option descent_share is -0.1; expected 0 to 1"),
        ("draft_share", float("nan"), "option draft_share is nan; expected 0 to 1"),
        (
            "evolutionary_search_population",
            0,
            "option evolutionary_search_population is 0; expected at least 1",
        ),
        ("descent_batch", 0, "option descent_batch is 0; expected at least 1"),
        ("finalists", -1, "option finalists is -1; expected at least 0"),
    ],
)
def test_policy_options_are_checked(name: str, value: float, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        PolicyOptions(**{name: value})  # type: ignore[arg-type]  # names come from the table
    assert caught.value.problem == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_measure_trials", -1), ("early_stopping", -2), ("seconds", -1.0), ("seconds", float("nan"))],
)
def test_tuning_options_are_not_negative(name: str, value: float) -> None:
    with pytest.raises(UsageError, match="expected no negative number"):
        TuningOptions(**{name: value})  # type: ignore[arg-type]  # names come from the table


def test_a_round_measures_something() -> None:
    with pytest.raises(UsageError) as caught:
        TuningOptions(num_measures_per_round=0)
    assert caught.value.problem == "option num_measures_per_round is 0; expected at least 1"
