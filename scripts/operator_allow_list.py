"""Write runtime/storage/allowed_operators.txt: the ATen operators that a saved Program may hold.

    python scripts/operator_allow_list.py          # run it when a newer torch brings new operators

An operator is listed if its schema is one of a computation on tensors: it takes and gives tensors, numbers, strings,
dtypes and devices only, and its name is none of those below, which touch files, storages, generators, autograd's or
autocast's state, streams, or other global state, or take sizes and indices on trust.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

TARGET = Path(__file__).resolve().parents[1] / "runtime" / "storage" / "allowed_operators.txt"

PLAIN = {"Tensor", "int", "bool", "float", "number", "str", "Device"}

REFUSED = re.compile(
    r"""
      from_file | set_ | set | set_data | set_source_.* | resize | resize_ | resize_as_? | resize_as_sparse_?
    | _resize_output_? | _?resize_.* | resize_and_.* | .*storage.* | record_stream | _version | output_nr
    | is_leaf | retain_grad | retains_grad | requires_grad_ | _?backward | grad | data | rename_?
    | _fw_primal.* | _make_dual.* | _unpack_dual | _new_zeros_with_same_feature_meta.*
    | .*_unsafe | _unsafe_(?!view).* | .*from_buffer.* | _nested_view.* | _nested_get.*
    | _?to_functional.* | _from_functional.* | .*functional_(?:sym_)?.* | _functional_.* | _sync | _mirror.*
    | _debug.* | _test_.* | _foobar | _print | _cufft.* | _cudnn_init.* | _lazy_.* | .*_cache | _local_scalar.*
    | _assert_async | _functional_assert.* | sym_.* | _async_error | _use_cudnn.* | _use_miopen.*
    | is_vulkan_available | .*cudnn_is_acceptable | _propagate_xla_data | _coalesced_?
    | _dim[IV] | _nnz | _weight_int4pack.* | _dyn_quant.*
    | _(?:add|remove)_batch_dim | _make_dep_token | _copy_from.* | _triton_.* | _reshape_alias.* | _cslt_.*
    | _sparse_(?:coo|compressed)_tensor_with_dims.* | sparse_(?:csr|csc|bsr|bsc|compressed)_tensor | sparse_resize.*
    | copy_sparse_to_sparse_? | .*_sparse_backward | _convert_indices_from_.* | _sparse_semi_structured_.*
    | _to_sparse_semi_structured | _validate_(?!sparse_coo_tensor_args).*
    | _has_compatible_shallow_copy_type | _fused_(?:adam|adamw|sgd|adagrad|moving_avg).*  | _amp_.*
    """,
    re.VERBOSE,
)
"""Names of operators that are not listed."""


def is_plain(type_: Any) -> bool:
    """Whether a schema's type is a tensor, number, string, dtype or device, or a list or option of them."""
    text = str(type_)
    while (found := re.fullmatch(r"(?:List|Optional)\[(.*)\]", text)) is not None:
        text = found.group(1)
    return text in PLAIN or text == "Generator"


def is_allowed(name: str, schema: Any) -> bool:
    """Whether an operator is a computation on tensors."""
    if REFUSED.fullmatch(name.partition("::")[2].partition(".")[0]):
        return False
    types = [arg.type for arg in schema.arguments] + [result.type for result in schema.returns]
    tensors = any("Tensor" in str(type_) for type_ in types)
    return tensors and all(is_plain(type_) for type_ in types)


def operators() -> list[str]:
    """The names of all listed operators, as Programs spell them."""
    dispatched = set(torch._C._dispatch_get_all_op_names())
    found = []
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        if name.startswith("aten::") and name in dispatched and is_allowed(name, schema):
            found.append(f"aten.{schema.name.partition('::')[2]}.{schema.overload_name or 'default'}")
    return sorted(set(found))


if __name__ == "__main__":
    names = operators()
    TARGET.write_text(f"# made by scripts/operator_allow_list.py from torch {torch.__version__.partition('+')[0]}\n"
                      + "\n".join(names) + "\n")  # fmt: skip
    print(f"{TARGET}: {len(names)} operators")
