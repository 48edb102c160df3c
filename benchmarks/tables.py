"""The tables of docs/speed.md, from rows. No number is typed by hand."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.grouping import OURS, disturbed, figure, label, middle, newest, ratio, threads, work_name
from benchmarks.rows import Row
from mirada.study.report.document import Grid
from mirada.study.report.numbers import NONE, value

Group = list[Row]


def surroundings(rows: Sequence[Row]) -> Grid:
    """On what, with which versions and when."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in (row for group in newest(rows) for row in group):
        machine = row.get("machine", {})
        torch = str(machine.get("torch", NONE))
        known = (str(row["system"]), str(row.get("version", NONE)), torch, str(machine.get("python", NONE)))
        parts = [machine.get("cpu", NONE), f"{machine.get('cores', NONE)} cores", machine.get("instructions", NONE)]
        where = ", ".join([*parts, *([machine["gpu"]] if "gpu" in machine else [])])
        found.setdefault((*known, where), []).append(str(row["when"])[:10])
    body = [[*names, f"{min(days)} – {max(days)}", str(len(days))] for names, days in sorted(found.items())]
    header = ["system", "version", "torch", "Python", "machine", "measured", "rows"]
    return Grid("Who was measured, on what, and when", header, body)


def training(rows: Sequence[Row]) -> list[Grid]:
    """Tokens a second of all systems, and how many times a peer's mirada's is."""
    groups = newest(row for row in rows if row["kind"] == "train")
    if not groups:
        return []
    systems = sorted({label(group[0]) for group in groups}, key=lambda name: (name != OURS, name))
    workloads = sorted({work_name(group[0]) for group in groups})
    cells = {(work_name(group[0]), label(group[0])): group for group in groups}
    speeds, ratios = [], []
    for workload in workloads:
        ours = cells.get((workload, OURS), [])
        row = [cells.get((workload, system), []) for system in systems]
        speeds.append([workload, *(figure(group, "tokens_per_second") for group in row)])
        ratios.append([workload, *(value(ratio(ours, group, "tokens_per_second"), 2) for group in row[1:])])
    tables = [Grid("Target tokens a second: median [least–greatest window]", ["work", *systems], speeds)]
    if len(systems) > 1 and systems[0] == OURS:
        tables.append(Grid("How many times a peer's speed mirada's is", ["work", *systems[1:]], ratios))
    return tables


def share(rows: Sequence[Row]) -> list[Grid]:
    """What mirada's training makes of the machine."""
    groups = [group for group in _ours(rows, "train") if "gflop" in group[-1]]
    body = [
        [
            work_name(group[0]),
            value(_sum(group[-1]["gflop"])),
            value(middle(group, "gflops")),
            value(group[-1]["rates"]["linear"]),
            value(group[-1]["rates"]["prepacked"]),
            _percent(middle(group, "fraction")),
            _percent(middle(group, "fraction_of_best")),
            value(middle(group, "peak_mb"), 0),
            value(middle(group, "source_padding"), 2),
            value(middle(group, "padding"), 2),
            value(disturbed(group), 2),
        ]
        for group in groups
    ]
    header = ["work", "GFLOP an update", "GFLOP/s", "linear's rate", "prepacked rate", "of linear's", "of the better"]
    header += ["peak MB", "padded / real source", "target", "cores of others"]
    caption = "Products that must be computed, and the share of the matrix rate measured between the windows"
    return [Grid(caption, header, body)] if body else []


def parts(rows: Sequence[Row]) -> list[Grid]:
    """Where an update's time goes, and torch's costliest operations."""
    groups = [group for group in _ours(rows, "train") if group[-1].get("parts")]
    if not groups:
        return []
    names = list(groups[0][-1]["parts"])
    body, costly = [], []
    for group in groups:
        workload, spent = work_name(group[0]), group[-1]["parts"]
        body.append([workload, *(value(spent.get(name)) for name in names), value(sum(spent.values()))])
        top = [f"{found['name']} {found['ms']:.0f} ({found['calls']:.0f})" for found in group[-1]["operations"][:6]]
        costly.append([workload, ", ".join(top)])
    operations = Grid("Torch's costliest operations: ms of processor time an update (calls)", ["work", "op"], costly)
    return [
        Grid("Milliseconds of an update, in a training that is watched", ["work", *names, "all"], body),
        operations,
    ]


