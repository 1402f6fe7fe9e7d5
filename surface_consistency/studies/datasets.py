"""Load data sets by name, with one row per prompt, and score predictions made elsewhere.

The loader of a study reads its data set, so a run and `load_dataset` have the same prompts.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd

from surface_consistency.data.popqa import PopQA, load_popqa
from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.data.redirectqa_release import RedirectQARow
from surface_consistency.data.selection import pause_gc
from surface_consistency.data.slaq import Slaq, load_slaq
from surface_consistency.data.slaq_rows import SlaqRow
from surface_consistency.data.sources import OpenSource, Source, open_source
from surface_consistency.engine.judging.judges import judge_targets
from surface_consistency.engine.score import align_predictions, named_texts, warn_unscored
from surface_consistency.engine.settings import JudgeScoring, StudySettings
from surface_consistency.engine.study import find_study, make_plan, outcomes_frame, pair_outcomes
from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.models.reasoning import separate_stored
from surface_consistency.reading import find_column, first_names, shown
from surface_consistency.results.columns import PredictionSettings
from surface_consistency.rows.readers import Row, python_values
from surface_consistency.runs.answers import join_answers
from surface_consistency.runs.frames import arrow_schema
from surface_consistency.schemas import DataSource, GenerationParams
from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency.schemas.settings import reject_unknown
from surface_consistency.studies.forms.data import Forms, forms_of, load_forms
from surface_consistency.studies.forms.layouts import Layout, layout_rows, presets
from surface_consistency.text import did_you_mean

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

PROMPT_COLUMNS: Final = ("id", "item", "form", "question", "references")
"""Columns of every data set, before its specific columns."""

_STATES: Final = ("FULL", "DEL-ON", "DEL-OFF")
_STUDIES: Final = {"redirectqa": "redirectqa", "slaq": "slaq", "lmlm-audit": "audit"}
_KNOWN_BY: Final = {
    "redirectqa": ("subject_surface", "subject_surface_category"),
    "slaq": ("ShortQ1", "LongQ"),
    "popqa": ("subj", "prop", "possible_answers"),
}
"""Columns by which rows in memory are recognised."""


class KnownDataset(Record):
    """Description of a data set that is not loaded yet."""

    hub: str = ""
    """Hub repository; "" if it is not on the hub."""

    url: str = ""
    """Address of data that are not on the hub."""

    paper: str = ""
    """The paper that describes it."""

    licence: str = ""
    """Licence of the data."""

    rows: int | None = None
    """Number of rows of the release; None if it is not recorded."""

    description: NonEmpty
    """Description of its content."""

    has_sample: bool = False
    """Whether a sample of its rows is bundled."""


@cache
def known_datasets() -> Mapping[str, KnownDataset]:
    """Read the descriptions of the data sets.

    Returns:
        The descriptions by name.
    """
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    for name, layout in presets().items():
        tables[name] |= {"hub": layout.source, "licence": layout.licence}
    return {name: KnownDataset.model_validate(table) for name, table in tables.items()}


def list_datasets() -> pd.DataFrame:
    """List the data sets of `load_dataset`.

    Returns:
        One row per data set: name; hub, its repository ("" if it is not on the hub); paper;
        licence; rows, the number of rows of the release, missing if it is not recorded;
        description; has_sample, whether `source="sample"` loads bundled rows.

    Examples:
        >>> list_datasets()["name"].head(4).tolist()
        ['redirectqa', 'slaq', 'popqa', 'lmlm-audit']
    """
    rows = [{"name": name, **known.model_dump()} for name, known in known_datasets().items()]
    return pd.DataFrame(rows).drop(columns="url").astype({"rows": "Int64"})


@dataclass(frozen=True, kw_only=True, eq=False)
class FactDataset:
    """A data set of facts, one row per prompt."""

    name: str
    """Name of the data set."""

    content: Any
    """Data from which the study of the data set makes its plan."""

    source: DataSource
    """Source of the rows, and the digest of exactly these rows."""

    prompts: pd.DataFrame
    """The columns `PROMPT_COLUMNS` and source_row, the index of the source's row in `rows`."""

    rows: Sequence[Mapping[str, object]]
    """The unchanged rows of the source."""

    def __len__(self) -> int:
        """Return the number of prompts."""
        return len(self.prompts)

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - as of `datasets.Dataset`
        """Return rows by number, or a column by name, as `to_dataset()[key]` does."""
        return self.to_dataset()[key]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows of `to_dataset` as dictionaries."""
        return iter(self.to_dataset())

    def __repr__(self) -> str:
        """Summarise the content."""
        n_items = self.prompts["item"].nunique()
        return (
            f"<FactDataset {self.name!r} from {self.source.id!r}: {len(self):,} prompts, "
            f"{n_items:,} items>"
        )

    @cached_property
    def _table(self) -> "pa.Table":
        """The prompts and all columns of the source."""
        import pyarrow as pa

        record = {"redirectqa": RedirectQARow, "slaq": SlaqRow}.get(self.name)
        released = pa.schema([]) if record is None else arrow_schema(record)
        columns: dict[str, Any] = {name: self.prompts[name].tolist() for name in PROMPT_COLUMNS}
        rows = [self.rows[place] for place in self.prompts["source_row"]]
        for name in dict.fromkeys(name for row in self.rows for name in row):
            values = [row.get(name) for row in rows]
            own = str(name)
            if own in PROMPT_COLUMNS:
                if values == columns[own]:
                    continue
                own = f"source_{own}"
            try:
                columns[own] = pa.array(values)
                if own in released.names:
                    columns[own] = _cast(columns[own], released.field(own).type)
            except pa.ArrowException as error:
                raise DataError(
                    f"column {shown(name)} of {self.source.id} has values of several types, which "
                    f"no data set can store ({error}); convert them to text in the source"
                ) from error
        return pa.table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return the prompts as a data frame.

        Returns:
            One row per prompt: id, item, form, question and references (a list of str), then the
            columns of the source unchanged, with the types of the release. A column of the source
            that has one of these names and other values is renamed `source_<name>`.
        """
        import pyarrow as pa

        dtypes = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        return pd.DataFrame(
            {
                name: pd.Series(python_values(column), dtype=object)
                if pa.types.is_nested(column.type)
                else column.to_pandas(types_mapper=dtypes.get)
                for name, column in zip(self._table.column_names, self._table.columns, strict=True)
            }
        )

    def to_dataset(self) -> "datasets.Dataset":
        """Return the prompts as a `datasets.Dataset`, with the columns of `to_pandas`."""
        import datasets

        return datasets.Dataset(self._table)


