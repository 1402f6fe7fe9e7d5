"""The command `build`: build data sets from their sources."""

import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import App, Parameter
from pydantic import Field

import surface_consistency_build
from surface_consistency.cli.options import Out
from surface_consistency.cli.record_command import record_command
from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.models.registry import load_runner
from surface_consistency.runs.files import claim_files
from surface_consistency.schemas.jsonl import write_jsonl
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.audit.conditions import TOPOLOGIES
from surface_consistency.studies.redirectqa.settings import RedirectQASource
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency_build.builders.audit_databases.databases import build_audit_databases
from surface_consistency_build.builders.audit_databases.fact_tables import DOMAINS, read_fact_table
from surface_consistency_build.builders.audit_databases.styles import AUDIT_STYLES, style_writers
from surface_consistency_build.builders.audit_databases.topologies import PUBLISHED_TOPOLOGIES
from surface_consistency_build.builders.settings import (
    BuildSettings,
    DumpSettings,
    PopQASettings,
    RowsSettings,
)
from surface_consistency_build.wikimedia.construction.dump_files import DumpPlan
from surface_consistency_build.wikimedia.construction.progress import BuildProgress
from surface_consistency_build.writers.paraphrases import ParaphraseSettings, ParaphraseWriting
from surface_consistency_build.writers.slaq_article_selection import (
    ArticleSettings,
    select_articles,
)
from surface_consistency_build.writers.slaq_articles import read_articles
from surface_consistency_build.writers.slaq_topics import TopicSettings, TopicWriting
from surface_consistency_build.writers.writer import Writing

_SECONDS_ON_TERMINAL: Final = 1.0
_SECONDS_IN_LOG: Final = 60.0
_Dumps = Annotated[Path, Parameter(help="Folder of dump files.")]
_Source = Annotated[str, Parameter(help="File, folder or hub id of the rows.")]
_Review = Annotated[
    Path | None, Parameter(help="Completed review sheet to apply; no model is queried.")
]
_Written = Annotated[
    Path | None,
    Parameter(help="Folder in which the sheet was written; by default the folder of the sheet."),
]
_Plan = Annotated[
    bool,
    Parameter(
        help="List the needed files, existing and missing, and stop.",
        negative=(),
        show_default=False,
    ),
]


class WriteSettings(Settings):
    """Settings for writing and uploading a data set."""

    out: str | None = None
    """Folder of the data set; required, except with --plan."""

    config: str | None = None
    """Configuration of the data set, if it has several; by default the standard one, for lmlm-audit
    all."""

    push_to: str | None = None
    """Repository OWNER/NAME of the Hugging Face Hub to which the folder is uploaded."""

    dry_run: bool = False
    """Print the files that a push would upload, without uploading."""

    overwrite: bool = False
    """Replace a data set with other settings in --out."""

    quiet: bool = False
    """Do not show progress."""


class AuditSettings(Settings):
    """Contents of the databases."""

    domains: tuple[str, ...] = Field(default=tuple(DOMAINS), strict=False)
    """Bundled tables, or folders of custom tables: facts.tsv, aliases.tsv, and optionally noise.tsv
    and collision.tsv."""

    topologies: tuple[str, ...] = Field(default=tuple(PUBLISHED_TOPOLOGIES), strict=False)
    """Topologies: the ways in which facts are stored."""

    styles: tuple[str, ...] = Field(default=tuple(AUDIT_STYLES), strict=False)
    """Prompt styles."""

    seed: int = 0
    """Random seed of the near misses."""


def add(build: App) -> None:
    """Add the subcommands of `build`.

    Args:
        build: The command `build`.
    """
    for name, function, records in (
        ("redirectqa", _redirectqa, {"build": BuildSettings, "target": WriteSettings}),
        ("popqa-redirect", _popqa, {"build": PopQASettings, "target": WriteSettings}),
        ("slaq", _slaq, {"rows": RowsSettings, "target": WriteSettings}),
        ("lmlm-audit", _lmlm_audit, {"target": WriteSettings}),
        ("audit", _audit, {"settings": AuditSettings}),
        ("articles", _articles, {"settings": ArticleSettings}),
        ("topics", _topics, {"settings": TopicSettings, "model": ModelSettings}),
    ):
        build.command(record_command(function, **records), name=name)
    build.command(
        record_command(
            _paraphrases, source=RedirectQASource, settings=ParaphraseSettings, model=ModelSettings
        ),
        name="paraphrases",
    )


