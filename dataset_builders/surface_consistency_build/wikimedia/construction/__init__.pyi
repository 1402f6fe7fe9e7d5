from .build import build_redirectqa as build_redirectqa
from .dump_files import find_dumps as find_dumps
from .progress import attrition_frame as attrition_frame
