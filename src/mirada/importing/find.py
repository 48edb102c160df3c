"""Which toolkit a folder or a file is of, and the reader for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mirada.errors import ModelFolderError
from mirada.importing.fairseq import read_fairseq, read_fairseq_folder
from mirada.importing.joeynmt import read_joey
from mirada.importing.marian import read_marian
from mirada.importing.opennmt_py import read_opennmt
from mirada.importing.pickles import read_pickle
from mirada.importing.write import Imported

KNOWN = (
    "config.json of Hugging Face's MarianMTModel, a checkpoint of OpenNMT-py 3, config.yaml and best.ckpt of JoeyNMT "
    "2, or a checkpoint of fairseq with dict.xx.txt of both languages"
)


def read_model(path: Path) -> Imported:
    """Read another toolkit's model, whichever it is; raises ModelFolderError, naming what is wrong."""
    if not path.exists():
        raise ModelFolderError(f"{path}: no such folder or file")
    if path.is_file():
        return _read_checkpoint(path)
    if path.is_dir() and (path / "config.json").is_file():
        return read_marian(path)
    if path.is_dir() and (path / "config.yaml").is_file() and (path / "model.safetensors").is_file():
        raise ModelFolderError(f"{path}: is a model folder of mirada already")
    if (path / "config.yaml").is_file():
        return read_joey(path)
    if next(path.glob("dict.*.txt"), None):
        return read_fairseq_folder(path)
    raise _unknown(path)


def _read_checkpoint(path: Path) -> Imported:
    """Read a file of torch.save by what is in it."""
    content = read_pickle(path)
    if isinstance(content, Mapping) and {"opt", "vocab"} <= set(content):
        return read_opennmt(path, content)
    if isinstance(content, Mapping) and "model" in content and {"cfg", "args"} & set(content):
        return read_fairseq(path, content)
    raise _unknown(path)


def _unknown(path: Path) -> ModelFolderError:
    return ModelFolderError(f"{path}: no model that can be imported is there; expected {KNOWN}")
