from .builders.build_dataset import build_dataset as build_dataset

__version__: str
