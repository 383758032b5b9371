"""Pre-training of BERT compared with Hugging Face's BertForPreTraining: tokens per second and loss curves.

    python benchmarks/bert_training.py DATA [--device auto|cpu|cuda] [--size base] [--lengths 128,512] [--tokens 32768]
                                       [--kinds full,text] [--steps 20] [--rounds 5] [--curve 300] [--dropout 0.1]
                                       [--peers transformers,comes,unmasked] [--out FOLDER]

DATA holds text/wiki-raw.txt.xz (or another text under that name: blank lines between documents). Both networks start
from the same weights and get the same masked pairs in bf16 (float32 on a CPU), compiled on a GPU. `full`: every
sequence has all its tokens, so that Hugging Face pads nothing; `text`: sequences as sentences make them, which it pads.
Firth's steps are those of its own loop, which loads batches in the background; Hugging Face's batches are already on
the device. Only text tokens count, not padding. A step is forward, backward, clipping, AdamW. Runs are interleaved; the
best round counts. Firth has no attention dropout, so `transformers` has none; `comes` is the same with its default
attention dropout. Both get an attention mask, even if all tokens are real: without one (`unmasked`, with dropout;
`full` only) the compiler does not use torch's fused attention. The curves are of `full`, without dropout. A run with
the same settings adds to what is there. Results: FOLDER/bert-training-DEVICE.json (default benchmarks/results), and
docs/results/bert-training.md from those that are there.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

import firth
from firth.core.report import LogLines
from firth.data.sentences import Sentences, read_sentences
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.training.device import peak_of
from firth.training.optimizers import optimizer, rate_share
from firth.transformers.bert_files import size_of
from firth.transformers.bert_pretraining import Pretraining, make_tokenizer
from firth.transformers.families.bert import BERT
from firth.transformers.families.encoders import encoder_config, write_encoder
from firth.transformers.next_sentence_pairs import FOLLOWS, FOREIGN, Pairs

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "results" / "bert-training.md"
Step = Callable[[], int]  # one training step; returns its number of tokens


class Full(Pretraining):
    """Batches in which every sequence is full."""

    def pairs(self, sentences: Sentences, epoch: int, phase: int) -> Pairs:
        room = self.lengths[phase] - 3
        first, last = int(sentences.starts[0]), int(sentences.starts[-1])
        random = np.random.default_rng([self.seed, epoch + 1])
        begin = first + room * random.permutation((last - first) // room)
        length = np.tile(np.array([room // 2, room - room // 2]), (len(begin), 1))
        label = random.integers(2, size=len(begin))
        second = np.where(label == FOREIGN, np.roll(begin, 1), begin) + room // 2
        assert {FOLLOWS, FOREIGN} == {0, 1}
        return Pairs(np.stack([begin, second], axis=1), length, label)


KINDS = {"full": Full, "text": Pretraining}
PEERS = {
    "transformers": "transformers without attention dropout",
    "comes": "transformers, defaults",
    "unmasked": "transformers, without mask",
}


def read(data: Path, device: str) -> tuple[SubwordTokenizer, Sentences]:
    run = firth.Run(report=LogLines(progress=False), device=device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        with lzma.open(data / "text" / "wiki-raw.txt.xz", "rb") as file:
            path.write_bytes(file.read() if device == "cuda" else file.read(3_000_000))
        corpus = firth.Corpus(path, unit="block")
        tokenizer = make_tokenizer(firth.BERT(vocabulary_size=30_000 if device == "cuda" else 2000), corpus, run)
        return tokenizer, read_sentences(tokenizer, corpus, run)


def theirs_of(training: Pretraining, dropout: float, attention: float = 0.0) -> Any:
    """Hugging Face's model with the same weights; `attention`: dropout of its weights, which Firth has not."""
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig(**encoder_config(BERT, training.net), attn_implementation="sdpa")
    config.hidden_dropout_prob, config.attention_probs_dropout_prob = dropout, attention
    model = BertForPreTraining(config)
    arrays = write_encoder(BERT, training.net)
    missing, extra = model.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()}, strict=False)
    assert not extra and all("decoder" in name or "position_ids" in name for name in missing), (missing, extra)
    model.tie_weights()
    return model.to(training.device).train()


