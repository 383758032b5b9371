"""The heads of fine-tuned networks: their layers in each family, and their arrays in saved folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.core.stored import check_finite
from firth.finetuning.finetuning_options import TuningOptions
from firth.nets.architecture import Architecture
from firth.nets.encoder import Encoder
from firth.nets.transformer import Decoder
from firth.nets.tuned import Dense, Tuned
from firth.transformers.adapters import new_adapters
from firth.transformers.bert_model import BertModel
from firth.transformers.families import ENCODERS
from firth.transformers.families.family import POOLER, SPAN, Head
from firth.transformers.gpt_model import GPTModel

Base = BertModel | GPTModel
Arrays = Mapping[str, NDArray[Any]]
GPT_HEAD = Head("score", pools=("last",))


def head_of(size: Architecture, kind: str, pool: str) -> Head:
    """Return the head that a family has for a kind of task, or an output layer alone where it has no such head."""
    if pool == "last":
        return GPT_HEAD
    head = ENCODERS[size.family].heads.get(kind)
    if head is None or pool not in head.pools:
        return Head("qa_outputs" if kind == SPAN else "classifier", pools=())
    return head


def split_head(arrays: Arrays, head: Head) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.float32]]]:
    """Split arrays into those of the base and those of the head, which get Firth's names."""
    names = {f"{theirs}.{end}": f"{ours}.{end}" for ours, theirs in head.layers.items() for end in ("weight", "bias")}
    own = {names[name]: np.array(array, np.float32) for name, array in arrays.items() if name in names}
    rest = {name: array for name, array in arrays.items() if name not in names and not name.startswith("columns.")}
    for ours, theirs in head.layers.items():
        if f"{ours}.weight" not in own:
            raise FirthError(
                "incomplete_model", "The model has no head: the array {name}.weight is missing.", name=theirs
            )
    return rest, own


def head_arrays(net: Tuned, head: Head) -> dict[str, NDArray[Any]]:
    """Return the arrays of the head by the other library's names."""
    layers = head.layers
    return {
        f"{layers[ours]}.{end}": part.detach().cpu().numpy()
        for ours, layer in layers_of(net).items()
        for end, part in layer.named_parameters()
    }


def layers_of(net: Tuned) -> dict[str, nn.Module]:
    """Return the layers of a head that are not part of the base, by name."""
    if net.dense is None:
        return {"output": net.head}
    return {"output": net.head, "dense": net.dense.dense, "norm": net.dense.norm}


def with_head(base: Base, arrays: Mapping[str, NDArray[np.float32]], head: Head, pool: str) -> Tuned:
    """Build the network of a saved model from its base and the head's arrays."""
    if head.dense == POOLER and isinstance(base.net, Encoder) and base.net.pooler is None:
        raise FirthError("incomplete_model", "The model has no pooler, which its head needs.")
    check_finite({f"the head's {name}": array for name, array in arrays.items()})
    weight = arrays["output.weight"]
    outputs, width = weight.shape if weight.ndim == 2 else (0, 0)
    extra = width - base.size.dim
    net = assembled(base, outputs, pool, 0.0, head, max(extra, 0), "output.bias" in arrays)
    parts = {f"{name}.{end}": part for name, layer in layers_of(net).items() for end, part in layer.named_parameters()}
    wrong = [name for name in parts.keys() | arrays.keys() if shape_of(parts, name) != shape_of(arrays, name)]
    if extra < 0 or wrong:
        raise FirthError(
            "damaged_model",
            "The head of {outputs} × {width} does not fit a base of {dim} dimensions.",
            outputs=outputs,
            width=width,
            dim=base.size.dim,
        )
    with torch.no_grad():
        for name, part in parts.items():
            part.copy_(torch.from_numpy(arrays[name]))
    return net


def shape_of(arrays: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    """Return the shape of an array; None if it is missing."""
    return tuple(arrays[name].shape) if name in arrays else None


def new_net(
    base: Base,
    outputs: int,
    kind: str,
    pool: str,
    method: TuningOptions,
    run: Run,
    extra: int = 0,
    bias: bool = False,
) -> Tuned:
    """Put a new head on the base, initialized with the run's seed. A GPT's head has no bias unless `bias` is set."""
    causal = isinstance(base.net, Decoder)
    pool = "last" if causal else pool
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        if method.lora:
            new_adapters(base.net, base.size, method.lora, method.lora_alpha, method.lora_layers)
        return assembled(base, outputs, pool, method.dropout, head_of(base.size, kind, pool), extra, bias or not causal)


def assembled(
    base: Base, outputs: int, pool: str, dropout: float, head: Head, extra: int = 0, bias: bool = True
) -> Tuned:
    """Return the base with a head, without the pre-training heads.

    A dense layer that is also part of the family's masked-token head, as in ModernBERT, starts with its weights.
    """
    net, own = base.net, head.dense if head.dense != POOLER else ""
    dense = Dense(base.size, head.activation, norm=bool(head.norm)) if own else None
    is_new = True
    if isinstance(net, Encoder):
        masked = ENCODERS[base.size.family].head_names.get("masked.dense")
        if dense is not None and net.masked is not None and masked == own:
            dense.dense, dense.norm, is_new = net.masked.dense, net.masked.norm, False
        net.masked = net.next_sentence = None
        if head.dense != POOLER:
            net.pooler = None
    return Tuned(net, outputs, pool, dropout, extra, bias, dense, is_new, pooler=head.dense == POOLER)
