"""Export of a BERT with its pooling to ONNX: padded ids and mask in, one vector per text out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.storage import new_file
from firth.transformers.pooling import layer_numbers
from firth.transformers.text_encoder import arrays_of

if TYPE_CHECKING:
    from firth.transformers.bert_model import BertModel

OPSET = 17  # the first with LayerNormalization
LARGEST = 2**31 - 1  # bytes, the limit of protobuf


def write_onnx(model: BertModel, path: Path) -> None:
    """Write inputs `input_ids`, `attention_mask` (texts, tokens) int64 and output `sentence_embedding` (texts, dim)."""
    try:
        import onnx
    except ImportError:
        raise missing_package("Writing ONNX needs", "onnx", "onnx") from None
    graph = Graph(onnx)
    graph.bert(model)
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

    def linear(self, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """Add a linear layer."""
        return self.node("Add", self.node("MatMul", x, self.array(weight.T)), self.array(bias))

    def norm(self, x: str, gain: NDArray[np.float32], shift: NDArray[np.float32], epsilon: float) -> str:
        """Add a layer norm."""
        return self.node("LayerNormalization", x, self.array(gain), self.array(shift), axis=-1, epsilon=epsilon)

    def activated(self, x: str, kind: str) -> str:
        """Add an activation function."""
        if kind == "relu":
            return self.node("Relu", x)
        if kind == "gelu":
            nonlinear = self.node("Erf", self.node("Mul", x, self.array(1 / math.sqrt(2))))
        else:
            cube = self.node("Mul", self.node("Mul", x, x), x)
            inside = self.node("Add", x, self.node("Mul", cube, self.array(0.044715)))
            nonlinear = self.node("Tanh", self.node("Mul", inside, self.array(math.sqrt(2 / math.pi))))
        half = self.node("Mul", x, self.array(0.5))
        return self.node("Mul", half, self.node("Add", nonlinear, self.array(1.0)))

    def bert(self, model: BertModel) -> None:
        """Add the whole model."""
        size = model.size
        tokens, positions, segment, gain, shift, *rest = arrays_of(model.net)
        length = self.node("Slice", self.node("Shape", "input_ids"), self.integers(1), self.integers(2))
        position_rows = self.node("Slice", self.array(positions + segment), self.integers(0), length)
        x = self.node("Add", self.node("Gather", self.array(tokens), "input_ids"), position_rows)
        states = [self.norm(x, gain, shift, size.epsilon)]
        real = self.node("Cast", "attention_mask", to=self.onnx.TensorProto.FLOAT)
        padding_bias = self.node("Mul", self.node("Sub", self.array(1.0), real), self.array(-1e9))
        padding_bias = self.node("Unsqueeze", padding_bias, self.integers(1, 2))  # (texts, 1, 1, keys)
        for layer in range(max(layer_numbers(model.pooling.layers, size.layers))):
            states.append(self.block(states[-1], padding_bias, rest[12 * layer : 12 * layer + 12], size))
        selected = [states[number] for number in layer_numbers(model.pooling.layers, size.layers)]
        pooled = self.pooled(self.combined(selected, model.pooling.combine), real, model.pooling.how)
        if model.projection is not None:
            pooled = self.linear(pooled, model.projection.weight, model.projection.bias)
        if model.pooling.normalize:
            pooled = self.node("LpNormalization", pooled, axis=-1, p=2)
        self.nodes.append(self.onnx.helper.make_node("Identity", [pooled], ["sentence_embedding"]))

    def block(self, x: str, padding_bias: str, arrays: Sequence[NDArray[np.float32]], size: Any) -> str:
        """Add a Transformer block."""
        qkv, qkv_bias, out, out_bias, gain, shift, wide, wide_bias, back, back_bias, last_gain, last_shift = arrays
        joined = self.linear(x, qkv, qkv_bias)
        heads = []
        for part, order in enumerate(((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))):
            begin, end = self.integers(part * size.dim), self.integers((part + 1) * size.dim)
            piece = self.node("Slice", joined, begin, end, self.integers(2))
            split = self.node("Reshape", piece, self.integers(0, 0, size.heads, size.dim // size.heads))
            heads.append(self.node("Transpose", split, perm=order))
        query, key, value = heads
        scores = self.node("MatMul", query, key)
        scores = self.node("Mul", scores, self.array(1 / math.sqrt(size.dim // size.heads)))
        weights = self.node("Softmax", self.node("Add", scores, padding_bias), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, value), perm=(0, 2, 1, 3))
        mixed = self.node("Reshape", mixed, self.integers(0, 0, size.dim))
        x = self.norm(self.node("Add", x, self.linear(mixed, out, out_bias)), gain, shift, size.epsilon)
        hidden = self.activated(self.linear(x, wide, wide_bias), size.activation)
        return self.norm(self.node("Add", x, self.linear(hidden, back, back_bias)), last_gain, last_shift, size.epsilon)

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
        if how == "max":
            seen = self.node("Cast", mask, to=self.onnx.TensorProto.BOOL)
            least = self.node("Where", seen, x, self.array(-np.inf))
            return self.node("ReduceMax", least, axes=[1], keepdims=0)
        total = self.node("ReduceSum", self.node("Mul", x, mask), self.integers(1), keepdims=0)
        return (
            total
            if how == "sum"
            else self.node("Div", total, self.node("ReduceSum", mask, self.integers(1), keepdims=0))
        )

    def document(self, model: BertModel) -> Any:
        """Return the checked ONNX model."""
        make, types = self.onnx.helper, self.onnx.TensorProto
        inputs = [
            make.make_tensor_value_info(name, types.INT64, ["texts", "tokens"])
            for name in ("input_ids", "attention_mask")
        ]
        dim = model.dim_of(model.pooling)
        output = make.make_tensor_value_info("sentence_embedding", types.FLOAT, ["texts", dim])
        graph = make.make_graph(self.nodes, "bert", inputs, [output], self.tensors)
        model_proto = make.make_model(
            graph, producer_name="firth", ir_version=8, opset_imports=[make.make_opsetid("", OPSET)]
        )
        self.onnx.checker.check_model(model_proto)
        return model_proto
