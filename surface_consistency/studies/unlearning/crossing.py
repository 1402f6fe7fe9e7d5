"""Join the answers of the original, the unlearned and the reference model by question.

The answers come from logs of benchmarks or from finished runs of one study.
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
"""Role of a model: before unlearning, after it, or never trained on the facts."""

_KEYS: Final = ["set", "form", "question_id"]
_ABOUT: Final = ("item", "cluster", "question", "references")
_TARGET: Final = ("unlearned", "edited")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossing:
    """The answers and correctness labels of several models on the same questions."""

    questions: pd.DataFrame
    """One row per set, form and question: set, form, question_id, item, cluster (the person),
    question, references, and for each model its correctness label and its answer (`column_of`)."""

    roles: Mapping[str, Role]
    """Role of each model, by its label, in the order given."""

    is_by_order: bool
    """Whether roles follow from the order, since neither the user nor a log named them."""

    logs: Sequence[ModelLog]
    """The logs; empty for runs."""

    clusters: str
    """Name of the clusters, in the plural: "persons", "subjects", "questions"."""

    notes: Sequence[tuple[str, str]]
    """Notes for the reader: title and sentence."""

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
        """Return the first model of a role.

        Args:
            role: The role.

        Returns:
            Its label; None if no model has the role.
        """
        return next(iter(self.of(role)), None)

    def verdicts(self, model: str | None) -> pd.Series:
        """Return the correctness labels of a model.

        Args:
            model: Its label; None for no model.

        Returns:
            One label per question, missing if it was not scored; all missing for None.
        """
        if model is None:
            return pd.Series(None, index=self.questions.index, dtype=object)
        return self.questions[column_of("correct", model)]


def cross_models(
    paths: Sequence[Path], roles: Sequence[Role], *, answers: Path | None, rule: str
) -> Crossing:
    """Join the answers of models by question.

    Args:
        paths: Logs of benchmarks, or folders of scored runs of one study, one per model.
        roles: Role of each; empty for the order original, unlearned ..., reference, or for two
            models unlearned and reference.
        answers: File of short answers; None for those of TOFU's forget10, if they belong to these
            questions.
        rule: Matching rule that scores the answers of logs; runs are already scored.

    Returns:
        The models and questions.

    Raises:
        ValueError: If there are fewer than two models, the number of roles differs from that of
            models, no model is unlearned or edited, or all have the same role; if logs and runs are
            mixed.
        DataError: As `read_logs` and `read_runs`; if no answer about the facts to forget can be
            scored.
    """
    n_files = sum(path.is_file() for path in paths)
    if n_files not in (0, len(paths)):
        raise ValueError("pass logs or folders of runs, not both: their scores are not comparable")
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
    scored = questions[[column_of("correct", label) for label in labels]]
    if not scored[questions["set"] == FORGET].notna().any(axis=None):
        raise DataError(
            "no answer about the facts to forget can be scored: their references are sentences; "
            "pass short answers by `short_answers`, a file with the columns index and answer"
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
    """Yield a note for each pair of models with the same answers."""
    for one, other in combinations(labels, 2):
        texts = questions[[column_of("prediction", label) for label in (one, other)]].dropna()
        if len(texts) and texts.iloc[:, 0].equals(texts.iloc[:, 1].rename(texts.columns[0])):
            text = f"{one} and {other} give the same answer to every question"
            yield "Same answers", f"{text}: they may be models of the same weights"


def _roles(labels: Sequence[str], roles: Sequence[Role]) -> dict[str, Role]:
    """Return the role of each model: as named, or by its position."""
    if not roles and len(labels) >= 2:
        first: tuple[Role, ...] = ("original",) if len(labels) > 2 else ()
        between: list[Role] = ["unlearned"] * (len(labels) - len(first) - 1)
        roles = [*first, *between, "reference"]
    if len(labels) < 2:
        raise ValueError(f"got one model, {', '.join(labels)}; pass at least two to compare")
    if len(roles) != len(labels):
        raise ValueError(
            f"roles has {len(roles)} values for {len(labels)} models ({', '.join(labels)}); pass "
            "one per model, in order"
        )
    known = dict(zip(labels, roles, strict=True))
    if not set(_TARGET) & set(roles) or len(set(roles)) < 2:
        raise ValueError(
            "roles must contain unlearned or edited, and also reference or original; got "
            f"{', '.join(roles)}"
        )
    return known


def _of_logs(
    logs: Sequence[ModelLog], answers: Path | None, rule: str
) -> tuple[pd.DataFrame, str, list[tuple[str, str]]]:
    """Score the answers of logs."""
    known = None if answers is None else read_answers(answers)
    scored: dict[str, pd.DataFrame] = {}
    for log in logs:
        questions = with_answers(log.questions, known)
        if questions is None and answers is not None:
            raise DataError(
                f"{answers} does not belong to the questions of {log.path}: less than 90 % of the "
                "answers are in the reference of their question; use the index of the log"
            )
        questions = log.questions if questions is None else questions
        texts, names = (questions[column].tolist() for column in ("prediction", "references"))
        verdicts = match_columns(texts, names, rule=rule).is_match
        scored[log.label] = questions.assign(correct=pd.Series(verdicts, dtype=object))
    frame = pd.concat(scored.values()).drop_duplicates(_KEYS)
    # Forms of a fact have one number in records of edits; elsewhere each form has other facts.
    is_shared = (frame["form"] == PLAIN) | (logs[0].role is not None)
    separate = frame["form"] + " " + frame["question_id"]
    frame = frame.assign(item=frame["question_id"].where(is_shared, separate))
    notes = list(_gaps(scored))
    clusters = "persons" if logs[0].role is None else "subjects"
    return _joined(frame[[*_KEYS, *_ABOUT]], scored), clusters, notes


def _gaps(scored: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, str]]:
    """Yield a note for each set with questions that are missing in some logs."""
    counts = pd.DataFrame({label: x.groupby("set").size() for label, x in scored.items()})
    for of_set, row in counts.fillna(0).astype(int).iterrows():
        if row.nunique() > 1:
            sizes = ", ".join(f"{n} in {label}" for label, n in row.items())
            text = f"questions of the set {of_set}: {sizes}; models are compared on common ones"
            yield "Sets differ", text


def _joined(about: pd.DataFrame, scored: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join the correctness labels and answers of models by question."""
    wide = about.set_index(_KEYS)
    for label, frame in scored.items():
        cells = frame.set_index(_KEYS)
        for column in ("correct", "prediction"):
            wide[column_of(column, label)] = cells[column].reindex(wide.index)
    return wide.reset_index()


