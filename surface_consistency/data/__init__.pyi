from .sources import (
    open_source as open_source,
)
