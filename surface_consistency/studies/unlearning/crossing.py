"""Models as conditions: the same questions, answered by the original, the unlearned, a reference.

From logs of benchmarks or from finished runs of one study; every question has one row a model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final, Literal

import pandas as pd

from surface_consistency.engine.compare.runs import RunResults, read_runs
from surface_consistency.errors import DataError
from surface_consistency.matching import match_columns
from surface_consistency.results.unlearning import FORGET, PLAIN
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.unlearning.logs import (
    ModelLog,
    read_answers,
    read_logs,
    with_answers,
)

Role = Literal["original", "unlearned", "edited", "reference"]
"""What a model is: before, after, or never taught."""

_KEYS: Final = ["set", "form", "question_id"]
_ABOUT: Final = ("item", "cluster", "question", "references")
_TARGET: Final = ("unlearned", "edited")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossing:
    """Models crossed with questions."""

    questions: pd.DataFrame
    """One row a set, form and question: these, item, cluster (the person), question, answers,
    and for each model its verdict and its answer (`column_of`)."""

    roles: Mapping[str, Role]
    """Role of each model, by its label, in the order given."""

    is_by_order: bool
    """Whether roles are those of the order, as neither the user nor a log named any."""

    logs: Sequence[ModelLog]
    """The logs; none for runs."""

    clusters: str
    """What intervals take whole, in the plural: "persons", "subjects", "questions"."""

    notes: Sequence[tuple[str, str]]
    """What a reader must know: title and sentence."""

    def of(self, *roles: Role) -> list[str]:
        """List the models of some roles.

        Args:
            roles: The roles.

        Returns:
            Labels, in order.
        """
        return [label for label, role in self.roles.items() if role in roles]

    @property
    def targets(self) -> list[str]:
        """The unlearned and edited models."""
        return self.of(*_TARGET)

    def first(self, role: Role) -> str | None:
        """Name the first model of a role.

        Args:
            role: The role.

        Returns:
            Its label; None where there is none.
        """
        return next(iter(self.of(role)), None)

    def verdicts(self, model: str | None) -> pd.Series:
        """Take the verdicts on a model.

        Args:
            model: Its label; None for no model.

        Returns:
            One a question; missing where it was not judged, everywhere for None.
        """
        if model is None:
            return pd.Series(None, index=self.questions.index, dtype=object)
        return self.questions[column_of("correct", model)]


def cross_models(
    paths: Sequence[Path], roles: Sequence[Role], *, answers: Path | None, rule: str
) -> Crossing:
    """Put the answers of models side by side.

    Args:
        paths: Logs of benchmarks, or folders of scored runs of one study, one a model.
        roles: Role of each; none for the order original, unlearned ..., reference, or unlearned and
            reference of two.
        answers: File of short answers; None for those of TOFU's forget10 where they are of these
            questions.
        rule: Matching rule that judges the answers of logs; runs are judged already.

    Returns:
        The models and questions.

    Raises:
        ValueError: If the roles are not one for each model, or none is unlearned or edited, or one
            alone; if logs and runs are named together.
        DataError: As `read_logs` and `read_runs`; if no answer on the facts to forget can be
            judged.
    """
    n_files = sum(path.is_file() for path in paths)
    if n_files not in (0, len(paths)):
        raise ValueError("give logs or folders of runs, not both: they are not of one judge")
    if n_files:
        logs = read_logs(paths)
        questions, clusters, notes = _of_logs(logs, answers, rule)
        labels = [log.label for log in logs]
        if not roles and any(log.role for log in logs):
            roles = [log.role or "reference" for log in logs]
    else:
        logs, (questions, labels, clusters, notes) = [], _of_runs(paths)
    known = _roles(labels, roles)
    forget = questions[questions["set"] == FORGET]
    if forget["cluster"].nunique() == forget.groupby("form")["question_id"].nunique().max():
        clusters = "questions"
        text = "each question is a cluster: intervals are too narrow if facts share a person"
        notes.append(("No shared persons", text))
    judged = questions[[column_of("correct", label) for label in labels]]
    if not judged[questions["set"] == FORGET].notna().any(axis=None):
        raise DataError(
            "no answer on the facts to forget can be judged: their references are sentences; give "
            "the short answers by `short_answers`, a file with the columns index and answer"
        )
    return Crossing(
        questions=questions,
        roles=known,
        is_by_order=not roles,
        logs=logs,
        clusters=clusters,
        notes=[*dict.fromkeys([*notes, *_same_answers(questions, labels)])],
    )


def _same_answers(questions: pd.DataFrame, labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name models that answer every question alike."""
    for one, other in combinations(labels, 2):
        texts = questions[[column_of("prediction", label) for label in (one, other)]].dropna()
        if len(texts) and texts.iloc[:, 0].equals(texts.iloc[:, 1].rename(texts.columns[0])):
            text = f"{one} and {other} give the same answer to every question"
            yield "Same answers", f"{text}: they may be models of the same weights"


