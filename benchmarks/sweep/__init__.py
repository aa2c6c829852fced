"""Seeded sweep of drawn layers: native beside the engines, in interleaved fresh processes.

case           Case, a drawn layer as text; Sizes, the distributions of sizes
writer         LayerWriter: a case as an ONNX model, with its operations and bytes
parts          what layers and blocks consist of: activations, convolutions, norms, attention
convolutions   convolutions of one to three dimensions, with epilogues
products       matrix products, attention and recurrent layers
rowwise        norms, softmax, reductions, pools and cumulative sums
movement       elementwise chains, gathers, resizes, and data that is only moved
vision_blocks      blocks of convolutional networks
sequence_blocks    blocks of transformers and other networks
families       the table of families, and the draw
contender      process of one toolchain: a fork server with one child for each layer
contest        contenders that are timed interleaved on one layer
summary        ratios, and losses by cause

python -m benchmarks.sweep --help
"""
