"""What follows the pooling of a sentence model: Dense, LayerNorm and Normalize, as in sentence-transformers.

Whitening and a smaller dimension are Dense modules without activation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix, unit_rows

if TYPE_CHECKING:
    from torch import Tensor, nn

Array = NDArray[np.float32]
IDENTITY = "torch.nn.modules.linear.Identity"
TANH = "torch.nn.modules.activation.Tanh"
EPSILON = 1e-5  # of LayerNorm, torch's default


@dataclass(frozen=True, eq=False)
class Dense:
    """y = activation(W x + b), plus x or R x if `use_residual`."""

    weight: Array  # (new dim, dim)
    bias: Array | None = None
    activation: str = IDENTITY  # the class of torch.nn
    parameters: Mapping[str, Array] = field(default_factory=dict)  # of the activation, such as PReLU's
    use_residual: bool = False
    residual: Array | None = None  # R, if the dimensions differ

    kind = "Dense"

    def __call__(self, rows: Matrix) -> Matrix:
        """Compute row by row, because the rounding of a matrix product depends on the number of rows."""
        output: Matrix = np.empty((len(rows), self.dim), np.float32)
        for row, output_row in zip(rows, output, strict=True):
            output_row[:] = self.weight @ row
        if self.bias is not None:
            output += self.bias
        if self.activation != IDENTITY:
            import torch

            with torch.inference_mode():
                output = self.function(torch.from_numpy(output)).numpy()
        if self.use_residual:
            output = output + (rows if self.residual is None else np.stack([self.residual @ row for row in rows]))
        return output

    def tensor(self, x: Tensor) -> Tensor:
        """Compute with torch, for training the network before it."""
        import torch
        from torch.nn import functional

        def moved(array: Array | None) -> Tensor | None:
            return None if array is None else torch.from_numpy(array).to(x.device, x.dtype)

        linear: Any = functional.linear
        y: Tensor = self.function.to(x.device)(linear(x, moved(self.weight), moved(self.bias)))
        if self.use_residual:
            y = y + (x if self.residual is None else linear(x, moved(self.residual)))
        return y

    @cached_property
    def function(self) -> nn.Module:
        """The activation as a module of torch."""
        return activation_module(self.activation, self.parameters, self.dim)

    @property
    def dim(self) -> int:
        """The output dimension."""
        return len(self.weight)

    def config(self) -> dict[str, Any]:
        """Return config.json."""
        residual = {"use_residual": True} if self.use_residual else {}
        return {
            "in_features": self.weight.shape[1],
            "out_features": self.dim,
            "bias": self.bias is not None,
            "activation_function": self.activation,
            **residual,
        }

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of model.safetensors."""
        optional = {"linear.bias": self.bias, "residual.weight": self.residual}
        return {
            "linear.weight": self.weight,
            **{name: array for name, array in optional.items() if array is not None},
            **{f"activation_function.{name}": array for name, array in self.parameters.items()},
        }

    @classmethod
    def of(cls, config: Mapping[str, Any], arrays: Mapping[str, Any], dim: int) -> Dense:
        """Return the module of stored config and arrays, after checking names, shapes and the activation."""
        check_features(config, "Dense")
        weight = checked_array(arrays, "linear.weight", (None, dim))
        bias = checked_array(arrays, "linear.bias", (len(weight),)) if "linear.bias" in arrays else None
        declared = {"in_features": dim, "out_features": len(weight), "bias": bias is not None}
        for name, actual in declared.items():
            if config.get(name, actual) != actual:
                raise FirthError(
                    "damaged_model",
                    "config.json of a Dense module has {name}={got!r:.60}, but its weights have {actual}.",
                    name=name,
                    got=config[name],
                    actual=actual,
                )
        use_residual = config.get("use_residual", False) is True
        residual = None
        if use_residual and len(weight) != dim:
            residual = checked_array(arrays, "residual.weight", (len(weight), dim))
        start = "activation_function."
        parameters = {
            name.removeprefix(start): np.asarray(array, np.float32)
            for name, array in arrays.items()
            if name.startswith(start)
        }
        dense = cls(weight, bias, str(config.get("activation_function", TANH)), parameters, use_residual, residual)
        _ = dense.function  # refuses an unknown activation now
        return dense


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """Layer norm of the vectors."""

    gain: Array
    shift: Array

    kind = "LayerNorm"

    def __call__(self, rows: Matrix) -> Matrix:
        import torch

        with torch.inference_mode():
            normed: Matrix = self.tensor(torch.from_numpy(np.ascontiguousarray(rows))).numpy()
        return normed

    def tensor(self, x: Tensor) -> Tensor:
        """Compute with torch."""
        import torch

        gain, shift = (torch.from_numpy(array).to(x.device, x.dtype) for array in (self.gain, self.shift))
        return torch.nn.functional.layer_norm(x, (self.dim,), gain, shift, EPSILON)

    @property
    def dim(self) -> int:
        """The output dimension."""
        return len(self.gain)

    def config(self) -> dict[str, Any]:
        """Return config.json."""
        return {"dimension": self.dim}

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of model.safetensors."""
        return {"norm.weight": self.gain, "norm.bias": self.shift}

    @classmethod
    def of(cls, config: Mapping[str, Any], arrays: Mapping[str, Any], dim: int) -> LayerNorm:
        """Return the module of stored arrays, after checking their shapes."""
        return cls(checked_array(arrays, "norm.weight", (dim,)), checked_array(arrays, "norm.bias", (dim,)))


@dataclass(frozen=True)
class Normalize:
    """Vectors of length 1, before further modules; after the last, `Pooling.normalize` does it."""

    dim: int

    kind = "Normalize"

    def __call__(self, rows: Matrix) -> Matrix:
        return unit_rows(rows)

    def tensor(self, x: Tensor) -> Tensor:
        """Compute with torch."""
        import torch

        return torch.nn.functional.normalize(x, dim=-1)

    def config(self) -> dict[str, Any]:
        """Return config.json."""
        return {}

    def arrays(self) -> dict[str, Array]:
        """Return no arrays."""
        return {}


Step = Dense | LayerNorm | Normalize


@dataclass(frozen=True)
class Projection:
    """The modules between the pooling and the final normalization, in order."""

    steps: tuple[Step, ...]

    @classmethod
    def linear(cls, weight: Array, bias: Array) -> Projection:
        """Return the linear map y = W x + b."""
        return cls((Dense(weight, bias),))

    def __call__(self, rows: Matrix) -> Matrix:
        for step in self.steps:
            rows = step(rows)
        return rows

    def tensor(self, x: Tensor) -> Tensor:
        """Compute with torch, for training the network before it."""
        for step in self.steps:
            x = step.tensor(x)
        return x

    @property
    def dim(self) -> int:
        """The output dimension."""
        return self.steps[-1].dim

    def shortened(self, dim: int) -> Projection:
        """Return the projection to the first `dim` dimensions."""
        last = self.steps[-1]
        if isinstance(last, Dense) and last.activation == IDENTITY and not last.use_residual:
            bias = None if last.bias is None else last.bias[:dim]
            return Projection((*self.steps[:-1], Dense(last.weight[:dim], bias)))
        return Projection((*self.steps, Dense(np.eye(self.dim, dtype=np.float32)[:dim])))


def activation_module(path: str, parameters: Mapping[str, Array], dim: int) -> nn.Module:
    """Return an activation of torch by the name of its class; raise unsupported_architecture for anything else."""
    import torch

    match = re.fullmatch(r"torch\.nn\.(?:modules\.(?:activation|linear)\.)?(\w+)", path)
    name = match.group(1) if match else ""
    kind = torch.nn.Identity if name == "Identity" else getattr(torch.nn.modules.activation, name, None)
    try:
        if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
            raise TypeError
        module = kind().eval()
        module.load_state_dict({key: torch.from_numpy(array) for key, array in parameters.items()})
        with torch.inference_mode():
            if module(torch.zeros(1, dim)).shape != (1, dim):
                raise TypeError
    except (TypeError, ValueError, RuntimeError):
        raise FirthError(
            "unsupported_architecture",
            "The activation of a Dense module must be one of torch.nn without arguments, such as {example}; got "
            "{got!r:.80}.",
            example=TANH,
            got=path,
        ) from None
    return module


def check_features(config: Mapping[str, Any], module: str) -> None:
    """Raise unsupported_architecture if a module reads or writes anything but the sentence vector."""
    for key in ("module_input_name", "module_output_name"):
        name = config.get(key) or "sentence_embedding"
        if name != "sentence_embedding":
            raise FirthError(
                "unsupported_architecture",
                "Firth supports {module} modules only on the sentence vector; {key} is {got!r:.60}.",
                module=module,
                key=key,
                got=name,
            )


def checked_array(arrays: Mapping[str, Any], name: str, shape: tuple[int | None, ...]) -> Array:
    """Return a stored array as float32; raise damaged_model if it is missing, has another shape or is not finite."""
    array = arrays.get(name)
    fits = array is not None and len(array.shape) == len(shape)
    fits = fits and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))  # type: ignore[union-attr]
    if not fits or array is None or not len(array) or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise FirthError(
            "damaged_model",
            "A module after the pooling needs {array} with finite numbers of shape {expected}; got {got}.",
            array=name,
            expected=tuple("any" if size is None else size for size in shape),
            got="none" if array is None else f"{array.dtype} {tuple(array.shape)}",
        )
    return np.asarray(array, np.float32)
