"""Every private PyTorch API this project uses, in one house: what changes when torch does.

``runtime.version.TORCH_TESTED`` says which versions the tests have run with.
"""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import (
    UnsupportedOperatorException,
)
from torch.overrides import (
    TorchFunctionMode,
)
from torch.utils._python_dispatch import (
    TorchDispatchMode,
)

from runtime.torch_internals.checks import (
    GlobalModuleHooks,
    assume,
    global_module_hooks,
    is_compiled_module,
    module_call,
    state_tests,
    tensor_test,
)
from runtime.torch_internals.failures import (
    comes_of_shapes,
    is_shape_error,
    node_in_messages,
    plain_user_location,
    shape_errors,
)
from runtime.torch_internals.fake_calls import (
    casts_inside,
    fake_call,
    has_numbers,
    unknown_sizes,
    with_plain_numbers,
)
from runtime.torch_internals.fakes import (
    SizeFacts,
    TraceMode,
    alias_of,
    asks_device,
    assign_gradient,
    contiguity,
    device_of,
    dispatches_itself,
    empty_fake,
    fake_like,
    fake_only,
    fake_only_metadata,
    gradient_hooks,
    in_fake_mode,
    is_fake,
    is_kept_by_torch,
    layout_of,
    make_fake_mode,
    may_overlap,
    negative,
    new_number,
    new_symbol,
    offset_of,
    overlaps_itself,
    shown_to_need_gradients,
    size_expr,
    storage_identity,
    strides_of,
)
from runtime.torch_internals.functions import (
    PLAIN_APPLY,
    apply_takes_keywords,
    differentiable_once,
    hidden_from_dynamo,
    is_plain_apply,
    plain_apply,
)
from runtime.torch_internals.generators import (
    generator_identity,
    rng_restored,
    rng_state,
    set_rng_state,
    watched_generator,
)
from runtime.torch_internals.memory import (
    cpu_library,
    is_plain_cuda_memory,
    is_plain_memory,
    is_profiled,
    nothing_watches,
)
from runtime.torch_internals.methods import (
    eager_class,
    method_of,
    name_of_method,
)
from runtime.torch_internals.modes import (
    ambient_modes,
    as_if_not_traced,
    autocast_as,
    autocast_key,
    autocast_now,
    autocast_off,
    autocast_on,
    autocast_state,
    below_autograd,
    casting_as,
    changed_modes,
    changes_results,
    default_device,
    graph_is_kept,
    no_modes,
    others_trace,
    quiet_shapes,
    saved_tensor_hooks,
    saved_tensor_hooks_active,
    set_ambient_modes,
    undisturbed,
    unwatched,
    without_autocast_cache,
)
from runtime.torch_internals.named_nodes import (
    LEAF,
    PARAMETER,
    example,
    node_name,
    under_autograd,
    with_node,
)
from runtime.torch_internals.nvrtc import (
    CompileError,
    capability,
    compile_cuda,
    has_cuda,
    launch_cuda,
    load_cuda,
)
from runtime.torch_internals.operators import (
    gives_own_view,
    is_composite,
    may_go,
    node_of,
    parse_to,
    raw_call,
    saved_by,
    without_formula,
    writes_unseen,
)
from runtime.torch_internals.packed_rules import is_packed, packed
from runtime.torch_internals.real_calls import (
    graph_error,
    is_unknown,
    out_shapes,
    real_errors,
    real_results,
    type_error,
)
from runtime.torch_internals.schemas import (
    kernel_numbers,
    names_at,
    overloads_of,
    types_taken,
)
from runtime.torch_internals.settings import (
    Settings,
    changed_settings,
    is_setting,
    put_back_settings,
    settings,
    under_settings,
)
from runtime.torch_internals.shape_rules import by_own_rule
from runtime.torch_internals.sparse import count as sparse_count
from runtime.torch_internals.sparse import is_sparse, sparse_key
from runtime.torch_internals.tensor_dict import TensorDict
from runtime.torch_internals.torch_checks import (
    SYMBOLIC_MATH,
    TORCH_CHECKS,
    expect,
)
from runtime.torch_internals.types import CANNOT_TELL, results_of_types
from runtime.torch_internals.versions import (
    before,
    warn_if_untested,
)