def _roles(labels: Sequence[str], roles: Sequence[Role]) -> dict[str, Role]:
    """Give each model its role: as named, or by its place."""
    if not roles and len(labels) >= 2:
        first: tuple[Role, ...] = ("original",) if len(labels) > 2 else ()
        between: list[Role] = ["unlearned"] * (len(labels) - len(first) - 1)
        roles = [*first, *between, "reference"]
    if len(labels) < 2:
        raise ValueError(
            f"one model, {', '.join(labels)}, cannot be compared with another: give at least two"
        )
    if len(roles) != len(labels):
        raise ValueError(
            f"roles names {len(roles)} for {len(labels)} models ({', '.join(labels)}); give one "
            "for each, in order"
        )
    known = dict(zip(labels, roles, strict=True))
    if not set(_TARGET) & set(roles) or len(set(roles)) < 2:
        raise ValueError(
            "roles must name an unlearned or edited model, and a reference or the original beside "
            f"it; got {', '.join(roles)}"
        )
    return known


def _of_logs(
    logs: Sequence[ModelLog], answers: Path | None, rule: str
) -> tuple[pd.DataFrame, str, list[tuple[str, str]]]:
    """Judge the answers of logs."""
    known = None if answers is None else read_answers(answers)
    judged: dict[str, pd.DataFrame] = {}
    for log in logs:
        questions = with_answers(log.questions, known)
        if questions is None and answers is not None:
            raise DataError(
                f"{answers} holds answers to other questions than {log.path}: less than nine in "
                "ten stand in the reference of their question; index must be that of the log"
            )
        questions = log.questions if questions is None else questions
        texts, names = (questions[column].tolist() for column in ("prediction", "references"))
        verdicts = match_columns(texts, names, rule=rule).is_match
        judged[log.label] = questions.assign(correct=pd.Series(verdicts, dtype=object))
    frame = pd.concat(judged.values()).drop_duplicates(_KEYS)
    # Forms of a fact have one number in records of edits; elsewhere a form has facts of its own.
    is_shared = (frame["form"] == PLAIN) | (logs[0].role is not None)
    apart = frame["form"] + " " + frame["question_id"]
    frame = frame.assign(item=frame["question_id"].where(is_shared, apart))
    notes = list(_gaps(judged))
    clusters = "persons" if logs[0].role is None else "subjects"
    return _side_by_side(frame[[*_KEYS, *_ABOUT]], judged), clusters, notes


def _gaps(judged: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, str]]:
    """Name the sets whose questions some logs lack."""
    counts = pd.DataFrame({label: x.groupby("set").size() for label, x in judged.items()})
    for of_set, row in counts.fillna(0).astype(int).iterrows():
        if row.nunique() > 1:
            held = ", ".join(f"{n} in {label}" for label, n in row.items())
            text = f"questions of the set {of_set} are {held}: models are compared on those of both"
            yield "Sets differ", text


def _side_by_side(about: pd.DataFrame, judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join the verdicts and answers of models by question."""
    wide = about.set_index(_KEYS)
    for label, frame in judged.items():
        cells = frame.set_index(_KEYS)
        for column in ("correct", "prediction"):
            wide[column_of(column, label)] = cells[column].reindex(wide.index)
    return wide.reset_index()


def _of_runs(paths: Sequence[Path]) -> tuple[pd.DataFrame, list[str], str, list[tuple[str, str]]]:
    """Read the verdicts of runs, which must be of the same questions, prompts and rule."""
    if len(paths) < 2:
        raise ValueError("give the runs of at least two models")
    read = read_runs(paths)
    frame = read.results.frame
    labels = list(read.runs)
    about = _about(read, frame[frame["model"] == labels[0]], paths[0])
    for label in labels:
        cells = frame[frame["model"] == label].set_index("item")
        verdicts = cells["score"].map({1.0: True, 0.0: False})
        asked = about["question_id"]
        about[column_of("correct", label)] = verdicts.reindex(asked).array
        about[column_of("prediction", label)] = cells["prediction"].reindex(asked).array
    notes = [("Runs compared", note) for note in read.notes]
    clusters = read.study.design.clusters[read.cluster]
    return about, labels, clusters, list(dict.fromkeys(notes))


def _about(read: RunResults, frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Describe the questions of runs: their set where the study has sets, and their form."""
    targets, pairs = RunFolder.open(folder).read_plan()
    targets = targets.set_index("target_id").reindex(frame["item"])
    # What others are held against is plain, whatever stands first and however it is called.
    is_plain = frame["item"].isin(pairs["first_target"])
    forms = frame["condition"].map(lambda labels: labels[0] if len(labels) else PLAIN)
    has_sets = read.study.name == "unlearning"
    return pd.DataFrame(
        {
            "set": targets["kind"].array if has_sets else FORGET,
            "form": forms.mask(is_plain, PLAIN),
            "question_id": frame["item"],
            "item": targets["item"].array,
            "cluster": targets["cluster"].array if has_sets else frame[read.cluster],
            "question": frame["question"],
            "references": targets["references"].array,
        }
    )


def column_of(kind: Literal["correct", "prediction"], model: str) -> str:
    """Name the column of a model.

    Args:
        kind: Its verdicts or its answers.
        model: Its label.

    Returns:
        The column of `Crossing.questions`.
    """
    return f"{kind}: {model}"
