"""What rewritten code calls. The value decides: a tensor or a staged number stages, anything else is plain Python.

Outside a trace every operator behaves exactly as the Python it stands for.
"""

from __future__ import annotations

from builtins import AssertionError, slice

from dy2static.operators.builtins.faulty_calls import number_for
from dy2static.operators.builtins.lookup import holds, lacks, lookup_error, position
from dy2static.operators.calls.call import call
from dy2static.operators.constructs.assert_stmt import assert_stmt
from dy2static.operators.constructs.attempt import attempt, handling, outside
from dy2static.operators.constructs.bool_ops import and_, not_, or_
from dy2static.operators.constructs.catching import catching, finishing, passed
from dy2static.operators.constructs.class_body import pythons
from dy2static.operators.constructs.context import context
from dy2static.operators.constructs.display import dict_of, set_of
from dy2static.operators.constructs.escape import (
    also,
    error_of,
    errors,
    escapes,
    escaping,
    taken,
    value_of,
)
from dy2static.operators.constructs.global_stmt import del_global, set_global
from dy2static.operators.constructs.if_expr import if_expr
from dy2static.operators.constructs.if_stmt import if_stmt
from dy2static.operators.constructs.nonlocal_stmt import note_nonlocal
from dy2static.operators.constructs.raise_stmt import raise_stmt
from dy2static.operators.constructs.variables import variables
from dy2static.operators.constructs.while_stmt import while_stmt
from dy2static.operators.dispatch.traced_call import traced_call as _traced_call  # noqa: F401  # decides on calls inside a trace
from dy2static.operators.iteration.for_stmt import for_stmt
from dy2static.operators.iteration.generator import Held, decided, fresh, generator, returned, take
from dy2static.operators.iteration.generator_functions import decorator
from dy2static.operators.iteration.unpack import (
    each,
    keywords,
    one_by_one,
    star,
    star_of_list,
    star_of_tuple,
    tested,
    unpack,
)
from dy2static.operators.provenance.definition import defined
from dy2static.operators.shared.handler import handler
from dy2static.operators.shared.load import load, load_free
from dy2static.operators.shared.waiting import left, waiting, within
from dy2static.operators.values.attribute import attr, del_attr, set_attr
from dy2static.operators.values.aug_assign import aug
from dy2static.operators.values.binary import binary, unary
from dy2static.operators.values.compare import compare
from dy2static.operators.values.f_string import format_value, fstring
from dy2static.operators.values.match_stmt import (
    Items,
    fits,
    from_end,
    is_mapping,
    is_matched,
    is_sequence,
    part,
    parts,
    positional,
    without_keys,
)
from dy2static.operators.values.patches import install
from dy2static.operators.values.subscript import del_item, item, set_item

install()

__all__ = [
    "AssertionError", "Held", "Items", "also", "and_", "assert_stmt", "attempt", "attr", "aug", "binary", "call",
    "catching", "compare", "context", "decided", "decorator", "defined", "del_attr", "del_global", "del_item",
    "dict_of", "each", "error_of", "errors", "escapes", "escaping", "finishing", "fits", "for_stmt", "format_value",
    "fresh", "from_end", "fstring", "generator", "handler", "handling", "holds", "if_expr", "if_stmt", "is_mapping",
    "is_matched", "is_sequence", "item", "keywords", "lacks", "left", "load", "load_free", "lookup_error",
    "not_", "note_nonlocal", "number_for", "one_by_one", "or_", "outside", "part", "parts", "passed", "position",
    "positional", "pythons", "raise_stmt", "returned", "set_attr", "set_global", "set_item", "set_of", "slice",
    "star", "star_of_list", "star_of_tuple", "take", "taken", "tested", "unary", "unpack", "value_of", "variables",
    "waiting", "while_stmt", "within", "without_keys",
]  # fmt: skip
