"""The house rules that a machine can check: which way imports point, and how long, wide and plain the code is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parent.parent / "src" / "mirada"

# From the bottom up. A module imports from the rooms below its own, and from its own room.
LAYERS = (
    ("errors",),
    ("messages",),
    ("files", "escape"),
    ("config", "trees", "devices", "hub"),
    ("data", "corpora", "reference", "evaluation"),
    ("texts",),
    ("kernels",),
    ("models",),
    ("fast",),
    ("search",),
    ("store", "scoring"),
    ("ensemble",),
    ("translator", "train", "runtime", "card"),
    ("export", "loading", "importing"),
    ("explain", "scaling"),
    ("serving", "client"),
    ("study",),
    ("notebook",),
    ("cli",),
    ("__main__",),
)
# Beyond the layers: these know nothing of those. Only the package itself chooses models by options.
STRANGERS = {
    "search explain": "mirada.models",
    "search": "mirada.fast",
    "models kernels": "mirada.config",
}
EXEMPT = {"mirada.models"}
# What is typed into a notebook: `mirada.train(pairs, decoder="luong")`. The options are far too many to be named again;
# each is checked by the one set of them in config/, an unknown one refused with the nearest name.
OPTIONS_AS_KEYWORDS = {
    ("mirada.notebook.training", "train"),
    ("mirada.notebook.comparing", "compare"),
}
ASYNCHRONOUS = ("serving", "client")
STARTS_WITHOUT_TORCH = ("errors", "config", "cli", "texts", "runtime", "loading", "hub")


class Import(NamedTuple):
    """One imported module, and whether that happens as soon as the importing module is loaded."""

    name: str
    at_once: bool


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package by dotted name."""
    named = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = ("mirada", *path.relative_to(ROOT).with_suffix("").parts)
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return named


@cache
def imports(module: str) -> list[Import]:
    """Every import of a module; `from package import name` counts as package.name where that is a module."""
    found = []
    for node, at_once in statements(trees()[module]):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, at_once) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: a relative import; write the whole name"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.append(Import(inner if inner in trees() else str(node.module), at_once))
    return found


def statements(node: ast.AST, at_once: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Walk all nodes; what stands in a function or under `if TYPE_CHECKING` does not happen at once."""
    for child in ast.iter_child_nodes(node):
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        )
        yield child, at_once and not later
        yield from statements(child, at_once and not later)


def part(module: str) -> str:
    """mirada.data.rows → data."""
    return module.split(".")[1] if "." in module else ""


PLACES = {name: (height, group) for height, groups in enumerate(LAYERS) for group in groups for name in group.split()}


def test_every_module_has_a_place() -> None:
    """A new module (or package) is given its layer above, before anything is built on it."""
    assert {module for module in trees() if part(module) not in PLACES} == {"mirada"}


def points_down(module: str, name: str) -> bool:
    """Whether an import goes to a lower layer or stays within its group."""
    (height, group), (other_height, other_group) = PLACES[part(module)], PLACES[part(name)]
    return other_height < height or other_group == group


def own_imports(module: str) -> list[str]:
    return [found.name for found in imports(module) if found.name.split(".")[0] == "mirada"]


def test_imports_point_downward() -> None:
    upward = [
        f"{module} imports {name}"
        for module in trees()
        if part(module) in PLACES
        for name in own_imports(module)
        if name == "mirada" or (part(name) in PLACES and not points_down(module, name))
    ]
    assert upward == []


def test_strangers_stay_strangers() -> None:
    met = [
        f"{module} imports {name}"
        for parts, stranger in STRANGERS.items()
        for module in trees()
        if part(module) in parts.split() and module not in EXEMPT
        for name in own_imports(module)
        if name == stranger or name.startswith(stranger + ".")
    ]
    assert met == []


def test_there_is_no_cycle() -> None:
    """Imports inside functions count too: they hide a cycle, they do not undo it."""
    graph = {module: {name for name in own_imports(module) if name != "mirada"} for module in trees()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"cycle: {' -> '.join(error.args[1])}") from None


def loaded_with(module: str) -> set[str]:
    """Every module that importing this one loads, packages above it included."""
    waiting, seen = [module], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in trees():
            waiting += [found.name for found in imports(name) if found.at_once]
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    return seen


def test_the_command_line_starts_without_torch() -> None:
    slow = [
        name
        for module in trees()
        if part(module) in STARTS_WITHOUT_TORCH
        for name in loaded_with(module)
        if name.split(".")[0] == "torch"
    ]
    assert slow == []


class Function(NamedTuple):
    """A function or method and where it stands."""

    where: str
    node: ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> list[Function]:
    """Every function of the package, inner ones too."""
    return [
        Function(f"{module}:{node.lineno} {node.name}", node)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    first = node.body[0]
    docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
    return node.end_lineno - node.lineno + 1 - docstring


def test_functions_are_short() -> None:
    lengths = {function.where: lines(function.node) for function in functions()}
    assert {where: length for where, length in lengths.items() if length > 60} == {}
    assert median(lengths.values()) <= 12


def test_functions_take_at_most_seven_parameters() -> None:
    wide = {}
    for where, node in functions():
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len([name for name in names if name not in ("self", "cls")])
        if count > 7:
            wide[where] = count
    assert wide == {}


def test_files_are_short() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 300} == {}


def test_plainness() -> None:
    """No **kwargs, no assert (it vanishes under -O), no global; async only where many clients are waited for."""
    asynchronous = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)
    found = [
        f"{module}:{node.lineno} {type(node).__name__.lower()}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assert, ast.Global))
        or (isinstance(node, asynchronous) and part(module) not in ASYNCHRONOUS)
    ]
    found += [
        f"{where} takes **{node.args.kwarg.arg}"
        for where, node in functions()
        if node.args.kwarg and (where.split(":")[0], node.name) not in OPTIONS_AS_KEYWORDS
    ]
    assert found == []


def test_no_class_of_ours_below_a_class_of_ours() -> None:
    """Errors make a family, and blocks of options share `Block`; nothing else inherits from anything here."""
    classes = [
        (module, node) for module, tree in trees().items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    ours = {node.name for module, node in classes if module != "mirada.errors"} - {"Block"}
    below = [
        f"{module}:{node.lineno} {node.name} is a {base}"
        for module, node in classes
        for base in (ast.unparse(expression).split("[")[0].split(".")[-1] for expression in node.bases)
        if base in ours
    ]
    assert below == []


def test_having_attention_is_asked_of_the_options() -> None:
    """`has_attention` says it: a system added without attention is then right everywhere."""
    found = [
        f"{module}:{node.lineno}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and ast.unparse(node).endswith(("decoder == 'classic'", "decoder != 'classic'"))
    ]
    assert {where.split(":")[0] for where in found} <= {"mirada.config.model"}, found


# Rooms that do the same by other means have the same names.
SAME_ON_PURPOSE = ("mirada.reference", "mirada.runtime", "mirada.export")


def test_no_class_name_twice() -> None:
    """One meaning a word: a name that is taken is looked up once and found in one place."""
    found: dict[str, list[str]] = {}
    for module, tree in trees().items():
        if not module.startswith(SAME_ON_PURPOSE):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}
