"""Parts of diffusion models of diffusers, trained two steps by a captured step beside plain torch."""

from __future__ import annotations

import diffusers as D
import still
import torch
import torch.nn.functional as F
from test_as_torch import adamw, agree, seed  # noqa: F401 (a fixture)


def steps() -> torch.Tensor:
    return torch.randint(0, 1000, (2,))


def test_unet() -> None:
    m = D.UNet2DModel(sample_size=16, block_out_channels=(8, 16), norm_num_groups=4, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), layers_per_block=1, attention_head_dim=4)
    agree(still.model(m), lambda m, b: F.mse_loss(m(b[0], b[1]).sample, b[0]), [(torch.randn(2, 3, 16, 16), steps()) for _ in range(2)], adamw)


def test_conditioned_unet() -> None:
    m = D.UNet2DConditionModel(sample_size=16, block_out_channels=(8, 16), norm_num_groups=4, cross_attention_dim=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), layers_per_block=1, attention_head_dim=4)
    agree(still.model(m), lambda m, b: F.mse_loss(m(*b).sample, b[0]), [(torch.randn(2, 4, 16, 16), steps(), torch.randn(2, 5, 8)) for _ in range(2)], adamw)


def test_autoencoder() -> None:
    m = D.AutoencoderKL(block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=4)
    agree(still.model(m), lambda m, b: F.mse_loss(m(b).sample, b), [torch.randn(2, 3, 16, 16) for _ in range(2)], adamw)


def test_flux() -> None:
    m = D.FluxTransformer2DModel(patch_size=1, in_channels=8, num_layers=1, num_single_layers=1, attention_head_dim=8, num_attention_heads=2, joint_attention_dim=8, pooled_projection_dim=8, axes_dims_rope=(2, 2, 4))

    def batch() -> dict[str, torch.Tensor]:
        return dict(hidden_states=torch.randn(2, 6, 8), encoder_hidden_states=torch.randn(2, 5, 8), pooled_projections=torch.randn(2, 8), timestep=torch.rand(2), img_ids=torch.zeros(6, 3), txt_ids=torch.zeros(5, 3))

    agree(still.model(m), lambda m, b: m(**b).sample.square().mean(), [batch() for _ in range(2)], adamw)
