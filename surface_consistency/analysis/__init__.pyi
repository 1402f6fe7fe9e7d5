from .compare import ComparedResults as ComparedResults, compare_results as compare_results
from .settings import ComparisonSettings as ComparisonSettings