def _of_runs(paths: Sequence[Path]) -> tuple[pd.DataFrame, list[str], str, list[tuple[str, str]]]:
    """Read the scores of runs, which must have the same questions, prompts and rule."""
    if len(paths) < 2:
        raise ValueError("got one run; pass the runs of at least two models")
    read = read_runs(paths)
    frame = read.results.frame
    labels = list(read.runs)
    about = _about(read, frame[frame["model"] == labels[0]], paths[0])
    for label in labels:
        cells = frame[frame["model"] == label].set_index("item")
        verdicts = cells["score"].map({1.0: True, 0.0: False})
        questions = about["question_id"]
        about[column_of("correct", label)] = verdicts.reindex(questions).array
        about[column_of("prediction", label)] = cells["prediction"].reindex(questions).array
    notes = [("Runs compared", note) for note in read.notes]
    clusters = read.study.design.clusters[read.cluster]
    return about, labels, clusters, list(dict.fromkeys(notes))


def _about(read: RunResults, frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Describe the questions of runs: their set, if the study has sets, and their form."""
    targets, pairs = RunFolder.open(folder).read_plan()
    targets = targets.set_index("target_id").reindex(frame["item"])
    # The reference form of the pairs is the plain one, regardless of its name and position.
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
    """Return the name of a column of a model.

    Args:
        kind: Its correctness labels or its answers.
        model: Its label.

    Returns:
        The column of `Crossing.questions`.
    """
    return f"{kind}: {model}"
