"""Models in (and ONNX out): `onnx` reads and writes ONNX, `zoo` builds models that need no download."""