def _cast(values: "pa.Array", wanted: "pa.DataType") -> "pa.Array":
    """Cast a column to its type in the release, if its values allow it."""
    import pyarrow as pa

    try:
        return values.cast(wanted)
    except pa.ArrowException:
        return values


def load_dataset(
    name: str,
    source: Source | None = None,
    *,
    split: str | None = None,
    revision: str | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Any,  # noqa: ANN401 - the further options of the loader
) -> FactDataset:
    """Load a data set by its name.

    Args:
        name: A name of `list_datasets`, or the hub id of one.
        source: Hub id, folder, file, URL, data frame, `datasets` object or rows as dictionaries in
            the columns of this data set; "sample" for the bundled rows ("./sample" is a file of
            that name); the hub repository of the data set by default.
        split: Split of a repository, folder or dictionary of splits; "test" by default.
        revision: Branch, tag or commit of a hub repository.
        columns: Field to column, if the source uses other names.
        options: Further options of the loader: `ask_by_template` of redirectqa, `clean_html` of
            slaq, `wordings` and `reference_separator` of the presets of forms, and `domains`,
            `topologies`, `styles` and `max_missing` of lmlm-audit.

    Returns:
        The data set.

    Raises:
        DataError: If no data set has that name, no sample of it is bundled, or rows are
            invalid.
        SourceNotFoundError: If the source or the split is missing, gated or out of reach, or the
            data set is not on the hub and no source is given.
        ColumnNotFoundError: If a needed column is missing.
        ValueError: If an option is unknown, or split or revision is given for a source without
            splits or revisions.

    Examples:
        >>> data = load_dataset("slaq", source="sample")
        >>> len(data), data.to_pandas()["references"][0]
        (240, ['Christiaan Huygens'])
    """
    name = _resolved(name)
    known = known_datasets()[name]
    if source is None:
        if not known.hub:
            where = f" from {known.url}" if known.url else ""
            sample = ', or pass source="sample" for the bundled rows' if known.has_sample else ""
            raise SourceNotFoundError(
                f"{name} is not on the hub; download it{where} ({known.paper}) and pass "
                f'source="FOLDER"{sample}'
            )
        source = known.hub
    if name == "lmlm-audit":
        if columns or revision or split:
            raise ValueError("the layout of lmlm-audit is fixed; omit columns, revision and split")
        return _load_audit(source, options)
    own = {"source", "columns", "revision", "split", "preset"}
    reject_unknown(options, signature(_loader_of(name)[0]).parameters.keys() - own, name)
    layout = presets().get(name)
    find = partial(open_source, sample=name) if layout is None else partial(layout_rows, layout)
    opened = find(source, revision=revision, split=split or "test")
    if split and opened.folder is None and not isinstance(source, Mapping):
        raise ValueError(
            f"split={split!r} belongs to a repository, folder or dictionary of splits, but the "
            f"source is {opened.id}; omit it"
        )
    return _load_rows(name, opened, options if columns is None else options | {"columns": columns})


