"""Image classification: small convolutional networks and vision transformers of timm and torchvision."""

from __future__ import annotations

from typing import Any

from corpus.draw import Draw
from corpus.inputs import image
from corpus.recipe import BuiltModel, recipe

FAMILY = "image classification"


def timm_model(
    draw: Draw, name: str, size: int, opset: int, script: bool = False, **options: Any
) -> BuiltModel:
    """Export a model of timm for a small image."""
    import timm

    from corpus.exporting import export

    batch = draw.choose("batch", 1, 2, 3)
    model = timm.create_model(name, num_classes=draw.choose("classes", 100, 10, 37), **options)
    return export(
        draw, model, {"image": image(draw, batch, 3, size, size)}, ["logits"], opset=opset, script=script
    )


@recipe(FAMILY, "torch dynamo", "residual")
def resnet(draw: Draw) -> BuiltModel:
    width = draw.choose("width", 16, 8, 24)
    return timm_model(
        draw,
        "resnet18",
        draw.choose("size", 96, 64, 81),
        18,
        layers=draw.choose("layers", (1, 1, 1, 1), (2, 1, 2, 1)),
        channels=(width, 2 * width, 4 * width, 8 * width),
        stem_width=width,
        act_layer=draw.choose("activation", "relu", "silu", "leaky_relu"),
    )


@recipe(FAMILY, "torch script", "residual", "grouped")
def resnext(draw: Draw) -> BuiltModel:
    width = draw.choose("width", 8, 16)
    return timm_model(
        draw,
        "resnext50_32x4d",
        96,
        13,
        script=True,
        layers=(1, 1, 1, 1),
        cardinality=draw.choose("groups", 4, 8),
        base_width=draw.choose("group width", 8, 16),
        channels=(width, 2 * width, 4 * width, 8 * width),
    )


@recipe(FAMILY, "torch script", "depthwise")
def mobilenet_v2(draw: Draw) -> BuiltModel:
    return timm_model(draw, "mobilenetv2_035", draw.choose("size", 96, 128, 75), 13, script=True)


@recipe(FAMILY, "torch dynamo", "depthwise", "hard swish", "squeeze and excite")
def mobilenet_v3(draw: Draw) -> BuiltModel:
    return timm_model(draw, draw.choose("name", "mobilenetv3_small_050", "mobilenetv3_small_075"), 96, 20)


@recipe(FAMILY, "torch script", "depthwise", "squeeze and excite", "same padding")
def efficientnet(draw: Draw) -> BuiltModel:
    return timm_model(
        draw,
        draw.choose("name", "tf_efficientnet_lite0", "tinynet_e", "test_efficientnet"),
        96,
        14,
        script=True,
    )


@recipe(FAMILY, "torch dynamo", "layer norm", "large kernels")
def convnext(draw: Draw) -> BuiltModel:
    width = draw.choose("width", 16, 24, 10)
    return timm_model(
        draw,
        "convnext_atto",
        draw.choose("size", 96, 64),
        21,
        depths=(1, 1, draw.choose("depth", 2, 3), 1),
        dims=(width, 2 * width, 4 * width, 8 * width),
        kernel_sizes=draw.choose("kernel", 7, 5),
    )


@recipe(FAMILY, "torch dynamo", "grouped")
def regnet(draw: Draw) -> BuiltModel:
    return timm_model(draw, draw.choose("name", "regnetx_002", "regnety_002"), 96, 18)


@recipe(FAMILY, "torch script", "concatenations")
def densenet(draw: Draw) -> BuiltModel:
    return timm_model(
        draw,
        "densenet121",
        96,
        15,
        script=True,
        growth_rate=draw.choose("growth", 8, 12, 5),
        block_config=draw.choose("blocks", (3, 4, 3), (2, 2, 2)),
    )


@recipe(FAMILY, "torch dynamo", "cheap operations")
def ghostnet(draw: Draw) -> BuiltModel:
    return timm_model(draw, "ghostnet_050", draw.choose("size", 96, 65), 19)


