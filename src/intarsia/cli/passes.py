"""`intarsia passes`: the passes and pipelines there are, and what a pipeline will run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.completion import complete_pipeline
from intarsia.cli.report import Block, Report
from intarsia.cli.table import Table

if TYPE_CHECKING:
    from intarsia.transform import Pass, PassContext

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[PIPELINE]",
        help="Show what this named sequence runs, and why.",
        autocompletion=complete_pipeline,
    ),
]


def passes(
    pipeline: Name = None,
    *,
    opt_level: Annotated[int, typer.Option("--opt-level", metavar="N", help="Level to explain.")] = 2,
) -> Report:
    """List the passes and pipelines, or explain one pipeline."""
    from intarsia.transform import PassContext

    if pipeline is not None:
        return _explained(pipeline, PassContext(opt_level=opt_level))
    return _listed()


def _explained(name: str, ctx: PassContext) -> Report:
    from intarsia.transform import load_pass_sequence

    found = load_pass_sequence(name).explain(ctx)
    rows = tuple(
        ("runs" if item.runs else "skipped", "  " * item.depth + item.name, item.reason)
        for item in found.passes
    )
    document = {
        "pipeline": name,
        "opt_level": ctx.opt_level,
        "passes": [
            {"name": item.name, "runs": item.runs, "reason": item.reason, "depth": item.depth}
            for item in found.passes
        ],
    }
    return Report(document, (Table(("", "pass", "reason"), rows),))


def _listed() -> Report:
    from intarsia.transform import load_pass_sequence, pass_names, pipeline_names
    from intarsia.transform.pass_registry import load_pass_packages, registered_pass

    items = [registered_pass(name) for name in pass_names()]
    rows = tuple((item.info.name, str(item.info.opt_level), _summary(item)) for item in items)
    pipelines = {
        name: [item.info.name for item in load_pass_sequence(name).passes] for name in pipeline_names()
    }
    document = {
        "passes": [
            {
                "name": item.info.name,
                "opt_level": item.info.opt_level,
                "required": list(item.info.required),
                "summary": _summary(item),
            }
            for item in items
        ],
        "pipelines": pipelines,
        "broken_packages": list(load_pass_packages()),
    }
    blocks: tuple[Block, ...] = (
        Table(("pass", "level", "what it does"), rows, frozenset({1})),
        *(f"{name}: {', '.join(inner)}" for name, inner in pipelines.items()),
        *(f"could not be loaded: {reason}" for reason in load_pass_packages()),
    )
    return Report(document, blocks)


def _summary(item: type[Pass] | Pass) -> str:
    """First line of the docstring; of a sequence, the passes in it."""
    if isinstance(inner := getattr(item, "passes", None), tuple):
        return ", then ".join(each.info.name for each in inner)
    lines = (item.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""
