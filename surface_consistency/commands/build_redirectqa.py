"""`build redirectqa` and `build popqa`: data sets from Wikimedia's dumps."""

import argparse
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from surface_consistency.commands.options import Commands

if TYPE_CHECKING:
    from surface_consistency.data.dataset_folder import PublishedFolder
    from surface_consistency.studies.dataset_build import BuildSettings
    from surface_consistency.wikimedia.construction import BuildProgress, DumpPlan

__all__ = ["add"]

_SECONDS_ON_TERMINAL: Final = 1.0
_SECONDS_IN_LOG: Final = 60.0


class _Resources(TypedDict):
    """Options that all data sets share."""

    work: str | None
    overwrite: bool
    checksums: bool
    progress: "_Lines | None"


def add(builds: Commands) -> None:
    """Describe `build redirectqa` and `build popqa`."""
    redirectqa = builds.add_parser(
        "redirectqa",
        help="RedirectQA from dumps of a Wikipedia and Wikidata",
        description="Build RedirectQA from local dump files into a folder that load_dataset reads, "
        "with a card. A stopped build goes on from its finished steps.",
    )
    _add_dumps(redirectqa)
    draw = redirectqa.add_argument_group("construction")
    draw.add_argument("--triples", type=int, default=500_000, help="facts drawn (%(default)s)")
    draw.add_argument(
        "--vary",
        choices=("subject", "object"),
        default="subject",
        help="whose name varies (default: %(default)s)",
    )
    draw.add_argument(
        "--unambiguous",
        choices=("subject", "both"),
        default="subject",
        help="whose name must belong to one entity alone (default: %(default)s)",
    )
    _add_draws(draw, cap=1_000)
    _add_resources(redirectqa)
    redirectqa.set_defaults(handle=_build_redirectqa)
    popqa = builds.add_parser(
        "popqa",
        help="PopQA with the redirects of its subjects",
        description="Augment PopQA with Wikipedia redirects (RedirectQA, appendix B.1).",
    )
    _add_dumps(popqa)
    popqa.add_argument("--popqa", default="akariasai/PopQA", help="hub id, folder or file")
    popqa.add_argument("--revision", help="commit, tag or branch of PopQA's rows")
    _add_draws(popqa.add_argument_group("construction"), cap=None)
    _add_resources(popqa)
    popqa.set_defaults(handle=_build_popqa)


def _add_dumps(parser: argparse.ArgumentParser) -> None:
    """Describe which files are read."""
    dumps = parser.add_argument_group("dumps")
    dumps.add_argument("--dumps", required=True, help="folder of dump files")
    dumps.add_argument(
        "--wiki",
        default="enwiki",
        help="a known wiki, or a TOML or JSON file that describes one (default: %(default)s)",
    )
    dumps.add_argument(
        "--route",
        choices=("sql", "xml", "uncategorised"),
        help="where redirects and their categories come from (default: the best there is)",
    )
    dumps.add_argument(
        "--months", nargs="+", metavar="YYYYMM", help="pageview files to sum (default: all there)"
    )
    dumps.add_argument(
        "--allow-truncated", action="store_true", help="take dumps that end early as far as they go"
    )
    dumps.add_argument(
        "--plan", action="store_true", help="list the files needed, found and missing, and stop"
    )


def _add_draws(group: "argparse._ArgumentGroup", *, cap: int | None) -> None:
    """Describe what is drawn by seed."""
    group.add_argument("--seed", type=int, default=0, help="seed of all draws")
    group.add_argument(
        "--category-cap",
        type=int,
        default=cap,
        help="down-sample categories to so many names; 0 for no balancing (default: %(default)s)",
    )


