"""The picture of the layers shows those that the import contracts enforce."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import ROOT


def test_the_picture_shows_the_layers_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    picture = re.search(r"```mermaid\n(.*?)```", (ROOT / "docs/design.md").read_text("utf-8"), re.DOTALL)
    assert picture is not None
    boxes = {name: text.partition(":")[0] for name, text in re.findall(r'(\w+)\["(.*?)"\]', picture[1])}
    arrows = " --> ".join(line.strip() for line in picture[1].splitlines() if "-->" in line).split(" --> ")
    chain = [name for index, name in enumerate(arrows) if index == 0 or name != arrows[index - 1]]
    assert [boxes[name] for name in chain] == layers
