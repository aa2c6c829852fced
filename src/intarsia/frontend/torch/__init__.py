"""PyTorch models in, by `torch.export` and PyTorch's own ONNX exporter.

torch_package    imports torch, or says what to install
export_module    module -> ExportedProgram, with errors that name modules and lines
training_mode    dropout and batch normalization in training mode, and random numbers
lower_program    ExportedProgram -> ONNX message without weights, weights as tensors
node_names       names of modules as names of ONNX nodes
tensors          tensors <-> arrays over the same memory
call_signature   names of results and example inputs, from the structures of a call
torch_importer   the public function `from_torch`

`import intarsia.frontend.torch` does not import torch; its modules do, when they are used.
"""

from typing import TYPE_CHECKING

from intarsia.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from intarsia.frontend.torch.torch_importer import from_torch

__all__ = ["from_torch"]

__getattr__, __dir__ = lazy_names(globals(), {"from_torch": "intarsia.frontend.torch.torch_importer"})