def _redirectqa(
    *,
    source: Annotated[
        str, Parameter(help="Folder of dump files; or file, folder or hub id of finished rows.")
    ],
    plan: _Plan = False,
    build: BuildSettings,
    target: WriteSettings,
) -> None:
    """Build RedirectQA from dumps of a Wikipedia and Wikidata, or from rows.

    Reads local dump files and writes a folder that load_dataset reads, with a card. A stopped build
    resumes after its finished steps. Finished rows are validated and written unchanged.
    """
    _build("redirectqa", source, build, target, plan=plan)


def _popqa(
    *, source: _Dumps, plan: _Plan = False, build: PopQASettings, target: WriteSettings
) -> None:
    """Augment PopQA with the Wikipedia redirects of its subjects (RedirectQA, appendix B.1)."""
    _build("popqa-redirect", str(source), build, target, plan=plan)


def _slaq(*, source: _Source, rows: RowsSettings, target: WriteSettings) -> None:
    """Build SLAQ from rows, with all topics or only the popular or obscure ones (--config)."""
    _build("slaq", source, rows, target)


def _lmlm_audit(
    *,
    source: Annotated[str, Parameter(help="Folder of databases with their prompts.")],
    target: WriteSettings,
) -> None:
    """Build the prompts and triplets of the audit of forgetting from databases.

    The databases are those that the audit publishes, or those that build audit writes.
    """
    _build("lmlm-audit", source, Settings(), target)


def _audit(
    *, out: Annotated[Path, Parameter(help="Folder of the databases.")], settings: AuditSettings
) -> None:
    """Build databases of the audit of forgetting, with their prompts, from tables of facts.

    Writes DOMAIN/TOPOLOGY.json and DOMAIN/prompts/TOPOLOGY/prompts_STYLE.jsonl in the published
    layout, which run audit reads, and the same prompts and triplets as Parquet files with a card,
    which load_dataset reads.
    """
    for name, chosen, known in (
        ("topologies", settings.topologies, TOPOLOGIES),
        ("styles", settings.styles, AUDIT_STYLES),
    ):
        if unknown := sorted(set(chosen) - set(known)):
            raise ValueError(
                f"--{name} must be one of {', '.join(known)}, got {', '.join(unknown)}"
            )
    claim_files(out, ["README.md", "prompts", "triplets"])
    built = build_audit_databases(
        out,
        domains=[
            domain if domain in DOMAINS else read_fact_table(domain) for domain in settings.domains
        ],
        topologies=settings.topologies,
        styles=style_writers(settings.styles),
        seed=settings.seed,
    )
    for item in built:
        print(
            f"{item.path}: {item.n_triplets} triplets, {item.n_facts} facts in "
            f"{len(item.prompt_paths)} prompt styles"
        )
    surface_consistency_build.build_dataset("lmlm-audit", out, out, overwrite=True)


def _articles(
    *,
    pages: Annotated[Path, Parameter(help="Dump pages-articles of the wiki, compressed or not.")],
    pageviews: Annotated[
        tuple[Path, ...],
        Parameter(
            help="Files of pageview_complete, daily or monthly.",
            consume_multiple=True,
            negative=(),
            show_default=False,
        ),
    ] = (),
    out: Annotated[Path, Parameter(help="File of articles to write: .jsonl.")],
    settings: ArticleSettings,
) -> None:
    """Select the articles of a wiki for which questions are written (SLAQ, appendix A.1).

    Selects by category, length and page views. `build topics` reads the file.
    """
    if out.suffix != ".jsonl":
        raise ValueError(f"--out must be a .jsonl file; name it {out.with_suffix('.jsonl').name}")
    claim_files(out.parent, [out.name])
    selection = select_articles(pages, pageviews, settings=settings)
    write_jsonl(out, selection.articles)
    n_chosen = Counter(article.category for article in selection.articles)
    for name in settings.categories:
        print(
            f"{name}: {selection.n_in_category[name]:,} articles, "
            f"{selection.n_long_enough[name]:,} long enough, {n_chosen[name]:,} kept"
        )
    if selection.n_without_views:
        print(f"note: {selection.n_without_views:,} are not in the pageview files and have 0 views")
    print(f"articles: {out}")


def _topics(
    *,
    articles: Annotated[
        Path, Parameter(help="File of articles, or folder of texts; see the guide.")
    ],
    category: Annotated[
        str | None, Parameter(help="Category of articles that have no category in the source.")
    ] = None,
    out: Out,
    review: _Review = None,
    written: _Written = None,
    settings: TopicSettings,
    model: ModelSettings,
) -> None:
    """Generate topics of SLAQ from articles with a model, check them, and write a review sheet.

    Writes test.csv (topics that satisfy all rules), doubtful.csv and review.csv. Repeat the command
    with the same options to send only requests without an answer. With --review, writes test.csv
    with the topics that a reviewer accepted or corrected.
    """
    writing = TopicWriting(read_articles(articles, category=category), settings)
    _write(writing, out, model, review, written)