shape_as_tensor = torch._shape_as_tensor
"""A tensor's sizes as a tensor."""

KEEPERS: tuple[type, ...] = (torch._C.Future, torch._C._Await)
"""Classes of objects that keep a value where Python's garbage collector does not see it."""

OpOverload = torch._ops.OpOverload
"""The class of one overload of an operator, such as ``torch.ops.aten.add.Tensor``."""

__all__ = [
    "CANNOT_TELL",
    "KEEPERS",
    "LEAF",
    "PARAMETER",
    "PLAIN_APPLY", "apply_takes_keywords",
    "cpu_library",
    "is_plain_cuda_memory",
    "is_plain_memory",
    "is_profiled",
    "nothing_watches",
    "CompileError",
    "SYMBOLIC_MATH",
    "TORCH_CHECKS",
    "GlobalModuleHooks",
    "OpOverload",
    "Settings",
    "SizeFacts",
    "TorchDispatchMode",
    "TorchFunctionMode",
    "TensorDict",
    "TraceMode",
    "UnsupportedOperatorException",
    "alias_of",
    "assign_gradient",
    "ambient_modes",
    "as_if_not_traced",
    "asks_device",
    "autocast_as",
    "autocast_key",
    "autocast_off",
    "autocast_on",
    "autocast_now",
    "autocast_state",
    "below_autograd",
    "assume",
    "before",
    "by_own_rule",
    "differentiable_once",
    "is_packed",
    "packed",
    "capability",
    "casting_as",
    "changes_results",
    "casts_inside",
    "changed_modes",
    "changed_settings",
    "comes_of_shapes",
    "compile_cuda",
    "contiguity",
    "cpu_library",
    "default_device",
    "device_of",
    "dispatches_itself",
    "eager_class",
    "empty_fake",
    "example",
    "expect",
    "fake_call",
    "fake_like",
    "fake_only",
    "fake_only_metadata",
    "gives_own_view",
    "global_module_hooks",
    "graph_error",
    "graph_is_kept",
    "has_cuda",
    "gradient_hooks",
    "has_numbers",
    "hidden_from_dynamo",
    "in_fake_mode",
    "is_compiled_module",
    "is_composite",
    "is_fake",
    "is_kept_by_torch",
    "is_plain_apply",
    "is_plain_cuda_memory",
    "is_plain_memory",
    "is_profiled",
    "is_setting",
    "is_shape_error",
    "is_unknown",
    "kernel_numbers",
    "launch_cuda",
    "layout_of",
    "load_cuda",
    "make_fake_mode",
    "may_overlap",
    "method_of",
    "may_go",
    "module_call",
    "name_of_method",
    "names_at",
    "new_number",
    "new_symbol",
    "negative",
    "offset_of",
    "overlaps_itself",
    "no_modes",
    "node_in_messages",
    "node_name",
    "node_of",
    "nothing_watches",
    "others_trace",
    "out_shapes",
    "overloads_of",
    "parse_to",
    "plain_apply",
    "plain_user_location",
    "put_back_settings",
    "quiet_shapes",
    "raw_call",
    "real_errors",
    "real_results",
    "type_error",
    "results_of_types",
    "generator_identity",
    "rng_restored",
    "rng_state",
    "set_rng_state",
    "saved_by",
    "saved_tensor_hooks",
    "saved_tensor_hooks_active",
    "set_ambient_modes",
    "shape_errors",
    "settings",
    "shape_as_tensor",
    "shown_to_need_gradients",
    "size_expr",
    "is_sparse",
    "sparse_count",
    "sparse_key",
    "state_tests",
    "storage_identity",
    "strides_of",
    "tensor_test",
    "types_taken",
    "under_autograd",
    "under_settings",
    "undisturbed",
    "unwatched",
    "unknown_sizes",
    "watched_generator",
    "with_node",
    "with_plain_numbers",
    "without_autocast_cache",
    "without_formula",
    "writes_unseen",
]

warn_if_untested()
