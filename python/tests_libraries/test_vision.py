"""Models of torchvision and timm, trained two steps by a captured step beside plain torch."""

from __future__ import annotations

from typing import Any

import pytest
import still
import timm
import torch
import torch.nn.functional as F
import torchvision.models as M
from test_as_torch import agree, seed, sgd  # noqa: F401 (a fixture)

# Edge of the pictures by name.
TORCHVISION = {
    "resnet18": 32, "squeezenet1_1": 64, "googlenet": 64, "shufflenet_v2_x0_5": 32, "mobilenet_v3_small": 32, "mnasnet0_5": 32,
    "regnet_y_400mf": 32, "efficientnet_b0": 32, "convnext_tiny": 32, "swin_t": 64, "swin_v2_t": 64,
}  # fmt: skip
TIMM = {
    "convnext_atto": 32, "vit_tiny_patch16_224": 32, "deit3_small_patch16_224": 32, "swin_tiny_patch4_window7_224": 56, "mobilenetv4_conv_small": 32,
    "hrnet_w18_small": 64, "resnetv2_50": 32, "nf_resnet26": 32, "skresnet18": 32, "resnest14d": 32, "levit_128s": 64, "edgenext_xx_small": 64,
    "repvgg_a0": 32, "mixer_s16_224": 32, "xcit_nano_12_p16_224": 32, "poolformer_s12": 64, "focalnet_tiny_srf": 64, "fastvit_t8": 64, "coat_lite_tiny": 64,
    "eva02_tiny_patch14_224": 28, "pvt_v2_b0": 64, "gmlp_s16_224": 32, "dla34": 32, "ese_vovnet19b_dw": 32, "lambda_resnet26t": 64, "botnet26t_256": 64,
}  # fmt: skip


def loss(m: Any, b: Any) -> torch.Tensor:
    y = m(b[0])
    y = y["out"] if isinstance(y, dict) else y
    return F.cross_entropy(y[0] if isinstance(y, tuple) else y, b[1])


def pictures(edge: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.randn(2, 3, edge, edge), torch.randint(0, 10, (2,))) for _ in range(2)]


@pytest.mark.parametrize("name", TORCHVISION)
def test_torchvision(name: str) -> None:
    make = getattr(M, name)
    m = make(num_classes=10, init_weights=False) if name == "googlenet" else make(num_classes=10)
    agree(still.model(m), loss, pictures(TORCHVISION[name]), sgd)


@pytest.mark.parametrize("name", ["deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"])
def test_segmentation(name: str) -> None:
    m = getattr(M.segmentation, name)(weights=None, weights_backbone=None, num_classes=3)
    agree(still.model(m), loss, [(torch.randn(2, 3, 32, 32), torch.randint(0, 3, (2, 32, 32))) for _ in range(2)], sgd)


def test_video() -> None:
    agree(still.model(M.video.mc3_18(num_classes=10)), loss, [(torch.randn(2, 3, 4, 16, 16), torch.randint(0, 10, (2,))) for _ in range(2)], sgd)


def test_flow() -> None:
    """RAFT: a loop of updates."""
    agree(still.model(M.optical_flow.raft_small()), lambda m, b: sum(x.abs().mean() for x in m(b, b.flip(0), num_flow_updates=2)), [torch.randn(1, 3, 128, 128) for _ in range(2)], sgd)


@pytest.mark.parametrize("name", TIMM)
def test_timm(name: str) -> None:
    try:
        m = timm.create_model(name, num_classes=10, img_size=TIMM[name])
    except TypeError:  # a model of pictures of any size
        m = timm.create_model(name, num_classes=10)
    agree(still.model(m), loss, pictures(TIMM[name]), sgd)