def _paraphrases(
    *,
    out: Out,
    source: RedirectQASource,
    review: _Review = None,
    written: _Written = None,
    settings: ParaphraseSettings,
    model: ModelSettings,
) -> None:
    """Paraphrase the questions of RedirectQA with a model, check them, and write a review sheet.

    Writes test.jsonl (the questions and their paraphrases, for run redirectqa --template) and
    review.csv. Repeat the command with the same options to send only requests without an answer.
    With --review, writes test.jsonl with the paraphrases that a reviewer accepted or corrected.
    """
    writing = ParaphraseWriting(RedirectQAStudy().load(source), settings)
    _write(writing, out, model, review, written)


def _write(
    writing: Writing[Any, Any],
    out: Path,
    model: ModelSettings,
    review: Path | None,
    written: Path | None,
) -> None:
    """Query a model or apply a review, and print the results."""
    if review is None:
        runner = load_runner(
            model.runner or "transformers", model=model.model, options=model.options
        )
        progress = sys.stderr.isatty()
        done = writing.write(runner, out, model=model.name(runner), progress=progress)
        print(f"to review: {out / 'review.csv'}; then repeat the command with --review")
    else:
        done = writing.apply(review, out, written=written)
    for name, n in done.counts.items():
        print(f"{name}: {n:,}")
    for reason, n in done.dropped.items():
        print(f"dropped: {n:,}, because {reason}")
    for reason in dict.fromkeys(done.left_out.values()):
        names = [name for name, why in done.left_out.items() if why == reason]
        print(f"excluded: {len(names):,}, because {reason}: {', '.join(names[:3])}")
    print(f"data: {out}")


def _build(
    name: str, source: str, settings: Settings, target: WriteSettings, *, plan: bool = False
) -> None:
    """Build a data set, or list the dumps that it needs, and print the results."""
    if isinstance(settings, DumpSettings) and (plan or not target.quiet):
        files = settings.plan(source)
        if plan:
            _show_plan(files)
            return
        for note in () if files.missing else files.notes:
            print(f"note: {note}", file=sys.stderr)
    if not target.out:
        raise ValueError("--out is required: the folder to write (except with --plan)")
    given = target.model_dump(exclude={"out", "quiet"})
    progress = None if target.quiet else _Lines()
    options = settings.model_dump(exclude_unset=True)
    done = surface_consistency_build.build_dataset(
        name, source, target.out, **given, progress=progress, **options
    )
    print(f"folder: {done.folder}\ncard: {done.folder / 'README.md'}")
    rows = (f"{one.path}: {one.n_rows:,} rows" for one in done.uploads if one.n_rows is not None)
    print(*(done.lines() if target.dry_run or done.is_done else rows), sep="\n")


def _show_plan(plan: DumpPlan) -> None:
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
    state_of_files = {0: "all needed files exist", 1: f"1 needed file is missing{size}"}.get(
        n_missing, f"{n_missing} needed files are missing{size}"
    )
    print(f"\n{state_of_files}; {_amount(plan.total_bytes)} found")


def _size(n_bytes: int | None, *, about: bool = False) -> str:
    """Return a size as a text, or "?" if it is not known."""
    if n_bytes is None:
        return f"{'?':>12}"
    return f"{'~' if about else ''}{_amount(n_bytes)}".rjust(12)


def _amount(n_bytes: int) -> str:
    """Return a number of bytes as a text with a unit."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} B"


def _duration(seconds: float) -> str:
    """Return a duration as a text, in seconds, minutes or hours."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class _Lines:
    """Prints the progress of a build: in place on a terminal, else a line per stage and minute."""

    def __init__(self) -> None:
        self._stage = ""
        self._printed = 0.0

    def __call__(self, progress: BuildProgress) -> None:
        """Print the progress, unless the last line is recent."""
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

    def _line(self, progress: BuildProgress) -> str:
        """Return a line with the progress and the remaining time for reading."""
        if progress.is_reused:
            return f"{progress.stage}: reused, an earlier start read it"
        if progress.path is None:
            return f"step {progress.steps_done + 1}/{progress.steps_total}: {progress.stage}"
        left = progress.seconds_left
        rest = "" if math.isnan(left) else f", about {_duration(left)} left for reading"
        done = f"{_amount(progress.read_bytes)} of {_amount(progress.total_bytes)}"
        return f"{progress.stage}: {done}{rest}"
