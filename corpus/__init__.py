"""A corpus of models from the usual exporters, checked with every toolchain (`make corpus`).

recipe          what a recipe is: a function that builds one small model with seeded random weights
draw            the choices that a recipe makes: the defaults, or random ones of a seed
recipes         a file for each family of models; networks: the PyTorch modules that they need
exporting       PyTorch modules to ONNX, by either exporter
inputs          realistic inputs: images, tokens, sounds
torch_packages  torchvision beside a PyTorch without its compiled operators
model_cache     built models by digest of their recipe's source and the versions of the packages
build_models    builds what is missing; runs in the environment .corpus
check_model     one model in one process: import, every toolchain against the judge, artifacts
native_cover    the operators of a model that native has kernels for, and those that it refuses
check_corpus    checks all models, and writes docs/models.md; runs in .venv
"""
