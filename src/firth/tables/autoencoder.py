"""Autoencoder: a network that compresses rows to codes and reconstructs them (Hinton & Salakhutdinov 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import CompressingOptions, networks

if TYPE_CHECKING:
    from firth.tables.autoencoder_model import AutoencoderModel


@dataclass(frozen=True, kw_only=True)
class Autoencoder(CompressingOptions):
    """Minimize Σ ½ (x − x̂)² over numbers and −log p over categories, where x̂ and p are decoded from the row's code.

    The network is initialized from PCA of the rows. The result has the weights with the lowest held-out loss, which may
    be the initial ones.

    The data is a `Table` (or anything it accepts) or `Vectors`. Missing cells are marked in the input and left out of
    the loss, and so are unseen categories later. A column without values is reconstructed as missing, a constant column
    as its constant. Infinite numbers, fewer than 2 rows and tables without variation are refused.
    """

    summary: ClassVar[str] = "tables and vectors: rows compressed by a network to codes that reconstruct them"

    tied: bool = option(False, "the decoder uses the transposed matrices of the encoder")

    @classmethod
    def model_class(cls) -> type[AutoencoderModel]:
        with networks():
            from firth.tables.autoencoder_model import AutoencoderModel
        return AutoencoderModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> AutoencoderModel:
        """Train on a table or vectors. With `start`, continue from that model, with its columns and scales."""
        with networks():
            from firth.tables.autoencoder_training import train_autoencoder
        return train_autoencoder(self.model_class(), self, data, run, start)
