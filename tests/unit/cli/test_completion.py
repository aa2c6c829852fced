from intarsia.cli.completion import complete_model, complete_toolchain, complete_zoo


def test_zoo_names_with_descriptions() -> None:
    assert [name for name, _ in complete_zoo("mn")] == ["mnist"]
    assert all(description for _, description in complete_zoo(""))


def test_models_are_completed_once_the_prefix_is_typed() -> None:
    assert complete_model("mn") == []  # the shell completes files
    assert [name for name, _ in complete_model("zoo:mn")] == ["zoo:mnist"]
    assert ("zoo:gpt2", dict(complete_zoo("gpt2"))["gpt2"]) in complete_model("zoo:")


def test_toolchains() -> None:
    assert complete_toolchain("ref") == ["reference"]
    assert complete_toolchain("x") == []
