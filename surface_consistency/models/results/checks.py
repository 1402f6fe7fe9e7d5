"""What must hold between the files of one reading: doubled rows, models, what was asked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.models.results.columns import ResultColumns, need_column
from surface_consistency.models.results.inputs import path_labels
from surface_consistency.models.results.rows import shown

_KEY: Final = ("task", "model", "item", "form", "repeat", "metric")
_GROUPS: Final = frozenset(
    {
        *("passage", "passage_id", "context", "context_id", "article", "article_id", "document"),
        *("document_id", "doc", "story", "story_id", "topic", "topic_id", "video", "video_id"),
        *("videoid", "image", "image_id", "cluster", "cluster_id", "group", "group_id", "fact"),
        *("fact_id", "subject_id", "relation", "template", "category", "subject", "repo"),
    }
)


def joined(
    frames: Sequence[pd.DataFrame], problems: Sequence[str], notes: list[str]
) -> pd.DataFrame:
    """Put the frames of all files below each other.

    Args:
        frames: One a file.
        problems: What was wrong with files of a folder, a sentence each.
        notes: Takes them, where other files were read.

    Returns:
        One frame. Where files name one task, it is that of those that name none, too.

    Raises:
        DataError: If there is none; says what was wrong with the first.
    """
    if not frames:
        raise DataError(problems[0] if problems else "no results are given; name a file")
    if problems:
        notes.append(
            f"{len(problems):,} files of the folder hold no results and were left out, the first: "
            f"{problems[0]}"
        )
    if len(frames) == 1:
        return frames[0]
    frame = pd.concat(frames, ignore_index=True)
    tasks = [task for task in frame["task"].unique() if task]
    return frame.assign(task=frame["task"].replace("", tasks[0])) if len(tasks) == 1 else frame


def _varying(frame: pd.DataFrame) -> list[str]:
    """Name the columns of the key that are not the same in all rows."""
    return ["item", *(n for n in _KEY if n != "item" and (frame[n] != frame[n].iat[0]).any())]


def tell_models_apart(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Name two files of one model by their paths, where they answer the same items otherwise.

    Args:
        frame: The frame.
        notes: Takes a sentence.

    Returns:
        The frame; files that repeat another one in all keep its model and are collapsed later.
    """
    if (frame["file"] == frame["file"].iat[0]).all():
        return frame
    key = _varying(frame)
    is_double = frame.duplicated(key, keep=False)
    same = frame.duplicated([*key, "file"], keep=False)
    across = frame[is_double & ~same]
    if across.empty:
        return frame
    differs = across.groupby(key, dropna=False)[["score", "prediction"]].nunique(dropna=False) > 1
    if not differs.to_numpy().any():
        return frame
    files = list(dict.fromkeys(across["file"]))
    labels = {str(path): name for path, name in path_labels([Path(f) for f in files]).items()}
    model = frame["model"].astype(object)
    is_one = frame["file"].isin(files)
    own = frame["file"].map(labels)
    changed = np.where(is_one, model + " (" + own.fillna("") + ")", model)
    notes.append(
        f"{len(files)} files are of one model and answer the same items; they are told apart as "
        f"{', '.join(dict.fromkeys(changed[is_one.to_numpy()]))}"
    )
    return frame.assign(model=pd.Series(changed, index=frame.index, dtype="str"))


