"""Export of an encoder with its pooling to ONNX: padded ids and mask in, one vector per text out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.storage import new_file
from firth.kernels.encoder import Shape
from firth.transformers.pooling import layer_numbers
from firth.transformers.sentence_modules import EPSILON, LayerNorm, Normalize, Step
from firth.transformers.text_encoder import arrays_of, native_shape, needs_torch

if TYPE_CHECKING:
    from firth.transformers.bert_model import BertModel

PLAIN = {"Tanh": "Tanh", "ReLU": "Relu", "Sigmoid": "Sigmoid"}  # activations of torch.nn with an operator of ONNX
OPSET = 17  # the first with LayerNormalization
LARGEST = 2**31 - 1  # bytes, the limit of protobuf
MASKED = -1e9  # added to the scores of keys that a query does not attend to


def write_onnx(model: BertModel, path: Path) -> None:
    """Write inputs `input_ids`, `attention_mask` (texts, tokens) int64 and output `sentence_embedding` (texts, dim)."""
    try:
        import onnx
    except ImportError:
        raise missing_package("Writing ONNX needs", "onnx", "onnx") from None
    if reason := needs_torch(model.size):
        raise FirthError("unsupported_model", "ONNX export does not support {reason}.", reason=reason)
    graph = EncoderGraph(onnx, arrays_of(model.net), native_shape(model.size))
    graph.add(model)
    size = sum(tensor.ByteSize() for tensor in graph.tensors)
    if size > LARGEST:
        raise FirthError(
            "too_large",
            "An ONNX file holds at most {limit:,} bytes; this model has {size:,}.",
            limit=LARGEST,
            size=size,
        )
    with new_file(path) as work:
        work.write_bytes(graph.document(model).SerializeToString())


class Graph:
    """ONNX nodes in the order of computation; a value has the name of its node."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.nodes, self.tensors = onnx, list[Any](), list[Any]()

    def node(self, kind: str, *inputs: str, **settings: Any) -> str:
        """Add a node and return the name of its output."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **settings))
        return name

    def array(self, values: Any, dtype: Any = np.float32) -> str:
        """Add a constant and return its name."""
        name = f"array_{len(self.tensors)}"
        array = np.array(values, dtype=dtype, order="C")
        self.tensors.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def integers(self, *values: int) -> str:
        """Add an integer constant and return its name."""
        return self.array(values, np.int64)

    def activated(self, x: str, kind: str) -> str:
        """Add an activation function."""
        if kind == "relu":
            return self.node("Relu", x)
        if kind == "silu":
            return self.node("Mul", x, self.node("Sigmoid", x))
        if kind == "gelu":
            nonlinear = self.node("Erf", self.scaled(x, 1 / math.sqrt(2)))
        else:
            cube = self.node("Mul", self.node("Mul", x, x), x)
            inside = self.node("Add", x, self.scaled(cube, 0.044715))
            nonlinear = self.node("Tanh", self.scaled(inside, math.sqrt(2 / math.pi)))
        return self.node("Mul", self.scaled(x, 0.5), self.node("Add", nonlinear, self.array(1.0)))

    def scaled(self, x: str, factor: float) -> str:
        """Add a multiplication by a constant."""
        return self.node("Mul", x, self.array(factor))

    def step(self, x: str, step: Step) -> str:
        """Add a module after the pooling."""
        if isinstance(step, Normalize):
            return self.node("LpNormalization", x, axis=-1, p=2)
        if isinstance(step, LayerNorm):
            arrays = self.array(step.gain), self.array(step.shift)
            return self.node("LayerNormalization", x, *arrays, axis=-1, epsilon=EPSILON)
        name = step.activation.rsplit(".", 1)[-1]
        if name not in (*PLAIN, "Identity", "GELU"):
            raise FirthError(
                "unsupported_architecture",
                "Firth exports Dense modules with the activations {choices} to ONNX; this one has {got}.",
                choices=", ".join(("Identity", "GELU", *PLAIN)),
                got=step.activation,
            )
        y = self.node("MatMul", x, self.array(step.weight.T))
        if step.bias is not None:
            y = self.node("Add", y, self.array(step.bias))
        if name != "Identity":
            y = self.activated(y, "gelu") if name == "GELU" else self.node(PLAIN[name], y)
        if step.use_residual:
            shortcut = x if step.residual is None else self.node("MatMul", x, self.array(step.residual.T))
            y = self.node("Add", y, shortcut)
        return y

    def combined(self, states: list[str], how: str) -> str:
        """Add the combination of several layers."""
        if len(states) == 1:
            return states[0]
        if how == "concat":
            return self.node("Concat", *states, axis=-1)
        return self.node("Mean" if how == "mean" else "Sum", *states)

    def pooled(self, x: str, real: str, how: str) -> str:
        """Add the pooling of tokens."""
        if how == "cls":
            return self.node("Gather", x, self.array(0, np.int64), axis=1)
        mask = self.node("Unsqueeze", real, self.integers(2))  # (texts, tokens, 1)
        if how in ("weightedmean", "lasttoken"):
            numbers = self.node("CumSum", mask, self.array(1, np.int64))  # 1, 2, … for the tokens of a text
            mask = self.node("Mul", mask, numbers)
        if how == "lasttoken":
            last = self.node("ReduceMax", mask, axes=[1], keepdims=1)
            mask = self.node("Cast", self.node("Equal", mask, last), to=self.onnx.TensorProto.FLOAT)
        if how == "max":
            seen = self.node("Cast", mask, to=self.onnx.TensorProto.BOOL)
            least = self.node("Where", seen, x, self.array(-np.inf))
            return self.node("ReduceMax", least, axes=[1], keepdims=0)
        total = self.node("ReduceSum", self.node("Mul", x, mask), self.integers(1), keepdims=0)
        if how in ("sum", "lasttoken"):
            return total
        size = self.node("ReduceSum", mask, self.integers(1), keepdims=0)
        return self.node("Div", total, self.node("Sqrt", size) if how == "mean_sqrt_len_tokens" else size)


class EncoderGraph(Graph):
    """The graph of an encoder; its weights have the names of the native engine."""

    def __init__(self, onnx: Any, weights: dict[str, NDArray[np.float32]], shape: Shape) -> None:
        super().__init__(onnx)
        self.weights, self.shape = weights, shape
        self.constants: dict[tuple[int, bool], str] = {}  # by address: layers may share their weights
        self.length = self.node("Slice", self.node("Shape", "input_ids"), self.integers(1), self.integers(2))
        self.biases: dict[bool, str] = {}  # of the scores in global and in local layers
        self.angles: dict[bool, tuple[str, str]] = {}  # cosines and sines of rotary positions, likewise

    def weight(self, name: str, transposed: bool = False) -> str:
        """Add an array of the network and return its name."""
        array = self.weights[name]
        key = array.ctypes.data, transposed
        if key not in self.constants:
            self.constants[key] = self.array(array.T if transposed else array)
        return self.constants[key]

    def linear(self, x: str, name: str) -> str:
        """Add a linear layer, with a bias if it has one."""
        product = self.node("MatMul", x, self.weight(f"{name}.weight", transposed=True))
        has_bias = f"{name}.bias" in self.weights
        return self.node("Add", product, self.weight(f"{name}.bias")) if has_bias else product

    def norm(self, x: str, name: str) -> str:
        """Add a layer norm or an RMS norm."""
        gain, epsilon = self.weight(f"{name}.weight"), self.shape.epsilon
        if self.shape.norm == "rms":
            square = self.node("ReduceMean", self.node("Mul", x, x), axes=[-1])
            root = self.node("Sqrt", self.node("Add", square, self.array(epsilon)))
            return self.node("Mul", self.node("Div", x, root), gain)
        biases = [self.weight(f"{name}.bias")] if f"{name}.bias" in self.weights else []
        return self.node("LayerNormalization", x, gain, *biases, axis=-1, epsilon=epsilon)

    def rows(self, table: NDArray[np.float32]) -> str:
        """Add the rows of a table for the positions of the texts."""
        return self.node("Slice", self.array(table), self.integers(0), self.length)

    def add(self, model: BertModel) -> None:
        """Add the whole model."""
        pooling, shape = model.pooling, self.shape
        real = self.node("Cast", "attention_mask", to=self.onnx.TensorProto.FLOAT)
        selected, states = layer_numbers(pooling.layers, shape.layers), [self.embedded()]
        self.add_position_terms(real)
        for layer in range(max(selected)):
            states.append(self.block(states[-1], layer))
        if shape.final_norm and shape.layers in selected:
            states[-1] = self.norm(states[-1], "final_norm")
        combined = self.combined([states[number] for number in selected], pooling.combine)
        vectors = [self.pooled(combined, real, mode) for mode in pooling.modes]
        pooled = vectors[0] if len(vectors) == 1 else self.node("Concat", *vectors, axis=-1)
        for step in () if model.projection is None else model.projection.steps:
            pooled = self.step(pooled, step)
        if pooling.normalize:
            pooled = self.node("LpNormalization", pooled, axis=-1, p=2)
        if model.sentence.truncate_dim is not None:
            dim = self.integers(model.sentence.truncate_dim)
            pooled = self.node("Slice", pooled, self.integers(0), dim, self.integers(1))
        self.nodes.append(self.onnx.helper.make_node("Identity", [pooled], ["sentence_embedding"]))

    def embedded(self) -> str:
        """Add the embeddings."""
        weights = self.weights
        x = self.node("Gather", self.array(weights["tokens"]), "input_ids")
        if "positions" in weights:
            x = self.node("Add", x, self.rows(weights["positions"]))
        if "segment" in weights:
            x = self.node("Add", x, self.array(weights["segment"]))
        if self.shape.embedding_norm:
            x = self.norm(x, "norm")
        return self.linear(x, "embedding_projection") if self.shape.embedding_dim else x

    def add_position_terms(self, real: str) -> None:
        """Add what attention takes from positions and padding: biases of the scores, angles of rotary positions."""
        weights, shape = self.weights, self.shape
        padding = self.scaled(self.node("Sub", self.array(1.0), real), MASKED)
        bias = self.node("Unsqueeze", padding, self.integers(1, 2))  # (texts, 1, 1, keys)
        count = self.node("Squeeze", self.length)
        numbers = self.node("Range", self.array(0, np.int64), count, self.array(1, np.int64))
        queries = self.node("Unsqueeze", numbers, self.integers(1))
        distances = self.node("Sub", numbers, queries)  # key - query, (queries, keys)
        if "distance_bias" in weights:
            columns = self.node("Add", distances, self.array(shape.positions - 1, np.int64))
            by_distance = self.node("Gather", self.array(weights["distance_bias"]), columns, axis=1)
            bias = self.node("Add", bias, by_distance)  # (texts, heads, queries, keys)
        self.biases[False] = self.biases[True] = bias
        if shape.window and shape.local_layers:
            far = self.node("Greater", self.node("Abs", distances), self.array(shape.window, np.int64))
            self.biases[True] = self.node("Add", bias, self.node("Where", far, self.array(MASKED), self.array(0.0)))
        for local, name in ((False, "rotary"), (True, "local_rotary")):
            if f"{name}.cos" in weights:
                self.angles[local] = self.rows(weights[f"{name}.cos"]), self.rows(weights[f"{name}.sin"])

    def block(self, x: str, layer: int) -> str:
        """Add a transformer block."""
        shape, name = self.shape, f"layers.{layer}"
        attention_norm, feed_norm = f"{name}.attention_norm", f"{name}.feed_forward_norm"
        if not shape.pre_norm:
            x = self.norm(self.node("Add", x, self.attention(x, layer)), attention_norm)
            return self.norm(self.node("Add", x, self.feed_forward(x, name)), feed_norm)
        normed = self.norm(x, attention_norm) if layer or shape.first_norm else x
        x = self.node("Add", x, self.attention(normed, layer))
        return self.node("Add", x, self.feed_forward(self.norm(x, feed_norm), name))

    def attention(self, x: str, layer: int) -> str:
        """Add multi-head self-attention."""
        shape, name = self.shape, f"layers.{layer}"
        local = layer in shape.local_layers
        joined, heads = self.linear(x, f"{name}.query_key_value"), list[str]()
        for part in range(3):
            piece = self.sliced(joined, part * shape.dim, (part + 1) * shape.dim, 2)
            split = self.node("Reshape", piece, self.integers(0, 0, shape.heads, shape.dim // shape.heads))
            heads.append(self.node("Transpose", split, perm=(0, 2, 1, 3)))  # (texts, heads, tokens, head dim)
        query, key, value = heads
        angles = self.angles.get(local) or self.angles.get(False)
        if angles:
            query, key = self.rotated(query, *angles), self.rotated(key, *angles)
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=(0, 1, 3, 2)))
        scores = self.node("Add", self.scaled(scores, shape.scale), self.biases[local])
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), value)
        mixed = self.node("Reshape", self.node("Transpose", mixed, perm=(0, 2, 1, 3)), self.integers(0, 0, shape.dim))
        return self.linear(mixed, f"{name}.attention_output")

    def sliced(self, x: str, begin: int, end: int, axis: int) -> str:
        """Add the part of a tensor from `begin` to `end` along an axis."""
        return self.node("Slice", x, self.integers(begin), self.integers(end), self.integers(axis))

    def rotated(self, x: str, cos: str, sin: str) -> str:
        """Add the rotation of dimensions i and i + n/2 of the n rotated ones (`positions.rotate`)."""
        half, width = self.weights["rotary.cos"].shape[1], self.shape.dim // self.shape.heads
        first, second = self.sliced(x, 0, half, 3), self.sliced(x, half, 2 * half, 3)
        left = self.node("Sub", self.node("Mul", first, cos), self.node("Mul", second, sin))
        right = self.node("Add", self.node("Mul", second, cos), self.node("Mul", first, sin))
        rest = [self.sliced(x, 2 * half, width, 3)] if 2 * half < width else []
        return self.node("Concat", left, right, *rest, axis=-1)

    def feed_forward(self, x: str, name: str) -> str:
        """Add a feed-forward layer, gated or not."""
        up = self.linear(x, f"{name}.up")
        if not self.shape.gated:
            return self.linear(self.activated(up, self.shape.activation), f"{name}.down")
        gate = self.activated(self.linear(x, f"{name}.gate"), self.shape.activation)
        return self.linear(self.node("Mul", gate, up), f"{name}.down")

    def document(self, model: BertModel) -> Any:
        """Return the checked ONNX model."""
        make, types = self.onnx.helper, self.onnx.TensorProto
        inputs = [
            make.make_tensor_value_info(name, types.INT64, ["texts", "tokens"])
            for name in ("input_ids", "attention_mask")
        ]
        dim = model.dim_of(model.pooling)
        output = make.make_tensor_value_info("sentence_embedding", types.FLOAT, ["texts", dim])
        graph = make.make_graph(self.nodes, model.size.family, inputs, [output], self.tensors)
        model_proto = make.make_model(
            graph, producer_name="firth", ir_version=8, opset_imports=[make.make_opsetid("", OPSET)]
        )
        self.onnx.checker.check_model(model_proto)
        return model_proto
