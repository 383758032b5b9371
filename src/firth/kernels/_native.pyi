from typing import Any

import numpy as np
from numpy.typing import NDArray

def instruction_sets() -> list[str]: ...
def active_isa() -> str: ...
def new_table(rows: int, stride: int) -> NDArray[np.float32]: ...
def alias_table(weights: NDArray[np.float64]) -> NDArray[np.uint32]: ...
def huffman_paths(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]: ...

class Trainer:
    def __init__(
        self,
        *,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        inputs: NDArray[np.float32],
        outputs: NDArray[np.float32],
        subword_starts: NDArray[np.int64],
        subword_rows: NDArray[np.int32],
        tag_starts: NDArray[np.int64],
        tag_rows: NDArray[np.int32],
        keep: NDArray[np.uint32],
        noise: NDArray[np.uint32],
        path_starts: NDArray[np.int64],
        path_nodes: NDArray[np.int32],
        path_turns: NDArray[np.uint8],
        architecture: int,
        loss: int,
        mean: bool,
        exact: bool,
        neighbors: bool,
        window: int,
        shrink: bool,
        negatives: int,
        shared: bool,
        group: int,
        group_negatives: int,
        last: int,
    ) -> None: ...
    def racing(
        self, first: int, last: int, seed: int, rate_first: float, rate_last: float, threads: int
    ) -> tuple[float, int, int]: ...
    def ordered(
        self,
        cursors: NDArray[np.int64],
        windows: int,
        rounds: int,
        seed: int,
        rate_first: float,
        rate_last: float,
        threads: int,
    ) -> tuple[float, int, int]: ...
    def infer(self, rows: NDArray[np.float32], epochs: int, rate: float, seed: int, threads: int) -> None: ...
    def stream_starts(self, streams: int) -> list[int]: ...

class TextEncoder:
    def __init__(self, split: str, lowercase: bool, slots: int, unit: str = "file") -> None: ...
    def seed(self, words: bytes) -> None: ...
    def words(self, slot: int) -> tuple[bytes, NDArray[np.int64]]: ...
    def add(self, slot: int, words: bytes, counts: NDArray[np.int64]) -> NDArray[np.int32]: ...
    def encode(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> None: ...
    def stretches(self) -> list[tuple[int, NDArray[np.int32]]]: ...
    def bytes(self, slot: int) -> int: ...
    def prune(self, slot: int) -> NDArray[np.int32]: ...
    def merge(self, min_count: int, max_size: int) -> dict[str, Any]: ...
    def statistics(self) -> tuple[int, int]: ...

def tokenize(text: bytes, split: str, lowercase: bool) -> bytes: ...
def safe_cut(data: NDArray[np.uint8], split: str) -> int: ...
def line_ends(data: NDArray[np.uint8]) -> NDArray[np.int64]: ...
def paragraph_ends(data: NDArray[np.uint8], state: int) -> tuple[NDArray[np.int64], int]: ...
def translate(
    ids: NDArray[np.int32], map: NDArray[np.int32], out: NDArray[np.int32], ends: NDArray[np.int64]
) -> tuple[int, int]: ...
def unicode_tables() -> tuple[NDArray[np.uint8], NDArray[np.int32]]: ...
def unicode_version() -> str: ...
def alphabet(
    words: bytes, counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint8]]: ...

class BpeTrainer:
    def __init__(
        self,
        words: bytes,
        counts: NDArray[np.int64],
        tokens: bytes,
        codes: NDArray[np.uint32],
        plain_ids: NDArray[np.int32],
        affixed_ids: NDArray[np.int32],
        affix_last: bool,
        prefix: str,
    ) -> None: ...
    def run(self, vocabulary: int, min_count: int, steps: int) -> int: ...
    def tokens(self) -> bytes: ...
    def merges(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]: ...

class PairCounter:
    def __init__(self, max_bytes: int) -> None: ...
    def add(self, ids: NDArray[np.int32], map: NDArray[np.int32], keep: NDArray[np.uint8]) -> None: ...
    def pairs(self, min_count: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]: ...
    def dropped(self) -> int: ...

class PairJoiner:
    def __init__(self, first: NDArray[np.int32], second: NDArray[np.int32], joined: NDArray[np.int32]) -> None: ...
    def join(self, ids: NDArray[np.int32], map: NDArray[np.int32], out: NDArray[np.int32]) -> int: ...