def collapse_doubles(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Leave rows once that stand twice.

    Args:
        frame: The frame.
        notes: Takes how many.

    Returns:
        The frame, each sample and metric once.

    Raises:
        DataError: If two rows of one sample and metric differ.
    """
    key = _varying(frame)
    is_again = frame.duplicated(key)
    if not is_again.any():
        return frame
    doubles = frame[frame.duplicated(key, keep=False)]
    values = doubles[["score", "prediction", "error", "content"]].astype({"prediction": object})
    differs = (
        values.assign(**{name: doubles[name] for name in key})
        .groupby(key, sort=False, dropna=False)[["score", "prediction", "error", "content"]]
        .nunique(dropna=False)
    )
    broken = differs[(differs > 1).any(axis=1)]
    if len(broken):
        raise DataError(_double(doubles, key, len(broken), broken.index[0]))
    files = list(dict.fromkeys(frame.loc[is_again, "file"]))
    notes.append(
        f"{is_again.sum():,} rows of {', '.join(files)} stand twice, word for word, and count once"
    )
    return frame[~is_again].reset_index(drop=True)


def _double(doubles: pd.DataFrame, key: Sequence[str], n_broken: int, first: object) -> str:
    """Say that one sample stands twice and differs."""
    values = first if isinstance(first, tuple) else (first,)
    rows = doubles[
        np.logical_and.reduce([doubles[n] == v for n, v in zip(key, values, strict=True)])
    ]
    one, other = rows.iloc[0], rows.iloc[1]
    if one["content"] != other["content"] and one["content"] and other["content"]:
        return _other(one, other, n_broken)
    said = ", ".join(
        f"{name} {shown(one[name])} and {shown(other[name])}"
        for name in ("score", "prediction", "error")
        if one[name] != other[name] and not (pd.isna(one[name]) and pd.isna(other[name]))
    )
    return (
        f"{one['file']}: item {one['item']!r} of {one['model']!r} stands more than once with "
        f"{said} ({n_broken:,} such items); name the column that tells the rows apart by `repeat`, "
        "`form` or `item`, or leave one of them out"
    )


def refuse_other_content(
    frame: pd.DataFrame, has_hashes: Mapping[str, bool], notes: list[str]
) -> None:
    """Refuse items that are two things under one name.

    Args:
        frame: The frame.
        has_hashes: By file, whether `content` is a tool's own hash.
        notes: Takes a sentence where files cannot be held against each other.

    Raises:
        DataError: If what was asked under one item differs; shows both.
    """
    kinds = frame["file"].map(has_hashes)
    if kinds.nunique() > 1:
        notes.append(
            "the files tell in different ways what was asked (a hash, a text), so items are paired "
            "by their names, and only files of one kind are held against each other"
        )
    for _, part in frame[frame["content"] != 0].groupby(kinds.to_numpy()[frame["content"] != 0]):
        key = [name for name in _varying(part) if name in ("task", "item", "form")]
        first = part.drop_duplicates(key)
        if len(first) == len(part):
            continue
        asked = part.drop_duplicates([*key, "content"])
        is_other = asked.duplicated(key, keep=False)
        if is_other.any():
            several = asked[is_other]
            n_items = len(several.drop_duplicates(key))
            one = several.iloc[0]
            same = np.logical_and.reduce([several[name] == one[name] for name in key])
            raise DataError(_other(one, several[same].iloc[1], n_items))


def _other(one: pd.Series, other: pd.Series, n_items: int) -> str:
    """Say that one item is two questions."""
    return (
        f"item {one['item']!r} is {_asked(one)} in {one['file']} and {_asked(other)} in "
        f"{other['file']} ({n_items:,} such items), so the files do not hold the same items; give "
        "files over the same data, or name by `item` the column that names the same thing in both"
    )


def _asked(row: pd.Series) -> str:
    """Show what was asked."""
    references = ", ".join(row["references"])[:60]
    return f"{shown(row['question'] or 'untold')} ({references or 'no reference'})"


def group_columns(frame: pd.DataFrame, given: ResultColumns) -> tuple[str, ...]:
    """Name the columns that group items.

    Args:
        frame: The frame.
        given: The user's own clusters go before all that is found.

    Returns:
        The columns: those of the user; else "item" where items stand in several forms or repeats,
        and further columns of a usual name that group the items, the finest first.

    Raises:
        ColumnNotFoundError: If a column that the user names is not there.
    """
    if given.cluster:
        return tuple(
            need_column(name, list(frame), "cluster", "the results") for name in given.cluster
        )
    items = frame["item"].nunique()
    is_many = (frame["form"] != frame["form"].iat[0]).any() or (frame["repeat"] != 0).any()
    sizes = {
        str(name): frame[name].nunique()
        for name in frame
        if str(name).casefold() in _GROUPS and frame[name].notna().all()
    }
    finer = sorted((n for n in sizes if 1 < sizes[n] < items), key=lambda n: -sizes[n])
    return (*(("item",) if is_many else ()), *finer)