def padded(training: Pretraining, number: int, rows: int, length: int) -> tuple[dict[str, torch.Tensor], int]:
    """The first `rows` sequences of a batch of the plan as Hugging Face takes them, and how many tokens they have."""
    work = training.batches()[number].what
    shown = [tensor.numpy() for tensor in training.load(work._replace(shape=None))]
    ids, positions, segments, starts, slots, targets, _, _, labels, _ = shown
    row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    keep = row < rows
    shape = (rows, length)
    results = {name: np.zeros(shape, np.int64) for name in ("input_ids", "token_type_ids", "attention_mask")}
    results["labels"] = np.full(shape, -100)
    at = row[keep], positions[keep]
    results["input_ids"][at], results["token_type_ids"][at], results["attention_mask"][at] = (
        ids[keep],
        segments[keep],
        1,
    )
    here = keep[slots]
    results["labels"][row[slots[here]], positions[slots[here]]] = targets[here]
    results["next_sentence_label"] = labels[:rows]
    tensors = {name: torch.from_numpy(array).to(training.device) for name, array in results.items()}
    return tensors, int(keep.sum())


def our_step(training: Pretraining, share: Callable[[], float], losses: list[torch.Tensor]) -> Step:
    training.net.train()
    training.loader = ThreadPoolExecutor(1)

    def step() -> int:
        batches = training.batches()
        group = training.next_group(batches)
        tokens = sum(batch.tokens for batch in group)
        losses.append(training.step(group, share()) / tokens)
        training.progress.batch = (training.progress.batch + len(group)) % len(batches)
        return tokens

    return step


def their_step(
    training: Pretraining,
    model: Any,
    rows: int,
    share: Callable[[], float],
    losses: list[torch.Tensor],
    ahead: int,
    masked: bool = True,
) -> Step:
    method, cuda = training.method, training.device.type == "cuda"
    steps = optimizer(method, model, training.device)
    given = [padded(training, number, rows, training.longest) for number in range(ahead)]
    if not masked:
        for tensors, _ in given:
            assert tensors.pop("attention_mask").all()
    forward = torch.compile(model, dynamic=False) if cuda else model
    at = iter(range(10**9))

    def step() -> int:
        tensors, tokens = given[next(at) % len(given)]
        for part in steps.param_groups:
            part["lr"] = method.learning_rate * rate_share(method, share())
        steps.zero_grad(set_to_none=True)
        with torch.autocast(training.device.type, torch.bfloat16, enabled=cuda):
            loss = forward(**tensors).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), method.clip)
        steps.step()
        losses.append(loss.detach())
        return tokens

    return step


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def speeds(steps: dict[str, Step], rounds: int, times: int) -> dict[str, float]:
    """Return tokens per second of each, interleaved; the best round counts."""
    for step in steps.values():  # the first call compiles
        for _ in range(3):
            step()
    best = dict.fromkeys(steps, 0.0)
    for _ in range(rounds):
        for name, step in steps.items():
            wait()
            began = time.perf_counter()
            tokens = sum(step() for _ in range(times))
            wait()
            best[name] = max(best[name], tokens / (time.perf_counter() - began))
    return best


def measured(kind: type[Pretraining], arguments: Any, length: int, text: tuple[SubwordTokenizer, Sentences]) -> Any:
    tokenizer, sentences = text
    run = firth.Run(device=arguments.device, threads=0)
    method = settings(arguments, length, arguments.dropout)
    training = kind(method, net_of(method, tokenizer), sentences, tokenizer, run)
    rows = min(len(batch.what.pairs) for batch in training.batches()[:8])
    middle, nowhere = (lambda: 0.5), list[torch.Tensor]()
    steps = {"firth": our_step(training, middle, nowhere)}
    for name in arguments.peers.split(","):
        if name != "unmasked" or kind is Full:
            model = theirs_of(training, arguments.dropout, 0.0 if name == "transformers" else arguments.dropout)
            steps[name] = their_step(training, model, rows, middle, nowhere, ahead=8, masked=name != "unmasked")
    best = speeds(steps, arguments.rounds, arguments.steps)
    peak = peak_of(training.device)
    return {
        "length": length, "kind": kind.__name__, "rows": rows, "tokens_per_second": best,
        "mean_length": training.attended,
        "mfu": best["firth"] * training.operations() / peak if peak else None,
    }  # fmt: skip


def curves(arguments: Any, length: int, text: tuple[SubwordTokenizer, Sentences]) -> dict[str, Any]:
    """Return the losses of both over the same steps from the same weights."""
    tokenizer, sentences = text
    run = firth.Run(device=arguments.device, threads=0)
    method = settings(arguments, length, 0.0)
    training = Full(method, net_of(method, tokenizer), sentences, tokenizer, run)
    model, results = theirs_of(training, 0.0), {}
    rows = len(training.batches()[0].what.pairs)
    count = min(arguments.curve, len(training.batches()) - 1)  # the last one is not full
    for name in ("firth", "transformers"):
        losses: list[torch.Tensor] = []

        def share(losses: list[torch.Tensor] = losses) -> float:
            return len(losses) / count

        if name == "firth":
            step = our_step(training, share, losses)
        else:
            step = their_step(training, model, rows, share, losses, ahead=count)
        for _ in range(count):
            step()
        results[name] = torch.stack([loss.double() for loss in losses]).tolist()
    apart = np.abs(np.subtract(results["firth"], results["transformers"]))
    return {"length": length, "steps": count, **results, "most_apart": float(apart.max()), "apart": float(apart.mean())}


