"""Graphs from every kind of source, and errors."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusing import refuses, warns_code
from scipy.sparse import csr_array

import firth
from firth.data.graph_files import (
    LAYOUT_HINT,
    collect,
    delimiter_of,
    edge_lines,
    fast_edges,
    parse_graph,
    refuse_header,
)


def links(graph: firth.Graph) -> dict[tuple[str, str], float]:
    """Return the weight of each stored edge (from, to)."""
    weights = np.ones(len(graph.neighbors)) if graph.weights is None else graph.weights
    ends = zip(graph.sources(), graph.neighbors, weights, strict=True)
    return {(graph.keys[a], graph.keys[b]): float(weight) for a, b, weight in ends}


PLAIN = {("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 1, ("c", "b"): 1}
WEIGHTED = {("a", "b"): 2, ("b", "a"): 2, ("b", "c"): 0.5, ("c", "b"): 0.5}

FILES = {
    "tabs": ("g.tsv", b"a\tb\nb\tc\n", PLAIN),
    "commas": ("g.csv", b"a,b\nb,c\n", PLAIN),
    "blanks": ("g.txt", b"a b\nb c", PLAIN),
    "more blanks": ("g.edgelist", b"  a   b \n\n b \t c\n\n", PLAIN),
    "commas in a text": ("g.txt", b"a,b\nb,c\n", PLAIN),
    "blanks in a tsv": ("g.tsv", b"a b\nb c\n", PLAIN),
    "semicolons": ("g.csv", b"a;b\nb;c\n", PLAIN),
    "tabs in a csv": ("g.csv", b"a\tb\nb\tc\n", PLAIN),
    "comments": ("g.txt", b"# from to\n% 3 nodes\na b\n  # more\nb c\n", PLAIN),
    "Windows": ("g.txt", b"\xef\xbb\xbfa b\r\nb c\r\n", PLAIN),
    "old Mac": ("g.txt", b"a b\rb c\r", PLAIN),
    "weights": ("g.tsv", b"a\tb\t2\nb\tc\t5e-1\n", WEIGHTED),
    "weights, blanks": ("g.txt", b"a b 2\nb c .5\n", WEIGHTED),
    "quotes": ("g.csv", b'"a","b",2\n"b","c",0.5\n', WEIGHTED),
    "blanks around": ("g.csv", b"a, b, 2\nb ,c ,0.5\n", WEIGHTED),
}


@pytest.mark.parametrize("name", FILES)
def test_edge_lists(name, tmp_path: Path):
    file, content, expected = FILES[name]
    (tmp_path / file).write_bytes(content)
    graph = firth.Graph(tmp_path / file)
    assert links(graph) == expected and graph.keys == ["a", "b", "c"]
    assert not graph.directed and graph.edges == 2 and graph.notes() == []


def test_compressed_files_and_standard_input(tmp_path: Path, monkeypatch):
    content = b"a b\nb c\n"
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress(content))
    (tmp_path / "g.tsv.xz").write_bytes(lzma.compress(content))
    (tmp_path / "g.txt.zst").write_bytes(pa.compress(content, "zstd", asbytes=True))
    for name in ("g.txt.gz", "g.tsv.xz", "g.txt.zst"):
        assert links(firth.Graph(tmp_path / name)) == PLAIN
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert links(firth.Graph("-")) == PLAIN


def test_adjacency_lists(tmp_path: Path):
    (tmp_path / "g.txt").write_text("# a line a node\na b c\nb a\nd\nc a e\n")
    graph = firth.Graph(tmp_path / "g.txt", layout="adjacency")
    assert graph.keys == ["a", "b", "c", "d", "e"] and graph.edges == 3 and graph.weights is None
    assert set(links(graph)) == {("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("c", "e"), ("e", "c")}
    assert graph.isolated().tolist() == [False, False, False, True, False]
    directed = firth.Graph(tmp_path / "g.txt", layout="adjacency", directed=True)
    assert set(links(directed)) == {("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("c", "e")}


def test_tables_with_named_columns(tmp_path: Path):
    frame = pd.DataFrame({"n": [2.0, 0.5], "to": ["b", "c"], "from": ["a", "b"], "day": [1, 2]})
    frame.to_csv(tmp_path / "g.csv", index=False)
    frame.to_parquet(tmp_path / "g.parquet")
    columns = ("from", "to", "n")
    for source in (tmp_path / "g.csv", tmp_path / "g.parquet", frame, pl.from_pandas(frame)):
        assert links(firth.Graph(source, columns=columns)) == WEIGHTED
        assert links(firth.Graph(source, columns=columns[:2])) == PLAIN
    numbers = pd.DataFrame({"a": [10**17 + 1, 3], "b": [3, 10**17 + 2]})
    assert firth.Graph(numbers, columns=["a", "b"]).keys == ["100000000000000001", "3", "100000000000000002"]


def test_edges_in_memory():
    assert links(firth.Graph([("a", "b"), ("b", "c")])) == PLAIN
    assert links(firth.Graph(pair for pair in [("a", "b", 2), ["b", "c", np.float32(0.5)]])) == WEIGHTED
    numbers = firth.Graph([(1, 2**80), (2**80, "1"), (3.0, 3)])
    assert numbers.keys == ["1", str(2**80), "3"]  # 1 and "1" are one node
    array = firth.Graph(np.array([[7, 5], [5, -2], [7, 7]]))
    assert array.keys == ["7", "5", "-2"] and array.loops == 1 and array.edges == 3
    assert links(firth.Graph(firth.Graph([("a", "b", 2), ("b", "c", 0.5)]))) == WEIGHTED


def test_matrices():
    matrix = csr_array(np.array([[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]]))
    assert links(firth.Graph(matrix, keys="abc")) == WEIGHTED
    assert firth.Graph(matrix).keys == ["0", "1", "2"]
    assert (firth.Graph(matrix).matrix() != matrix).nnz == 0
    one_way = csr_array(np.array([[0, 2], [0, 0]]))
    assert links(firth.Graph(one_way)) == {("0", "1"): 2, ("1", "0"): 2}
    assert links(firth.Graph(one_way, directed=True)) == {("0", "1"): 2}


def test_networkx():
    graph = networkx.Graph([("a", "b", {"weight": 2}), ("b", "c", {"weight": 0.5})])
    graph.add_node("d")
    ours = firth.Graph(graph)
    assert links(ours) == WEIGHTED and ours.isolated().tolist() == [False, False, False, True]
    assert links(firth.Graph(graph, weighted=False)) == PLAIN
    directed = firth.Graph(networkx.DiGraph([("a", "b"), ("c", "b")]))
    assert directed.directed and set(links(directed)) == {("a", "b"), ("c", "b")}
    assert not firth.Graph(networkx.DiGraph([("a", "b")]), directed=False).directed
    several = firth.Graph(networkx.MultiGraph([("a", "b"), ("a", "b")]))
    assert links(several)["a", "b"] == 2 and several.duplicates == 1
    karate = networkx.karate_club_graph()
    theirs = networkx.to_scipy_sparse_array(karate, weight="weight")
    assert (firth.Graph(karate).matrix() != theirs).nnz == 0
    with refuses("duplicate_name", nodes=2):
        firth.Graph(networkx.Graph([(1, "1")]))


def test_duplicates_are_added_and_counted():
    graph = firth.Graph([("a", "b"), ("a", "b", 2.5), ("b", "c"), ("a", "b")])
    assert links(graph)["a", "b"] == links(graph)["b", "a"] == 4.5
    note = ("2 duplicate edges; the weights of each were added.", "duplicate_edges")
    assert graph.duplicates == 2 and graph.notes() == [note]
    once = firth.Graph([("a", "b"), ("a", "b", 2.5), ("b", "c"), ("a", "b")], weighted=False)
    assert links(once) == PLAIN and once.weights is None and once.notes() == []


def test_edge_listed_in_both_directions_counts_once():
    graph = firth.Graph([("a", "b", 2), ("b", "a", 2), ("b", "c", 0.5)])
    assert links(graph) == WEIGHTED and graph.notes() == []
    unequal = firth.Graph([("a", "b", 2), ("b", "a", 1), ("b", "c", 0.5), ("a", "a", 3)])
    assert links(unequal) == WEIGHTED | {("a", "a"): 3} and unequal.unequal == 1
    assert [note.code for note in unequal.notes()] == ["unequal_weights"] and unequal.notes()[0].text.startswith("1 ")
    both = firth.Graph([("a", "b", 2), ("b", "a", 1)], directed=True)
    assert links(both) == {("a", "b"): 2, ("b", "a"): 1} and both.notes() == []


def test_self_loops_isolated_nodes_and_zero_weights(tmp_path: Path):
    (tmp_path / "g.txt").write_text("a a\nb\na c\n")
    graph = firth.Graph(tmp_path / "g.txt")
    assert links(graph) == {("a", "a"): 1, ("a", "c"): 1, ("c", "a"): 1} and graph.loops == 1 and graph.edges == 2
    assert graph.keys == ["a", "b", "c"] and graph.isolated().tolist() == [False, True, False]
    nothing = firth.Graph([("a", "b", 0), ("b", "c")])
    assert set(links(nothing)) == {("b", "c"), ("c", "b")} and nothing.isolated()[0]
    assert nothing.notes() == [("1 edges with a weight of 0 were left out.", "zero_weights")]


@pytest.mark.parametrize("source", [[], np.zeros((0, 2), int), csr_array((0, 0)), networkx.Graph()])
def test_empty_sources_give_empty_graphs(source):
    graph = firth.Graph(source)
    assert len(graph) == graph.edges == 0 and graph.starts.tolist() == [0]


def test_empty_files_give_empty_graphs(tmp_path: Path):
    (tmp_path / "g.txt").write_bytes(b"")
    (tmp_path / "h.txt").write_bytes(b"# nothing\n\n")
    for layout in ("edges", "adjacency"):
        assert (
            len(firth.Graph(tmp_path / "g.txt", layout=layout))
            == len(firth.Graph(tmp_path / "h.txt", layout=layout))
            == 0
        )
    assert repr(firth.Graph([("only",)])) == "Graph(1 nodes, 0 edges, undirected)"


def test_different_graphs_have_different_fingerprints():
    graphs = [
        firth.Graph([("a", "b")]),
        firth.Graph([("a", "b")], directed=True),
        firth.Graph([("a", "b", 2)]),
        firth.Graph([("a", "c")]),
        firth.Graph([("a", "b"), ("c",)]),
        firth.Graph([("a", "b"), ("b", "c")]),
    ]
    assert len({graph.fingerprint() for graph in graphs}) == len(graphs)
    assert firth.Graph([("a", "b")]).fingerprint() == graphs[0].fingerprint()


# content, code, line (None: no line is named), other values
BAD_FILES: dict[str, Any] = {
    "negative": (b"a b 1\nb c -2\n", "malformed_data", 2, {"field": "weight", "got": -2}),
    "not a number": (b"# x\na b 1\nb c nan\n", "malformed_data", 3, {"field": "weight", "got": np.nan}),
    "infinite": (b"a b inf\n", "malformed_data", 1, {"field": "weight", "got": np.inf}),
    "a word for a weight": (b"a b 1\nb c heavy\n", "malformed_data", 2, {"field": "weight", "got": "heavy"}),
    "a weight missing": (b"a b 1\nb c\n", "malformed_data", 2, {"fields": 2, "expected": 3}),
    "too many": (b"a b\nb c d e\n", "malformed_data", 2, {"fields": 4, "expected": 2}),
    "adjacency": (b"a b c d\nb a\n", "malformed_data", 1, {"fields": 4, "expected": "2 or 3", "hint": LAYOUT_HINT}),
    "empty field": (b"a\tb\n\tc\td\n", "malformed_data", 2, {"fields": "'', 'c', 'd'"}),
    "no name": (b"a,b\nb,,c\n", "malformed_data", 2, {"fields": "'b', '', 'c'"}),
    "header": (b"source target\na b\n", "malformed_data", 1, {"header": "source, target"}),
    "header of three": (b"from,to,weight\na,b,1\n", "malformed_data", 1, {"columns": "from,to,weight"}),
    "header of other names": (b"id1,id2\n1,2\n", "malformed_data", 1, {"header": "id1, id2", "columns": "id1,id2"}),
    "header and weights": (b"# x\nwho,whom,calls\nann,bob,3\n", "malformed_data", 2, {"columns": "who,whom,calls"}),
    "a wide table": (b"who,whom,calls,day\nann,bob,3,mon\n", "malformed_data", 1, {"fields": 4, "expected": "2 or 3"}),
    "not UTF-8": (b"a b\n\xff\xfe\xfd c\n", "invalid_encoding", 2, {}),
    "binary": (b"\x7fELF\0\0\0", "malformed_data", None, {"found": "NUL bytes"}),
    "UTF-16": ("a b\n".encode("utf-16"), "invalid_encoding", None, {"encoding": "UTF-16"}),
    "too heavy": (b"a b 1e300\n", "invalid_value", None, {"option": "Edge weights", "got": 1e300}),
    "too light": (b"a b 1e-300\n", "invalid_value", None, {"option": "Edge weights", "got": 1e-300}),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_with_the_line(name, tmp_path: Path):
    content, code, line, values = BAD_FILES[name]
    (tmp_path / "g.txt").write_bytes(content)
    where = {} if line is None else {"where": f"{tmp_path / 'g.txt'}, line {line}"}
    with refuses(code, **values, **where):
        firth.Graph(tmp_path / "g.txt")


def test_third_column_is_ignored_without_weights(tmp_path: Path):
    (tmp_path / "g.txt").write_text("a b -1\nb c nan\n")
    assert links(firth.Graph(tmp_path / "g.txt", weighted=False)) == PLAIN


def test_invalid_sources_are_refused(tmp_path: Path):
    (tmp_path / "g.parquet").write_bytes(b"")
    frame = pd.DataFrame({"a": ["x", None], "b": ["y", "z"], "w": [1.0, -1.0]})
    nan = float("nan")
    cases: list[Any] = [
        (3, {}, "invalid_type", {"got": "int"}),
        (tmp_path / "no.txt", {}, "not_found", {"path": tmp_path / "no.txt"}),
        (tmp_path / "g.parquet", {}, "unknown_column", {"path": tmp_path / "g.parquet"}),
        ([("a", "b")], {"layout": "matrix"}, "invalid_value", {"option": "layout", "got": "matrix"}),
        ([("a", "b")], {"keys": ["a"]}, "conflicting_options", {"option": "keys", "got": "list"}),
        (["ab"], {}, "malformed_data", {"where": "Edge 1", "got": "ab"}),
        ([("a", "b", 1, 2)], {}, "malformed_data", {"where": "Edge 1", "got": ("a", "b", 1, 2)}),
        ([("a", "b"), ("a", None)], {}, "malformed_data", {"where": "Edge 2", "got": None}),
        ([("a", "b"), ("a", nan)], {}, "malformed_data", {"where": "Edge 2", "got": nan}),
        ([("a", "b", "1")], {}, "malformed_data", {"where": "Edge 1", "field": "weight", "got": "1"}),
        ([("a", "b", -1)], {}, "malformed_data", {"where": "Edge 1", "field": "weight", "got": -1.0}),
        ([("a", "b", nan)], {}, "malformed_data", {"where": "Edge 1", "field": "weight", "got": nan}),
        ([("a", "b", 10**5000)], {}, "malformed_data", {"where": "Edge 1", "field": "weight", "got": np.inf}),
        (frame, {}, "unknown_column", {"available": "a, b, w"}),
        (frame, {"columns": "ab"}, "invalid_value", {"option": "columns", "got": "ab"}),
        (frame, {"columns": ("a", "a")}, "invalid_value", {"option": "columns", "got": ("a", "a")}),
        (frame, {"columns": ("a", "c")}, "unknown_column", {"name": "c", "available": "a, b, w"}),
        (frame, {"columns": ("a", "b")}, "malformed_data", {"row": 2, "column": "a"}),
        (frame, {"columns": ("b", "b", "w")}, "invalid_value", {"option": "columns", "got": ("b", "b", "w")}),
        (
            frame.assign(a="x"),
            {"columns": ("a", "b", "w")},
            "malformed_data",
            {"row": 2, "field": "weight", "got": -1.0},
        ),
        (csr_array(np.ones((2, 3))), {}, "shape_mismatch", {"got": (2, 3)}),
        (csr_array(-np.eye(2)), {}, "non_finite", {"row": 0, "column": 0, "got": -1.0}),
        (csr_array(np.eye(2)), {"keys": ["a", "a"]}, "shape_mismatch", {"nodes": 2, "got": 2, "distinct": 1}),
    ]
    for source, settings, code, values in cases:
        with refuses(code, **values):
            firth.Graph(source, **settings)


NAMES = st.sampled_from(
    ["a", "b", "c", "é", "12345678901234567890", "-1", "a-b", "'x'", "NA", "null", "nan", "1e5", "x#", "%"]
)
FIELDS = st.tuples(NAMES, NAMES, st.sampled_from(["1", "0.5", "0", "1e3", "-1", "nan", "x", ""]))
LINES = st.lists(st.one_of(FIELDS, st.just(("# a comment",)), st.just(("",)), st.tuples(NAMES)), max_size=12)


@example([("a", "a", "")], 3, ",", "\n", False)
@example([("a", "a", "x"), ("a", "a", "1")], 3, " ", "\n", True)
@given(LINES, st.integers(1, 4), st.sampled_from([" ", "\t", ","]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_fast_parser_equals_line_by_line_parser(lines, width, sign, end, weighted):
    """Both give the same graph or the same error for any file."""
    data = end.join(sign.join(fields[:width]) for fields in lines).encode()

    def outcome(read):
        try:
            edges = read()
        except firth.FirthError as error:
            return str(error)
        weights = None if edges.weights is None else edges.weights.tolist()
        return edges.keys, edges.first.tolist(), edges.second.tolist(), weights

    plain = data.replace(b"\r\n", b"\n")
    slow = outcome(lambda: collect(edge_lines(plain, "g", sign, weighted)))
    fast = fast_edges(plain, sign, weighted)
    assert fast is None or outcome(lambda: fast) == slow
    used = delimiter_of(plain, "")
    try:
        refuse_header(plain, "g", used)
    except firth.FirthError as error:
        slow = str(error)
    else:
        slow = slow if used == sign else outcome(lambda: collect(edge_lines(plain, "g", used, weighted)))
    assert outcome(lambda: parse_graph(data, "g", "", "edges", weighted)) == slow


EDGES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.sampled_from([0.5, 1.0, 2.0])), max_size=30)


@given(EDGES, st.booleans())
def test_rows_have_each_edge_once_in_ascending_order(edges, directed):
    graph = firth.Graph(edges, directed=directed)
    sums: dict[tuple[str, str], float] = {}
    for a, b, weight in edges:
        sums[str(a), str(b)] = sums.get((str(a), str(b)), 0) + weight
    if not directed:
        sums = {(a, b): max(sums.get((a, b), 0), sums.get((b, a), 0)) for x, y in sums for a, b in ((x, y), (y, x))}
    assert links(graph) == sums
    for node in range(len(graph)):
        assert (np.diff(graph.neighbors[graph.starts[node] : graph.starts[node + 1]]) > 0).all()
    assert graph.keys == list(dict.fromkeys(str(end) for a, b, _ in edges for end in (a, b)))


@pytest.mark.filterwarnings("ignore::firth.FirthWarning")  # possible_header
@given(
    st.one_of(st.binary(max_size=60), st.text('ab1.-e \t,#"\n\r\x0b', max_size=60).map(str.encode)),
    st.sampled_from(["", ".csv", ".tsv"]),
    st.sampled_from(["edges", "adjacency"]),
    st.booleans(),
)
def test_any_bytes_are_read_or_refused(data, form, layout, weighted):
    try:
        edges = parse_graph(data, "g", form, layout, weighted)
    except firth.FirthError:
        return
    assert len(edges.first) == len(edges.second) and "" not in edges.keys and len(set(edges.keys)) == len(edges.keys)
    ends = np.concatenate([edges.first, edges.second])
    assert not len(ends) or (ends.min() >= 0 and ends.max() < len(edges.keys))
    assert edges.weights is None or (np.isfinite(edges.weights) & (edges.weights >= 0)).all()


def test_possible_header_is_reported(tmp_path, recwarn):
    path = tmp_path / "friends.csv"
    path.write_text("person,friend\nann,bob\nbob,cid\n")
    with warns_code("possible_header") as warned:
        assert firth.Graph(path).keys == ["person", "friend", "ann", "bob", "cid"]
    assert f"{path}, line 1 " in str(warned[0]) and "columns=person,friend (--columns)" in str(warned[0])
    recwarn.clear()
    assert firth.Graph(path, columns=("person", "friend")).keys == ["ann", "bob", "cid"]
    path.write_text("ann,bob\nbob,cid\n")
    assert len(firth.Graph(path)) == 3
    assert not recwarn.list
