"""The service's OpenAPI description as one plain page: no script, no network."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>mirada: HTTP interface</title>
<link rel="stylesheet" href="/static/docs.css"></head><body><main><h1>mirada {version}: HTTP interface</h1>
<p>{about} <a href="/">The page</a> · <a href="/openapi.json">openapi.json</a></p>
"""


def describe(schema: dict[str, Any]) -> bytes:
    """The page of an OpenAPI schema: each endpoint with what it takes and gives, each field with what it means."""
    parts = [HEAD.format(version=escape(schema["info"]["version"]), about=escape(schema["info"]["description"]))]
    for path, methods in schema["paths"].items():
        for method, one in methods.items():
            parts += _endpoint(schema, f"{method.upper()} {path}", one)
    return ("".join(parts) + "</main></body></html>\n").encode()


def _endpoint(schema: dict[str, Any], title: str, one: dict[str, Any]) -> Iterator[str]:
    yield f"<section><h2><code>{escape(title)}</code></h2><p>{escape(one.get('description', ''))}</p>"
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        yield f"<h3>takes</h3>{_fields(schema, body)}"
    answers = one.get("responses", {})
    for kind, content in answers.get("200", {}).get("content", {}).items():
        yield f"<h3>gives <small>{escape(kind)}</small></h3>{_fields(schema, content.get('schema', {}))}"
    yield "<h3>answers</h3><ul>"
    for status, answer in answers.items():
        yield f"<li><code>{escape(status)}</code> {escape(answer.get('description', ''))}</li>"
    yield "</ul></section>"


def _fields(schema: dict[str, Any], part: dict[str, Any], depth: int = 0) -> str:
    """A list of an object's fields, those of the objects in it below them."""
    part = _resolved(schema, part)
    if part.get("type") == "array":
        return _fields(schema, part.get("items", {}), depth)
    if not part.get("properties") or depth > 3:
        return "" if depth else f"<p><code>{escape(_kind(schema, part))}</code></p>"
    needed = part.get("required", [])
    rows = []
    for name, field in part["properties"].items():
        mark = " <strong>needed</strong>" if name in needed and depth == 0 else ""
        text = escape(field.get("description", ""))
        inner = _fields(schema, field, depth + 1)
        rows.append(f"<li><code>{escape(name)}</code> <em>{escape(_kind(schema, field))}</em>{mark} {text}{inner}</li>")
    return f"<ul>{''.join(rows)}</ul>"


def _resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in part:
        found: dict[str, Any] = schema["components"]["schemas"][part["$ref"].rsplit("/", 1)[1]]
        return found
    return part


def _kind(schema: dict[str, Any], part: dict[str, Any]) -> str:
    """What a field may hold, in a word."""
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(_kind(schema, one) for one in part["anyOf"]))
    if "$ref" in part:
        return "object"
    if part.get("type") == "array":
        return f"list of {_kind(schema, part.get('items', {}))}"
    return str(part.get("type", part.get("const", "any")))