def decoding(rows: Sequence[Row]) -> list[Grid]:
    """Sentences a second of all systems."""
    groups = newest(row for row in rows if row["kind"] == "decode")
    body = [
        [
            *_setting(group[0]),
            figure(group, "sentences_per_second"),
            value(_times(group, groups, "sentences_per_second"), 2),
            value(middle(group, "tokens_per_second"), 0),
            value(middle(group, "rows_per_second"), 0),
            value(_waste(group), 2),
            value(middle(group, "mean_length")),
            value(group[-1].get("bleu")),
            _percent(middle(group, "fraction")),
            value(middle(group, "peak_mb"), 0),
        ]
        for group in groups
    ]
    header = [
        *SETTING,
        "sentences/s",
        "mirada / it",
        "tokens/s",
        "rows/s",
        "rows computed / needed",
        "tokens a sentence",
        "BLEU",
    ]
    signatures = sorted({str(row["signature"]) for group in groups for row in group if row.get("signature")})
    caption = "Decoding the test lines, batch by batch" + (f" (BLEU: {', '.join(signatures)})" if signatures else "")
    return [Grid(caption, [*header, "of linear's rate", "peak MB"], body)] if body else []


def latency(rows: Sequence[Row]) -> list[Grid]:
    """One sentence at a time."""
    groups = newest(row for row in rows if row["kind"] == "latency")
    body = [
        [*_setting(group[0]), value(middle(group, "median_ms")), value(middle(group, "p90_ms")), _others(group)]
        for group in groups
    ]
    header = [*SETTING, "median ms", "slowest tenth from, ms", "cores of others"]
    return [Grid("A sentence alone, no batch to wait for", header, body)] if body else []


def startup(rows: Sequence[Row]) -> list[Grid]:
    """Whole processes, and what their imports take."""
    groups = newest(row for row in rows if row["kind"] == "startup")
    body, packages = [], []
    for group in groups:
        numbers = [value(middle(group, name), 2) for name in ("best_s", "median_s")]
        body.append([str(group[0]["work"]), label(group[0]), *numbers, _others(group)])
        if found := group[-1].get("imports"):
            listed = ", ".join(f"{one['package']} {one['ms']:.0f}" for one in found)
            packages.append([str(group[0]["work"]), listed])
    tables = [Grid("Start-up, seconds", ["what", "system", "best", "median", "cores of others"], body)]
    if packages:
        tables.append(Grid("Milliseconds of imports, by package", ["command", "packages"], packages))
    return tables if body else []


SETTING = ["work", "system", "precision", "workers", "threads", "beam"]


def _setting(row: Row) -> list[str]:
    named = [row["work"], label(row), row.get("precision"), row.get("workers"), threads(row), row.get("beam")]
    return [NONE if name is None else str(name) for name in named]


def _waste(group: Group) -> float | None:
    computed, needed = middle(group, "rows_computed"), middle(group, "rows")
    return computed / needed if computed and needed else None


def _times(group: Group, groups: Sequence[Group], name: str) -> float | None:
    """How many times a peer's figure mirada's best of the same workload, beam and precision is."""
    if group[0]["system"] == OURS:
        return None
    same = [
        other
        for other in groups
        if other[0]["system"] == OURS
        and all(other[0].get(part) == group[0].get(part) for part in ("work", "beam", "precision"))
    ]
    return max((found for other in same if (found := ratio(other, group, name)) is not None), default=None)


def _ours(rows: Sequence[Row], kind: str) -> list[Group]:
    groups = newest(row for row in rows if row["kind"] == kind and row["system"] == OURS)
    return sorted(groups, key=lambda group: (str(group[0]["work"]), str(threads(group[0]))))


def _sum(parts_of: dict[str, float]) -> float:
    return sum(parts_of.values())


def _percent(part: float | None) -> str:
    return NONE if part is None else f"{part:.0%}"


def _others(group: Group) -> str:
    return value(disturbed(group), 2)
