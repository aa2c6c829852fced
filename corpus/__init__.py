"""A corpus of models as exporters in the wild write them, and what becomes of each here (`make corpus`).

recipe          what a recipe is: a function that builds one small model with seeded random weights
draw            the choices that a recipe makes: the defaults, or random ones of a seed
recipes         a file for each family of models; networks: the PyTorch modules that they need
exporting       PyTorch modules to ONNX, by either exporter
inputs          realistic inputs: images, tokens, sounds
torch_packages  torchvision beside a PyTorch without its compiled operators
model_cache     built models by digest of their recipe's source and the versions of the packages
build_models    builds what is missing; runs in the environment .corpus
check_model     one model in one process: import, every toolchain against the judge, artifacts
native_cover    what native takes of a model, and why it refuses the rest
check_corpus    all models, the verdict, and docs/models.md; runs in .venv
"""
