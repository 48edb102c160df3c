"""The figures of docs/results.md: `python -m benchmarks.figures run NAME …`, then `test NAME …`, then `report`.

A row of the page is a data set and a system, such as multi30k-en-de/rnn; benchmarks/figures.yaml has them all, and what
was published. Its options are a file in recipes/, which `mirada train` takes as it is. `run` makes the files, trains
each seed (or goes on with one that was stopped), measures dev and adds a line to docs/results.jsonl; `test` measures
the test sets with the models that `run` has left, each once: a second reading is refused. `report` writes the page from
the lines, and nothing else is in it but the log of what was tried. `try` makes three updates and fifty outputs, to see
that a row starts, and says how long it would take. NAME is a row, or a data set with all its rows. Nothing is fetched.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks import equal, job_files, jobs, machine
from benchmarks.figure_page import to_page

ROOT = Path(__file__).parent.parent
FIGURES, RECIPES, TRIED = ROOT / "benchmarks" / "figures.yaml", ROOT / "recipes", ROOT / "recipes" / "tried.md"
ROWS, PAGE = ROOT / "docs" / "results.jsonl", ROOT / "docs" / "results.md"
KEPT = (*jobs.KEPT, "by_length")
UPDATES, OUTPUTS = 3, 50  # of `try`
SOURCES = 1000  # of dev, at most, that decoding is timed with
Figure = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, try or test rows, or write the page."""
    given = read(arguments)
    if given.action == "report":
        tried = TRIED.read_text(encoding="utf-8")
        page = to_page(load(), jobs.read_rows(given.rows), tried)
        given.into.write_text(page, encoding="utf-8", newline="\n")
        return 0
    figures = chosen(load(), given.name)
    if given.action == "test":
        for figure in figures:
            test(figure, given)
    elif given.action == "try":
        for figure in figures:
            trial(figure, given)
    else:
        for seed in given.seeds:
            for figure in figures:
                run(figure, seed, given)
        for figure in figures if given.ensemble else []:
            ensemble(figure, given)
    return 0


def read(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command's words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "test", "report", "try"))
    parser.add_argument("name", nargs="*", help="rows, or data sets with all their rows [all]")
    parser.add_argument("--seeds", type=numbers, default=[1], metavar="1,2,3", help="one training each [1]")
    parser.add_argument("--ensemble", action="store_true", help="measure the seeds as one model too")
    parser.add_argument("--data", type=Path, default=Path("shared/data"), help="folder of the data sets")
    parser.add_argument("--work", type=Path, default=Path("runs/figures"), help="folder of files and models")
    parser.add_argument("--rows", type=Path, default=ROWS, help="where results go [docs/results.jsonl]")
    parser.add_argument("--into", type=Path, default=PAGE, help="the page [docs/results.md]")
    return parser.parse_args(arguments)


def numbers(text: str) -> list[int]:
    """Seeds by commas."""
    return [int(number) for number in text.split(",")]


def load() -> list[Figure]:
    """All rows, each with what holds for its data set."""
    sets = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return [
        {"tests": ["test"], **common, **own, "name": f"{data}/{system}", "data": data, "system": system}
        for data, common in sets.items()
        for system, own in common["systems"].items()
    ]


def chosen(figures: Sequence[Figure], names: Sequence[str]) -> list[Figure]:
    """The rows of these names, all for none; raises SystemExit for a name that stands for none."""
    for name in names:
        if not any(name in (figure["name"], figure["data"]) for figure in figures):
            known = ", ".join(dict.fromkeys(figure["data"] for figure in figures))
            raise SystemExit(f"{name}: no such row or data set (data sets: {known})")
    return [figure for figure in figures if not names or {figure["name"], figure["data"]} & set(names)]


def run(figure: Figure, seed: int, given: argparse.Namespace) -> None:
    """Train one seed, measure dev, and add a line; nothing to do where the line is there."""
    if any(row["seed"] == seed for row in own_rows(figure, given.rows)):
        print(f"{figure['name']} seed {seed}: is there", flush=True)
        return
    work = files(figure, given.data, given.work / figure["data"])
    folder = work / f"{figure['system']}-{seed}"
    resumed = folder.exists()
    busy = jobs.processor_seconds()
    command = train(figure, seed, work)
    spent = (jobs.processor_seconds() - busy) / 60
    updates, seconds = equal.progress(folder)
    row = {"figure": figure["name"], "seed": seed, "command": command, "minutes": round(seconds / 60, 1)}
    row |= {"cpu_minutes": None if resumed else round(spent, 1), "updates": updates}
    measure(figure, [folder], row, given)


def ensemble(figure: Figure, given: argparse.Namespace) -> None:
    """Measure all seeds as one model on dev, and add a line."""
    rows = own_rows(figure, given.rows)
    seeds = sorted(row["seed"] for row in rows if isinstance(row["seed"], int))
    if len(seeds) > 1 and not any(row["seed"] == seeds for row in rows):
        work = given.work / figure["data"]
        measure(figure, folders(figure, seeds, work), {"figure": figure["name"], "seed": seeds}, given)


def measure(figure: Figure, models: Sequence[Path], row: jobs.Row, given: argparse.Namespace) -> None:
    """Measure models as one on dev, and how fast they decode; add the line."""
    work = models[0].parent
    dev = jobs.evaluate(figure, " ".join(model.name for model in models), "dev", work, keep=KEPT)
    row |= {"weights": sum(equal.weights(model) for model in models), "dev": dev}
    row |= {"decoding": decoding(models, work / "dev.tsv"), **jobs.made()}
    jobs.add_row(given.rows, row)
    print(f"{figure['name']} seed {row['seed']}: dev {shown(dev)}", flush=True)


def test(figure: Figure, given: argparse.Namespace) -> None:
    """Measure the test sets with each model that has a line and has not read them; raises SystemExit if none has."""
    rows, name = jobs.read_rows(given.rows), figure["name"]
    own = [row for row in rows if row["figure"] == name]
    unread = [row for row in own if not row.get("test")]
    if not unread:
        why = "the test sets have been read already; dev chooses, test tells" if own else "not run yet"
        raise SystemExit(f"{name}: {why}")
    work = given.work / figure["data"]
    for row in unread:
        seeds = row["seed"] if isinstance(row["seed"], list) else [row["seed"]]
        models = " ".join(model.name for model in folders(figure, seeds, work))
        row["test"] = {part: jobs.evaluate(figure, models, part, work, keep=KEPT) for part in figure["tests"]}
        jobs.write_rows(given.rows, rows)
        print(f"{name} seed {row['seed']}: test read", flush=True)


def trial(figure: Figure, given: argparse.Namespace) -> None:
    """A few updates on all the pairs, a few outputs: whether the row starts, and how long an update takes."""
    work = given.work / "try" / figure["data"]
    shutil.rmtree(work, ignore_errors=True)
    files(figure, given.data, work)
    for path in work.glob("dev*.tsv"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[:OUTPUTS]), encoding="utf-8", newline="\n")
    if figure.get("like"):
        train({**figure, **own_system(figure, figure["like"])}, 1, work, more=f"--max-updates {UPDATES}")
    train(figure, 1, work, more=f"--max-updates {UPDATES}")
    folder = work / f"{figure['system']}-1"
    updates, seconds = equal.progress(folder)
    short = {**figure, "evaluate": f"{figure['evaluate']} --max-output-length 20"}
    dev = jobs.evaluate(short, folder.name, "dev", work)
    count = equal.weights(folder)
    print(f"{figure['name']}: {count:,} weights, {seconds / updates:.2f} s an update, dev {shown(dev)}", flush=True)