def _resolved(name: str) -> str:
    """Return the name of a data set that is given by its name or its hub id."""
    known = known_datasets()
    hubs = {one.hub: own for own, one in known.items() if one.hub}
    if (own := hubs.get(name, name)) not in known:
        raise DataError(
            f"data set {name!r} not found{did_you_mean(name, [*known, *hubs])}; the data sets "
            f"are {', '.join(known)}. To load rows of another source with the columns of one of "
            f"these, use load_dataset({next(iter(known))!r}, source=...)"
        )
    return own


def _load_rows(name: str, opened: OpenSource, options: Mapping[str, Any]) -> FactDataset:
    """Load rows with the loader of their data set, and store them."""
    rows: list[Mapping[str, object]] = []

    def kept(read: Iterator[Row]) -> Iterator[Row]:
        for place, row in read:
            rows.append(row)
            yield place, row

    load, list_prompts = _loader_of(name)
    with pause_gc():
        content: Any = load(replace(opened, rows=kept(opened.rows)), **options)
        prompts = list_prompts(content)
    prompts["references"] = prompts["references"].map(list)
    return FactDataset(
        name=name, content=content, source=content.source, prompts=prompts, rows=rows
    )


def _loader_of(name: str) -> tuple[Callable[..., Any], Callable[[Any], pd.DataFrame]]:
    """Return the loader of a data set, and the function that lists its prompts."""
    loaders: Mapping[str, tuple[Callable[..., Any], Callable[[Any], pd.DataFrame]]] = {
        "redirectqa": (load_redirectqa, _redirectqa_prompts),
        "slaq": (load_slaq, _slaq_prompts),
        "popqa": (load_popqa, _popqa_prompts),
    }
    return loaders.get(name, (partial(load_forms, preset=name), _forms_prompts))


def _redirectqa_prompts(content: RedirectQA) -> pd.DataFrame:
    """List the questions; the name of a form is the template and the title of the redirect."""
    rows = content.rows
    titles = rows["redirect_title"].fillna(rows["surface"]).mask(rows["is_canonical"], "canonical")
    shown = rows[["id", "item", "question", "references"]]
    return shown.assign(form=rows["template"] + " | " + titles, source_row=content.source_rows)


def _popqa_prompts(content: PopQA) -> pd.DataFrame:
    """List the questions under the ids of PopQA."""
    rows = content.rows[["item", "question", "references"]]
    return rows.assign(id=rows["item"], form=content.rows["template"], source_row=range(len(rows)))


def _forms_prompts(content: Forms) -> pd.DataFrame:
    """List the items in their forms."""
    rows = content.rows
    shown = rows[["item", "form", "question", "references", "source_row"]]
    return shown.assign(id=[f"{a} | {b}" for a, b in zip(rows["item"], rows["form"], strict=True)])


def _slaq_prompts(content: Slaq) -> pd.DataFrame:
    """List the short questions and the long queries, without the instruction around them.

    The item of a long query is its topic, and its references are the answers in the order of the
    questions.
    """
    study = find_study("slaq")
    bare = {f"{form}_instruction": "{question}" for form in ("short", "long")}
    plan = make_plan(study, content, study.records.settings.model_validate(bare))
    prompts = [prompt for group in plan.groups.values() for prompt in group.prompts]
    texts = {one.id: one.messages[-1].content for one in prompts if one.messages}
    ordered = plan.items.sort_values("slot", kind="stable").groupby("prompt_id")["references"]
    references = {name: [text for own in lists for text in own] for name, lists in ordered}
    first = plan.items.drop_duplicates("prompt_id")
    is_short = first["form"] == "short"
    return pd.DataFrame(
        {
            "id": first["prompt_id"],
            "item": first["item"].where(is_short, first["topic_id"]),
            "form": first["form"].where(is_short, "long " + first["order_id"].astype("str")),
            "question": first["prompt_id"].map(texts),
            "references": first["prompt_id"].map(references),
            "source_row": first["topic_id"].map(content.source_rows),
        }
    )


