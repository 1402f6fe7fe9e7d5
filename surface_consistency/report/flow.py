"""How verdicts go from state to state, as bands true to the number of pairs."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from surface_consistency.report.layout import CELLS, CellName
from surface_consistency.report.page import AlluvialPlot
from surface_consistency.report.scene import Box, Mark, Scene, Stroke, Words
from surface_consistency.tables.numbers import format_number, value_text

_HEIGHT: Final = 330
_TOP: Final = 44
_THICK: Final = 14


def flow_scene(block: AlluvialPlot) -> Scene:
    """Draw how verdicts go from state to state; height is the number of pairs.

    The last two states make the cell whose colour a pair takes on its way; in the states before
    them, right answers have the colour of "both".

    Args:
        block: The flow.

    Returns:
        The picture, 800 wide: ribbons between the states, each state right before wrong, words.

    Raises:
        ValueError: If verdicts do not have one entry for each state, or there are fewer than two.
    """
    n_states = len(block.states)
    if n_states < 2 or any(len(path) != n_states for path in block.counts):
        raise ValueError(
            f"the flow {block.name!r} must have two states or more and one verdict for each of its "
            f"{n_states} states; got {', '.join(map(str, block.counts)) or 'no counts'}"
        )
    paths = [path for path, count in block.counts.items() if count]
    left = [round(1 + 610 * state / (n_states - 1), 1) for state in range(n_states)]
    sizes = {
        path: _HEIGHT * 0.975 * block.counts[path] / sum(block.counts.values()) for path in paths
    }
    places: list[dict[tuple[bool, ...], float]] = [{} for _ in left]
    boxes: list[Mark] = []
    heads: list[Mark] = []
    labels: list[Mark] = []
    for state, x in enumerate(left):
        name, meaning, value = block.states[state]
        heads += [Words(x=x, y=14, css="t-head", text=name), Words(x=x, y=31, text=meaning)]
        y, free = float(_TOP), 0.0
        for is_right in (True, False):
            members = [path for path in paths if path[state] is is_right]
            members.sort(key=lambda path: [not seen for seen in path])
            y += _HEIGHT * 0.025 * (y > _TOP)
            begin = y
            for cell, run in groupby(members, key=lambda path: _state_cell(path, state)):
                start = y
                for path in run:
                    places[state][path] = y
                    y += sizes[path]
                boxes.append(Box(css=f"c-{cell}", x=x, y=start, width=_THICK, height=y - start))
            if members:
                n = sum(block.counts[path] for path in members)
                share = value_text(value)
                if not is_right:
                    part = n / sum(block.counts.values())
                    share = f"0 right, {share}" if part == 1 else f"{format_number(part)}\u00a0%"
                big = f"{n:,} {'right' if is_right else 'wrong'}"
                level = max(begin + 16, (begin + y) / 2 - 2, free)
                is_thin = is_right and y - begin < 40
                beside = (x + _THICK + 13 + 9.6 * len(big), level)
                labels.append(Words(x=x + _THICK + 9, y=level, css="t-ink t-big", text=big))
                at, below = beside if is_thin else (x + _THICK + 9, level + 17)
                labels.append(Words(x=at, y=below, text=share))
                free = level + (22 if is_thin else 40)
    ribbons = [
        Stroke(
            css=f"ribbon r-{_path_cell(path)}",
            path=_ribbon(
                left[state] + _THICK, left[state + 1], places[state][path],
                places[state + 1][path], sizes[path],
            ),
        )
        for state in range(n_states - 1)
        for path in _calm_first(paths)
    ]  # fmt: skip
    alt = "; ".join(f"{name} {value_text(value)} right" for name, _, value in block.states)
    return Scene(
        width=800, height=_TOP + _HEIGHT + 12, marks=[*ribbons, *boxes, *heads, *labels],
        alt=f"{block.title}: {alt}",
    )  # fmt: skip


def _path_cell(path: tuple[bool, ...]) -> CellName:
    """Name the cell of the last two verdicts."""
    return CELLS[2 * (not path[-2]) + (not path[-1])]


def _state_cell(path: tuple[bool, ...], state: int) -> CellName:
    """Name the cell whose colour a pair has in a state."""
    if not path[state]:
        return "neither"
    return "both" if state < len(path) - 2 else _path_cell(path)


def _calm_first(paths: Iterable[tuple[bool, ...]]) -> list[tuple[bool, ...]]:
    """Order paths so that flips are drawn over the rest."""
    return sorted(paths, key=lambda path: (path[-2] != path[-1], path[-2], path))


def _ribbon(x: float, to_x: float, y: float, to_y: float, height: float) -> str:
    """Write the outline of a ribbon."""
    middle = f"{(x + to_x) / 2:.1f}"
    return (
        f"M{x:.1f} {y:.1f}C{middle} {y:.1f} {middle} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        f"L{to_x:.1f} {to_y + height:.1f}C{middle} {to_y + height:.1f} {middle} {y + height:.1f} "
        f"{x:.1f} {y + height:.1f}Z"
    )
