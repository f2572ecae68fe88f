"""syntax-case and its kin. (to come)"""

from eshkol.lang.scopes import FormBinding

FORMS: dict[str, FormBinding] = {}
