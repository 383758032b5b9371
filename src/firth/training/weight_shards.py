"""Weights that are divided among processes: in checkpoints by rows, in training with FSDP2.

Fully sharded data parallelism stores a part of every weight, gradient and moment in each process, and collects the
weights of a block when the block is computed (Rajbhandari et al. 2020, ZeRO stage 3; `torch.distributed.fsdp`).
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from firth.core.errors import FirthError
from firth.core.processes import Alone

T = TypeVar("T")


class ShardedNet(nn.Module):
    """A copy of a network whose weights are divided among all processes.

    Calling it with a function collects the weights that the function uses: those of a block while the block is
    computed, all others during the call. Gradients are divided and summed in the backward pass.
    """

    def __init__(self, net: nn.Module, device: torch.device) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        super().__init__()
        self.net = copy.deepcopy(net)
        mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        for module in list(self.net.modules()):
            for block in module if isinstance(module, nn.ModuleList) else ():
                fully_shard(block, mesh=mesh)
        fully_shard(self, mesh=mesh)

    def forward(self, compute: Callable[..., T], *arguments: Any) -> T:
        """Return compute(*arguments)."""
        return compute(*arguments)

    def copy_to(self, net: nn.Module) -> None:
        """Copy the complete weights into another network, tensor by tensor."""
        targets = net.state_dict()
        for name, tensor in self.net.state_dict().items():
            targets[name].copy_(cast(Any, tensor).full_tensor() if is_divided(tensor) else tensor)


def is_divided(tensor: Tensor) -> bool:
    """Return whether FSDP2 has divided a tensor. The class takes a second to import, which FSDP2 does."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def own(tensor: Tensor) -> Tensor:
    """Return what this process stores of a weight or moment."""
    local: Tensor = cast(Any, tensor).to_local() if is_divided(tensor) else tensor
    return local.detach()


def rows_of(tensor: Tensor, group: Alone) -> slice:
    """Return the rows of a tensor that this process writes, which are those that FSDP2 gives it."""
    count = -(-len(tensor) // group.world)
    return slice(group.rank * count, (group.rank + 1) * count)


def rows_to_write(tensor: Tensor, like: Tensor, group: Alone) -> Tensor:
    """Return this process's rows of `tensor`; `like` is the weight, which may be divided already."""
    return tensor if is_divided(like) or not tensor.ndim else tensor[rows_of(tensor, group)]


def rows_to_store(tensor: Tensor, like: Tensor, group: Alone) -> Tensor:
    """Return this process's rows of a complete tensor if the weight `like` is divided, and otherwise all."""
    return tensor[rows_of(tensor, group)].clone() if is_divided(like) else tensor


def copy_rows(target: Tensor, source: Tensor, group: Alone) -> None:
    """Copy a complete tensor into a weight or moment, of which this process may store some rows only."""
    own(target).copy_(rows_to_store(source, target, group))


def moments_of(
    optimizer: torch.optim.Optimizer, arrays: Mapping[str, Tensor], group: Alone
) -> dict[int, dict[str, Tensor]]:
    """Return the state of AdamW from tensors named NUMBER.MOMENT; everything is checked."""
    parameters = [parameter for options in optimizer.param_groups for parameter in options["params"]]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in arrays.items():
        number, _, moment_name = name.partition(".")
        parameter = parameters[int(number)]
        expected_shape = torch.Size() if moment_name == "step" else parameter.shape
        if tensor.shape != expected_shape or not tensor.is_floating_point():
            raise FirthError("damaged_checkpoint", "moments.{name} does not fit the network", name=name)
        if moment_name != "step":
            complete, tensor = tensor, torch.zeros_like(parameter)
            copy_rows(tensor, complete, group)
        moments.setdefault(int(number), {})[moment_name] = tensor
    if any(moment.keys() != {"step", "exp_avg", "exp_avg_sq"} for moment in moments.values()):
        raise FirthError("damaged_checkpoint", "the moments of AdamW are incomplete")
    return moments
