from .files import (
    unguard_cell as unguard_cell,
    write_csv as write_csv,
    write_json as write_json,
    write_parquet as write_parquet,
)
from .frames import (
    arrow_schema as arrow_schema,
)
from .loader import (
    Run as Run,
)
from .log import (
    RunLog as RunLog,
    read_answers as read_answers,
    read_generations as read_generations,
)
