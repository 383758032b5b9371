"""The optimizer (AdamW) and its learning rate schedule."""

from __future__ import annotations

import math

import torch
from torch import nn

from firth.training.network_options import LearningOptions


def optimizer(method: LearningOptions, net: nn.Module, device: torch.device) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov & Hutter 2019) with weight decay of matrices, not of biases and norms."""
    trainable = [parameter for parameter in net.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in trainable if parameter.dim() >= 2], "weight_decay": method.weight_decay},
        {"params": [parameter for parameter in trainable if parameter.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=method.learning_rate, betas=(0.9, method.beta2), eps=1e-9, fused=True)


def rate_share(method: LearningOptions, share: float) -> float:
    """Return the learning rate at this share of the run, as a fraction of its peak."""
    if share < method.warmup:
        return max(1e-3, share / method.warmup)
    if method.schedule == "inverse_sqrt":  # Vaswani et al. 2017, 5.3
        return math.sqrt(max(method.warmup, 1e-3) / max(share, 1e-3))
    remaining = (1 - share) / max(1e-9, 1 - method.warmup)
    if method.schedule == "cosine":
        return 0.1 + 0.9 * 0.5 * (1 - math.cos(math.pi * remaining))
    return remaining if method.schedule == "linear" else 1.0