@recipe(FAMILY, "torch script", "channel shuffle")
def shufflenet_v2(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.torch_packages import torchvision

    model = torchvision().models.shufflenet_v2_x0_5(num_classes=draw.choose("classes", 100, 7))
    return export(draw, model, {"image": image(draw, 1, 3, 96, 96)}, ["logits"], opset=16, script=True)


@recipe(FAMILY, "torch script", "parallel branches")
def mobileone(draw: Draw) -> BuiltModel:
    return timm_model(draw, "mobileone_s0", draw.choose("size", 64, 96), 16, script=True)


@recipe(FAMILY, "torch script", "matrix products only")
def mixer(draw: Draw) -> BuiltModel:
    from timm.models.mlp_mixer import MixerBlock, MlpMixer, ResBlock

    from corpus.exporting import export

    block = draw.choose("block", MixerBlock, ResBlock)
    model = MlpMixer(
        num_classes=10,
        img_size=64,
        patch_size=draw.choose("patch", 16, 8),
        num_blocks=draw.choose("depth", 3, 2),
        embed_dim=draw.choose("width", 64, 96),
        block_layer=block,
        mlp_ratio=(0.5, 4.0) if block is MixerBlock else 4,
    )
    return export(draw, model, {"image": image(draw, 2, 3, 64, 64)}, ["logits"], opset=17, script=True)


@recipe(FAMILY, "torch dynamo", "attention", "dynamic batch")
def vit(draw: Draw) -> BuiltModel:
    import timm

    from corpus.exporting import export

    heads = draw.choose("heads", 3, 4, 2)
    model = timm.create_model(
        "vit_tiny_patch16_224",
        img_size=64,
        depth=draw.choose("depth", 2, 3),
        num_heads=heads,
        embed_dim=heads * draw.choose("head", 32, 16, 40),
        num_classes=10,
    )
    batch = {"image": {0: "batch"}}
    return export(draw, model, {"image": image(draw, 2, 3, 64, 64)}, ["logits"], opset=20, dynamic=batch)


@recipe(FAMILY, "torch script", "attention", "distillation token")
def deit(draw: Draw) -> BuiltModel:
    return timm_model(
        draw,
        "deit_tiny_distilled_patch16_224",
        64,
        17,
        script=True,
        img_size=64,
        depth=2,
        embed_dim=draw.choose("width", 96, 48),
        num_heads=3,
    )


@recipe(FAMILY, "torch dynamo", "attention in shifted windows")
def swin(draw: Draw) -> BuiltModel:
    return timm_model(
        draw,
        "swin_tiny_patch4_window7_224",
        56,
        18,
        img_size=56,
        embed_dim=draw.choose("width", 24, 32),
        depths=(2, 2),
        num_heads=(2, 4),
        window_size=draw.choose("window", 7, 7),
    )


@recipe(FAMILY, "torch dynamo", "class attention", "talking heads")
def cait(draw: Draw) -> BuiltModel:
    return timm_model(
        draw, "cait_xxs24_224", 64, 18, img_size=64, depth=draw.choose("depth", 2, 1), embed_dim=96
    )


@recipe(FAMILY, "torch script", "convolutions and attention")
def mobilevit(draw: Draw) -> BuiltModel:
    return timm_model(draw, draw.choose("name", "mobilevit_xxs", "mobilevitv2_050"), 64, 14, script=True)


@recipe(FAMILY, "torch script", "cross-covariance attention")
def xcit(draw: Draw) -> BuiltModel:
    return timm_model(draw, "xcit_nano_12_p16_224", 64, 17, script=True, img_size=64, depth=2)


@recipe(FAMILY, "torch script", "attention over channels", "split depthwise")
def edgenext(draw: Draw) -> BuiltModel:
    return timm_model(draw, "edgenext_xx_small", draw.choose("size", 64, 96), 13, script=True)


@recipe(FAMILY, "torch script", "attention with biases")
def levit(draw: Draw) -> BuiltModel:
    return timm_model(
        draw,
        "levit_128s",
        64,
        18,
        script=True,
        img_size=64,
        depth=(1, 1, 1),
        embed_dim=(64, 96, 128),
        num_heads=(2, 3, 4),
    )


@recipe(FAMILY, "torch dynamo", "rotary embeddings", "swiglu")
def eva02(draw: Draw) -> BuiltModel:
    return timm_model(draw, "eva02_tiny_patch14_224", 56, 23, img_size=56, depth=2)
