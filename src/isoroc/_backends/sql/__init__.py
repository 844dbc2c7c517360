"""SQL: vectors are lists of expressions, and queries compute what is used again in stages.

Importing this package requires sqlglot. `dialects` says in what databases differ, `expressions` has
the pieces of SQL, `stages` puts them together, and `operations` has the vector operations.
"""

from sqlglot import expressions as nodes
from sqlglot.errors import SqlglotError

from isoroc._backends.sql.dialects import DIALECTS, RULES, Dialect
from isoroc._backends.sql.expressions import table_node
from isoroc._backends.sql.operations import SqlOps

__all__ = ["DIALECTS", "RULES", "Dialect", "SqlOps", "SqlglotError", "nodes", "table_node"]
