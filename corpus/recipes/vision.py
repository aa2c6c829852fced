"""Detection, segmentation, video, images with texts, and diffusion."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpus.draw import Draw
from corpus.inputs import image, prefix_mask, tokens
from corpus.recipe import BuiltModel, recipe

DETECTION, SEGMENTATION, VIDEO, DIFFUSION = "detection", "segmentation", "video", "diffusion"
BOTH = "images and texts"


@recipe(DETECTION, "torch script", "anchors", "non-maximum suppression")
def ssd(draw: Draw) -> BuiltModel:
    import torch

    from corpus.exporting import Positional, export
    from corpus.networks.vision import conv_block
    from corpus.torch_packages import torchvision

    detection = torchvision().models.detection
    width = draw.choose("width", 16, 8)
    backbone = torch.nn.Sequential(
        conv_block(3, width, 2), conv_block(width, width, 2), conv_block(width, 2 * width, 2)
    )
    backbone.out_channels = [2 * width]
    anchors = detection.anchor_utils.DefaultBoxGenerator([[2, 3]])
    head = detection.ssd.SSDHead([2 * width], anchors.num_anchors_per_location(), 6)
    size = draw.choose("size", 96, 64)
    model = detection.ssd.SSD(
        backbone,
        anchors,
        (size, size),
        6,
        head=head,
        score_thresh=0.01,
        topk_candidates=30,
        detections_per_img=15,
    )
    wrapped = Positional(
        model, ["images"], lambda result: tuple(result[0][key] for key in ("boxes", "labels", "scores"))
    )
    inputs = {"images": image(draw, 1, 3, size, size)}
    return export(draw, wrapped, inputs, ["boxes", "labels", "scores"], opset=17, script=True)


@recipe(DETECTION, "torch dynamo", "decoded boxes")
def yolo(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import Yolo

    model = Yolo(draw.choose("width", 8, 12, 5), draw.choose("classes", 12, 80, 1), suppress=False)
    size = draw.choose("size", 128, 96, 160)
    return export(draw, model, {"image": image(draw, 1, 3, size, size)}, ["boxes", "scores"], opset=18)


@recipe(DETECTION, "torch script", "decoded boxes", "non-maximum suppression")
def yolo_nms(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import Yolo

    model = Yolo(draw.choose("width", 8, 12, 5), draw.choose("classes", 12, 80, 1), suppress=True)
    size = draw.choose("size", 128, 96, 160)
    outputs = ["boxes", "scores", "labels"]
    return export(draw, model, {"image": image(draw, 1, 3, size, size)}, outputs, opset=13, script=True)


@recipe(DETECTION, "torch script", "attention", "sine positions")
def detr(draw: Draw) -> BuiltModel:
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    from corpus.exporting import Positional, export

    backbone = ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage4"],
    )
    config = DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone,
        d_model=draw.choose("width", 64, 32),
        encoder_layers=1,
        decoder_layers=draw.choose("layers", 2, 1),
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        num_queries=draw.choose("queries", 20, 9),
        num_labels=10,
        attn_implementation="eager",
    )
    inputs = {"pixel_values": image(draw, 1, 3, 128, 96)}
    model = Positional(
        DetrForObjectDetection(config), list(inputs), lambda result: (result.logits, result.pred_boxes)
    )
    return export(draw, model, inputs, ["logits", "boxes"], opset=17, script=True)


@recipe(DETECTION, "torch script", "attention", "detection tokens")
def yolos(draw: Draw) -> BuiltModel:
    from transformers import YolosConfig, YolosForObjectDetection

    from corpus.exporting import Positional, export

    config = YolosConfig(
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=96,
        image_size=[64, 64],
        num_detection_tokens=draw.choose("tokens", 10, 25),
        num_labels=7,
        attn_implementation="eager",
    )
    inputs = {"pixel_values": image(draw, 1, 3, 64, 64)}
    model = Positional(
        YolosForObjectDetection(config), list(inputs), lambda result: (result.logits, result.pred_boxes)
    )
    return export(draw, model, inputs, ["logits", "boxes"], opset=17, script=True)


@recipe(DETECTION, "torch script", "proposals", "region pooling", "non-maximum suppression")
def faster_rcnn(draw: Draw) -> BuiltModel:
    import torch

    from corpus.exporting import Positional, export
    from corpus.networks.vision import conv_block
    from corpus.torch_packages import torchvision

    detection = torchvision().models.detection
    width = draw.choose("width", 16, 8)
    backbone = torch.nn.Sequential(
        conv_block(3, width, 2), conv_block(width, 2 * width, 2), conv_block(2 * width, 2 * width, 2)
    )
    backbone.out_channels = 2 * width
    anchors = detection.anchor_utils.AnchorGenerator(((16, 32, 64),), ((0.5, 1.0, 2.0),))
    model = detection.FasterRCNN(
        backbone,
        rpn_anchor_generator=anchors,
        min_size=96,
        max_size=128,
        rpn_pre_nms_top_n_test=100,
        rpn_post_nms_top_n_test=20,
        box_detections_per_img=10,
        box_head=detection.faster_rcnn.TwoMLPHead(2 * width * 49, 64),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(64, 6),
        box_score_thresh=0.01,
    )
    inputs = {"images": image(draw, 1, 3, 96, 96)}
    wrapped = Positional(
        model, ["images"], lambda result: tuple(result[0][key] for key in ("boxes", "labels", "scores"))
    )
    return export(draw, wrapped, inputs, ["boxes", "labels", "scores"], opset=16, script=True)


@recipe(SEGMENTATION, "torch dynamo", "transposed convolutions")
def unet(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import UNet

    model = UNet(draw.choose("width", 12, 8, 16), draw.choose("levels", 3, 2, 4), transposed=True)
    return export(draw, model, {"image": image(draw, 1, 3, 96, 64)}, ["mask"], opset=18)


@recipe(SEGMENTATION, "torch script", "bilinear resizing", "dynamic axes")
def unet_resize(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import UNet

    model = UNet(draw.choose("width", 12, 8), draw.choose("levels", 3, 2), transposed=False)
    axes = {"image": {0: "batch", 2: "rows", 3: "columns"}}
    return export(
        draw, model, {"image": image(draw, 2, 3, 64, 48)}, ["mask"], opset=13, script=True, dynamic=axes
    )


@recipe(SEGMENTATION, "torch dynamo", "dilated convolutions", "bilinear resizing")
def deeplab(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import DeepLab

    model = DeepLab(draw.choose("width", 16, 24), draw.choose("rates", (1, 3, 6), (2, 5)))
    return export(draw, model, {"image": image(draw, 1, 3, 96, 80)}, ["classes"], opset=19)


@recipe(SEGMENTATION, "torch script", "attention", "overlapping patches")
def segformer(draw: Draw) -> BuiltModel:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    from corpus.exporting import Positional, export

    config = SegformerConfig(
        depths=[1, 1, 1, 1],
        hidden_sizes=[16, 32, 48, 64],
        decoder_hidden_size=draw.choose("decoder", 32, 48),
        num_attention_heads=[1, 2, 3, 4],
        num_labels=9,
    )
    inputs = {"pixel_values": image(draw, 1, 3, 64, 64)}
    model = Positional(SegformerForSemanticSegmentation(config), list(inputs), lambda result: result.logits)
    return export(draw, model, inputs, ["logits"], opset=16, script=True)


@recipe(VIDEO, "torch dynamo", "3-D convolutions")
def r2plus1d(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import Split3d

    model = Split3d(draw.choose("width", 16, 12), draw.choose("blocks", 2, 3))
    frames = draw.choose("frames", 6, 4)
    return export(draw, model, {"video": image(draw, 1, 3, frames, 40, 40)}, ["logits"], opset=18)


@recipe(VIDEO, "torch script", "depthwise 3-D convolutions", "squeeze and excite")
def x3d(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import X3d

    model = X3d(draw.choose("width", 12, 8), draw.choose("blocks", 2, 1))
    return export(draw, model, {"video": image(draw, 1, 3, 5, 40, 40)}, ["logits"], opset=15, script=True)


@recipe(VIDEO, "torch dynamo", "attention over space and time")
def videomae(draw: Draw) -> BuiltModel:
    from transformers import VideoMAEConfig, VideoMAEForVideoClassification

    from corpus.exporting import Positional, export

    config = VideoMAEConfig(
        image_size=32,
        patch_size=8,
        num_frames=4,
        tubelet_size=2,
        hidden_size=48,
        num_hidden_layers=draw.choose("layers", 2, 1),
        num_attention_heads=draw.choose("heads", 4, 2),
        intermediate_size=96,
        num_labels=10,
        attn_implementation="eager",
    )
    inputs = {"pixel_values": image(draw, 1, 4, 3, 32, 32)}
    model = Positional(VideoMAEForVideoClassification(config), list(inputs), lambda result: result.logits)
    return export(draw, model, inputs, ["logits"], opset=18)


@recipe(BOTH, "torch script", "two encoders", "argmax of tokens")
def clip(draw: Draw) -> BuiltModel:
    from transformers import CLIPConfig, CLIPModel

    from corpus.exporting import Positional, export

    text = {
        "vocab_size": 300,
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 96,
        "max_position_embeddings": 20,
        "eos_token_id": 299,
        "bos_token_id": 298,
        "pad_token_id": 0,
    }
    vision = {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 96,
        "image_size": 32,
        "patch_size": 8,
    }
    config = CLIPConfig(
        text_config=text, vision_config=vision, projection_dim=draw.choose("projection", 32, 24)
    )
    config._attn_implementation = "eager"
    ids = np.minimum(tokens(draw, 3, 12, 298), 297)
    ids[:, -1] = 299
    inputs = {
        "input_ids": ids,
        "pixel_values": image(draw, 2, 3, 32, 32),
        "attention_mask": prefix_mask(draw, 3, 12),
    }
    pick: Any = lambda result: (result.logits_per_image, result.text_embeds)  # noqa: E731
    model = Positional(CLIPModel(config), list(inputs), pick)
    return export(draw, model, inputs, ["logits", "texts"], opset=17, script=True)


@recipe(BOTH, "torch dynamo", "attention pooling")
def siglip_vision(draw: Draw) -> BuiltModel:
    from transformers import SiglipVisionConfig, SiglipVisionModel

    from corpus.exporting import Positional, export

    config = SiglipVisionConfig(
        hidden_size=48,
        num_hidden_layers=draw.choose("layers", 2, 1),
        num_attention_heads=4,
        intermediate_size=96,
        image_size=32,
        patch_size=8,
        attn_implementation="eager",
    )
    inputs = {"pixel_values": image(draw, 2, 3, 32, 32)}
    model = Positional(SiglipVisionModel(config), list(inputs), lambda result: result.pooler_output)
    return export(draw, model, inputs, ["pooled"], opset=18)


@recipe(DIFFUSION, "torch dynamo", "group norm", "time embeddings", "cross attention")
def diffusion_unet(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import DiffusionUNet

    model = DiffusionUNet(draw.choose("width", 16, 32), 24, draw.choose("heads", 4, 2))
    inputs = {
        "sample": draw.normal(1, 4, 16, 16),
        "timestep": np.array([draw.choose("step", 481, 7)]),
        "text": draw.normal(1, 9, 24),
    }
    return export(draw, model, inputs, ["noise"], opset=18)


@recipe(DIFFUSION, "torch script", "group norm", "nearest resizing", "external data")
def diffusion_decoder(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import ImageDecoder

    inputs = {"latent": draw.normal(1, 4, 12, 12)}
    built = export(draw, ImageDecoder(draw.choose("width", 24, 16)), inputs, ["image"], opset=17, script=True)
    return BuiltModel(built.proto, built.inputs, "external")
