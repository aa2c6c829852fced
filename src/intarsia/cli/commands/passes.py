"""`intarsia passes`: the passes and pipelines there are, what one does, and what a pipeline will run."""

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
        help="A pass: show what it does. A pipeline: show what it runs, and why.",
        autocompletion=complete_pass_or_pipeline,
    ),
]


def passes(
    name: Name = None,
    *,
    opt_level: Annotated[int, typer.Option("--opt-level", metavar="N", help="Level to explain.")] = 2,
) -> Report:
    """List the passes and pipelines, or explain one of them."""
    from intarsia.transform import PassContext, pass_names, pipeline_names
    from intarsia.transform.pass_packages import load_pass_packages

    if name is None:
        return _listed()
    if name in pipeline_names():
        return _explained(name, PassContext(opt_level=opt_level))
    if name in pass_names():
        return _described(name)
    error = UsageError(f"no pass or pipeline is named {name!r}", help=_candidates(name))
    for reason in load_pass_packages():
        error.add_note(f"could not be loaded: {reason}")
    raise error


def _candidates(name: str) -> str:
    from intarsia.transform import pass_names, pipeline_names

    close = get_close_matches(name, (*pass_names(), *pipeline_names()), n=3)
    return f"did you mean {' or '.join(close)}?" if close else "`intarsia passes` lists them"


def _described(name: str) -> Report:
    """What one pass does, its options, and what it asks of its surroundings."""
    from intarsia.transform import Sequential
    from intarsia.transform.pass_registry import registered_pass

    found = registered_pass(name)
    text = str(found) if isinstance(found, Sequential) else getdoc(found) or ""
    constraints = _constraints(found.info)
    document = {
        "pass": name,
        "opt_level": found.info.opt_level,
        "constraints": constraints,
        "options": _options(found),
        "text": text,
    }
    asked = [f"{key}: {', '.join(names)}" for key, names in constraints.items()]
    options = [
        f"option {item['name']}: {item['type']}"
        + (", needed" if item["default"] is None else f" = {item['default']}")
        for item in _options(found)
    ]
    head = "\n".join([f"{name}, level {found.info.opt_level}", *asked, *options])
    return Report(document, (head, "", text))


def _constraints(info: PassInfo) -> dict[str, list[str]]:
    """The constraints that a pass states, by their names in the class statement."""
    given = {
        "required": info.required,
        "after": info.after,
        "directly_after": (info.directly_after,) if info.directly_after else (),
        "directly_before": (info.directly_before,) if info.directly_before else (),
        "conflicts": info.conflicts,
    }
    stated = {key: list(names) for key, names in given.items() if names}
    return stated if info.handles is None else {**stated, "handles": sorted(info.handles)}


def _options(found: type[Pass] | Pass) -> list[dict[str, str | None]]:
    """Name, type and default of each option, as Python texts; one that must be given has no default."""
    items: tuple[Field[object], ...] = fields(found) if is_dataclass(found) else ()
    return [
        {
            "name": item.name,
            "type": item.type if isinstance(item.type, str) else item.type.__name__,
            "default": None if item.default is MISSING else repr(item.default),
        }
        for item in items
    ]


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
        Table(("pass", "level", "what it does"), rows, frozenset({1})),
        Table(("config key", "type", "default", "what it says"), tuple(map(_key_row, keys))),
        *(f"{name}: {', '.join(inner)}" for name, inner in pipelines.items()),
        *(f"cannot be made: {reason}" for reason in broken),
        *(f"could not be loaded: {reason}" for reason in load_pass_packages()),
    )
    return Report(document, blocks)


def _pipelines() -> tuple[dict[str, list[str]], list[str]]:
    """The passes of each pipeline, and what is wrong with those that cannot be made."""
    from intarsia.transform import load_pass_sequence, pipeline_names

    found, broken = {}, []
    for name in pipeline_names():
        try:
            found[name] = [item.info.name for item in load_pass_sequence(name).passes]
        except Exception as error:  # whatever a function of another package raises
            broken.append(f"{name}: {getattr(error, 'problem', error)}")
    return found, broken


def _key_row(key: ConfigOption[object]) -> tuple[str, str, str, str]:
    return (key.key, key.type.__name__, repr(key.default), key.doc)


def _summary(item: type[Pass] | Pass) -> str:
    """First line of the docstring; of a sequence, the passes in it."""
    from intarsia.transform import Sequential

    if isinstance(item, Sequential):
        return ", then ".join(each.info.name for each in item.passes)
    lines = (item.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""
