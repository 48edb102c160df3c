"""The page in Chromium on real models: what it shows and does, in both languages and two widths.

`make test-browser` trains four small systems first, which takes half a minute (or takes those of MIRADA_DEMO=FOLDER),
and needs Chromium: Debian's `apt install chromium`. No console error, and no request that leaves the origin, in any of
these tests.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from browser_tools import AXE, opened, until
from mirada.config.configfile import changed
from mirada.config.options import Config
from mirada.corpora.grammar import make_splits, write_splits
from mirada.study.demo import SYSTEMS, configure, write_look
from mirada.train.loop import train
from mirada.translator import load
from serving.test_server import serving

pytestmark = pytest.mark.browser
TEXT = "The old man reads a red book."
VIEWS = [(lang, width) for lang in ("en", "es") for width in (390, 1440)]


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> Path:
    """The folder of four models that know little more than short questions, and of their look.html."""
    if known := os.environ.get("MIRADA_DEMO"):
        return Path(known)
    folder = tmp_path_factory.mktemp("demo")
    write_splits(make_splits(1500, seed=1, max_words=8), folder / "data")
    for name, options in SYSTEMS.items():
        train(configured(folder, name, options))
    write_look([load(folder / name, device="cpu") for name in SYSTEMS], "How are you?", folder / "look.html")
    return folder


def configured(folder: Path, name: str, options: dict[str, Any]) -> Config:
    """The demo's own options of a system, but narrower, with fewer words and fewer updates."""
    config = configure(folder, name, {**options, "hidden_size": 64, "embedding_dim": 64}, 1)
    quick = {"max_updates": 120, "epochs": 99, "warmup_steps": 10, "learning_rate": 6e-3, "valid_every": 1000}
    data = changed(config.data, {"vocab_size": 300})
    return changed(config, {"data": data, "training": changed(config.training, quick)})


@pytest.fixture(scope="session")
def address(demo, tmp_path_factory):
    """A service with all four."""
    log = tmp_path_factory.mktemp("log") / "log"
    with serving(*(demo / name for name in SYSTEMS), "--preload", log=log) as (_, address):
        yield address


