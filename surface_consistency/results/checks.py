"""Checks across files that are read together: duplicate rows, names of models, and questions."""

from collections.abc import Collection, Container, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.reading import first_names, shown
from surface_consistency.results.columns import ResultColumns, need_column, reject_nested
from surface_consistency.results.failures import without_scored_answers
from surface_consistency.results.inputs import path_labels
from surface_consistency.results.names import cluster_names, is_context
from surface_consistency.results.rows import nested_row
from surface_consistency.results.tables import COLUMNS

_MANY: Final = 2**62
_DENSE: Final = 8
_SAME: Final = ("score", "prediction", "error", "content")


class _Codes:
    """Rows of a frame with texts replaced by numbers; each column is numbered once."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._columns: dict[str, np.ndarray] = {}
        self._labels: dict[str, pd.Index] = {}

    def column(self, name: str) -> np.ndarray:
        """Number the values of a column."""
        if name not in self._columns:
            values = self.frame[name]
            codes, labels = pd.factorize(values)
            smallest = np.int64 if len(labels) > 1 else np.int8
            self._columns[name] = codes.astype(smallest, copy=False)
            self._labels[name] = pd.Index(labels)
        return self._columns[name]

    def categories(self, name: str) -> pd.Categorical:
        """Return a column without gaps as categories, which are not numbered again."""
        codes = self.column(name)
        return pd.Categorical.from_codes(codes, self._labels[name])

    def number(self, *names: str) -> np.ndarray:
        """Number the rows by several columns, without gaps and in their order."""
        varying = [name for name in names if self.column(name).any()]
        if len(varying) < 2:
            return self.column((varying or names)[0]).astype(np.int64, copy=False)
        return pd.factorize(self.key(*varying))[0].astype(np.int64, copy=False)

    def key(self, *names: str) -> np.ndarray:
        """Number the rows by several columns, with gaps."""
        key, n_keys = np.zeros(len(self.frame), dtype=np.int64), 1
        for name in names:
            codes = self.column(name)
            size = int(codes.max(initial=0)) + 1
            if n_keys * size > _MANY:
                key = pd.factorize(key)[0].astype(np.int64)
                n_keys = int(key.max(initial=0)) + 1
            if size > 1:
                key, n_keys = codes if n_keys == 1 else key * size + codes, n_keys * size
        return key

    @cached_property
    def sample(self) -> np.ndarray:
        """Number the combinations of model, sample and metric, regardless of the file."""
        return self.key("item", "task", "model", "form", "repeat", "metric")

    @cached_property
    def question(self) -> np.ndarray:
        """Number the questions, by the names of item, task and form."""
        return self.key("item", "task", "form")


def joined(
    frames: Sequence[pd.DataFrame], problems: Sequence[str], notes: list[str]
) -> pd.DataFrame:
    """Concatenate the frames of all files.

    Args:
        frames: One per file.
        problems: Errors of files in a folder, one sentence each.
        notes: List to which the problems are added, if other files were read.

    Returns:
        One frame. If all files with a task name the same one, files without a task have it too.

    Raises:
        DataError: If no frame is given; the message contains the first problem.
    """
    if not frames:
        raise DataError(problems[0] if problems else "no results are given; name a file")
    if problems:
        n_left = len(problems)
        left = (
            "1 file was excluded" if n_left == 1 else f"{n_left:,} files were excluded, the first"
        )
        notes.append(f"{left}: {problems[0]}")
    frame = _concatenated(frames)
    tasks = [task for task in frame["task"].unique() if task]
    if len(frames) > 1 and len(tasks) == 1:
        frame["task"] = constant(tasks[0], len(frame))
    if frame["error"].notna().any():
        frame["error"] = without_scored_answers(frame["error"], frame["score"])
        frame["score"] = frame["score"].mask(frame["error"].notna())
    further = [name for name in frame if name not in COLUMNS]
    return frame[[*COLUMNS, *further]].astype({"repeat": "int64", "content": "uint64"})


def _concatenated(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate frames, and add the columns that no frame has, which is faster at the end."""
    if len(frames) == 1:
        return _with_defaults(frames[0], _DEFAULTS)
    names = {str(name) for frame in frames for name in frame}
    alike = _alike([_with_defaults(frame, names) for frame in frames])
    return _with_defaults(pd.concat(alike, ignore_index=True), _DEFAULTS)