class PairSums:
    def __init__(
        self,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        words: int,
        keep: NDArray[np.uint32],
        seed: int,
        weight: NDArray[np.int64],
        scale: float,
        left: bool,
        right: bool,
        bounds: NDArray[np.int32],
        max_pairs: int,
        threads: int,
    ) -> None: ...
    def rows(self, first: int, last: int, contexts: int, weights: int, lengths: NDArray[np.int64]) -> int: ...
    def run(self, first: int, last: int, file: int, begin: int, offsets: NDArray[np.int64]) -> int: ...
    def merge(
        self,
        files: NDArray[np.int32],
        offsets: NDArray[np.int64],
        buffer: int,
        contexts: int,
        weights: int,
        lengths: NDArray[np.int64],
    ) -> int: ...

def write_strata(
    starts: NDArray[np.int64],
    contexts: NDArray[np.int32],
    counts: NDArray[np.float64],
    x_max: float,
    exponent: float,
    parts: int,
    seed: int,
    threads: int,
    file: int,
    blocks: NDArray[np.int64],
) -> None: ...

class WordPieces:
    def __init__(self, tokens: bytes, fold: bool, unknown: int) -> None: ...
    def ids(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def means(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        table: NDArray[np.float32],
        rows: NDArray[np.float32],
        known: NDArray[np.int64],
        unknown: NDArray[np.int64],
        threads: int,
    ) -> None: ...

class Encoder:
    def __init__(
        self,
        weights: list[tuple[str, NDArray[np.float32]]],
        layers: int,
        dim: int,
        heads: int,
        hidden: int,
        positions: int,
        embedding_dim: int,
        activation: int,
        gated: bool,
        rms_norm: bool,
        pre_norm: bool,
        first_norm: bool,
        embedding_norm: bool,
        final_norm: bool,
        epsilon: float,
        score_scale: float,
        window: int,
        local_layers: list[int],
        quantized: bool,
    ) -> None: ...
    def encode(
        self,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        weights: NDArray[np.float32],
        concat: bool,
        pool: int,
        chunk_tokens: int,
        out: NDArray[np.float32],
        threads: int,
    ) -> None: ...

class GloveTrainer:
    def __init__(
        self,
        records: NDArray[np.uint32],
        starts: NDArray[np.int64],
        parts: int,
        words: NDArray[np.float32],
        contexts: NDArray[np.float32],
        word_biases: NDArray[np.float32],
        context_biases: NDArray[np.float32],
    ) -> None: ...
    def diagonal(self, which: int, piece: int, pieces: int, rate: float, threads: int) -> float: ...

def count_distinct(
    ids: NDArray[np.int32], starts: NDArray[np.int64], words: int, distinct: NDArray[np.int64], threads: int
) -> None: ...
def count_words(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    words: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int32],
    counts: NDArray[np.float32],
    threads: int,
) -> None: ...
def multiply(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    dense: NDArray[np.float32],
    out: NDArray[np.float32],
    threads: int,
) -> None: ...
def hash_words(text: NDArray[np.uint8], starts: NDArray[np.int64], hashes: NDArray[np.uint32]) -> None: ...
def subwords(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    minn: int,
    maxn: int,
    buckets: int,
    row_starts: NDArray[np.int64],
) -> NDArray[np.int32]: ...
def search(
    matrix: NDArray[Any],
    queries: NDArray[np.float32],
    scales: NDArray[np.float32] | None,
    listed: NDArray[np.int64] | None,
    squared: bool,
    sketch: tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]
    | None,
    scores: NDArray[np.float32],
    rows: NDArray[np.int64],
    threads: int,
) -> None: ...
def code_rows(
    matrix: NDArray[np.float32],
    codes: NDArray[np.int8],
    steps: NDArray[np.float32],
    sums: NDArray[np.int32],
    errors: NDArray[np.float32],
    norms: NDArray[np.float32],
) -> None: ...
def find_centroids(
    sample: NDArray[np.float32], width: int, iterations: int, centroids: NDArray[np.float32], threads: int
) -> None: ...
def assign_codes(
    matrix: NDArray[np.float32],
    width: int,
    centroids: NDArray[np.float32],
    codes: NDArray[np.uint8],
    threads: int,
) -> None: ...

class LabelTrainer:
    def __init__(
        self,
        *,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        labels: NDArray[np.int32],
        label_starts: NDArray[np.int64],
        hashes: NDArray[np.int32],
        ngram_starts: NDArray[np.int64],
        ngrams: NDArray[np.int32],
        bucket_rows: NDArray[np.int32],
        inputs: NDArray[np.float32],
        outputs: NDArray[np.float32],
        noise: NDArray[np.uint32],
        path_starts: NDArray[np.int64],
        path_nodes: NDArray[np.int32],
        path_turns: NDArray[np.uint8],
        words: int,
        word_ngrams: int,
        label_count: int,
        loss: int,
        negatives: int,
    ) -> None: ...
    def train(
        self,
        order: NDArray[np.int64],
        first: int,
        last: int,
        rate_first: float,
        rate_last: float,
        seed: int,
        threads: int,
    ) -> tuple[float, int]: ...

