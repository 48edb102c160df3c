"""Real jobs from files to figures: `python -m benchmarks.jobs run RECIPE …`, then `test RECIPE …`, then `report`.

A recipe (benchmarks/recipes/*.yaml) names a job's files, how they are made, the command with no options, the tuned one,
and what they are measured by. `run` makes the files, trains, measures dev and adds a row to docs/jobs.jsonl; `test`
measures the test set with the model of the last run, once: a second reading is refused. `report` writes docs/jobs.md
from the rows, and nothing else is in it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import yaml

from benchmarks import job_files
from benchmarks.job_report import to_page
from benchmarks.machine import facts
from mirada.files import write_text

HERE = Path(__file__).parent
RECIPES, ROWS, PAGE = HERE / "recipes", HERE.parent / "docs" / "jobs.jsonl", HERE.parent / "docs" / "jobs.md"
COLUMNS = ("plain", "tuned")
KEPT = ("items", "clusters", "group_mean")  # of a report, beside its metrics
Recipe = dict[str, Any]
Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one recipe, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "test", "report"))
    parser.add_argument("recipe", nargs="*", help="names of files in benchmarks/recipes, without .yaml [all]")
    parser.add_argument("--column", choices=COLUMNS, default="plain", help="the command with no options, or the tuned")
    parser.add_argument("--data", type=Path, default=Path("shared/data"), help="folder of the data sets")
    parser.add_argument("--work", type=Path, default=Path("runs/jobs"), help="folder of files and models")
    parser.add_argument("--rows", type=Path, default=ROWS, help="where results go [docs/jobs.jsonl]")
    parser.add_argument("--into", type=Path, default=PAGE, help="the page [docs/jobs.md]")
    given = parser.parse_args(arguments)
    every = [load(path.stem) for path in sorted(RECIPES.glob("*.yaml"))]
    if given.action == "report":
        given.into.write_text(to_page(every, read_rows(given.rows)), encoding="utf-8", newline="\n")
        return 0
    chosen = [load(name) for name in given.recipe] or sorted(every, key=lambda recipe: recipe["order"])
    return max([attempt(recipe, given) for recipe in chosen])


def attempt(recipe: Recipe, given: argparse.Namespace) -> int:
    """Run one recipe; what stops it is said, and does not stop the others."""
    try:
        (run if given.action == "run" else test)(recipe, given)
    except SystemExit as stop:
        print(stop, file=sys.stderr)
        return 1
    return 0


def load(name: str) -> Recipe:
    """Read a recipe; raises SystemExit for one that is not there."""
    path = RECIPES / f"{name}.yaml"
    if not path.exists():
        known = ", ".join(sorted(one.stem for one in RECIPES.glob("*.yaml")))
        raise SystemExit(f"{name}: no such recipe (there are {known})")
    return {"name": name, **yaml.safe_load(path.read_text(encoding="utf-8"))}


def read_rows(path: Path) -> list[Row]:
    """Every result so far, oldest first."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def add_row(path: Path, row: Row) -> None:
    """Write a row after the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write all rows again, after one of them has been read more into."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def run(recipe: Recipe, given: argparse.Namespace) -> None:
    """Make the files, train, measure, and add a row; raises SystemExit for what goes wrong."""
    work = given.work / recipe["name"]
    make_files(recipe, given.data, work)
    shutil.rmtree(work / given.column, ignore_errors=True)  # a training that is gone on with takes no time
    command = recipe[given.column]
    if given.column == "tuned" and "invent" in recipe:
        mirada(work, recipe["invent"])
    start, busy = time.monotonic(), processor_seconds()
    mirada(work, f"train {command} --model-dir {given.column}", log=work / f"{given.column}.log")
    spent = {"minutes": (time.monotonic() - start) / 60, "cpu_minutes": (processor_seconds() - busy) / 60}
    row: Row = {"job": recipe["name"], "column": given.column, "command": command}
    row |= {name: round(minutes, 1) for name, minutes in spent.items()}
    row |= {"dev": evaluate(recipe, given.column, "dev", work), **made()}
    add_row(given.rows, row)
    shown = {one["metric"]: round(one["value"], 2) for one in row["dev"]["metrics"]}
    print(f"{recipe['name']} {given.column}: dev {shown}, {row['minutes']} minutes", flush=True)


def test(recipe: Recipe, given: argparse.Namespace) -> None:
    """Measure the test set with the model of the last run; raises SystemExit if there is none, or it was read."""
    rows, name = read_rows(given.rows), f"{recipe['name']} {given.column}"
    own = [row for row in rows if (row["job"], row["column"]) == (recipe["name"], given.column)]
    if any(row.get("test") for row in own):
        raise SystemExit(f"{name}: the test set has been read already; dev chooses, test tells")
    if not own:
        raise SystemExit(f"{name}: not run yet")
    own[-1]["test"] = evaluate(recipe, given.column, "test", given.work / recipe["name"])
    write_rows(given.rows, rows)
    print(f"{name}: test read", flush=True)


def make_files(recipe: Recipe, data: Path, work: Path) -> None:
    """Files of a data set, or of the grammar that makes them."""
    work.mkdir(parents=True, exist_ok=True)
    if "make" in recipe:
        if not (work / "train.tsv").exists() and not (work / "train.en").exists():
            mirada(work, f"data make --out . {recipe['make']}")
    else:
        job_files.prepare(recipe["files"], data.resolve(), work)


def mirada(work: Path, command: str, *, log: Path | None = None) -> str:
    """Run a command in the job's folder as its user would; raises SystemExit with what it said if it fails."""
    line = [sys.executable, "-P", "-m", "mirada", *shlex.split(command)]
    with log.open("a+b") if log else TemporaryFile() as errors:
        begun = errors.tell()
        done = subprocess.run(line, cwd=work, stdout=subprocess.PIPE, stderr=errors, check=False, env=environment())
        if done.returncode:
            errors.seek(begun)
            raise SystemExit(f"mirada {command}: exit code {done.returncode}\n{errors.read().decode()}")
    return done.stdout.decode()


def environment() -> dict[str, str]:
    """This process's, with mirada found from another folder as well."""
    paths = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def evaluate(recipe: Recipe, models: str, part: str, work: Path, *, keep: Sequence[str] = KEPT) -> dict[str, Any]:
    """Measure a model, or several as one, on a part; the recipe's command has {part} where the part's name stands."""
    command = recipe["evaluate"].format(part=part)
    found: dict[str, Any] = json.loads(mirada(work, f"evaluate {models} {command} --json"))
    return {**{key: found[key] for key in keep if found.get(key)}, "metrics": found["metrics"]}


def processor_seconds() -> float:
    """Seconds of the processor that the commands run so far have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def made() -> Row:
    """When, by which commit, on what."""
    return {"when": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit(), "machine": machine()}


def commit() -> str:
    """The commit that this is a copy of, if it is one of git's."""
    line = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def machine() -> str:
    """Processor and threads."""
    known = facts()
    return f"{known['cpu']}, {known['instructions']}, {known['threads']} thread(s)"


if __name__ == "__main__":
    sys.exit(main())
