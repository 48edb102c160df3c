"""`mirada push`."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.cli.flags import Parser
from mirada.files import expanded

EPILOG = """examples:
  mirada push runs/luong ana/luong-en-es
  mirada translate hf:ana/luong-en-es < test.en

The card is in English, with --lang es in Spanish. Needs pip install 'mirada[hub]', and a token (HF_TOKEN, or
`hf auth login`).
"""


def run(arguments: Sequence[str]) -> int:
    """Share a model on the Hugging Face hub, with its card; prints the address of the commit."""
    parser = Parser(
        "push", "Share a model on the Hugging Face hub.", usage="mirada push MODEL USER/NAME [options]", epilog=EPILOG
    )
    parser.add_argument("model", help="model folder, or that of an exported model")
    parser.add_argument("name", metavar="USER/NAME", help="where to; USER/NAME@BRANCH for a branch that is there")
    parser.add_argument("--private", action="store_true", help="a repository that only you see")
    values = parser.read(arguments)

    from mirada.card import model_card
    from mirada.errors import ModelFolderError
    from mirada.hub import push

    folder = expanded(values.model)
    if not (folder / "config.yaml").is_file():
        raise ModelFolderError(f"{folder}: not a model folder (config.yaml is missing)")
    card = model_card(folder, values.name.split("@")[0], values.lang or "en")
    print(push(folder, values.name, card, private=values.private))
    return 0