def _load_audit(source: Source, options: Mapping[str, Any]) -> FactDataset:
    """Load databases and prompts; the name of a form is a prompt style and a database state."""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            "lmlm-audit is read from a folder of databases with their prompts; got "
            f"{type(source).__name__}"
        )
    study = find_study("audit")
    reject_unknown(options, study.records.source.model_fields.keys() - {"databases"}, "lmlm-audit")
    # A path is never the bundled sample.
    folder = source if isinstance(source, str) else os.path.join(".", source)
    content = study.load(study.records.source.model_validate({"databases": folder, **options}))
    prompts: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for condition in content.conditions:
        label = condition.label
        for prompt in condition.prompts:
            named = {"database": label.database, "domain": label.domain, "style": label.style}
            own = prompt.model_dump(mode="json")
            for state in _STATES:
                prompts.append(
                    {
                        "id": f"{label.database}/{label.style}/{prompt.prompt_id}/{state}",
                        "item": f"{label.database}/{prompt.fact_id}",
                        "form": f"{label.style} | {state}",
                        "question": prompt.prompt_text,
                        "references": [prompt.gold_object, *prompt.object_aliases],
                        "source_row": len(rows),
                    }
                )
                rows.append({**named, "topology": label.topology, "state": state, **own})
    plan = make_plan(study, content, _settings_of("lmlm-audit"))
    return FactDataset(
        name="lmlm-audit",
        content=content,
        source=plan.data,
        prompts=pd.DataFrame(prompts),
        rows=rows,
    )


def _settings_of(name: str) -> StudySettings:
    """Return the settings of a study; existing answers need no retriever of the audit."""
    records = find_study(_STUDIES.get(name, "forms")).records
    chosen = {"retriever": ("fuzzy",)} if name == "lmlm-audit" else {}
    return records.settings.model_validate(chosen)


def load_example() -> pd.DataFrame:
    """Load answers of a small model, to try the metrics on.

    SmolLM2-135M-Instruct answered 120 facts of 24 topics of the bundled sample of SLAQ, each fact
    alone and in three orders of a long query. `correct` is the label of one annotator. The README
    in the folder of the file describes how the answers were made and labelled. The answers do not
    measure a larger model.

    Returns:
        480 rows: item, the fact; form, "short" or "long 1" to "long 3"; topic; question;
        prediction, the whole answer; references, a list of str; correct, 0 or 1.

    Examples:
        >>> answers = load_example()
        >>> len(answers), answers["item"].nunique(), int(answers["correct"].sum())
        (480, 120, 46)
    """
    from surface_consistency.studies.slaq.labels import load_labelled_answers

    answers = load_labelled_answers()
    order = answers.groupby(["item", "form"]).cumcount() + 1
    is_short = answers["form"] == "short"
    return pd.DataFrame(
        {
            "item": answers["item"],
            "form": answers["form"].where(is_short, "long " + order.astype("str")),
            "topic": answers["topic"],
            "question": answers["question"],
            "prediction": answers["answer"],
            "references": answers["reference"].map(lambda reference: [reference]),
            "correct": answers["correct"].astype(int),
        }
    )


