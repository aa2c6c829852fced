from intarsia.cli.arguments.completion import (
    complete_model,
    complete_pass_or_pipeline,
    complete_pass_text,
    complete_pipeline,
    complete_toolchain,
    complete_zoo,
)


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


def test_passes_and_pipelines() -> None:
    assert complete_pass_text("InferType,FoldC") == ["InferType,FoldConstant"]
    assert complete_pass_text("ConvertLayout{la") == ["ConvertLayout{layout="]
    assert complete_pipeline("default_h") == ["default_heuristic"]
    assert complete_pass_or_pipeline("FoldC") == ["FoldConstant"]
    assert complete_pass_or_pipeline("default_h") == ["default_heuristic"]
    assert complete_pass_or_pipeline("none such") == []
