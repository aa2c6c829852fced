"""Models that need no download, as `onnx.ModelProto` with seeded random weights.

`zoo()` lists them, `build_model(name, seed)` builds one. The same seed gives the same bytes in every
process; outputs (before a final Softmax) are finite with about unit variance for standard normal inputs.
Integer inputs have their valid range in the model's metadata: key `intarsia.input_range.<input>`, value
`lo,hi` for lo <= x < hi.
"""

from intarsia.frontend.zoo.catalogue import build_model, zoo, zoo_model
from intarsia.frontend.zoo.graph_writer import INPUT_RANGE_KEY
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

__all__ = ["INPUT_RANGE_KEY", "Family", "ZooModel", "build_model", "zoo", "zoo_model"]
