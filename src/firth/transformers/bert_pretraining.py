"""Pre-training of BERT: masked-language modeling and next-sentence prediction (Devlin et al. 2019)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.run import Run
from firth.data.corpus import Corpus
from firth.data.sentences import Sentences, read_sentences
from firth.data.special_tokens import BERT_NAMES
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.subwords import WordPiece
from firth.nets.architecture import Architecture
from firth.nets.attention import Packed
from firth.nets.encoder import Encoder
from firth.nets.transformer import Block
from firth.training.gradient_loop import Batch, GradientLoop, token_shares
from firth.transformers.bert import BERT
from firth.transformers.bert_files import size_of
from firth.transformers.bert_model import BertModel
from firth.transformers.masking import Masking, seed_of
from firth.transformers.next_sentence_pairs import Pairs, make_pairs, short_sentences
from firth.transformers.packing import PackedBatch, Shape, batch_ends, pack
from firth.transformers.pooling import Pooling

MOST_TOKENS = 32_768  # per batch in memory; larger steps accumulate gradients over several
SHORT = 128  # sequence length of the first phase, if context_length is longer
MULTIPLE = 64  # of embedding rows in training: aligned matrix products are faster
MOST_HELD_OUT = 0.2  # share of the text, if whole documents exceed the held_out share
HELD_OUT_EPOCH = -1  # the held-out part has masks of its own
NEVER = -1e4  # logit of padding rows


class Work(NamedTuple):
    """Everything `load` needs to build a batch, so that it can run at any time on any thread."""

    pairs: Pairs
    epoch: int
    longest: int
    shape: Shape | None


class Pretraining(GradientLoop):
    """Trains on pairs of sentences or single texts, packed without padding, with new masks in each epoch."""

    compiles: ClassVar[bool] = True
    method: BERT  # the options of transformers/bert.py
    net: Encoder

    def __init__(self, method: BERT, net: Encoder, sentences: Sentences, tokenizer: SubwordTokenizer, run: Run) -> None:
        self.tokenizer, self.next_sentence = tokenizer, net.next_sentence is not None
        self.masking = Masking.of(tokenizer, method.mask_rate, method.mask_share, method.whole_words)
        self.template, self.pad = tokenizer.template, tokenizer.special.require("pad").id
        self.sentences, self.held_out = split(sentences, method.held_out)
        if not self.masking.maskable[self.sentences.ids[self.sentences.starts[0] : self.sentences.starts[-1]]].any():
            raise FirthError(
                "empty_data",
                "There is nothing to predict: every token of the text is {token}.",
                token=tokenizer.special.require("unk").token,
            )
        self.seed, self.context_length = run.seed, method.context_length
        short = method.short_first > 0 and self.context_length > SHORT
        self.lengths = (SHORT, self.context_length) if short else (self.context_length,)
        first = self.pairs(self.sentences, 0, 0)
        super().__init__(method, net, sentences.fingerprint, run, int(first.tokens(self.template).sum()))
        self.step_capacity = max(self.context_length, method.batch_units)
        self.capacity = self.step_capacity  # of a batch: with a part of a step, up to one more text
        if (passes := self.passes(MOST_TOKENS)) > 1:
            self.capacity = -(-self.step_capacity // passes) + self.context_length - 1
        self.static = self.device.type == "cuda"  # all batches have one shape
        self.longest = self.lengths[0]
        self.attended = 0.0  # mean number of tokens that a token attends to

    # ---- batches ----

    def pairs(self, sentences: Sentences, epoch: int, phase: int) -> Pairs:
        """Return the shuffled pairs of an epoch."""
        template = self.template
        max_tokens = self.lengths[phase] - (template.added_to_pair if self.next_sentence else template.added)
        random = np.random.default_rng([self.seed, epoch - HELD_OUT_EPOCH, phase])
        pairs = make_pairs(
            short_sentences(sentences, max(1, max_tokens // 2))[0], max_tokens, random, self.next_sentence
        )
        return pairs.take(random.permutation(len(pairs)))

    def shape_of(self, phase: int, capacity: int) -> Shape:
        """Return the fixed shape of batches on a GPU, with a quarter more sequences than the average, and fillers."""
        tokens = self.pairs(self.sentences, 0, phase).tokens(self.template)
        sequences = int(1.25 * capacity / tokens.mean()) + 8
        fillers = -(-capacity // self.lengths[phase])
        return Shape(capacity, sequences + fillers, self.masking.max_masked(capacity))

    def phase(self, share: float) -> int:
        """Return the phase at this share of the run: 0 for short sequences, then 1."""
        return int(len(self.lengths) > 1 and share >= self.method.short_first)

    def plan(self, epoch: int) -> Sequence[Batch]:
        """Return the batches of an epoch: steps of about `batch_tokens` tokens, divided into passes."""
        phase = self.progress.phase
        self.longest = self.lengths[phase]
        pairs = self.pairs(self.sentences, epoch, phase)
        tokens = pairs.tokens(self.template)
        self.attended = float((tokens**2).sum() / tokens.sum())
        shape = self.shape_of(phase, self.capacity) if self.static else None
        most = self.shape_of(phase, self.step_capacity).sequences if self.static else len(tokens)
        ends = batch_ends(tokens, self.step_capacity, most - -(-self.step_capacity // self.longest) * self.static)
        batches: list[Batch] = []
        for step, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
            cuts = first + divided(tokens[first:last], self.passes(MOST_TOKENS))
            for begin, end in pairwise(cuts):
                fits = shape and end - begin <= shape.sequences - -(-self.capacity // self.longest)
                work = Work(pairs.take(slice(begin, end)), epoch, self.longest, shape if fits else None)
                batches += [Batch(work, int(tokens[begin:end].sum()), step)] if end > begin else []
        return batches

    def load(self, what: Any) -> Any:
        """Return the tensors of a batch."""
        seed = seed_of(self.seed, what.epoch)
        arrays = pack(
            self.sentences.ids, what.pairs, self.template, self.pad, self.masking, seed, what.shape, what.longest
        )
        return [torch.from_numpy(array) for array in arrays]

    # ---- losses ----

    def normalized(self, batches: list[list[Tensor]], tokens: int) -> list[list[Tensor]]:
        """Weight masked tokens and pairs by their numbers in the whole step."""
        if self.passes(MOST_TOKENS) == 1:
            return batches
        weights = (PackedBatch._fields.index("slot_weights"), PackedBatch._fields.index("pair_weights"))
        counts = torch.tensor([sum(int((batch[at] > 0).sum()) for batch in batches) for at in weights])
        if self.world > 1:
            counts = counts.to(self.device)
            dist.all_reduce(counts)
        for batch in batches:
            for at, count in zip(weights, counts.tolist(), strict=True):
                batch[at] = (batch[at] > 0) * torch.tensor(tokens / max(1, count), dtype=torch.float32)
        return batches

    def hidden(self, tensors: Sequence[Tensor], longest: int) -> tuple[Tensor, Tensor]:
        """Return the last layer's vectors of masked tokens and of each first token; the losses need no others."""
        ids, positions, segments, starts, slots, _, _, firsts, *_ = tensors
        rows = torch.cat([slots, firsts]) if self.next_sentence else slots
        hidden: Tensor = self.net(ids, positions, segments, Packed(starts, longest), rows)
        return hidden[: len(slots)], hidden[len(slots) :]

    def next_logits(self, firsts: Tensor) -> Tensor | None:
        """Return next-sentence logits, or None without that head."""
        if self.net.next_sentence is None or self.net.pooler is None:
            return None
        pooled = torch.tanh(self.net.pooler(firsts))
        logits: Tensor = self.net.next_sentence(pooled).float()
        return logits

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """Return the mean loss over masked tokens plus that over pairs, as in the paper, times the batch's tokens."""
        targets, slot_weights, _, labels, pair_weights = tensors[5:]
        masked, firsts = self.hidden(tensors, self.longest)
        loss = (self.net.masked_losses(masked, targets) * slot_weights).sum()
        next_sentence = self.next_logits(firsts)
        if next_sentence is not None:
            loss = loss + (functional.cross_entropy(next_sentence, labels, reduction="none") * pair_weights).sum()
        return loss

    def evaluate(self, most: int) -> dict[str, float]:
        """Return metrics on the held-out documents, with constant masks and pairs at the full context length."""
        if len(self.held_out.starts) < 2:
            return {}
        phase = len(self.lengths) - 1
        pairs = self.pairs(self.held_out, HELD_OUT_EPOCH, phase)
        tokens = pairs.tokens(self.template)
        total = torch.zeros(5, dtype=torch.float64, device=self.device)
        begin = 0
        for end in batch_ends(tokens, self.capacity, len(tokens)):
            work = Work(pairs.take(slice(begin, end)), HELD_OUT_EPOCH, self.context_length, None)
            total += self.scores([tensor.to(self.device) for tensor in self.load(work)])
            begin = end
            if tokens[:end].sum() >= most:
                break
        loss, correct, count, correct_pairs, count_pairs = total.tolist()
        if not count:
            return {}
        metrics = {
            "held_out_loss": loss / count,
            "perplexity": math.exp(min(700.0, loss / count)),
            "masked_accuracy": correct / count,
        }
        both_labels = len(np.unique(pairs.label)) == 2  # a single document has no sentences from another one
        return metrics | ({"next_accuracy": correct_pairs / count_pairs} if count_pairs and both_labels else {})

    def baseline_loss(self) -> float | None:
        """Return the held-out loss of predicting tokens by their frequency."""
        trained, held_out = (part.ids[part.starts[0] : part.starts[-1]] for part in (self.sentences, self.held_out))
        held_out = held_out[self.masking.maskable[held_out]]
        if not len(held_out):
            return None
        shares = token_shares(trained[self.masking.maskable[trained]], len(self.tokenizer))
        return float(-np.log(shares)[held_out].mean())

    def scores(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return sums: loss, correct and all masked tokens; correct and all pairs."""
        targets, slot_weights, _, labels, pair_weights = tensors[5:]
        hidden, firsts = self.hidden(tensors, self.context_length)
        masked = self.net.masked_logits(hidden).float()
        next_sentence = self.next_logits(firsts)
        real, labeled = slot_weights > 0, pair_weights > 0
        loss = functional.cross_entropy(masked, targets, reduction="none") * real
        sums = [loss.sum(), ((masked.argmax(-1) == targets) & real).sum(), real.sum()]
        correct = (
            ((next_sentence.argmax(-1) == labels) & labeled).sum() if next_sentence is not None else labeled.sum() * 0
        )
        return torch.stack([*sums, correct, labeled.sum() if next_sentence is not None else correct]).double()

    def operations(self) -> float:
        """Return the floating-point operations per token.

        These are 6 per weight of the blocks and 12 · layers · dim per attended token (Chowdhery et al. 2022, appendix
        B). The head, and the last block after its attention, count for masked tokens only.
        """
        size, block = self.net.size, cast(Block, self.net.stack.blocks[-1])
        blocks = sum(part.numel() for part in self.net.stack.parameters())
        last = sum(part.weight.numel() for part in (block.attention.output, block.feed.wide, block.feed.back))
        blocks, head = blocks - last, last + size.dim * (size.dim + self.net.input.tokens.num_embeddings)
        return 6.0 * (blocks + self.masking.rate * head) + 12.0 * size.layers * size.dim * self.attended


def divided(tokens: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """Return the bounds of `parts` groups of consecutive sequences with about as many tokens each."""
    total = np.cumsum(tokens)
    cuts = np.searchsorted(total, [total[-1] * part / parts for part in range(1, parts)])
    return np.array([0, *cuts, len(tokens)])


def split(sentences: Sentences, held_out: float) -> tuple[Sentences, Sentences]:
    """Split off the last documents, about this share of the tokens.

    If there is a single document, or the last one is a large part of the text, its last sentences are held out.
    """
    starts, last = sentences.starts, len(sentences.starts) - 1
    total, cut = starts[-1] - starts[0], last
    for boundaries in (sentences.documents, np.arange(last + 1)) if held_out else ():
        cut = int(boundaries[np.searchsorted(starts[boundaries], starts[-1] - held_out * total)])
        if cut == last and len(boundaries) > 2:
            cut = int(boundaries[-2])
        if cut < last and starts[-1] - starts[cut] <= max(MOST_HELD_OUT, 2 * held_out) * total:
            break
    return sentences.part(0, cut), sentences.part(cut, last)


# ---- training ----


def pretrain_bert(method: BERT, data: Any, run: Run, start: Model | None) -> BertModel:
    """Train a tokenizer and a BERT on a corpus, or continue from `start`."""
    size = size_of(method)
    if isinstance(start, BertModel) and (start.size.family, start.size.segments) != (size.family, size.segments):
        size = replace(start.size, dropout=method.dropout)  # the options describe a BERT only
    elif start is not None:
        check_start(start, size)
    began = time.monotonic()
    corpus = data if isinstance(data, Corpus) else Corpus(data)
    tokenizer = start.tokenizer if isinstance(start, BertModel) else make_tokenizer(method, corpus, run)
    sentences = read_sentences(tokenizer, corpus, run)
    reading = time.monotonic() - began
    next_sentence = method.next_sentence
    if next_sentence and len(split(sentences, method.held_out)[0].documents) < 3:
        run.report.note(
            "Next-sentence prediction was disabled: the training text has one document, and it needs at least two. "
            "The corpus option unit sets what a document is: a line, a block between blank lines, or a file.",
            "next_sentence_disabled",
        )
        next_sentence = False
    segments = start.size.segments if isinstance(start, BertModel) else 2
    if next_sentence and segments < 2:
        raise FirthError(
            "incompatible_start",
            "start has {segments} segment (type_vocab_size), but next-sentence prediction needs 2. Pass "
            "next_sentence=False.",
            segments=segments,
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        rows = -(-len(tokenizer) // MULTIPLE) * MULTIPLE
        net = Encoder(rows, size, pooler=next_sentence, next_sentence=next_sentence)
    pooling = Pooling()
    if isinstance(start, BertModel):
        copy_shared_weights(net, start.net)
        pooling = start.pooling
        if start.projection is not None:
            run.report.note(
                "The projection of start, such as whitening, does not fit the new vectors and was dropped.",
                "projection_dropped",
            )
    set_rows(net, len(tokenizer), rows)
    method = method.sized(int(sentences.starts[-1]))
    training = Pretraining(method, net, sentences, tokenizer, run)
    metrics = training.go() | {
        "tokens": int(sentences.starts[-1]),
        "vocabulary": len(tokenizer),
        "documents": len(sentences.documents) - 1,
        "sentences": len(sentences.starts) - 1,
        "reading_seconds": reading,
        "data": sentences.fingerprint,
        "seed": run.seed,
    }
    set_rows(net.cpu(), len(tokenizer), len(tokenizer))
    return BertModel(method, net, tokenizer, pooling, metrics)


def check_start(start: Model, size: Architecture) -> None:
    """Raise incompatible_start unless `start` is a BERT of this size."""
    if not isinstance(start, BertModel):
        raise FirthError("incompatible_start", "start must be a BERT; got {got!r}.", got=start)
    names = {"max_positions": "context_length"}  # the name of the option
    requested, existing = (
        replace(each, feedforward_dim=each.feedforward_dim or 4 * each.dim) for each in (size, start.size)
    )
    existing_options, requested_options = asdict(existing), asdict(requested)
    different = [name for name in existing_options if existing_options[name] != requested_options[name]]
    if different:
        expected, given = (
            ", ".join(f"{names.get(name, name)}={values[name]}" for name in different)
            for values in (existing_options, requested_options)
        )
        raise FirthError(
            "incompatible_start",
            "start must be a BERT of the same size: it has {expected}, but the options give {got}.",
            expected=expected,
            got=given,
        )


def make_tokenizer(method: BERT, corpus: Corpus, run: Run) -> SubwordTokenizer:
    """Load the tokenizer that the options name, or train one on the corpus."""
    if not method.tokenizer:
        return WordPiece(size=method.vocabulary_size, lowercase=method.lowercase).train(corpus, run)
    tokenizer = SubwordTokenizer.load(method.tokenizer, method.lowercase)
    missing = [role for role in BERT_NAMES if tokenizer.special.get(role) is None]
    if missing:
        raise FirthError(
            "invalid_tokenizer",
            "{tokenizer}: the tokenizer of a BERT needs the special tokens {special}; {missing} is missing.",
            tokenizer=method.tokenizer,
            special=", ".join(BERT_NAMES),
            missing=missing[0],
        )
    return tokenizer


def copy_shared_weights(net: Encoder, other: Encoder) -> None:
    """Copy the weights that the other network has; heads that it lacks keep their initialization."""
    set_rows(net, 0, other.input.tokens.num_embeddings)
    net.load_state_dict(other.state_dict(), strict=False)


def set_rows(net: Encoder, n_tokens: int, rows: int) -> None:
    """Resize the token embedding to `rows`; rows from `n_tokens` on are padding and never predicted."""
    old = net.input.tokens.weight.data
    new = old[:rows]
    if len(old) < rows:
        new = torch.cat([old, old.new_zeros(rows - len(old), old.shape[1])])
    net.input.tokens = nn.Embedding(rows, old.shape[1], _weight=new.clone())
    if net.masked is not None:
        bias = torch.full((rows,), NEVER)
        n_known = min(n_tokens or rows, rows, len(net.masked.bias))
        bias[:n_known] = net.masked.bias.data[:n_known]
        net.masked.bias = nn.Parameter(bias)
