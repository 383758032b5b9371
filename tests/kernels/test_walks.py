"""Random walks against exact transition probabilities, and the native kernel against its Python twin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse
from scipy.stats import chisquare

import firth
from firth.kernels.walks import Links, NativeWalks, TwinWalks

BIASES = [(1, 1), (0.25, 4), (4, 0.25), (1e-3, 1), (1, 1e-3), (1e3, 1e-3), (1e-3, 1e3)]
KINDS = [(directed, weighted) for directed in (False, True) for weighted in (False, True)]


def make_links(directed: bool, weighted: bool, nodes: int = 12, density: float = 0.3, seed: int = 3) -> Links:
    """Return a random graph with a self loop, hubs and, if directed, dead ends."""
    rng = np.random.default_rng(seed)
    matrix = random_sparse(nodes, nodes, density, "lil", rng=rng)
    matrix[0, 1:] = rng.random(nodes - 1)
    matrix[1, 1] = 0.7
    if directed:
        matrix[5] = 0
    matrix = csr_array(matrix)
    if not directed:
        matrix = matrix.maximum(matrix.T).tocsr()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    weights = (matrix.data * 5 + 0.1).astype(np.float32) if weighted else None
    if weighted and not directed:  # symmetric
        square = csr_array((weights, matrix.indices, matrix.indptr), shape=matrix.shape)
        weights = square.maximum(square.T).tocsr().data.astype(np.float32)
    return Links(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), weights, directed)


def all_starts(links: Links, each: int) -> tuple[np.ndarray, np.ndarray]:
    nodes = len(links.starts) - 1
    return np.repeat(np.arange(nodes, dtype=np.int32), each), np.tile(np.arange(each, dtype=np.int32), nodes)


def transition_probabilities(links: Links, p: float, q: float) -> dict[tuple[int, int], np.ndarray]:
    """Return, for each (before, at), the probability of every next node, by the formula."""
    nodes = len(links.starts) - 1
    weights = np.ones(len(links.neighbors)) if links.weights is None else links.weights.astype(np.float64)
    dense = csr_array((weights, links.neighbors, links.starts), shape=(nodes, nodes)).toarray()
    probabilities = {}
    for before, at in zip(*np.nonzero(dense), strict=True):
        bias = np.where(dense[before] > 0, 1.0, 1 / q)
        bias[before] = 1 / p
        share = dense[at] * bias
        if share.sum():
            probabilities[before, at] = share / share.sum()
    return probabilities


@pytest.mark.parametrize(("p", "q"), BIASES)
@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_native_equals_twin(directed, weighted, p, q):
    links = make_links(directed, weighted)
    first, number = all_starts(links, 2)
    settings: dict[str, Any] = {"walk_length": 15, "p": p, "q": q, "seed": 11}
    native = NativeWalks(links, 2).walk(first, number, **settings, threads=2)
    twin = TwinWalks(links).walk(first, number, **settings)
    assert np.array_equal(native.ids, twin.ids) and np.array_equal(native.starts, twin.starts)
    assert native.draws == twin.draws


@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_first_steps_are_by_weight(directed, weighted):
    links = make_links(directed, weighted)
    each = 4000
    for p, q in [(1, 1), (1e-3, 5)]:  # p and q do not affect the first step
        walked = NativeWalks(links).walk(*all_starts(links, each), walk_length=2, p=p, q=q, seed=1)
        for node in range(len(links.starts) - 1):
            row = slice(links.starts[node], links.starts[node + 1])
            begins = walked.starts[node * each : (node + 1) * each]
            if not len(links.neighbors[row]):
                assert (np.diff(walked.starts[node * each : (node + 1) * each + 1]) == 1).all()  # a dead end
                continue
            counts = np.bincount(walked.ids[begins + 1], minlength=12)[links.neighbors[row]]
            assert counts.sum() == each
            weights = np.ones(len(counts)) if links.weights is None else links.weights[row].astype(np.float64)
            if len(counts) > 1:
                assert chisquare(counts, weights / weights.sum() * each).pvalue > 1e-4


@pytest.mark.parametrize(("p", "q"), BIASES)
@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_second_order_steps_have_the_exact_probabilities(directed, weighted, p, q):
    links = make_links(directed, weighted)
    walked = NativeWalks(links).walk(*all_starts(links, 3000), walk_length=12, p=p, q=q, seed=2)
    triples = np.stack([walked.ids[:-2], walked.ids[1:-1], walked.ids[2:]])
    inside = np.ones(len(walked.ids), bool)
    inside[walked.starts[1:-1] - 1] = inside[walked.starts[1:-1] - 2] = False  # not across walks
    triples = triples[:, inside[: triples.shape[1]]]
    counts = np.zeros((12, 12, 12))
    np.add.at(counts, tuple(triples), 1)
    tested, p_values = 0, []
    for (before, at), shares in transition_probabilities(links, p, q).items():
        observed = counts[before, at]
        assert not observed[shares == 0].any()  # only along edges
        expected = shares[shares > 0] * observed.sum()
        if len(expected) > 1 and observed.sum() > 200:
            rare = expected < 5  # chi-square needs five of each, so rare outcomes are pooled
            groups = [np.append(part[~rare], part[rare].sum()) for part in (observed[shares > 0], expected)]
            groups = [part[groups[1] > 1] for part in groups]
            if len(groups[0]) > 1:
                p_values.append(chisquare(groups[0], groups[1] * groups[0].sum() / groups[1].sum()).pvalue)
                tested += observed.sum()
    assert tested > 5000 and len(p_values) > 3
    assert min(p_values) > 1e-3 / len(p_values)
    assert np.mean(np.array(p_values) < 0.05) < 0.2


def test_chi_square_rejects_other_probabilities():
    """The same chi-square test rejects walks with another q."""
    links = make_links(False, False)
    walked = NativeWalks(links).walk(*all_starts(links, 3000), walk_length=3, p=1.0, q=0.5, seed=2)
    first, at, to = walked.ids.reshape(-1, 3).T
    worst = 1.0
    for (before, middle), shares in transition_probabilities(links, 1.0, 1.0).items():
        observed = np.bincount(to[(first == before) & (at == middle)], minlength=12)[shares > 0]
        if len(observed) > 1 and observed.sum() > 200:
            worst = min(worst, chisquare(observed, shares[shares > 0] * observed.sum()).pvalue)
    assert worst < 1e-4


def test_walks_are_independent_of_threads_and_other_walks():
    links = make_links(False, True, nodes=40)
    first, number = all_starts(links, 20)
    walks = NativeWalks(links)
    settings: dict[str, Any] = {"walk_length": 30, "p": 0.25, "q": 2.0, "seed": 5}
    together = walks.walk(first, number, **settings, threads=4)
    order = np.random.default_rng(0).permutation(len(first))
    shuffled = walks.walk(first[order], number[order], **settings)
    assert np.array_equal(together.ids.reshape(-1, 30)[order], shuffled.ids.reshape(-1, 30))
    other = walks.walk(first, number, **{**settings, "seed": 6})
    assert (together.ids != other.ids).mean() > 0.5
    assert len(np.unique(together.ids.reshape(-1, 30), axis=0)) == len(first)  # all walks differ


@pytest.mark.parametrize(("p", "q"), [(1e-3, 1), (1e-3, 1e3), (1e3, 1e3), (1, 1e-3), (1e3, 1e-3), (1e-6, 1e6)])
@pytest.mark.parametrize("shape", ["clique", "ring", "star"])
def test_few_candidates_are_rejected_for_any_p_and_q(shape, p, q):
    """Plain rejection sampling would draw hundreds of candidates per step here."""
    nodes = 50
    pairs = {
        "clique": [(a, b) for a in range(nodes) for b in range(a)],
        "ring": [(a, (a + 1) % nodes) for a in range(nodes)],
        "star": [(0, b) for b in range(1, nodes)],
    }[shape]
    graph = firth.Graph(np.array(pairs))
    links = Links(graph.starts, graph.neighbors, graph.weights, False)
    walked = NativeWalks(links).walk(*all_starts(links, 50), walk_length=40, p=p, q=q, seed=1)
    assert walked.draws / len(walked.ids) < 16 + nodes / 8 + nodes  # at most the tries plus one full row
    if p <= 1e-3:  # the return edge is sampled separately
        assert walked.draws / len(walked.ids) < 3


MEMORY = """
import resource
import numpy as np
from firth.kernels.walks import Links, NativeWalks
hub = 100_000  # tables for pairs of edges would have hub² entries: 80 GB
ends = np.arange(1, hub + 1, dtype=np.int32)
neighbors = np.concatenate([ends, np.zeros(hub, np.int32)])
starts = np.concatenate([[0], hub + np.arange(hub + 1)])
links = Links(starts, neighbors, np.ones(2 * hub, np.float32), False)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 50_000_000, used + 50_000_000))
walked = NativeWalks(links).walk(ends[:1000], ends[:1000], walk_length=50, p=0.5, q=2.0, seed=1)
assert len(walked.ids) == 50_000 and (walked.ids.reshape(-1, 50)[:, 1::2] == 0).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_linear_in_the_graph():
    environment = {"PYTHONPATH": str(Path(firth.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_invalid_arrays_raise():
    links = make_links(False, True)
    starts, neighbors, weights, _ = links
    assert weights is not None
    cases: list[Any] = [
        ({"starts": starts + 1}, "begin with 0"),
        ({"starts": starts[:-1]}, "last start"),
        ({"starts": starts[::-1].copy()}, "begin with 0"),
        ({"neighbors": neighbors + 1}, "inside"),
        ({"neighbors": neighbors[::-1].copy()}, "ascend within a row"),
        ({"weights": -weights}, "positive"),
        ({"weights": weights * np.float32(np.nan)}, "positive"),
        ({"weights": weights[:-1]}, "one entry per neighbor"),
    ]
    for invalid, rule in cases:
        with pytest.raises(ValueError, match=rule):
            NativeWalks(links._replace(**invalid))
    walks = NativeWalks(links)
    zero = np.zeros(1, np.int32)
    walked: list[Any] = [
        (zero - 1, zero, {}),
        (zero + 12, zero, {}),
        (zero, zero[:0], {}),
        (zero, zero, {"walk_length": 0}),
        (zero, zero, {"p": 0.0}),
        (zero, zero, {"q": -1.0}),
        (zero, zero, {"p": float("nan")}),
        (zero, zero, {"q": float("inf")}),
    ]
    for first, number, settings in walked:
        with pytest.raises(ValueError, match=r"walk|positive|number"):
            walks.walk(first, number, **{"walk_length": 3, **settings})
