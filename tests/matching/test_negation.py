import pytest

from surface_consistency.matching.boundary import first_affirmed


@pytest.mark.parametrize(
    ("key", "needles", "position"),
    [
        (" paris ", [" rome ", " paris "], 1),
        (" rome ", [" paris "], -1),
        (" not paris ", [" paris "], -1),
        (" not paris but paris texas ", [" paris "], 0),
        (" neither paris nor rome ", [" paris ", " rome "], -1),
        (" never in the paris ", [" paris "], -1),
        (" Not Paris ", [" Paris "], -1),
        (" isn't Paris ", [" Paris "], -1),
        (" rome instead of paris ", [" paris ", " rome "], 1),
        (" knot paris ", [" paris "], 0),
        (" not only paris ", [" paris "], 0),
    ],
)
def test_first_affirmed_is_the_first_answer_not_denied(key, needles, position):
    """Occurrences right after a negation, and those inside them, count for nothing."""
    assert first_affirmed(key, needles) == position