_DEFAULTS: Final[Mapping[str, object]] = {
    "task": "",
    "form": "",
    "repeat": 0,
    "prediction": None,
    "references": (),
    "question": None,
    "error": None,
    "content": 0,
}


def _with_defaults(frame: pd.DataFrame, names: Container[str]) -> pd.DataFrame:
    """Add the columns that are missing."""
    missing = [name for name in _DEFAULTS if name in names and name not in frame]
    return frame.assign(**{name: _filled(_DEFAULTS[name], len(frame)) for name in missing})


def _filled(value: object, n_rows: int) -> pd.Categorical | pd.Series:
    """Make a column of one value."""
    if isinstance(value, str):
        return constant(value, n_rows)
    cells = np.empty(n_rows, dtype=np.int64 if isinstance(value, int) else object)
    cells.fill(value)
    return pd.Series(cells, dtype=cells.dtype)


def constant(value: str, n_rows: int) -> pd.Categorical:
    """Make a column of one text."""
    zeros = np.zeros(n_rows, dtype=np.int8)
    return pd.Categorical.from_codes(zeros, pd.Index([value], dtype="str"))


def _alike(frames: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """Unify the categories of categorical columns, so that concatenation keeps them."""
    names = list(frames[0].columns[frames[0].dtypes == "category"])
    known = {
        name: list(dict.fromkeys(one for frame in frames for one in frame[name].cat.categories))
        for name in names
    }
    return [
        frame.assign(**{name: frame[name].cat.set_categories(known[name]) for name in names})
        for frame in frames
    ]


def shortened(notes: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
    """Merge notes that are equal for several files.

    Args:
        notes: Sentences, some of which begin with the name of a file.
        files: The files.

    Returns:
        The sentences, in order, with the first file and the number of others.

    Examples:
        >>> shortened(["a.csv: no scores", "b.csv: no scores"], ["a.csv", "b.csv"])
        ('a.csv and 1 more: no scores',)
    """
    of: dict[str, list[str]] = {}
    for note in notes:
        file = next((one for one in files if note.startswith(one)), "")
        of.setdefault(note.removeprefix(file), []).append(file)
    return tuple(
        first + (f" and {len(others)} more" if others else "") + sentence
        for sentence, (first, *others) in of.items()
    )


class Read(NamedTuple):
    """Properties of one file and its items."""

    kind: str
    """Kind of text of which `content` is a hash; only hashes of the same kind are compared."""

    item: str = "item"
    """Name of an item in the file."""

    columns: Sequence[str] = ()
    """Its columns, if it is a plain table."""

    tried: Sequence[str] = ()
    """Roles for which the user names the column."""
    run: str = ""
    """Id of the run, if it is a log of a run; logs of two runs are never copies of each other."""
    nested: Collection[str] = ()
    """Its columns of objects or long lists."""


class Held(NamedTuple):
    """Rows of all files, after the checks."""

    frame: pd.DataFrame
    """Each sample and metric once."""

    items: np.ndarray
    """The number of each row's task and item."""

    pairs: np.ndarray
    """The number of each row's task, item and form."""

    clusters: tuple[str, ...]
    """Columns that identify dependent items, such as the article; detected by default."""

    is_same_questions: bool
    """Whether all rows contain the question, in the same format."""


def checked(
    frame: pd.DataFrame, files: Mapping[str, Read], given: ResultColumns, notes: list[str]
) -> Held:
    """Check the rows of all files against each other, and drop duplicates.

    Two files of one model with different answers to the same items are distinguished by their
    paths. A row that occurs twice counts once.

    Args:
        frame: The rows.
        files: Properties of each file.
        given: Names of columns that the user gives. Its clusters replace those that are detected.
        notes: List to which sentences on the changes are added.

    Returns:
        The rows, each sample and metric once.

    Raises:
        DataError: If two rows of one sample and metric differ, or one item has two different
            questions.
        ColumnNotFoundError: If a column that the user names is missing.
    """
    codes = _Codes(frame)
    is_again = _is_again(codes.sample)
    if is_again.any():
        frame = _named_by_path(codes, files, notes)
        codes = _Codes(frame)
        is_again = _is_again(codes.sample)
    if is_again.any():
        frame = _collapse_doubles(codes, is_again, files, notes)
        codes = _Codes(frame)
    is_same_questions = _check_content(codes, files, notes)
    _note_prompts(codes, notes)
    _note_scales(frame, notes)
    clusters = _group_columns(codes, given, files)
    groups = () if given.cluster else [name for name in clusters if name != "item"]
    return Held(
        frame=codes.frame.assign(**{name: codes.categories(name) for name in groups}),
        items=codes.number("item", "task"),
        pairs=codes.number("item", "task", "form"),
        clusters=clusters,
        is_same_questions=is_same_questions,
    )


def _is_again(key: np.ndarray) -> np.ndarray:
    """Return which rows have the key of an earlier row."""
    is_dense = key.max(initial=0) < _DENSE * len(key)
    if is_dense and np.bincount(key).max(initial=0) < 2:
        return np.zeros(len(key), dtype=bool)
    return np.asarray(pd.Index(key).duplicated())


def _named_by_path(codes: _Codes, read: Mapping[str, Read], notes: list[str]) -> pd.DataFrame:
    """Name the models of two files by the paths if they have one name but different answers.

    Models of two runs are named by the paths of the logs even if all answers are equal.
    """
    frame, sample = codes.frame, codes.sample
    within = codes.key("item", "task", "model", "form", "repeat", "metric", "file")
    is_across = pd.Index(sample).duplicated(keep=False) & ~pd.Index(within).duplicated(keep=False)
    across = frame[is_across]
    if across.empty or not (
        _of_several_runs(across, read) or _differing(across, sample[is_across]).size
    ):
        return frame
    files = list(dict.fromkeys(across["file"]))
    labels = {str(path): name for path, name in path_labels([Path(f) for f in files]).items()}
    is_one = frame["file"].isin(files).to_numpy()
    file = frame["file"].astype(object).map(labels).fillna("")
    own = frame["model"].astype(object) + " (" + file + ")"
    model = frame["model"].astype(object).mask(is_one, own).astype("str")
    notes.append(
        f"{len(files)} files of one model contain answers to the same items; they are named "
        f"{first_names(model[is_one].unique())}"
    )
    return frame.assign(model=model.astype("category"))


def _of_several_runs(rows: pd.DataFrame, read: Mapping[str, Read]) -> bool:
    """Return whether a model has logs of several runs, not just one log in two formats."""
    for _, files in rows.groupby("model", observed=True)["file"].unique().items():
        stems = {Path(file).with_suffix("") for file in files if read[file].run}
        if len(stems) > 1 and len({read[file].run for file in files}) > 1:
            return True
    return False


def _differing(rows: pd.DataFrame, key: np.ndarray) -> np.ndarray:
    """Return the keys whose rows differ; a column that is missing in one file is not compared."""
    counts = rows[list(_SAME)].groupby(key, sort=False, observed=True).nunique(dropna=False)
    further = rows.drop(columns=list(COLUMNS)).astype(object)
    texts = further.map(shown, na_action=None if rows["file"].nunique() == 1 else "ignore")
    others = texts.groupby(key, sort=False).nunique()
    differs = (counts > 1).any(axis=1) | (others > 1).any(axis=1)
    return counts.index.to_numpy()[differs.to_numpy()]


def _collapse_doubles(
    codes: _Codes, is_again: np.ndarray, read: Mapping[str, Read], notes: list[str]
) -> pd.DataFrame:
    """Keep duplicate rows once; raise an error if rows of one sample differ."""
    frame, sample = codes.frame, codes.sample
    is_double = pd.Index(sample).duplicated(keep=False)
    broken = _differing(frame[is_double], sample[is_double])
    if broken.size:
        raise DataError(_double(frame[sample == broken[0]], len(broken), read))
    files = list(dict.fromkeys(frame.loc[is_again, "file"]))
    n, of = int(is_again.sum()), first_names(files)
    notes.append(
        f"1 row of {of} is a duplicate and is counted once"
        if n == 1
        else f"{n:,} rows of {of} are duplicates and are counted once"
    )
    return frame[~is_again].reset_index(drop=True)


def _double(rows: pd.DataFrame, n_broken: int, read: Mapping[str, Read]) -> str:
    """Describe a sample whose rows differ, and how to name the column that distinguishes them."""
    texts = rows.drop(columns="file").astype(object).map(shown)
    one, other = rows.iloc[0], rows[~texts.duplicated()].iloc[1]
    differing = [name for name in texts if texts[name].nunique() > 1]
    if one["content"] and other["content"] and one["content"] != other["content"]:
        return _other(one, other, n_broken, read)
    differences = ", ".join(
        f"{name} {_plain(one[name])} and {_plain(other[name])}"
        if not isinstance(one[name], np.unsignedinteger)
        else "two answers"
        for name in ("score", "prediction", "error")
        if name in differing
    )
    if further := [name for name in differing if name not in COLUMNS]:
        differences = f"{differences or 'equal scores'} and other values of {first_names(further)}"
    tried = read[one["file"]].tried
    names = [f"`{name}`" for name in ("repeat", "form", "item") if name not in tried]
    return (
        f"{one['file']}: {_item(one, read)} of {shown(one['model'])} occurs more than once with "
        f"{differences} ({n_broken:,} such items); name the column that distinguishes the rows by "
        f"{' or '.join(names) or 'further names of `item`'}, or remove one of them"
    )


def _item(row: pd.Series, read: Mapping[str, Read]) -> str:
    """Name an item, with the name of its column in the file."""
    return f"{read[row['file']].item} {shown(row['item'])}"


def _plain(value: object) -> str:
    """Show a score as a number, and other values by `shown`."""
    return f"{value:g}" if isinstance(value, float) else shown(value)


def _check_content(codes: _Codes, read: Mapping[str, Read], notes: list[str]) -> bool:
    """Reject items with two questions, unless the user names the items; return if all are equal."""
    frame, question = codes.frame, codes.question
    content = frame["content"].to_numpy()
    files, is_same = pd.unique(frame["file"]), True
    of_file, names = pd.factorize(np.array([read[file].kind for file in files], dtype=object))
    if len(names) > 1:
        notes.append(
            f"the files contain the questions in different ways ({', '.join(names)}), so items are "
            "paired by their names, and questions are compared only between files of the same kind"
        )
    for kind in range(len(names)):
        rows = np.flatnonzero((of_file[codes.column("file")] == kind) & (content != 0))
        _, first, of = np.unique(question[rows], return_index=True, return_inverse=True)
        differs = content[rows] != content[rows[first]][of]
        if differs.any():
            other = rows[differs][0]
            one = rows[first][of[differs][0]]
            n_items = len(np.unique(question[rows[differs]]))
            notes.append(_other(frame.iloc[one], frame.iloc[other], n_items, read))
            is_same = False
            if "item" not in read[files[0]].tried:
                raise DataError(notes[-1])
    return is_same and len(names) == 1 and bool((content != 0).all())


def _note_prompts(codes: _Codes, notes: list[str]) -> None:
    """Report items whose rows have different prompts, such as different numbers of examples."""
    if "prompt_hash" not in codes.frame or nested_row(codes.frame["prompt_hash"]) is not None:
        return
    prompts = codes.frame.groupby(codes.question)["prompt_hash"].nunique()
    if n := int((prompts > 1).sum()):
        notes.append(
            f"the prompts of {n:,} of {len(prompts):,} items differ between files, in their "
            "examples (shots), template or instructions; scores may differ for this reason"
        )


def _note_scales(frame: pd.DataFrame, notes: list[str]) -> None:
    """Report metrics with scores outside 0 to 1 for some models, but not for others."""
    scores = frame["score"].to_numpy()
    if not ((scores < 0) | (scores > 1)).any():
        return
    is_mark = scores == -1
    if is_mark.any() and not (scores[~is_mark] < 0).any() and (scores > 1).any():
        notes.append(
            f"{int(is_mark.sum()):,} scores are -1 and all others are 0 or more; -1 often marks a "
            "failed judgement, but counts as a score here: if it is one, leave these cells empty"
        )
    spans = frame.groupby(["metric", "model"], sort=False, observed=True)["score"]
    for metric, span in spans.agg(["min", "max"]).dropna().groupby(level="metric", observed=True):
        is_share = (span["min"] >= 0) & (span["max"] <= 1)
        shares, others = span[is_share], span[~is_share]
        if len(shares) and len(others):
            notes.append(
                f"scores ({metric}) of {first_names(shares.index.get_level_values('model'))} lie "
                f"in 0 to 1, those of {first_names(others.index.get_level_values('model'))} in "
                f"{others['min'].min():g} to {others['max'].max():g}; if these are two scales, "
                "such as proportions and percent, convert them to one"
            )


def _other(one: pd.Series, other: pd.Series, n_items: int, read: Mapping[str, Read]) -> str:
    """Describe an item that has two questions."""
    same = "; their other fields differ" if _asked(one) == _asked(other) else ""
    is_named = "item" in read[one["file"]].tried
    if one["file"] == other["file"]:
        remedy = "" if is_named else "; if not, name the column that distinguishes items by `item`"
        return (
            f"{one['file']}: one item, {_item(one, read)}, is {_asked(one)} in one row and "
            f"{_asked(other)} in another ({n_items:,} such items{same}); if these are forms of one "
            "item, such as wordings or prompts, name the column that distinguishes them by "
            f"`form`{remedy}"
        )
    differences = (
        f"{_item(one, read)} is {_asked(one)} in {one['file']} and {_asked(other)} in "
        f"{other['file']} ({n_items:,} such items{same})"
    )
    if is_named:
        return f"items are paired as `item` names them, although {differences}"
    return (
        f"the files do not contain the same items: {differences}; use files for the same data, or "
        "name by `item` a column with the same ids in both"
    )


def _asked(row: pd.Series) -> str:
    """Return question and references as text."""
    references = ", ".join(row["references"])[:60]
    return f"{shown(row['question'] or 'unknown')} ({references or 'no reference'})"


def _group_columns(
    codes: _Codes, given: ResultColumns, read: Mapping[str, Read]
) -> tuple[str, ...]:
    """Return the columns that group items: those of the user, else known ones, finest first."""
    frame = codes.frame
    if given.cluster:
        names = list(map(str, frame.columns))
        seen = list(dict.fromkeys(name for one in read.values() for name in one.columns))
        reject_nested(given.cluster, [name for one in read.values() for name in one.nested])
        named = [
            need_column(name, names, "cluster", ", ".join(list(read)[:3]), seen)
            for name in given.cluster
        ]
        for name in named:
            if nested_row(frame[name]) is not None:
                raise DataError(
                    f"column {shown(name)} contains lists, and an item is in one cluster; name a "
                    "column with one value per row by `cluster`"
                )
        return tuple(_filled_by_item(codes, named))
    n_items = int(codes.column("item").max(initial=0)) + 1
    is_many = bool(codes.column("form").any() or (frame["repeat"] != 0).any())
    names = [name for name in cluster_names(frame) if nested_row(frame[name]) is None]
    filled = _filled_by_item(codes, names)
    gaps = {name: bool(codes.frame[name].isna().any()) for name in filled}
    known = [name for name in filled if is_context(name) or not gaps[name]]
    sizes = {name: int(codes.column(name).max(initial=0)) + 1 + gaps[name] for name in known}
    finer = sorted((name for name in sizes if 1 < sizes[name] < n_items), key=lambda n: -sizes[n])
    return (*(("item",) if is_many else ()), *finer)


def _filled_by_item(codes: _Codes, names: Sequence[str]) -> Sequence[str]:
    """Fill empty cells with values from other rows of the item, which may be in another file."""
    for name in names:
        column = codes.frame[name]
        is_blank = column == ""
        column = column.mask(is_blank) if is_blank.any() else column
        if column.isna().any():
            first = column.groupby(codes.key("item", "task"), sort=False).transform("first")
            codes.frame = codes.frame.assign(**{name: column.fillna(first)})
    return names
