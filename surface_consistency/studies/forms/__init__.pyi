from .data import load_forms as load_forms
from .study import FormsStudy as FormsStudy
