"""The page: one file, no network, and the numbers it shows are those of the trace (read back from a real browser)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

import tiny
from mirada.config.options import SearchConfig
from mirada.explain.page import embeddable, page
from mirada.explain.trace import plain, trace
from mirada.translator import load

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=3000",
    "--dump-dom",
]
READ = """<script>
const slider = document.getElementById("step");
slider.value = STEP; slider.dispatchEvent(new Event("input"));
document.querySelectorAll("details").forEach(d => { d.open = true; d.ontoggle(); });
const cells = [...document.querySelectorAll("#map tr.here td")].map(c => c.title);
const output = document.createElement("pre"); output.id = "read";
output.textContent = JSON.stringify({
  step: document.getElementById("steplabel").textContent, cells,
  here: document.querySelector("#output .here").textContent,
  top: [...document.querySelectorAll("#top tr")].map(r => r.children[1].textContent),
  numbers: Object.fromEntries([...document.querySelectorAll("#tensors details")].map(
    d => [d.dataset.name, d.querySelector("pre").textContent])),
  headings: [...document.querySelectorAll("h2")].map(h => h.textContent)});
document.body.append(output);
</script></body>"""


def made(folder) -> list:
    """Traces of one sentence by a tiny model."""
    return trace(load(folder, device="cpu"), "a bc b", options=SearchConfig(beam_size=2))


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    return made(tiny.write_folder(tmp_path_factory.mktemp("page") / "bahdanau", "bahdanau"))


def read_back(html: str, folder, step: int) -> dict:
    """Open the page in a browser, move the slider, and read what it shows."""
    path = folder / "page.html"
    path.write_text(html.replace("</body>", READ.replace("STEP", str(step))), encoding="utf-8")
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="read">(.*?)</pre>', shown, re.S)
    assert found, shown[-2000:]
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_nothing_is_fetched_and_no_text_breaks_out(traces):
    html = page(traces)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", html)
    assert "default-src 'none'" in html
    assert "</script><b>" not in embeddable("</script><b>\u2028")
    assert json.loads(embeddable("</script><b>\u2028")) == "</script><b>\u2028"


def test_both_languages_name_everything(traces):
    table = re.search(r"const words = \{(.*?)\}\};", page(traces), re.S)[1]
    english, spanish = (re.findall(r"(\w+): \"", part) for part in table.split("es: {"))
    assert english == spanish
    used = set(re.findall(r'data-say="(\w+)"', page(traces)))
    assert used <= set(english)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine (Debian: apt install chromium)")
@pytest.mark.parametrize("decoder", ["luong", "transformer"])
def test_a_browser_shows_the_numbers_of_the_trace(decoder, tmp_path):
    traces = made(tiny.write_folder(tmp_path / "model", decoder))
    found = plain(traces[0])
    step = min(2, len(found["steps"]))
    shown = read_back(page(traces), tmp_path, step)
    assert str(step) in shown["step"]
    assert [float(cell) for cell in shown["cells"]] == pytest.approx(found["attention"][step - 1], abs=1e-6)
    chosen = found["steps"][step - 1]
    top = [f"{100 * choice['probability']:.2f} %" for choice in chosen["top"]]
    assert shown["top"][: len(top)] == top
    assert shown["here"] == chosen["chosen"]["token"].removeprefix("▁")
    assert set(shown["numbers"]) == set(chosen["tensors"])
    first = next(iter(chosen["tensors"]))
    numbers = [float(x) for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", shown["numbers"][first])]
    assert numbers == pytest.approx(chosen["tensors"][first], abs=1e-4)
    assert all(shown["headings"])
