"""An ONNX graph as it is written: one operation after the other, each with the numbers that it reads.

Graphs are built from the weights by name rather than traced: they say what models/ says, with names and axes that a
reader can follow, and nothing in them depends on an example input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

Precision = Literal["float32", "int8"]
OPSET, IR = 17, 8
FLOAT, INT64, BOOL = 1, 7, 9  # onnx.TensorProto's own numbers
UINT8 = 2
SMALLEST = 1 << 12  # weights with fewer numbers stay in float32
LEAST = 1.1754943508222875e-38  # of normal numbers, so that a row of zeros is divided by something
MOST = 64  # of a weight in 8 bits: CPUs without VNNI cut the sum of two products with bytes off at 2^15
Shape = Sequence[int | str]
NO_ATTRIBUTES: Mapping[str, Any] = {}


class Graph:
    """Nodes, weights, inputs and outputs. Values are named by the operation that makes them and a number."""

    def __init__(self, name: str, precision: Precision = "float32"):
        self.name, self.precision = name, precision
        self.nodes: list[Any] = []
        self.weights: dict[tuple[str, tuple[int, ...], bytes], Any] = {}
        self.bytes: dict[str, tuple[str, str]] = {}  # of values that were brought to 8 bits, and their scales
        self.row_zeros = ""  # [N] what 0 is in bytes, as all rows of two axes have it
        self.made: set[str] = set()  # by operations
        self.public: dict[str, str] = {}  # names of outputs by those of the values that they are
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def read(self, name: str, kind: int, shape: Shape) -> str:
        """Declare an input."""
        from onnx import helper

        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def give(self, name: str, value: str, kind: int, shape: Shape) -> None:
        """Declare an output: a value under its public name."""
        from onnx import helper

        self.public.setdefault(value, name)
        if self.public[value] != name or value not in self.made:
            self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def constant(self, values: Any, kind: Any = np.float32) -> str:
        """Numbers of the graph itself; equal ones are kept once."""
        from onnx import numpy_helper

        array = np.ascontiguousarray(values, dtype=kind)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.weights:
            self.weights[key] = numpy_helper.from_array(array, f"weights_{len(self.weights)}")
        return str(self.weights[key].name)

    def shape(self, *sizes: int) -> str:
        """Whole numbers, for shapes, axes and positions."""
        return self.constant(sizes, np.int64)

    def add(self, operator: str, *inputs: str, attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> str:
        """One operation with one result."""
        return self.add_many(operator, inputs, 1, attributes=attributes)[0]

    def add_many(
        self, operator: str, inputs: Sequence[str], results: int, *, attributes: Mapping[str, Any] = NO_ATTRIBUTES
    ) -> list[str]:
        """One operation with several results."""
        from onnx import helper

        names = [f"{operator}_{len(self.nodes)}_{i}" for i in range(results)]
        node = helper.make_node(operator, list(inputs), names)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        self.made.update(names)
        return names

    def linear(self, x: str, weight: np.ndarray, bias: np.ndarray | None = None, *, rank: int = 2) -> str:
        """x Wᵀ + b: `x` `[…, I]` of so many axes, `weight` `[O, I]` → `[…, O]`."""
        if self.precision == "int8" and weight.size >= SMALLEST:
            return self._linear_in_bytes(x, weight, bias, rank)
        if rank == 2:  # the weight as it is, so that an embedding that serves as output layer is kept once
            terms = [self.constant(weight)] + ([] if bias is None else [self.constant(bias)])
            return self.add("Gemm", x, *terms, attributes={"transB": 1})
        y = self.add("MatMul", x, self.constant(weight.T))
        return y if bias is None else self.add("Add", y, self.constant(bias))

    def _linear_in_bytes(self, x: str, weight: np.ndarray, bias: np.ndarray | None, rank: int) -> str:
        """The same in whole numbers: W is s_o W', x is s_n x', both rounded to 8 bits: s_n s_o (x' W'ᵀ) + b.

        One scale a row, so that a sentence alone is rounded as in any batch. Inputs are bytes with 128 for 0, weights
        signed: the pair for which CPUs have an instruction.
        """
        scales, rounded = in_bytes(weight)
        zeros = self.constant(128, np.uint8), self.constant(0, np.int8)
        if x not in self.bytes:
            self.bytes[x] = self._rows_in_bytes(x) if rank == 2 else self._all_in_bytes(x)
        values, scale = self.bytes[x]
        sums = self.add("MatMulInteger", values, self.constant(rounded.T, np.int8), *zeros)
        y = self.add("Mul", self.add("Cast", sums, attributes={"to": FLOAT}), scale)
        y = self.add("Mul", y, self.constant(scales))
        return y if bias is None else self.add("Add", y, self.constant(bias))

    def _rows_in_bytes(self, x: str) -> tuple[str, str]:
        """Rows `[N, I]` as bytes with 128 for 0, by one operation; and their scales `[N, 1]`. A graph has one N."""
        scale = self._scale(x, keep=False)
        self.row_zeros = self.row_zeros or self.add("Expand", self.constant(128, np.uint8), self.add("Shape", scale))
        values = self.add("QuantizeLinear", x, scale, self.row_zeros, attributes={"axis": 0})
        return values, self.add("Unsqueeze", scale, self.shape(1))

    def _all_in_bytes(self, x: str) -> tuple[str, str]:
        """The same of values with more axes `[…, I]`, which that operation has not: scales `[…, 1]`."""
        scale = self._scale(x, keep=True)
        shifted = self.add("Add", self.add("Round", self.add("Div", x, scale)), self.constant(128))
        return self.add("Cast", shifted, attributes={"to": UINT8}), scale

    def _scale(self, x: str, *, keep: bool) -> str:
        """What brings the largest number of each row to 127; of a row of zeros 0, which makes nothing of its bytes."""
        largest = self.add("ReduceMax", self.add("Abs", x), attributes={"axes": [-1], "keepdims": int(keep)})
        return self.add("Div", largest, self.constant(127))

    def model(self) -> Any:
        """The whole as an ONNX model, checked by onnx.checker."""
        from onnx import checker, helper

        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [self.public.get(name, name) if name in self.made else name for name in names]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, list(self.weights.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        checker.check_model(model, full_check=True)
        return model


def in_bytes(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scales `[O]` and rows `[O, I]` of whole numbers from −64 to 64, so that scale × row is nearly W."""
    scales = np.maximum(np.abs(weight).max(1), np.float32(LEAST)) / np.float32(MOST)
    return scales, np.rint(weight / scales[:, None]).astype(np.int8)