@pytest.fixture(params=VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def page(request, chromium, address):
    """A page of one language and width that fails on console errors and on requests elsewhere."""
    lang, width = request.param
    yield from opened(chromium, address, lang, width)


@pytest.fixture
def wide(chromium, address):
    """A wide English page."""
    yield from opened(chromium, address, "en", 1440)


def visit(page, address: str, **state: object) -> None:
    """Open the page with a sentence, and wait until it is written."""
    page.goto("about:blank")
    values = {"text": TEXT, "model": "bahdanau", "beside": "", "step": 2, "lang": page.lang, **state}
    page.goto(address + "/#" + "&".join(f"{key}={value}" for key, value in values.items()))
    page.wait_for_selector(".column .part", timeout=60_000)


def test_nothing_is_wider_than_the_screen_and_all_is_said_in_one_language(page, address):
    for model in SYSTEMS:
        visit(page, address, model=model)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_attribute("html", "lang") == page.lang
    text = page.inner_text("body")
    other = {
        "en": ("Escribir", "Lo que podría", "mirar"),
        "es": ("Write", "What could", "attention", "decoder", "looks"),
    }
    assert [word for word in other[page.lang] if word in text.replace("English", "").replace("español", "")] == []


def test_a_sentence_is_typed_and_written_token_by_token(page, address):
    page.goto(f"{address}/#lang={page.lang}&model=bahdanau")
    page.fill("#text", "How are you?")
    page.click("#go")
    page.wait_for_selector(".writing path", state="attached", timeout=60_000)
    until(page, "new URLSearchParams(location.hash.slice(1)).get('step') >= 3")  # it plays by itself
    widths = page.eval_on_selector_all(
        ".writing path", "paths => paths.map(p => Number(p.getAttribute('stroke-width')))"
    )
    assert sum(widths) == pytest.approx(12, abs=0.2)
    assert "How are you?" in page.title()
    assert "text=How" in page.evaluate("location.hash")


def test_language_and_theme_change_and_the_step_stays(page, address):
    visit(page, address, step=3)
    before = page.input_value("#step"), page.get_attribute("html", "data-theme")
    page.click("#language")
    page.click("#theme")
    assert page.input_value("#step") == before[0] == "3"
    assert page.get_attribute("html", "data-theme") != before[1]
    assert page.get_attribute("html", "lang") != page.lang


def test_keys_step_and_the_focus_stays(wide, address):
    visit(wide, address)
    word = wide.locator(".tokens.out .token").nth(2)
    word.focus()
    for key in ("Enter", "Space"):
        wide.keyboard.press(key)
        assert wide.evaluate("document.activeElement.dataset.line") == "2"
    wide.keyboard.press("ArrowLeft")
    wide.keyboard.press("ArrowRight")
    assert wide.evaluate("document.activeElement.dataset.line") == "2"


def test_shading_ends_with_the_hover(wide, address):
    visit(wide, address, step=1)
    shades = "els => els.map(e => e.style.background)"
    before = wide.eval_on_selector_all(".tokens:not(.out) .token", shades)
    wide.hover(".tokens.out .token >> nth=-1", force=True)
    wide.mouse.move(0, 0)
    assert wide.eval_on_selector_all(".tokens:not(.out) .token", shades) == before


@pytest.mark.parametrize("model", SYSTEMS)
def test_every_part_of_the_drawing_explains_itself(wide, address, model):
    visit(wide, address, model=model)
    parts = wide.eval_on_selector_all(".part", "els => els.map(e => e.dataset.part)")
    assert {"out", "y"} <= set(parts)
    assert ("neck" in parts) is (model == "classic")
    for part in parts:
        wide.click(f'.part[data-part="{part}"]')
        assert wide.get_attribute(f'.part[data-part="{part}"]', "aria-pressed") == "true"
        assert wide.locator("math").count() >= 1
        assert "undefined" not in wide.inner_text("main")
        assert "NaN" not in wide.inner_text("main")


def test_the_old_state_looks_in_one_and_the_new_one_in_the_other(wide, address):
    visit(wide, address, model="luong", beside="bahdanau")
    looks = wide.eval_on_selector_all(".looks", "els => els.map(e => e.dataset.part)")
    assert looks == ["s", "before"]
    assert wide.locator(".column").count() == 2


def test_interventions_stand_beside_what_they_change(wide, address):
    visit(wide, address, step=1)
    wide.click("text=look everywhere alike")
    wide.wait_for_selector(".column >> nth=1", timeout=60_000)
    cells = wide.locator(".column").nth(1).locator(".map tbody tr").first.locator("td").all_inner_texts()
    shares = [float(cell) / min(map(float, cells)) for cell in cells]  # of words: as many as each has tokens
    assert all(share == pytest.approx(round(share), abs=0.2) for share in shares)
    wide.click("#intervene >> text=undo")
    until(wide, "document.querySelectorAll('.column').length === 1")
    chosen = wide.locator(".tokens.out .token").first.inner_text()
    wide.locator(".bars button", has_text="force").first.click()
    wide.wait_for_selector(".column >> nth=1", timeout=60_000)
    assert wide.locator(".column").nth(1).locator(".tokens.out .token").first.inner_text() != chosen
    wide.click("#intervene >> text=undo")
    until(wide, "document.querySelectorAll('.column').length === 1")
    wide.click("#intervene summary")
    wide.eval_on_selector_all(
        ".weights input",
        "els => els.forEach((e, j) => { e.value = j === 1 ? 100 : 0; e.dispatchEvent(new Event('input')); })",
    )
    wide.click("text=use these weights")
    wide.wait_for_selector(".column >> nth=1", timeout=60_000)
    wide.uncheck("#join")  # a word of several tokens would show their mean
    row = wide.locator(".column").nth(1).locator(".map tr.here td").all_inner_texts()
    assert "1.00" in row


def test_a_head_can_be_left_out(wide, address):
    visit(wide, address, model="transformer")
    wide.click("text=leave out head")
    wide.wait_for_selector(".column >> nth=1", timeout=60_000)


def test_joined_words_leave_the_full_stop_apart(wide, address):
    visit(wide, address)
    columns = wide.locator(".map thead th").all_inner_texts()
    assert "book" in columns
    assert "." in columns
    rows = [
        [float(cell or 0) for cell in row.locator("td").all_inner_texts()]
        for row in wide.locator(".map tbody tr").all()
    ]
    assert all(sum(row) == pytest.approx(1, abs=0.06) for row in rows)


def test_what_is_saved_is_a_page_without_the_service(wide, address, tmp_path):
    visit(wide, address, model="luong")
    for name in ("page (HTML)", "map (SVG)", "map (PNG)", "numbers (JSON)"):
        with wide.expect_download() as coming:
            wide.click(f"text={name}")
        coming.value.save_as(tmp_path / name)
    assert (tmp_path / "map (SVG)").read_text().startswith("<svg")
    assert (tmp_path / "map (PNG)").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "page (HTML)").rename(tmp_path / "page.html")
    wide.goto((tmp_path / "page.html").as_uri())
    wide.wait_for_selector(".column .part")
    assert wide.is_disabled("#go")
    assert "To change them: mirada serve" in wide.inner_text("#intervene")
    wide.click("#next")
    assert wide.input_value("#step") == "2"


def test_look_html_shows_the_four_systems(wide, demo):
    wide.goto((demo / "look.html").as_uri())
    wide.wait_for_selector(".column .part")
    assert wide.locator("#model option").count() == 4
    assert wide.locator(".column").count() == 2


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility_by_axe(page, address, theme):
    """WCAG 2 A and AA by axe."""
    visit(page, address, beside="classic")
    if page.get_attribute("html", "data-theme") != theme:
        page.click("#theme")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found["violations"]] == []
