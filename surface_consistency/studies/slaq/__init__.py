"""SLAQ as a study: asked, judged, scored."""

__all__: list[str] = []
