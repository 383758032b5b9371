"""Autoencoder: rows squeezed through few numbers, from which they are rebuilt (Hinton & Salakhutdinov 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import CompressingOptions, model_in, torch_module


@model_in("tables.autoencoder_model", "AutoencoderModel")
@dataclass(frozen=True, kw_only=True)
class Autoencoder(CompressingOptions):
    """Minimises Σ ½ (x − x̂)² over numbers and −log p over categories, x̂ and p being made of the row's code alone.

    Learning begins at PCA of the rows and ends with the weights that rebuild held-out rows best, PCA's among them.

    Fits a `Table` (or what one can be made of) or `Vectors`. Missing cells are told to the network as missing and don't
    count in the loss; so are, later, categories that fit did not meet. A column without any value comes back as
    missing, a constant one as its constant. Refused are infinite numbers, fewer than 2 rows, and tables in which
    nothing varies.
    """

    summary: ClassVar[str] = "tables and vectors: rows squeezed by a network to few numbers that rebuild them"

    tied: bool = option(False, "the decoder's matrices are the encoder's, transposed")

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from a table or vectors. With `start`, goes on from that model, with its columns and scales."""
        return torch_module("tables.autoencoder_training").learn(self, data, run, start)
