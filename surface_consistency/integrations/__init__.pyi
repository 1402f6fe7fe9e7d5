from .harness import lm_eval_path as lm_eval_path, run_lm_eval as run_lm_eval
from .paired_task import Document as Document, PairedTask as PairedTask
