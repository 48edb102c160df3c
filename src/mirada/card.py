"""The card of a model: what it is, what it was trained on, how good it was, how to load it. English or Spanish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import yaml

from mirada.config import configfile
from mirada.config.options import Config, ModelConfig

Language = Literal["en", "es"]
WORDS = {
    "en": ("a sequence-to-sequence model", "Use", "System", "Data", "Metrics of the dev set", "Options"),
    "es": ("un modelo sequence-to-sequence", "Uso", "Sistema", "Datos", "Métricas del conjunto de dev", "Opciones"),
}


def model_card(folder: Path, name: str, language: Language = "en") -> str:
    """The card of a model folder or an exported model that the hub will hold under this name."""
    config = configfile.load(folder / "config.yaml")
    what, use, system, data, metrics, options = WORDS[language]
    head = {"library_name": "mirada", "tags": ["seq2seq", config.model.decoder], "language": language}
    parts = [
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n",
        f"# {name}: {what}\n",
        f"## {use}\n\n```bash\necho TEXT | mirada translate hf:{name}\n```\n",
        f'```python\nimport mirada\n\nmodel = mirada.load("hf:{name}")\nmodel.translate(["TEXT"])\n```\n',
        f"## {system}\n\n{_system(config.model)}\n",
        f"## {data}\n\n{_data(config)}\n",
    ]
    if rows := _metrics(folder / "metrics.json"):
        parts.append(f"## {metrics}\n\n" + "\n".join(rows) + "\n")
    parts.append(f"## {options}\n\n```yaml\n{configfile.dump(config.model)}```\n")
    return "\n".join(parts)


def _system(model: ModelConfig) -> str:
    cell = "" if model.decoder == "transformer" else f", {model.rnn_type}"
    score = f", {model.score_name}" if model.score_name else ""
    return f"{model.decoder}{score}{cell}, {model.enc_layers} + {model.dec_layers}"


def _data(config: Config) -> str:
    """File names without their folders, which say who trained it where."""
    data = config.data
    files = [path for path in (data.src, data.tgt, data.tsv, data.jsonl) if path]
    names = ", ".join(Path(path).name for path in files) or "—"
    return f"{names}; {data.source_tokenizer} → {data.target_tokenizer}"


def _metrics(path: Path) -> list[str]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    numbers = {key: value for key, value in values.items() if isinstance(value, int | float)}
    return ["| | |", "|---|---|", *(f"| {key} | {value:.4g} |" for key, value in numbers.items())] if numbers else []
