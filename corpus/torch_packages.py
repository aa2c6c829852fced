"""Import torchvision for a PyTorch that lacks its compiled operators.

There is no torchvision for the CPU build of this PyTorch. Its Python code works once the operators that it
registers shapes for are defined; only two of them run while a model is traced.
"""

from __future__ import annotations

import sys
from functools import cache
from inspect import unwrap
from typing import Any


@cache
def torchvision() -> Any:
    """Import torchvision, with its operators defined in Python."""
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("nms", _suppress, "CPU")
    _KEPT.append(library)  # the definitions are removed when the library object is
    import torchvision
    from torchvision.ops.roi_align import _roi_align

    library.impl("roi_align", unwrap(_roi_align), "CPU")  # tracing needs the uncompiled function
    for name in (
        "torchvision.extension",
        "torchvision.ops.roi_align",
    ):  # roi_align has imported the test by name
        vars(sys.modules[name])["_has_ops"] = _has_operators

    return torchvision


_KEPT: list[Any] = []


def _has_operators() -> bool:
    """Replace torchvision's test for its compiled operators. TorchScript compiles it, so it is no lambda."""
    return True


def _suppress(boxes: Any, scores: Any, threshold: float) -> Any:
    """Return the indices of boxes that survive non-maximum suppression with an IoU threshold."""
    import torch

    order = scores.argsort(descending=True, stable=True)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while order.numel():
        best, order = order[0], order[1:]
        kept.append(best)
        low = torch.maximum(boxes[best, :2], boxes[order, :2])
        high = torch.minimum(boxes[best, 2:], boxes[order, 2:])
        overlap = (high - low).clamp(min=0).prod(1)
        order = order[overlap <= threshold * (areas[best] + areas[order] - overlap)]
    return torch.stack(kept) if kept else torch.zeros(0, dtype=torch.int64)
