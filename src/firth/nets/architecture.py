"""The settings of a transformer: which variant of each part it has, and how large it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from firth.core.errors import FirthError
from firth.nets.positions import RotaryScaling

#: Activations of feed-forward layers. Gated ones multiply the activation of one half by the other (Shazeer 2020).
PLAIN_ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "silu")
GATED_ACTIVATIONS = {"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_tanh", "reglu": "relu"}
POSITIONS = ("learned", "sinusoidal", "rotary", "none")
SCORE_BIASES = ("none", "relative", "alibi", "disentangled")
NORMS = ("layer", "rms")


@dataclass(frozen=True)
class Architecture:
    """The dimensions and variants of a transformer."""

    layers: int = 6
    dim: int = 512
    heads: int = 8
    feedforward_dim: int = 0  # width of the feed-forward layer; 0 = 4 · dim
    max_positions: int = 512  # length of the longest sequence
    dropout: float = 0.1
    activation: str = "gelu"
    positions: str = "learned"
    pre_norm: bool = True  # norm before each sublayer (GPT-2), or after the residual sum (the paper, BERT)
    epsilon: float = 1e-5

    family: str = ""  # whose config and array names the network is stored with (transformers/families)

    # Embeddings
    segments: int = 0  # number of segments of a BERT
    embedding_dim: int = 0  # width of the embeddings, projected to dim (ALBERT, ELECTRA); 0 = dim, no projection
    embedding_norm: bool = False
    embedding_scale: float = 0.0  # 0 = √dim with sinusoidal positions, otherwise 1
    tied: bool = True  # the output layer uses the token embeddings
    logit_scale: float = 1.0  # factor of the output vectors before the product with the token embeddings (T5)
    logit_bias: bool = False  # of each token of the vocabulary (BART, Marian)

    # Attention
    key_value_heads: int = 0  # groups of heads share keys and values; 0 = heads
    head_dim: int = 0  # 0 = dim / heads
    attention_biases: bool = True  # of queries, keys and values
    output_biases: bool = True  # of the attention's output layer
    qk_norm: bool = False  # RMS norm of the queries and keys of each head
    score_scale: float = 0.0  # factor of the scores; 0 = 1/√head_dim
    score_cap: float = 0.0  # soft cap of the scores; 0 = none
    logit_cap: float = 0.0  # soft cap of the logits over the vocabulary; 0 = none
    window: int = 0  # local layers attend to positions at most this far away
    local_layers: tuple[int, ...] = ()
    bidirectional: bool = False  # a decoder that attends to both sides, to embed texts (EmbeddingGemma)

    # Heads of encoders
    head_activation: str = ""  # of the masked-token head; by default that of the blocks
    head_biases: bool = True  # of the masked-token head's dense layer

    # Decoders of encoder-decoders; 0 = as in the encoder
    decoder_layers: int = 0
    decoder_heads: int = 0
    decoder_feedforward_dim: int = 0

    # Positions
    sinusoidal_halves: bool = False  # all sines before all cosines (Marian) instead of alternating (the paper)
    rotary_base: float = 10000.0
    rotary_local_base: float = 0.0  # of local layers; 0 = rotary_base
    rotary_dim: int = 0  # rotated dimensions of a head; 0 = all
    rotary_halves: bool = False  # pairs are i and i + n/2 (Hugging Face) instead of 2i and 2i + 1 (the paper)
    rotary_scaling: RotaryScaling | None = None  # of the layers that are not local
    score_bias: str = "none"  # added to the scores by distance: relative (T5, MPNet), alibi, disentangled (DeBERTa)
    relative_buckets: int = 32  # of distances; disentangled: of each direction, 0 = one per distance
    relative_far: int = 128  # larger distances share a bucket
    relative_scores: tuple[str, ...] = ()  # disentangled: c2p, content to position, and p2c, position to content
    relative_norm: bool = False  # disentangled: the distance embeddings are normalized
    relative_shared: bool = False  # disentangled: distances are projected by the layers for queries and keys

    # Blocks
    norm: str = "layer"
    norm_biases: bool = True
    first_norm: bool = True  # False: no norm before the first block's attention (ModernBERT)
    sublayer_norms: bool = False  # a second norm after each sublayer, before the residual sum (Gemma)
    feedforward_biases: bool = True
    shared_layers: bool = False  # all layers have the same weights (ALBERT)

    def __post_init__(self) -> None:
        if not self.head_dim and self.dim % self.heads:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of heads; got {got} and {heads}.",
                option="dim",
                got=self.dim,
                heads=self.heads,
            )

    @property
    def width_of_head(self) -> int:
        """The dimension of a head."""
        return self.head_dim or self.dim // self.heads

    @property
    def width_of_feedforward(self) -> int:
        """The width of the feed-forward layer."""
        return self.feedforward_dim or 4 * self.dim

    @property
    def decoder(self) -> Architecture:
        """The settings of an encoder-decoder's decoder."""
        return replace(
            self,
            layers=self.decoder_layers or self.layers,
            heads=self.decoder_heads or self.heads,
            feedforward_dim=self.decoder_feedforward_dim or self.feedforward_dim,
        )

    @property
    def width_of_embedding(self) -> int:
        """The width of the embeddings."""
        return self.embedding_dim or self.dim
