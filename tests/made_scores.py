"""A runner that scores texts by a rule."""

from surface_consistency.models import FakeRunner
from surface_consistency.schemas.scoring import ScoredText


class Scoring(FakeRunner):
    """Returns the fields that a function computes for each request, and no text."""

    def __init__(self, fields):
        super().__init__({})
        self._fields = fields

    def score(self, requests):
        for request in requests:
            yield ScoredText(request_id=request.id, **self._fields(request))
