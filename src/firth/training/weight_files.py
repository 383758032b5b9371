"""Loading of weights into networks; names, shapes and values are checked before the network is allocated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.stored import check_finite

Net = TypeVar("Net", bound=torch.nn.Module)
Arrays = Mapping[str, NDArray[Any] | torch.Tensor]


def with_weights(make: Callable[[], Net], arrays: Arrays, name_of: Callable[[str], str] = str) -> Net:
    """Return the network of `make` with these weights; `name_of` maps a parameter name to its name in `arrays`."""
    with torch.device("meta"):  # shapes without values
        expected = {name_of(name): tensor for name, tensor in make().state_dict().items()}
    for name, tensor in expected.items():
        array = arrays.get(name)
        if array is None or tuple(array.shape) != tuple(tensor.shape):
            raise FirthError(
                "damaged_model",
                "{name} must be an array of shape {expected}; got {got}.",
                name=name,
                expected=tuple(tensor.shape),
                got="no array" if array is None else f"shape {tuple(array.shape)}",
            )
        if tensor.is_floating_point() and np.asarray(array).dtype.kind != "f":
            raise FirthError("damaged_model", "{name} must contain floating-point numbers.", name=name)
    check_finite({name: arrays[name] for name in expected})
    net = make()
    copy_weights(net, arrays, name_of)
    return net


def copy_weights(net: torch.nn.Module, arrays: Arrays, name_of: Callable[[str], str] = str) -> None:
    """Copy arrays of the same shapes into the weights of a network."""
    for name, tensor in net.state_dict().items():
        array = arrays[name_of(name)]
        tensor.copy_(array if isinstance(array, torch.Tensor) else torch.from_numpy(np.array(array)))