class LabelPredictor:
    def __init__(
        self,
        *,
        words: bytes,
        split: str,
        lowercase: bool,
        minn: int,
        maxn: int,
        word_ngrams: int,
        inputs: NDArray[np.float32],
        bucket_rows: NDArray[np.int32],
        word_count: int,
        outputs: NDArray[np.float32],
        labels: int,
        loss: int,
        children: NDArray[np.int32],
    ) -> None: ...
    def predict(
        self, data: NDArray[np.uint8], ends: NDArray[np.int64], k: int, threshold: float, threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
    def hidden(
        self,
        data: NDArray[np.uint8],
        ends: NDArray[np.int64],
        out: NDArray[np.float32],
        counts: NDArray[np.int64],
        threads: int,
    ) -> None: ...

def mark_buckets(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    hashes: NDArray[np.int32],
    word_ngrams: int,
    used: NDArray[np.uint8],
    threads: int,
) -> None: ...
def take_labels(
    data: NDArray[np.uint8], ends: NDArray[np.int64], take: bool, separate: bool
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]: ...

class Walks:
    def __init__(
        self,
        starts: NDArray[np.int64],
        neighbors: NDArray[np.int32],
        weights: NDArray[np.float32],
        directed: bool,
        threads: int,
    ) -> None: ...
    def walk(
        self,
        first: NDArray[np.int32],
        number: NDArray[np.int32],
        length: int,
        p: float,
        q: float,
        seed: int,
        threads: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], int]: ...

def als_gram(table: NDArray[np.float32], out: NDArray[np.float32], threads: int) -> None: ...

class AlsSide:
    def __init__(
        self,
        starts: NDArray[np.int64],
        columns: NDArray[np.int32],
        values: NDArray[np.float32],
        rows: NDArray[np.float32],
        others: NDArray[np.float32],
        ridge: NDArray[np.float32],
        alpha: float,
        mean: float,
        bias_column: int,
        steps: int,
    ) -> None: ...
    def solve(self, gram: NDArray[np.float32] | None, first: int, last: int, threads: int) -> float: ...

class BprTrainer:
    def __init__(
        self,
        starts: NDArray[np.int64],
        columns: NDArray[np.int32],
        owners: NDArray[np.int32],
        users: NDArray[np.float32],
        items: NDArray[np.float32],
        noise: NDArray[np.uint32],
        bias: int,
        regularization: float,
    ) -> None: ...
    def train(self, first: int, last: int, rate: float, seed: int, threads: int) -> tuple[float, int]: ...
    def fold(self, passes: int, rate: float, seed: int, threads: int) -> None: ...

class Weights:
    def __init__(self, storage: str, rows: NDArray[np.uint8], columns: int, bias: NDArray[np.float32]) -> None: ...
    def packed_size(self) -> int: ...
    def pack(self, memory: NDArray[np.uint8]) -> None: ...
    def multiply(self, x: NDArray[np.float32], out: NDArray[np.float32], threads: int) -> None: ...

class Decoder:
    def __init__(
        self,
        *,
        heads: int,
        kv_heads: int,
        head_dim: int,
        hidden: int,
        positions: int,
        rms: bool,
        epsilon: float,
        activation: str,
        rotary_pairs: int,
        interleaved: bool,
        rotary_tables: int,
        attention_scale: float,
        score_cap: float,
        logit_cap: float,
        embedding_scale: float,
        half_cache: bool,
        embedding: Weights,
        position_vectors: NDArray[np.float32],
        norm: list[NDArray[np.float32]],
        outputs: Weights,
    ) -> None: ...
    def add_layer(
        self,
        norms: list[NDArray[np.float32]],
        query: Weights | None,
        key: Weights | None,
        value: Weights | None,
        output: Weights | None,
        gate: Weights | None,
        up: Weights | None,
        down: Weights | None,
        window: int,
        rotary_table: int,
    ) -> None: ...
    def cache_bytes(self, positions: int) -> int: ...
    def forward(
        self,
        ids: NDArray[np.int32],
        position: int,
        positions: int,
        rotary: NDArray[np.float32],
        keys: NDArray[np.uint8],
        values: NDArray[np.uint8],
        states: NDArray[np.float32],
        logits: NDArray[np.float32],
        threads: int,
    ) -> None: ...