def score_predictions(
    data: FactDataset | Source,
    predictions: Any,  # noqa: ANN401 - see `named_texts`
    *,
    model: str,
    item: str | None = None,
    prediction: str | None = None,
    rule: str | None = None,
    in_order: bool = False,
    missing: Literal["drop", "raise", "wrong"] = "drop",
    strip_prompt: bool = False,
    settings: StudySettings | None = None,
) -> pd.DataFrame:
    """Score predictions that were made elsewhere.

    Args:
        data: Result of `load_dataset`; or rows of RedirectQA, SLAQ or PopQA with the columns of the
            hub, such as the result of `datasets.load_dataset`.
        predictions: Mapping from id to text; or file, data frame, `datasets.Dataset` or rows with
            a column id and a column prediction, or with columns of other usual names. The text of a
            question can be used instead of its id.
            With `in_order`, one text per row of `data.to_pandas()`. None is a missing prediction.
        model: Label of the model in the frame.
        item: Column of the ids or questions, if it does not have a usual name.
        prediction: Column of the texts, if it does not have a usual name.
        rule: Name of the matching rule, one of `matching.RULES`; that of the study by default.
        in_order: Whether a list of texts is matched with the prompts by order.
        missing: "drop" excludes a prompt whose prediction is absent, None or blank, "wrong" counts
            it as incorrect, and "raise" raises an error.
        strip_prompt: Whether the prompt is removed from an output that begins with it.
        settings: Settings of the study, if the prompts were not made with its defaults.

    Returns:
        The outcomes frame: one row per pair, with the columns study, model, pair, item,
        first_condition, second_condition, first_correct, second_correct, cluster (of dependent
        pairs, as in the report of the study) and those of the study, such as type; for lmlm-audit
        also full, del_on and del_off. The correctness label of a prompt without a prediction is
        missing.

    Raises:
        DataError: If an id of a mapping is unknown, no row matches a prompt, two predictions of a
            prompt differ, a list is not confirmed by `in_order` or has another length, or a
            prediction is missing with `missing="raise"`.
        ColumnNotFoundError: If the column of the ids or of the texts is not found, or the columns
            of `data` are not those of a data set.

    Warns:
        UnscoredWarning: If prompts have no prediction or no score, predictions are blank, or rows
            match no prompt.
        SurfaceConsistencyWarning: If rows of one prompt have the same text.
    """
    if not isinstance(data, FactDataset):
        data = _recognised(data)
    study = find_study(_STUDIES.get(data.name, "forms"))
    settings = settings or _settings_of(data.name)
    plan = make_plan(study, _as_forms(data), settings)
    items = plan.items
    if data.name == "popqa":
        items = items.assign(prompt_id=items["item"])
    # The states of a database have the same prompts; only their ids differ.
    named_by = items.drop(columns="question") if "state" in items else items
    reading = PredictionSettings(
        item=() if item is None else (item,),
        prediction=prediction,
        missing=missing,
        strip_prompt=strip_prompt,
    )
    texts = align_predictions(
        named_by, named_texts(predictions, reading, in_order=in_order), reading=reading
    )
    params = settings.with_reasoning(GenerationParams())
    answered = join_answers(items, separate_stored(texts, params))
    judge = study.judge(_scoring_by(study.records.scoring, rule), None)
    verdicts = judge_targets(judge, answered, study.records.verdict)
    warn_unscored(verdicts)
    outcomes = pair_outcomes(study, plan.pairs, verdicts, model=model)
    if "full_correct" in outcomes:
        states = {"full": "full", "del_on": "first", "del_off": "second"}
        outcomes = outcomes.assign(
            **{name: outcomes[f"{side}_correct"] for name, side in states.items()}
        )
    return outcomes_frame(study, outcomes)


def _scoring_by(scoring: type[JudgeScoring], rule: str | None) -> JudgeScoring:
    """Return scoring settings with the rule, in whichever field the study has for it."""
    if rule is None:
        return scoring()
    for field in ("rule", "judge_rule"):
        if field in scoring.model_fields:
            return scoring.model_validate({field: rule})
    raise ValueError(f"rule={rule!r}: lmlm-audit scores answers by its own equivalence; omit rule")


def _as_forms(data: FactDataset) -> Any:  # noqa: ANN401 - what the study plans from
    """Return the data of the study's plan; the facts of PopQA are items in one form."""
    if data.name != "popqa":
        return data.content
    rows = data.prompts.assign(
        kind=None, relation=data.content.rows["relation"], cluster=None, is_reference=True
    )
    return forms_of(
        rows, name=data.source.id, revision=data.source.revision, layout=Layout(), needs_two=False
    )


def _recognised(source: Source) -> FactDataset:
    """Load rows of the data set that has their columns."""
    opened = open_source(source)
    fitting = [
        name
        for name, needed in _KNOWN_BY.items()
        if all(find_column(column, opened.columns) for column in needed)
    ]
    if len(fitting) != 1:
        raise ColumnNotFoundError(
            f"the columns of {opened.id} ({first_names(opened.columns)}) are not those of "
            f"{', '.join(_KNOWN_BY)}; pass load_dataset(NAME, source=...) as data"
        )
    return _load_rows(fitting[0], opened, {})
