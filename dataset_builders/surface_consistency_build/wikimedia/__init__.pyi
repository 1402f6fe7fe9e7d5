from .sql import read_sql as read_sql
from .wikis import load_wiki as load_wiki
