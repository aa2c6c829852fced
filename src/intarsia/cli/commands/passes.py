"""`intarsia passes`: list the passes and pipelines, or explain one."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.completion import complete_pass_or_pipeline
from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.transform import Pass, PassContext, PassInfo
    from intarsia.transform.pass_config import ConfigOption

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Pass to describe, or pipeline to show the passes of.",
        autocompletion=complete_pass_or_pipeline,
    ),
]


def passes(
    name: Name = None,
    *,
    opt_level: Annotated[int, typer.Option("--opt-level", metavar="N", help="Optimization level.")] = 2,
) -> Report:
    """List the passes and pipelines, or explain one of them."""
    from intarsia.transform import PassContext, pass_names, pipeline_names
    from intarsia.transform.pass_packages import load_pass_packages

    if name is None:
        return _list_all()
    if name in pipeline_names():
        return _explain_pipeline(name, PassContext(opt_level=opt_level))
    if name in pass_names():
        return _describe_pass(name)
    error = UsageError(f"no pass or pipeline is named {name!r}", help=_candidates(name))
    for reason in load_pass_packages():
        error.add_note(f"could not be loaded: {reason}")
    raise error


def _candidates(name: str) -> str:
    from intarsia.transform import pass_names, pipeline_names

    close = get_close_matches(name, (*pass_names(), *pipeline_names()), n=3)
    return f"did you mean {' or '.join(close)}?" if close else "`intarsia passes` lists them"


def _describe_pass(name: str) -> Report:
    """Describe a pass: its text, options and ordering constraints."""
    from intarsia.transform import Sequential
    from intarsia.transform.pass_registry import registered_pass

    described = registered_pass(name)
    text = str(described) if isinstance(described, Sequential) else getdoc(described) or ""
    constraints = _constraints(described.info)
    document = {
        "pass": name,
        "opt_level": described.info.opt_level,
        "constraints": constraints,
        "options": _options(described),
        "text": text,
    }
    constraint_lines = [f"{key}: {', '.join(names)}" for key, names in constraints.items()]
    options = [
        f"option {item['name']}: {item['type']}"
        + (", needed" if item["default"] is None else f" = {item['default']}")
        for item in _options(described)
    ]
    head = "\n".join([f"{name}, level {described.info.opt_level}", *constraint_lines, *options])
    return Report(document, (head, "", text))


def _constraints(info: PassInfo) -> dict[str, list[str]]:
    """Return the constraints that a pass declares, by their names in the class statement."""
    given = {
        "required": info.required,
        "after": info.after,
        "directly_after": (info.directly_after,) if info.directly_after else (),
        "directly_before": (info.directly_before,) if info.directly_before else (),
        "conflicts": info.conflicts,
    }
    stated = {key: list(names) for key, names in given.items() if names}
    return stated if info.handles is None else {**stated, "handles": sorted(info.handles)}


def _options(described: type[Pass] | Pass) -> list[dict[str, str | None]]:
    """Return name, type and default of each option as Python text; required options have no default."""
    items: tuple[Field[object], ...] = fields(described) if is_dataclass(described) else ()
    return [
        {
            "name": item.name,
            "type": item.type if isinstance(item.type, str) else item.type.__name__,
            "default": None if item.default is MISSING else repr(item.default),
        }
        for item in items
    ]


def _explain_pipeline(name: str, ctx: PassContext) -> Report:
    from intarsia.transform import load_pass_sequence

    explained = load_pass_sequence(name).explain(ctx)
    rows = tuple(
        ("runs" if item.runs else "skipped", "  " * item.depth + item.name, item.reason)
        for item in explained.passes
    )
    document = {
        "pipeline": name,
        "opt_level": ctx.opt_level,
        "passes": [
            {"name": item.name, "runs": item.runs, "reason": item.reason, "depth": item.depth}
            for item in explained.passes
        ],
    }
    return Report(document, (Table(("", "pass", "reason"), rows),))


def _list_all() -> Report:
    from intarsia.transform import PassContext, pass_names
    from intarsia.transform.pass_packages import load_pass_packages
    from intarsia.transform.pass_registry import registered_pass

    items = [registered_pass(name) for name in pass_names()]
    rows = tuple((item.info.name, str(item.info.opt_level), _summary(item)) for item in items)
    pipelines, broken = _pipelines()
    keys = PassContext.list_configs()
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
        "config": [dict(zip(("key", "type", "default", "doc"), _key_row(key), strict=True)) for key in keys],
        "broken_packages": list(load_pass_packages()),
        "broken_pipelines": broken,
    }
    blocks: tuple[Block, ...] = (
        Table(("pass", "level", "description"), rows, frozenset({1})),
        Table(("config key", "type", "default", "description"), tuple(map(_key_row, keys))),
        *(f"{name}: {', '.join(inner)}" for name, inner in pipelines.items()),
        *(f"cannot be made: {reason}" for reason in broken),
        *(f"could not be loaded: {reason}" for reason in load_pass_packages()),
    )
    return Report(document, blocks)


def _pipelines() -> tuple[dict[str, list[str]], list[str]]:
    """Return the passes of each pipeline, and the errors of those that cannot be created."""
    from intarsia.transform import load_pass_sequence, pipeline_names

    by_name, broken = {}, []
    for name in pipeline_names():
        try:
            by_name[name] = [item.info.name for item in load_pass_sequence(name).passes]
        except Exception as error:  # whatever a function of another package raises
            broken.append(f"{name}: {getattr(error, 'problem', error)}")
    return by_name, broken


def _key_row(key: ConfigOption[object]) -> tuple[str, str, str, str]:
    return (key.key, key.type.__name__, repr(key.default), key.doc)


def _summary(item: type[Pass] | Pass) -> str:
    """Return the first line of the docstring; of a sequence, its passes."""
    from intarsia.transform import Sequential

    if isinstance(item, Sequential):
        return ", then ".join(inner.info.name for inner in item.passes)
    lines = (item.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""
