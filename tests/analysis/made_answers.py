"""Generated answers of one model to items in several forms, with repeats."""

import numpy as np
import pandas as pd


def answers(n_items=60, n_repeats=3, seed=0):
    """Return one row per item, form and run, with three items per article."""
    rng = np.random.default_rng(seed)
    rows = [
        (item // 3, item, form, run, int(rng.random() < (0.3, 0.6, 0.8)[item % 3]))
        for item in range(n_items)
        for form in "abc"
        for run in range(n_repeats)
    ]
    return pd.DataFrame(rows, columns=["article", "item", "form", "run", "correct"])


def outcomes(seed=1):
    """Return an outcomes frame of two models."""
    rng = np.random.default_rng(seed)
    pairs = np.arange(80)
    frames = [
        pd.DataFrame(
            {
                "study": "made",
                "model": model,
                "pair": [f"p{pair}" for pair in pairs],
                "item": pairs // 2,
                "first_condition": "title",
                "second_condition": "redirect",
                "first_correct": rng.random(80) < 0.7,
                "second_correct": rng.random(80) < 0.5,
                "type": ["alias", "error"] * 40,
                "topic_id": pairs // 4,
            }
        )
        for model in ("ada", "bob")
    ]
    return pd.concat(frames, ignore_index=True)
