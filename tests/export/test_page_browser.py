"""The exported page in Chromium: it writes what Python writes, in both languages, on phones and wide screens, and asks
nobody else. Exporting fetches ONNX Runtime for the Web, where the cache has none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import tiny
from browser_tools import AXE, opened, until
from cli_tools import works
from mirada.translator import load

pytestmark = pytest.mark.browser
VIEWS = [("en", 390), ("es", 390), ("en", 1920), ("es", 1920)]
TEXT = "żółw sees the ĥ"
NAMES = ("copied words", "classic", "two parts")


class Quiet(SimpleHTTPRequestHandler):
    """As python -m http.server, without its log."""

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web")
    for name in NAMES:
        tiny.write_folder(folder / name, *tiny.SPECIAL.get(name, (name,)))
        works("export", folder / name, "--to", "web", "--out", folder / "pages" / name.replace(" ", "-"))
    return folder


@pytest.fixture(scope="module")
def site(models: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(models / "pages"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(params=VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def page(request, chromium, site):
    yield from opened(chromium, site, *request.param)


@pytest.fixture
def wide(chromium, site):
    yield from opened(chromium, site, "en", 1440)


def write(page, address: str, *texts: str, beam: int = 3) -> str:
    """Type, and wait until it is written."""
    page.goto("about:blank")
    page.goto(f"{address}/#lang={page.lang}&beam={beam}")
    until(page, "!document.getElementById('go').disabled")
    for field, text in zip(page.query_selector_all("#fields input"), texts, strict=True):
        field.fill(text)
    page.click("#go")
    until(page, "document.getElementById('score').textContent !== ''")
    return page.text_content("#text")


def test_a_sentence_is_written_as_in_python(page, site, models):
    model = load(models / "copied words", device="cpu")
    written = write(page, site + "/copied-words", TEXT)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_attribute("html", "lang") == page.lang
    assert {"en": "Sentence", "es": "Oración"}[page.lang] == page.text_content("label[for=text0]")
    [[one]] = model.search([TEXT], with_attention=True)
    assert len(page.query_selector_all(".map tbody tr")) > 1
    assert page.query_selector_all(".writing path")
    assert one.text == written
    shown = page.evaluate("document.documentElement.dataset.theme")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") != shown
    page.click("#language")
    assert page.get_attribute("html", "lang") != page.lang


def test_words_are_written_one_by_one_and_can_be_looked_at_again(wide, site):
    wide.goto("about:blank")
    wide.goto(site + f"/copied-words/#lang=en&text={TEXT}&beam=1")
    until(wide, "document.querySelectorAll('.writing .out .token').length > 0")
    first = wide.evaluate("document.querySelectorAll('.writing .out .token').length")
    until(wide, "document.getElementById('score').textContent !== ''")
    assert first < wide.evaluate("document.querySelectorAll('.writing .out .token').length")
    wide.click(".writing .out .token")
    assert wide.get_attribute(".writing .out .token", "aria-current") == "step"


def test_other_systems(wide, site, models):
    assert write(wide, site + "/classic", TEXT) == load(models / "classic", device="cpu").translate([TEXT])[0]
    assert "no attention" in wide.text_content("#map")
    given = ("the red fox", "fox")
    expected = load(models / "two parts", device="cpu").translate(["\t".join(given)])
    assert write(wide, site + "/two-parts", *given) == expected[0]
    expected = load(models / "copied words", device="cpu").translate([TEXT])
    assert write(wide, site + "/copied-words", TEXT) == expected[0]


def test_what_goes_wrong_is_said(chromium, site, models):
    """Files that are missing, and nothing typed."""
    context = chromium.new_context(locale="en")
    page = context.new_page()
    page.route("**/step.onnx", lambda route: route.fulfill(status=404))
    page.goto(site + "/copied-words/#lang=en")
    until(page, "document.getElementById('notice').textContent.includes('model/step.onnx (404)')")
    assert page.is_disabled("#go")
    page.unroute("**/step.onnx")
    page.reload()
    until(page, "!document.getElementById('go').disabled")
    page.click("#go")
    assert page.text_content("#notice") == "Type a sentence."
    page.goto((models / "pages/copied-words/index.html").as_uri())
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(wide, site, theme):
    write(wide, site + "/copied-words", TEXT)
    if wide.evaluate("document.documentElement.dataset.theme") != theme:
        wide.click("#theme")
    wide.evaluate(AXE.read_text(encoding="utf-8"))
    found = wide.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found["violations"]] == []
