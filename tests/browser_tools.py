"""Chromium for the tests of pages (Debian: apt install chromium)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
AXE = Path(__file__).parent / "serving/axe/axe.min.js"  # axe-core 4.14.1; its licences stand beside it


def browser() -> Iterator[Any]:
    """Chromium, once for all tests of a session: Playwright can be started once a process."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("no Chromium on this machine; on Debian: apt install chromium")
    from playwright import sync_api

    with sync_api.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=found, args=FLAGS)


def opened(chromium, address, lang: str, width: int):
    context = chromium.new_context(viewport={"width": width, "height": 900}, locale=lang, accept_downloads=True)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    own = (address, "data:", "blob:", "file:")
    page.on("request", lambda asked: None if asked.url.startswith(own) else wrong.append(asked.url))
    page.lang = lang
    yield page
    assert wrong == []
    context.close()


def until(page, condition: str) -> None:
    """Wait for a condition; Playwright's own way would evaluate a string in the page, which its policy forbids."""
    end = time.monotonic() + 60
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)
