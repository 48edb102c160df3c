"""Write the file tree of docs/architecture.md from the first lines of docstrings: `python tools/file_tree.py`."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- tree -->\n", "<!-- /tree -->\n"


def first_line(path: Path) -> str:
    """The first line of a module's docstring, without its last full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].removesuffix(".")


def tree() -> str:
    """One line for each file of the package, folders as they come."""
    package = ROOT / "src/mirada"
    lines = ["src/mirada/"]
    files = sorted(package.rglob("*.py"), key=lambda path: (len(path.relative_to(package).parts) > 1, path.as_posix()))
    folder = package
    for path in files:
        if path.parent != folder:
            folder = path.parent
            lines.append(f"  {folder.relative_to(package).as_posix()}/")
        indent = "    " if folder != package else "  "
        lines.append(f"{indent}{path.name:<18} {first_line(path)}")
    return "```\n" + "\n".join(lines) + "\n```\n"


def with_tree(page: str) -> str:
    """The page with its tree made anew."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + tree() + END + rest.split(END)[1]


if __name__ == "__main__":
    page = ROOT / "docs/architecture.md"
    page.write_text(with_tree(page.read_text(encoding="utf-8")), encoding="utf-8")
