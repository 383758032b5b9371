"""VAE: a variational autoencoder of tables and vectors, which can sample new rows (Kingma & Welling 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import UNUSUAL_ROWS, CompressingOptions, networks

if TYPE_CHECKING:
    from firth.tables.autoencoder_model import VAEModel


@dataclass(frozen=True, kw_only=True)
class VAE(CompressingOptions):
    """Maximize the evidence lower bound Σ log p(x | z) − β · KL(q(z | x) ‖ N(0, 1)), with z sampled from q.

    Numbers have a normal likelihood with a learned standard deviation per column, categories a categorical one. The
    network is initialized from probabilistic PCA. `Autoencoder` describes how tables are handled.
    """

    limits: ClassVar[tuple[str, ...]] = (
        UNUSUAL_ROWS,
        "Sampled rows imitate the training data: they are not observations, and they do not guarantee privacy.",
    )
    summary: ClassVar[str] = "tables and vectors: codes with uncertainty, and new rows sampled from the model"

    learning_rate: float = option(5e-3, "peak learning rate, after warmup and before decay", low=1e-9, high=10)
    beta: float = option(
        1.0, "weight of the KL term; larger values give simpler codes and blurrier rows", low=0, high=1000
    )
    kl_annealing: float = option(0.3, "share of the run in which the KL weight rises from 0 to beta", low=0, high=1)
    free_bits: float = option(
        0.0, "nats per dimension of the code without a KL penalty, against posterior collapse", low=0, high=100
    )

    @classmethod
    def model_class(cls) -> type[VAEModel]:
        with networks():
            from firth.tables.autoencoder_model import VAEModel
        return VAEModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> VAEModel:
        """Train on a table or vectors. With `start`, continue from that model, with its columns and scales."""
        with networks():
            from firth.tables.autoencoder_training import train_autoencoder
        return train_autoencoder(self.model_class(), self, data, run, start)