def settings(arguments: Any, length: int, dropout: float) -> firth.BERT:
    return firth.BERT(
        size=arguments.size, context_length=length, batch_tokens=arguments.tokens, dropout=dropout, short_first=0.0,
        learning_rate=arguments.learning_rate, warmup=0.1, schedule="linear", held_out=0.0,
    )  # fmt: skip


def net_of(method: Any, tokenizer: SubwordTokenizer) -> Any:
    from firth.nets.encoder import Encoder
    from firth.transformers.bert_pretraining import MULTIPLE

    torch.manual_seed(1)
    return Encoder(-(-len(tokenizer) // MULTIPLE) * MULTIPLE, size_of(method))


def page(folder: Path) -> Iterator[str]:
    yield "`python benchmarks/bert_training.py DATA`, on the machines given below.\n"
    for path in sorted(folder.glob("bert-training-*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        sizes = f"{results['size']}, {results['tokens']:,} tokens per step"
        yield f"{results['device']}, {sizes}, dropout {results['dropout']}:\n"
        yield f"| length | sequences | Firth tokens/s | {' | '.join(PEERS.values())} | Firth MFU |"
        yield "| ---: | --- | ---: | ---: | ---: | ---: | ---: |"
        for row in results["speeds"]:
            speed, mfu = row["tokens_per_second"], row["mfu"]
            kinds = {"Full": "full", "Pretraining": f"of text, {row['mean_length']:.0f} on average"}
            peers = (
                f"{speed[name]:,.0f} ({speed['firth'] / speed[name]:.2f}×)" if name in speed else "" for name in PEERS
            )
            used = f"{mfu:.1%}" if mfu else ""
            yield f"| {row['length']} | {kinds[row['kind']]} | {speed['firth']:,.0f} | {' | '.join(peers)} | {used} |"
        yield ""
        for curve in results["curves"]:
            ours, theirs = curve["firth"], curve["transformers"]
            tenth = max(1, len(ours) // 10)
            yield (
                f"Losses from the same weights on the same batches, length {curve['length']}, {curve['steps']} steps: "
                f"{np.mean(ours[:tenth]):.3f} → {np.mean(ours[-tenth:]):.3f} (Firth), {np.mean(theirs[:tenth]):.3f} → "
                f"{np.mean(theirs[-tenth:]):.3f} (transformers) in the first and the last tenth of the "
                f"steps; the losses of a step differ by {curve['apart']:.4f} on average, "
                f"{curve['most_apart']:.4f} at most.\n"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--size", default="base")
    parser.add_argument("--lengths", default="128,512")
    parser.add_argument("--kinds", default="full,text")
    parser.add_argument("--tokens", type=int, default=32_768)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--curve", type=int, default=300)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    arguments = parser.parse_args()
    if arguments.device == "auto":
        arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    text = read(arguments.data, arguments.device)
    results: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU",
        "size": arguments.size, "tokens": arguments.tokens, "dropout": arguments.dropout, "speeds": [], "curves": [],
    }  # fmt: skip
    before = arguments.out / f"bert-training-{arguments.device}.json"
    previous = json.loads(before.read_text(encoding="utf-8")) if before.exists() else {}
    if all(previous.get(name) == results[name] for name in ("device", "size", "tokens", "dropout")):
        results = previous
    for length in map(int, arguments.lengths.split(",")):
        for kind in (KINDS[name] for name in arguments.kinds.split(",")):
            again = (length, kind.__name__)
            results["speeds"] = [row for row in results["speeds"] if (row["length"], row["kind"]) != again]
            results["speeds"].append(measured(kind, arguments, length, text))
            results["speeds"].sort(key=lambda row: (row["length"], row["kind"]))
            print(json.dumps([row for row in results["speeds"] if (row["length"], row["kind"]) == again]), flush=True)
            keep(arguments, results)
        if arguments.curve:
            last = curves(arguments, length, text)
            results["curves"] = [curve for curve in results["curves"] if curve["length"] != length] + [last]
            print(json.dumps({name: last[name] for name in ("length", "steps", "apart", "most_apart")}), flush=True)
            keep(arguments, results)


def keep(arguments: Any, results: dict[str, Any]) -> None:
    """Save the results so far and free the device memory."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"bert-training-{arguments.device}.json").write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text("\n".join(page(arguments.out)) + "\n", encoding="utf-8")
    torch.compiler.reset()
    gc.collect()


if __name__ == "__main__":
    main()
