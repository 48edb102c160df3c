"""What mirada says in Spanish: all of it, by the catalogue alone, and nothing that is data."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cli_tools import ENVIRONMENT, command, flags, mirada, refusal, works, write_pairs
from mirada.cli import COMMANDS
from mirada.messages import language_of, speaking, spoken
from mirada.messages.catalogue import PLACE, Catalogue, catalogue, entries, parted, units
from mirada.study.report.document import Conclusion, Grid, Plot, Section, Series, StudyReport
from mirada.study.report.html import to_html
from mirada.study.report.markdown import to_markdown
from mirada.study.report.translated import translated

ROOT = Path(__file__).parent.parent.parent


def tool() -> ModuleType:
    """tools/messages.py, which finds what the code says."""
    spec = importlib.util.spec_from_file_location("messages_tool", ROOT / "tools/messages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = tool()
TEXT = TOOL.CATALOGUE.read_text(encoding="utf-8")
ENTRIES = entries(TEXT)

# The catalogue


def test_every_message_of_the_code_is_in_spanish_and_no_other():
    """Where this fails: `python tools/messages.py`, then translate what has an empty msgstr."""
    assert [text for text in TOOL.messages() if text not in ENTRIES] == []
    assert TOOL.updated(TEXT) == TEXT
    assert "fuzzy" not in TEXT


def test_translations_have_the_same_places():
    assert [
        said for said, meant in ENTRIES.items() if sorted(PLACE.findall(said)) != sorted(PLACE.findall(meant))
    ] == []


def test_every_message_is_met_by_its_own_template():
    """Names in the places, as a value would stand there: no other template takes the line."""
    wrong = []
    for said, meant in ENTRIES.items():
        line = PLACE.sub(r"NAME\1", said)
        if catalogue("es")._phrase(line) != PLACE.sub(r"NAME\1", meant):
            wrong.append(line)
    assert wrong == []


def test_what_the_code_says_is_found_in_its_syntax(tmp_path):
    code = '''"""A docstring of words."""
def f(n, name):
    if n:
        raise ValueError(f"{n} of {name!r}: too many pairs{' in one file' if n > 1 else ''}")
    note("two words " + "more {field:,d} words [by default]\\n\\n  mirada train --src a  # a comment here\\n")
    note("so many" + (" as a rule" if n else ""))
    return "word"
'''
    tree = TOOL.ast.parse(code)
    said = ["{0} of {1}: too many pairs{2}", "in one file", "two words more {0} words"]
    said += ["by default", "a comment here", "so many{0}", "as a rule"]
    assert list(TOOL.said("data", tree)) == said
    assert list(TOOL.said("models", TOOL.ast.parse('def f():\n    g("not said here")\n'))) == []


# Templates


def test_the_most_specific_template_speaks_and_its_places_too():
    said = Catalogue(
        {
            "{0}: {1} pairs left": "{0}: quedan {1} pares",
            "{0} pairs left in all": "en total quedan {0} pares",
            "plan: {0}, then {1}": "plan: {0}, después {1}",
            "each full epoch": "cada época completa",
            "(or a tenth)": "(o una décima parte)",
            "source": "entrada",
        }
    )
    assert said.translated("a.tsv: 3 pairs left") == "a.tsv: quedan 3 pares"
    assert said.translated("7 pairs left in all") == "en total quedan 7 pares"
    assert said.translated("plan: 400 (or a tenth), then each full epoch") == (
        "plan: 400 (o una décima parte), después cada época completa"
    )
    assert said.translated("options: a.b: each full epoch") == "options: a.b: cada época completa"
    assert said.translated("plan: source, then 'each full epoch'") == "plan: source, después 'each full epoch'"
    assert said.translated("  source\n") == "  entrada\n"
    assert said.translated("what nobody says") == "what nobody says"


@pytest.mark.parametrize(
    ("text", "places"),
    [("a 1 b 2 c", ["1", "2"]), ("a  b  c", ["", ""]), ("a 1 c", None), ("a b 2 c", None), ("x 1 b 2 c", None)],
)
def test_a_line_is_parted_by_the_fixed_words(text, places):
    assert parted(text, ["a ", " b ", " c"]) == places


@pytest.mark.parametrize(
    ("number", "spanish"),
    [
        ("999", "999"),
        ("1,234", "1234"),
        ("12,345", "12\u00a0345"),
        ("1,234,567.5", "1\u00a0234\u00a0567.5"),
        ("83%", "83\u00a0%"),
        ("83%.tsv", "83%.tsv"),
        ("1,23", "1,23"),
        ("4,600-", "4,600-"),
    ],
)
def test_numbers_in_the_places_are_as_spanish_writes_them(number, spanish):
    assert (
        Catalogue({"{0} pairs left": "quedan {0} pares"}).translated(f"{number} pairs left")
        == f"quedan {spanish} pares"
    )


def test_commands_names_and_brackets_are_not_said():
    text = "examples:\n  mirada train --src a   # one of them\n  lengths   by length\n\nOne\nparagraph [none].\n"
    assert [part for part, is_said in units(text) if is_said] == [
        *("examples:", "one of them", "by length", "One\nparagraph [none].")
    ]
    assert "".join(part for part, _ in units(text)) == text
    assert [part for part, is_said in units("what it is [by the pairs]") if is_said] == ["what it is", "by the pairs"]


def test_a_file_that_an_editor_wrapped_is_read():
    text = 'msgid ""\nmsgstr "Language: es\\n"\n\n#: a.py\nmsgid "one "\n"two \\"{0}\\""\nmsgstr "uno dos "\n"«{0}»"\n'
    assert entries(text) == {'one two "{0}"': "uno dos «{0}»"}


# Which language


@pytest.mark.parametrize(
    ("arguments", "environment", "language"),
    [
        ("", {}, "en"),
        ("", {"LANG": "es_ES.UTF-8"}, "es"),
        ("", {"LANG": "es"}, "es"),
        ("", {"LANG": "est_EE.UTF-8"}, "en"),
        ("", {"LANG": "C"}, "en"),
        ("", {"LANG": "en_US.UTF-8", "LC_MESSAGES": "es_MX.UTF-8"}, "es"),
        ("", {"LANG": "es_ES.UTF-8", "LC_ALL": "en_GB.UTF-8"}, "en"),
        ("", {"LANG": "de_DE.UTF-8", "LANGUAGE": "fr:es:en"}, "es"),
        ("", {"LANG": "es_ES.UTF-8", "LANGUAGE": "en"}, "en"),
        ("", {"LC_ALL": "C.UTF-8", "LANGUAGE": "es"}, "en"),
        ("train --lang es", {"LANG": "C"}, "es"),
        ("train --lang=en", {"LANG": "es_ES.UTF-8"}, "en"),
        ("train --lang fr", {"LANG": "es_ES.UTF-8"}, "es"),
        ("explain model -- --lang es", {}, "en"),
        ("train", {"MIRADA_LANG": "es", "LANG": "C"}, "es"),
    ],
)
def test_the_flag_comes_first_then_the_environment_as_gettext_reads_it(arguments, environment, language):
    assert language_of(arguments.split(), environment) == language


def test_a_language_holds_for_its_block():
    with speaking("es"):
        assert spoken("standard output") == "salida estándar"
    assert spoken("standard output") == "standard output"


# Through the command line

ENGLISH = re.compile(r"\b(the|of|with|pairs|examples|options|arguments|show|usage|default|exit|more)\b")
WORDS = [[name] for name in COMMANDS] + [["data", name] for name in ("make", "check", "prepare", "invent")]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_help_is_in_spanish(words):
    """Commands, flags and what stands in their places stay as they are."""
    help_all = works(*words, "--help" if words == ["data"] else "--help-all", "--lang", "es").output
    text = "\n".join(line.split("  # ")[-1] for line in help_all.split("\n"))
    text = re.sub(
        r"^  (mirada|echo|curl|torchrun|python) .*$|--[\w-]+|`[^`]*`|\bdata (make|check)\b", "", text, flags=re.M
    )
    text = re.sub(r"\b(model|data|training|search)\.[\w.-]+|opciones (options)?", "", text)
    assert [line for line in text.split("\n") if ENGLISH.search(line) and "uso: " not in line] == []
    assert "uso: mirada" in help_all
    english = works(*words, "--help" if words == ["data"] else "--help-all", "--lang", "en").output
    assert set(re.findall(r"--[a-z][a-z-]+", help_all)) == set(re.findall(r"--[a-z][a-z-]+", english))
    assert "usage: mirada" in english


def test_the_list_of_commands_is_in_spanish():
    assert works("--lang", "es", "--help").output == works("--help", "--lang=es").output
    assert "comandos:\n  train      entrena un modelo" in works("--help", "--lang", "es").output
    assert mirada("--lang", "es").output == works("--help", "--lang", "es").output


FAULTY = {
    "empty.tsv": b"",
    "latin.tsv": b"a\xff\tb\n",
    "two.txt": b"a\nb\n",
    "one.txt": b"a\n",
    "list.jsonl": b'{"source": [1], "target": "a"}\n',
}


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("trian", "comando desconocido 'trian'; ¿querías decir 'train'?; `mirada --help` enumera los que hay"),
        ("train --hiden-size 4", "argumento desconocido '--hiden-size'; ¿querías decir '--hidden-size'?; véase "),
        ("train --hidden-size 0", "options: model.hidden_size: debe ser mayor o igual que 1 (es '0')"),
        ("train --hidden-size big", "options: model.hidden_size: debe ser un número entero (es 'big')"),
        (
            "train --decoder lstm",
            "options: model.decoder: debe ser 'classic', 'bahdanau', 'luong' o 'transformer' (es ",
        ),
        (
            "train --decoder classic --score dot",
            "options: score dot con decoder classic, que no tiene atención; quita ",
        ),
        ("train --window 3", "options: window 3 no hace nada con attention_window global; es para attention_window "),
        ("train --tsv none.tsv", "none.tsv: no existe ese archivo"),
        ("train --hidden-size", "argumento --hidden-size/--model.hidden-size: se esperaba un argumento; véase "),
        ("data make", "faltan argumentos obligatorios: --out; véase `mirada data make --help`"),
        ("translate none", "none: no existe esa carpeta de modelo"),
        ("export none --to onnx --out x", "none: no existe esa carpeta de modelo"),
        ("import none --out x", "none: no existe esa carpeta o archivo"),
        (
            "explain none hola --drop-head 1",
            "--drop-head 1: se esperaba L.H, capa del decodificador y cabeza contadas ",
        ),
        ("explain none hola --step x", "argumento --step: no es un número entero: 'x'; véase `mirada explain --help`"),
        ("train --tsv . --model-dir m", ".: es un directorio, se esperaba un archivo"),
        (
            "evaluate --hyp two.txt --ref two.txt --metrics blue",
            "métrica desconocida 'blue'; ¿querías decir 'bleu'? (válidas: ",
        ),
        ("train --tsv empty.tsv --model-dir m", "empty.tsv: vacío"),
        ("train --tsv latin.tsv --model-dir m", "latin.tsv:1: el byte 0xff en la columna 2 no es UTF-8; convierte el "),
        (
            "train --src two.txt --tgt one.txt --model-dir m",
            "two.txt tiene 2 líneas, pero one.txt tiene 1; la línea 2 es ",
        ),
        (
            "train --src two.txt --model-dir m",
            "--src sin --tgt; indica los pares como --src y --tgt, o --tsv, o --jsonl, o --dataset",
        ),
        (
            "train --jsonl list.jsonl --model-dir m",
            "list.jsonl:1: la clave 'source' contiene una lista con un número; se ",
        ),
        (
            "train --decoder transformer --rnn-type gru",
            "options: rnn_type gru no hace nada con decoder transformer; es para ",
        ),
        ("train --learning-rate fast", "options: training.learning_rate: debe ser un número (es 'fast')"),
        ("train --lang de", "argumento --lang: opción no válida: 'de' (elige entre "),
    ],
)
def test_a_mistake_is_told_in_spanish(line, answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "es_ES.UTF-8")
    for name, content in FAULTY.items():
        Path(name).write_bytes(content)
    assert refusal(*line.split()).startswith(answer)


TINY = {
    "decoder": "luong",
    "embedding-dim": 4,
    "hidden-size": 4,
    "max-updates": 2,
    "valid-every": 1,
    "tokenizer": "word",
}


def test_a_training_speaks_spanish_and_writes_the_same(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.tsv", [(f"a{i} b", f"b a{i}") for i in range(12)])
    options = [*flags(TINY), "--tsv", pairs, "--valid-metrics", "exact"]
    ran = {lang: works("train", *options, "--model-dir", tmp_path / lang, "--lang", lang) for lang in ("en", "es")}
    assert re.search(r"^plan: 2 actualizaciones como mucho, 1 por época, ", ran["es"].errors, re.MULTILINE)
    assert re.search(r"^época 1 actualización 1: loss [\d.]+", ran["es"].errors, re.MULTILINE)
    assert not re.search(r"\b(plan: .* updates|epoch|chosen|the|says?)\b", ran["es"].errors)
    assert len(ran["es"].errors.splitlines()) == len(ran["en"].errors.splitlines())
    for name in ("config.yaml", "metrics.json"):
        texts = [(tmp_path / lang / name).read_text(encoding="utf-8") for lang in ("en", "es")]
        assert texts[0].replace("/en", "/es") == texts[1]


def test_a_check_of_a_corpus_is_in_spanish_and_its_json_is_not(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.tsv", [("a b", "b a"), ("a b", "b a"), ("c d", " "), ("e f", "f  e")])
    line = ("data", "check", "--tsv", pairs, "--lang", "es")
    text = mirada(*line).output
    assert "aviso: " in text
    assert re.search(r"^train: 3 pares \(1 más tienen un lado vacío y se dejan fuera\)$", text, re.MULTILINE)
    assert "que repiten un par anterior" in text
    findings = json.loads(mirada(*line, "--json").output)["findings"]
    assert any("that repeat an earlier pair" in finding["message"] for finding in findings)


def test_a_quality_report_is_in_spanish(tmp_path):
    for name, lines in (("out", ["a b", "c d e"]), ("ref", ["a b", "c d d"]), ("groups", ["group", "items"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = [f"--{flag}={tmp_path / name}" for flag, name in (("hyp", "out"), ("ref", "ref"), ("src", "ref"))]
    lines = works("evaluate", *files, f"--groups={tmp_path / 'groups'}", "--metrics", "exact", "--lang", "es").lines
    assert lines[0] == "2 casos; intervalos del 95 % por bootstrap sobre los casos"
    assert [line for line in lines if line.endswith(":")] == ["exact por longitud de la entrada:", "exact por grupo:"]
    assert [line.split()[:2] for line in lines if line.endswith("  2 casos")] == [["1–5", "palabras"]]
    assert [line.split()[0] for line in lines if line.endswith("  1 casos")] == ["group", "items"]
    assert lines[-1] == "  media de 2 grupos  50.00"


@pytest.mark.parametrize("name", ["classic", "bahdanau", "luong", "transformer"])
def test_an_explanation_is_in_spanish(name):
    line = ("explain", ROOT / "docs/models" / name, "Hugo is strong.")
    text = works(*line, "--lang", "es").output
    assert re.findall(r"\b(?:the|of|with|each|heads?|over|reads|writes|step|source|output|search)\b", text) == []
    assert "\nPaso 1: lee <s>, escribe " in text
    assert len(text.split("\n")) >= len(works(*line, "--lang", "en").output.split("\n")) - 1


def test_english_loads_no_catalogue():
    program = (
        "import sys\nfrom mirada.cli import main\nassert main(['train', '--help']) == 0\n"
        "print('mirada.messages.catalogue' in sys.modules, 'gettext' in sys.modules, file=sys.stderr)"
    )
    environment = {**ENVIRONMENT, "LC_ALL": "C", "LANGUAGE": "es"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, text=True, check=True)
    assert done.stderr.startswith("False ")
    assert "usage: mirada train" in done.stdout


def test_the_environment_of_a_process_chooses():
    environment = {**ENVIRONMENT, "LC_ALL": "", "LC_MESSAGES": "", "LANGUAGE": "", "LANG": "es_ES.UTF-8"}
    environment.pop("MIRADA_LANG", None)
    done = subprocess.run(command("--help"), capture_output=True, env=environment, check=True)
    assert done.stdout.decode().startswith("uso: mirada COMANDO")


# Reports


def test_a_report_is_translated_and_its_names_and_sentences_are_not():
    text = Grid("1. Item 4", ("", "text"), [("source", "no difference found"), ("all", "test items")])
    table = Grid("What differs", ["system", "weights"], [["luong-dot", "1,234"]])
    plot = Plot("p", "bleu of each system", "source words", "bleu", [Series("each seed", [0], [1.0])])
    finding = (
        "Best bleu: luong with 9.0 [8.0, 9.5]; against classic: luong better (+3.0, p 0.001), a worse (-1.0, p 0.01)."
    )
    with speaking("es"):
        report = translated(
            StudyReport("Systems compared", "a, b", [Section("Results", [Conclusion(finding), table, text, plot])])
        )
        page, markdown = to_html(report, {"p": "<svg/>"}), to_markdown(report)
    assert "Mejor bleu: luong con 9.0 [8.0, 9.5]; frente a classic: luong mejor (+3.0, p 0.001), a peor (" in markdown
    assert "| sistema | pesos |" in markdown
    assert "| luong-dot | 1234 |" in markdown
    assert "| entrada | no difference found |" in markdown
    assert '<html lang="es">' in page
    assert "bleu de cada sistema" in page
    assert translated(report._replace(title="Systems compared")).title == "Systems compared"
