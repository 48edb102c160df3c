"""Exported models without torch: text in, text out over ONNX Runtime and NumPy.

>>> from mirada import runtime
>>> model = runtime.load("luong-onnx")  # made by `mirada export runs/luong --to onnx --out luong-onnx`
>>> model.translate(["How are you?"])
"""

from __future__ import annotations

from mirada.runtime.translator import Translator, load

__all__ = ["Translator", "load"]