def _add_resources(parser: argparse.ArgumentParser) -> None:
    """Describe where the work is done and what becomes of it."""
    parser.add_argument("--out", help="folder to write")
    parser.add_argument("--work", help="folder for what is staged (default: OUT.work)")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a data set of other settings in OUT"
    )
    parser.add_argument("--memory-limit", default="2GB", help="for DuckDB (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="default: all processors")
    parser.add_argument("--no-checksums", action="store_true", help="leave SHA-1 out of the card")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument(
        "--push-to-hub", metavar="OWNER/NAME", help="list what would be uploaded to the hub"
    )
    parser.add_argument(
        "--no-dry-run", action="store_true", help="with --push-to-hub: upload, not only list"
    )


def _build_redirectqa(arguments: argparse.Namespace) -> None:
    """Plan, or build and write."""
    from surface_consistency.studies.dataset_build import write_redirectqa

    build = _settings(arguments)
    if arguments.plan:
        _show_plan(build.plan(arguments.dumps))
    else:
        out = _out(arguments)
        _say_notes(arguments, build.plan(arguments.dumps))
        written = write_redirectqa(arguments.dumps, out, builds=[build], **_resources(arguments))
        _finish(arguments, written)


def _build_popqa(arguments: argparse.Namespace) -> None:
    """Plan, or augment and write."""
    from surface_consistency.data.popqa import load_popqa
    from surface_consistency.studies.dataset_build import write_popqa_redirect

    build = _settings(arguments)
    if arguments.plan:
        _show_plan(build.plan(arguments.dumps, needs_views=False))
    else:
        out = _out(arguments)
        _say_notes(arguments, build.plan(arguments.dumps, needs_views=False))
        popqa = load_popqa(arguments.popqa, revision=arguments.revision)
        written = write_popqa_redirect(
            popqa, arguments.dumps, out, build=build, **_resources(arguments)
        )
        _finish(arguments, written)


def _resources(arguments: argparse.Namespace) -> "_Resources":
    """Gather where the work is done and who hears of it."""
    return {
        "work": arguments.work,
        "overwrite": arguments.overwrite,
        "checksums": not arguments.no_checksums,
        "progress": None if arguments.quiet else _Lines(),
    }


def _settings(arguments: argparse.Namespace) -> "BuildSettings":
    """Gather how to build."""
    from surface_consistency.data.publish import check_repo_id
    from surface_consistency.studies.dataset_build import BuildSettings

    if arguments.push_to_hub is None and arguments.no_dry_run:
        raise ValueError("--no-dry-run belongs to --push-to-hub OWNER/NAME")
    if arguments.push_to_hub is not None:
        check_repo_id(arguments.push_to_hub)
    settings = BuildSettings(
        wiki=arguments.wiki,
        route=arguments.route,
        months=arguments.months,
        seed=arguments.seed,
        category_cap=arguments.category_cap or None,
        memory_limit=arguments.memory_limit,
        threads=arguments.threads,
        allow_truncated=arguments.allow_truncated,
    )
    if not hasattr(arguments, "triples"):
        return settings
    from dataclasses import replace

    return replace(
        settings,
        triples=arguments.triples,
        variant=arguments.vary,
        unambiguous=arguments.unambiguous,
    )


def _out(arguments: argparse.Namespace) -> str:
    """Find where to write."""
    if not arguments.out:
        raise ValueError("--out is needed: the folder to write (or --plan, which writes nothing)")
    return str(arguments.out)


def _say_notes(arguments: argparse.Namespace, plan: "DumpPlan") -> None:
    """Say what the files that are there decide, unless nothing is to be said."""
    if not arguments.quiet and not plan.missing:
        for note in plan.notes:
            print(f"note: {note}", file=sys.stderr)


def _show_plan(plan: "DumpPlan") -> None:
    """List the files of a build."""
    print(f"{plan.config.wiki} from {plan.folder}, route {plan.route}\n")
    for dump in plan.dumps:
        if dump.path is not None:
            print(f"found    {_size(dump.n_bytes)}  {dump.path}")
        else:
            state = "missing " if dump.is_needed else "optional"
            others = "".join(f"  (not {name})" for name in dump.other_dates)
            about = _size(dump.about_bytes, about=True)
            print(f"{state} {about}  {dump.name}  from {dump.url}{others}")
    n_missing = len(plan.missing)
    for note in plan.notes:
        print(f"note: {note}")
    expected = plan.about_missing_bytes
    size = "" if expected is None else f" (about {_amount(expected)})"
    said = {0: "all needed files are there", 1: f"1 needed file is missing{size}"}.get(
        n_missing, f"{n_missing} needed files are missing{size}"
    )
    print(f"\n{said}; {_amount(plan.total_bytes)} found")


def _size(n_bytes: int | None, *, about: bool = False) -> str:
    """Write a size, or that it is not known."""
    if n_bytes is None:
        return f"{'?':>12}"
    return f"{'~' if about else ''}{_amount(n_bytes)}".rjust(12)


def _amount(n_bytes: int) -> str:
    """Write a number of bytes in the unit that suits it."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} B"


def _duration(seconds: float) -> str:
    """Write a time to the nearest unit that matters."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _finish(arguments: argparse.Namespace, written: "PublishedFolder") -> None:
    """Say what was written, and show or make the upload."""
    from surface_consistency.data.publish import publish_folder

    for name, counts in written.counts.items():
        print(f"{name}: {sum(counts.rows.values()):,} rows")
    print(f"folder: {written.folder}\ncard: {Path(written.folder) / 'README.md'}")
    if arguments.push_to_hub is None:
        return
    plan = publish_folder(written.folder, arguments.push_to_hub, dry_run=not arguments.no_dry_run)
    for upload in plan.uploads:
        print(f"{upload.sha256}  {upload.n_bytes:>14,}  {upload.path}")
    total = f"{len(plan.uploads)} files, {plan.total_bytes:,} bytes"
    done = f"uploaded {total} to" if plan.is_done else f"would upload {total} to"
    print(f"{done} {plan.url or plan.repo_id}")
    if not plan.is_done:
        print("nothing was uploaded; add --no-dry-run to do it")


class _Lines:
    """Prints how far a build is: in place on a terminal, else a line a stage and a minute."""

    def __init__(self) -> None:
        self._stage = ""
        self._printed = 0.0

    def __call__(self, progress: "BuildProgress") -> None:
        """Print, unless too little happened."""
        now = time.monotonic()
        is_new = progress.stage != self._stage
        on_terminal = sys.stderr.isatty()
        pause = _SECONDS_ON_TERMINAL if on_terminal else _SECONDS_IN_LOG
        if not is_new and now - self._printed < pause:
            return
        self._stage, self._printed = progress.stage, now
        print(
            f"\r\x1b[K{self._line(progress)}" if on_terminal else self._line(progress),
            end="" if on_terminal and not is_new else "\n",
            file=sys.stderr,
            flush=True,
        )

    def _line(self, progress: "BuildProgress") -> str:
        """Say what is done and how long the reading will take."""
        if progress.is_reused:
            return f"{progress.stage}: kept, an earlier start read it"
        if progress.path is None:
            return f"step {progress.steps_done + 1}/{progress.steps_total}: {progress.stage}"
        left = progress.seconds_left
        rest = "" if math.isnan(left) else f", about {_duration(left)} of reading left"
        done = f"{_amount(progress.read_bytes)} of {_amount(progress.total_bytes)}"
        return f"{progress.stage}: {done}{rest}"
