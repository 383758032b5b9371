"""Trains RecBole's SASRec or BERT4Rec on the CPU within a budget. Settings as JSON on stdin, result on stdout.

`folder` holds the folder `name` with `name`.inter in RecBole's format: user_id:token, item_id:token, timestamp:float.
The last event of each user is its test item and the one before its validation item; the epoch with the best NDCG@10 on
the validation items is kept. `seconds` of processor time end the training after the current batch; the weights of the
best epoch, or the present ones if no epoch was finished, give the scores of all items for the test, which go to
`output`.npy, with users and items in the order of `output`.json.
"""

import contextlib
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

for removed, dtype in (("float_", np.float64), ("complex_", np.complex128), ("unicode_", np.str_), ("bool8", np.bool_)):
    if not hasattr(np, removed):  # RecBole 1.2.1 uses names that NumPy 2 does not have
        setattr(np, removed, dtype)

import recbole  # noqa: E402
import torch  # noqa: E402
from recbole.config import Config  # noqa: E402
from recbole.data import create_dataset, data_preparation  # noqa: E402
from recbole.data.transform import construct_transform  # noqa: E402
from recbole.utils import get_model, get_trainer, init_seed  # noqa: E402
from recbole.utils.case_study import full_sort_scores  # noqa: E402


class OutOfTimeError(Exception):
    """The processor time is used up."""


def timed(batches: Any, seconds: float) -> Any:
    """Make a data loader stop with OutOfTimeError after so many seconds of processor time."""
    original = type(batches).__iter__

    class Timed(type(batches)):  # type: ignore[misc]
        def __iter__(self) -> Iterator[Any]:
            for batch in original(self):
                if time.process_time() > seconds:
                    raise OutOfTimeError
                yield batch

    batches.__class__ = Timed
    return batches


def main() -> None:
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    settings: dict[str, Any] = {
        "data_path": job["folder"],
        "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "mode": "full", "group_by": "user"},
        "MAX_ITEM_LIST_LENGTH": job["context_length"],
        "metrics": ["Recall", "NDCG"],
        "topk": [10],
        "valid_metric": "NDCG@10",
        "train_neg_sample_args": None,
        "train_batch_size": job["batch_size"],
        "eval_batch_size": 256,
        "learning_rate": job["learning_rate"],
        "hidden_dropout_prob": job["dropout"],
        "attn_dropout_prob": job["dropout"],
        "epochs": job["epochs"],
        "stopping_step": 1000,
        "seed": job["seed"],
        "reproducibility": True,
        "use_gpu": False,
        "show_progress": False,
        "state": "ERROR",
        "checkpoint_dir": f"{job['output']}-checkpoints",
        "benchmark_filename": None,
    }
    arguments, sys.argv = sys.argv, sys.argv[:1]  # RecBole reads the command line
    config = Config(model=job["model"], dataset=job["name"], config_dict=settings)
    sys.argv = arguments
    logging.disable(logging.CRITICAL)
    init_seed(config["seed"], config["reproducibility"])
    dataset = create_dataset(config)
    train, valid, test = data_preparation(config, dataset)
    init_seed(config["seed"], config["reproducibility"])
    net = get_model(config["model"])(config, train.dataset)
    transform = construct_transform(config)
    train._transform = transform
    trainer = get_trainer(config["MODEL_TYPE"], config["model"])(config, net)
    began = time.process_time()
    with contextlib.suppress(OutOfTimeError):
        trainer.fit(timed(train, began + job["seconds"]), valid, saved=True, show_progress=False)
    seconds = time.process_time() - began
    best = trainer.best_valid_score
    if trainer.best_valid_result:
        net.load_state_dict(torch.load(trainer.saved_model_file, map_location="cpu", weights_only=False)["state_dict"])
    users = np.arange(1, dataset.user_num)
    scores = np.vstack(
        [full_sort_scores(part, net, test).numpy() for part in np.array_split(users, -(-len(users) // 128))]
    )
    np.save(f"{job['output']}.npy", scores[:, 1:])
    names = {
        "users": dataset.id2token(dataset.uid_field, users).tolist(),
        "items": dataset.id2token(dataset.iid_field, np.arange(1, dataset.item_num)).tolist(),
    }
    Path(f"{job['output']}.json").write_text(json.dumps(names))
    print(
        json.dumps(
            {
                "peer": f"RecBole {recbole.__version__}",
                "cpu_seconds": seconds,
                "valid": float(best),
                "epochs": len(trainer.train_loss_dict),
            }
        )
    )


main()
