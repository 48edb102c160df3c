"""Bring src/mirada/messages/es.po up to date with the code's messages: `python tools/messages.py`.

A message is any string of two words or more in a module that speaks, a place `{0}` for each value in it. New ones come
in without a translation, what the code says no more goes out; `tests/messages/` wants all translated.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from mirada.messages.catalogue import entries, one_line, units

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, CATALOGUE = ROOT / "src/mirada", ROOT / "src/mirada/messages/es.po"
WORDS = re.compile(r"[A-Za-z]{2,}.*\s.*[A-Za-z]{2,}")
FIELD = re.compile(r"\{\w*(?::[^{}]*)?\}")  # of str.format
# Rooms whose strings are data, pages or names of fonts: of theirs only errors and what is said or warned of.
SILENT = ("corpora", "card", "explain.figure", "explain.record", "explain.page", "explain.heatmap", "reference")
SILENT += ("kernels", "study.report.html", "devices", "evaluation.metrics", "evaluation.values", "serving")
# What only a programmer meets, whose Python speaks English.
MUTE = ("__init__", "messages", "models", "fast", "notebook")
# Not said: what libraries are asked for or searched for, usage lines, names one after the other.
CODE = re.compile(
    r"https?:|int \||mirada |not large enough$|\[→cell|exp\([eu]|failed to map|value error,$|annot allocate|"
    r"out of memory$|help quiet|vocab-size copy|beam-size n-best|quick format|a mirada model|how are you|vaswani et al",
    re.I,
)
HEAD = 'msgid ""\nmsgstr "Language: es\\nContent-Type: text/plain; charset=UTF-8\\n"\n'
# What argparse, pydantic, the system, and names put together say beside the code.
FOREIGN = json.loads((Path(__file__).parent / "foreign_messages.json").read_text(encoding="utf-8"))


def template(node: ast.expr) -> str | None:
    """A string as a template, its values as places named by `\\0`; None for what is no string."""
    if isinstance(node, ast.Constant):
        return FIELD.sub("\0", node.value) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) or "\0" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "\0"
    if is_sum(node):
        left, right = template(node.left), template(node.right)
        return None if left is None and right is None else (left or "\0") + (right or "\0")
    return None


def strings(node: ast.AST, *, only_errors: bool) -> Iterator[str]:
    """The templates below a node, docstrings left out; with `only_errors` those of errors and of what is said."""
    if isinstance(node, ast.expr) and (found := template(node)) is not None and not only_errors:
        yield found
        for part in ast.walk(node):  # strings within the places of a string
            places = [part.value] if isinstance(part, ast.FormattedValue) else []
            places += [side for side in (part.left, part.right) if template(side) is None] if is_sum(part) else []
            for place in places:
                yield from strings(place, only_errors=False)
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield from strings(child, only_errors=only_errors and not speaks(child))


def speaks(node: ast.AST) -> bool:
    """Whether a node is an error, or tells something."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return isinstance(node, ast.Raise) or name in ("say", "warn") or name.endswith("Error")


def is_sum(node: ast.AST) -> TypeGuard[ast.BinOp]:
    """Whether a node is a string behind another."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def numbered(text: str) -> str:
    """A template with its places counted from 0; neighbours are one place."""
    parts = re.split("\0+", text)
    return "".join(f"{part}{{{number}}}" for number, part in enumerate(parts[:-1])) + parts[-1]


def said(module: str, tree: ast.Module) -> Iterator[str]:
    """What a module says, each message once for each place where it stands."""
    if within(module, MUTE):
        return
    for text in strings(tree, only_errors=within(module, SILENT)):
        for unit, is_said in units(text):
            words = one_line(unit).removesuffix(";")
            if is_said and WORDS.search(words) and not CODE.match(words):
                yield numbered(words)


def within(module: str, rooms: tuple[str, ...]) -> bool:
    """Whether a module is one of these or in one of these rooms."""
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def messages() -> dict[str, str]:
    """Every message with the file that says it first."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for text in said(module, ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(text, name)
    return found | {text: where for where, texts in FOREIGN.items() for text in texts if text not in found}


def updated(old: str) -> str:
    """The catalogue with exactly the messages that there are, each with the translation that it has."""
    known = entries(old)
    blocks = [
        f"#: {where}\nmsgid {json.dumps(text, ensure_ascii=False)}\n"
        f"msgstr {json.dumps(known.get(text, ''), ensure_ascii=False)}\n"
        for text, where in sorted(messages().items(), key=lambda item: item[1])
    ]
    return "\n".join([HEAD, *blocks])


if __name__ == "__main__":
    before = CATALOGUE.read_text(encoding="utf-8") if CATALOGUE.exists() else ""
    CATALOGUE.write_text(updated(before), encoding="utf-8")
    missing = [text for text in messages() if text not in entries(before)]
    print(f"{len(messages())} messages, {len(missing)} without a translation")