def files(figure: Figure, data: Path, work: Path) -> Path:
    """The files of a data set, and the invented pairs where a row wants some."""
    jobs.make_files(figure, data, work)
    if "invent" in figure and not (work / "more.tsv").exists():
        jobs.mirada(work, figure["invent"])
    return work


def train(figure: Figure, seed: int, work: Path, *, more: str = "") -> str:
    """Train one seed in the data set's folder, or go on with it; returns the command as a reader would type it."""
    folder = f"{figure['system']}-{seed}"
    if figure.get("like"):
        options = work / f"{folder}.yaml"
        if not options.exists():
            equal.write_classic(work / f"{figure['like']}-{seed}", options)
        said = options.name
    else:
        options = RECIPES / f"{figure['recipe']}.yaml"
        said = f"recipes/{options.name}"
    rest = " ".join(part for part in (f"--seed {seed} --model-dir {folder}", more) if part)
    jobs.mirada(work, f"train '{options.resolve()}' {rest}", log=work / f"{folder}.log")
    return f"mirada train {said} {rest}"


def own_system(figure: Figure, system: str) -> Figure:
    """What another system of the same data set has of its own, without what says that a row is derived."""
    return {**figure["systems"][system], "system": system, "like": None}


def own_rows(figure: Figure, path: Path) -> list[jobs.Row]:
    """The lines of a row so far."""
    return [row for row in jobs.read_rows(path) if row["figure"] == figure["name"]]


def folders(figure: Figure, seeds: Sequence[int], work: Path) -> list[Path]:
    """Where the models of these seeds are."""
    return [work / f"{figure['system']}-{seed}" for seed in seeds]


def decoding(models: Sequence[Path], dev: Path) -> jobs.Row:
    """How fast the best output of dev's sources is found with the model's own options, and who else was at work."""
    from mirada.data.rows import PART
    from mirada.translator import load as load_models

    translator = load_models(models)
    columns = [int(column) - 1 for column in translator.config.data.source_columns]
    sources = [PART.join(row[column] for column in columns) for row in job_files.table(dev)[:SOURCES]]
    translator.search(sources[:64])
    before, begun = machine.reading(), time.perf_counter()
    translator.search(sources)
    seconds = time.perf_counter() - begun
    busy = machine.load_between(before, machine.reading()).others
    speed = {"sentences_per_second": round(len(sources) / seconds, 1), "beam": translator.config.search.beam_size}
    return {**speed, "others": busy if busy is None else round(busy, 2)}


def shown(measured: jobs.Row) -> dict[str, float]:
    """The metrics of a part, short."""
    return {one["metric"]: round(one["value"], 2) for one in measured["metrics"]}


if __name__ == "__main__":
    sys.exit(main())
