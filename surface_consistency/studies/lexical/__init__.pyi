from .benchmarks import (
    BLIMP_PARADIGMS as BLIMP_PARADIGMS,
    Benchmark as Benchmark,
    load_benchmark as load_benchmark,
)
