"""Which test files run first where several processes share them: the slowest, so that all end at about the same time.

    python -m pytest -q --junitxml=times.xml && python -m tests.order times.xml

prints ``SLOW`` anew. What it says decides the order alone: where it is out of date, or a file is gone, a run takes a
little longer.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
LEAST = 3.0
"""Seconds; what takes less evens out."""

SLOW = {
    "tests/end_to_end/test_training_inside.py": 264,
    "tests/end_to_end/test_context_variables.py": 131,
    "tests/end_to_end/test_weak_references.py": 115,
    "tests/conformance/test_conformance.py": 111,
    "tests/runtime/calling/test_takeover.py": 61,
    "tests/end_to_end/test_vmap.py": 61,
    "tests/examples/test_digits_adaptive.py": 60,
    "tests/end_to_end/test_imports.py": 54,
    "tests/end_to_end/test_attributes_beside_items.py": 50,
    "tests/end_to_end/test_tensor_attributes.py": 47,
    "tests/end_to_end/test_transformer_encoder.py": 42,
    "tests/dy2static/test_saving.py": 41,
    "tests/end_to_end/test_autocast.py": 41,
    "tests/dy2static/test_converted_module.py": 39,
    "tests/runtime/export/c/test_library.py": 34,
    "tests/dy2static/test_pipeline.py": 34,
    "tests/end_to_end/test_objects_of_an_iteration.py": 33,
    "tests/runtime/native/test_cache.py": 33,
    "tests/end_to_end/test_objects_made_inside.py": 32,
    "tests/end_to_end/test_around_training.py": 31,
    "tests/examples/test_adaptive_classifier.py": 31,
    "tests/test_layout.py": 30,
    "tests/runtime/native/test_pointwise.py": 26,
    "tests/examples/test_c_server.py": 25,
    "tests/runtime/native/test_conformance.py": 23,
    "tests/end_to_end/test_container_programs.py": 22,
    "tests/runtime/executor/test_reuse.py": 22,
    "tests/end_to_end/test_identity_of_state.py": 20,
    "tests/fuzz/test_fuzz.py": 20,
    "tests/runtime/static/test_saving.py": 31,
    "tests/end_to_end/test_debugger.py": 20,
    "tests/runtime/native/test_threads.py": 19,
    "tests/runtime/kernels/test_random_nests.py": 19,
    "tests/runtime/passes/test_hoist.py": 19,
    "tests/end_to_end/test_arguments_reached_otherwise.py": 18,
    "tests/end_to_end/test_boundary.py": 18,
    "tests/end_to_end/test_overwritten_values.py": 18,
    "tests/end_to_end/test_peers.py": 18,
    "tests/end_to_end/test_state_changes.py": 17,
    "tests/end_to_end/test_facts_of_paths.py": 17,
    "tests/end_to_end/test_operands_that_are_written.py": 16,
    "tests/runtime/kernels/test_rows_in_cuda.py": 16,
    "tests/end_to_end/test_number_arguments.py": 15,
    "tests/end_to_end/test_unread_results.py": 15,
    "tests/runtime/kernels/test_nest_in_cuda.py": 15,
    "tests/end_to_end/test_scans.py": 14,
    "tests/end_to_end/test_stale_views.py": 14,
    "tests/runtime/export/c/test_programs.py": 14,
    "tests/runtime/executor/test_random_programs.py": 14,
    "tests/dy2static/test_guarded_facts.py": 13,
    "tests/end_to_end/test_mistakes.py": 13,
    "tests/runtime/native/test_chunks.py": 13,
    "tests/end_to_end/test_containers_before_loops.py": 13,
    "tests/runtime/static/test_data_parallel.py": 13,
    "tests/runtime/kernels/test_training.py": 12,
    "tests/examples/test_training_inside.py": 11,
    "tests/end_to_end/test_identity_through_loops.py": 11,
    "tests/end_to_end/test_containers_made_on_one_path.py": 11,
    "tests/end_to_end/test_items_that_are_one_object.py": 11,
    "tests/docs/test_export_c.py": 11,
    "tests/end_to_end/test_dependent_results.py": 11,
    "tests/runtime/ir/test_parser.py": 11,
    "tests/end_to_end/test_arguments_written.py": 11,
    "tests/end_to_end/test_sizes.py": 10,
    "tests/dy2static/test_pipeline_stdlib.py": 10,
    "tests/runtime/autodiff/test_memory.py": 10,
    "tests/runtime/autodiff/test_nesting.py": 10,
    "tests/examples/test_static_py_func.py": 10,
    "tests/end_to_end/test_joined_views.py": 10,
    "tests/end_to_end/test_pythons_rules.py": 9,
    "tests/end_to_end/test_staged_arguments.py": 9,
    "tests/dy2static/transforms/test_elif_chain.py": 9,
    "tests/docs/test_static_mode.py": 9,
    "tests/runtime/native/test_views.py": 9,
    "tests/runtime/autodiff/test_array.py": 9,
    "tests/runtime/native/test_halves.py": 9,
    "tests/end_to_end/test_row_uses.py": 8,
    "tests/runtime/native/test_rows.py": 8,
    "tests/end_to_end/test_rows_of_several.py": 8,
    "tests/end_to_end/test_try.py": 8,
    "tests/end_to_end/test_library_operators.py": 8,
    "tests/dy2static/cli/test_main.py": 8,
    "tests/end_to_end/test_modules_that_change_weights.py": 8,
    "tests/end_to_end/test_shown_containers.py": 7,
    "tests/examples/test_vmap_control_flow.py": 7,
    "tests/runtime/native/test_background.py": 7,
    "tests/end_to_end/test_tensor_surface.py": 7,
    "tests/end_to_end/test_refused_writes.py": 7,
    "tests/runtime/storage/test_operands.py": 7,
    "tests/end_to_end/test_classes_made_inside.py": 7,
    "tests/dy2static/test_generate.py": 7,
    "tests/end_to_end/test_shared_variables.py": 7,
    "tests/runtime/ops/test_scalar.py": 7,
    "tests/runtime/native/test_scalar.py": 7,
    "tests/end_to_end/test_library_reads.py": 7,
    "tests/docs/test_errors.py": 7,
    "tests/dy2static/test_static_function.py": 7,
    "tests/end_to_end/test_operator_errors.py": 6,
    "tests/runtime/storage/test_files.py": 6,
    "tests/dy2static/operators/test_calls.py": 6,
    "tests/runtime/torch_internals/test_tensor_dict.py": 6,
    "tests/runtime/autodiff/test_while_loop.py": 6,
    "tests/dy2static/operators/test_staged_counts.py": 6,
    "tests/runtime/calling/test_conformance.py": 6,
    "tests/end_to_end/test_chosen_bounds.py": 6,
    "tests/end_to_end/test_values_that_look_alike.py": 6,
    "tests/end_to_end/test_views_in_loops.py": 6,
    "tests/end_to_end/test_unknown_sizes.py": 6,
    "tests/runtime/static/test_training.py": 6,
    "tests/end_to_end/test_detached_written.py": 6,
    "tests/end_to_end/test_texts.py": 6,
    "tests/runtime/native/test_gather.py": 5,
    "tests/end_to_end/test_writes_through_reshapes.py": 5,
    "tests/end_to_end/test_identity_of_values.py": 5,
    "tests/runtime/autodiff/test_node.py": 5,
    "tests/dy2static/operators/test_itertools.py": 5,
    "tests/end_to_end/test_kept_functions.py": 5,
    "tests/runtime/torch_internals/test_versions.py": 5,
    "tests/end_to_end/test_state_with_history.py": 5,
    "tests/runtime/test_public_names.py": 5,
    "tests/end_to_end/test_metadata_in_place.py": 5,
    "tests/end_to_end/test_staged_uses.py": 5,
    "tests/dy2static/test_guards.py": 5,
    "tests/end_to_end/test_views_in_turn.py": 5,
    "tests/end_to_end/test_dataclasses_in_loops.py": 5,
    "tests/end_to_end/test_custom_functions.py": 5,
    "tests/end_to_end/test_nested_uses.py": 5,
    "tests/end_to_end/test_containers_that_differ.py": 5,
    "tests/end_to_end/test_cached_helpers_kept_clean.py": 5,
    "tests/runtime/tracer/values/test_unification.py": 5,
    "tests/end_to_end/test_differing_types.py": 5,
    "tests/end_to_end/test_lists_of_lists.py": 5,
    "tests/end_to_end/test_settings.py": 4,
    "tests/end_to_end/test_tuples_that_grew.py": 4,
    "tests/runtime/torch_internals/test_fake_calls.py": 4,
    "tests/runtime/kernels/test_compiles.py": 4,
    "tests/runtime/autodiff/test_lists_passed_on.py": 4,
    "tests/end_to_end/test_dataclasses_in_lists.py": 4,
    "tests/end_to_end/test_tensors_of_lists.py": 4,
    "tests/end_to_end/test_differing_items.py": 4,
    "tests/runtime/autodiff/test_cond.py": 4,
    "tests/end_to_end/test_aliases.py": 4,
    "tests/end_to_end/test_tensor_identity.py": 4,
    "tests/runtime/passes/test_fold_conv_bn.py": 4,
    "tests/dy2static/cli/test_splice.py": 4,
    "tests/end_to_end/test_layouts_of_paths.py": 4,
    "tests/end_to_end/test_containers_in_grown_lists.py": 4,
    "tests/runtime/tracer/recording/test_attempt.py": 4,
    "tests/runtime/autodiff/test_scan.py": 4,
    "tests/runtime/autodiff/test_dtypes.py": 4,
    "tests/runtime/calling/test_strategy.py": 4,
    "tests/dy2static/test_origin.py": 4,
    "tests/end_to_end/test_grown_uses.py": 3,
    "tests/end_to_end/test_torch_reads_tensors.py": 3,
    "tests/end_to_end/test_silent_errors.py": 3,
    "tests/end_to_end/test_dataclass_identity.py": 3,
    "tests/runtime/native/test_region.py": 3,
    "tests/end_to_end/test_foreign_code.py": 3,
    "tests/end_to_end/test_messages_about_classes.py": 3,
    "tests/dy2static/test_api.py": 3,
    "tests/end_to_end/test_composability.py": 3,
    "tests/dy2static/transforms/test_readable_names.py": 3,
    "tests/end_to_end/test_effects.py": 3,
    "tests/runtime/native/test_products.py": 3,
}


def slowest_first(items: list[Any]) -> None:
    """Sort tests by the time that their files take; within a file, and among the quick ones, the order stays."""
    items.sort(key=lambda item: -SLOW.get(item.nodeid.partition("::")[0], 0))


def seconds(report: Path) -> Counter[str]:
    """The time of each file in a report in JUnit's format, which names modules and classes."""
    found: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        names = ("/".join(parts[:length]) + ".py" for length in range(len(parts), 0, -1))
        file = next((name for name in names if (ROOT / name).is_file()), "")
        found[file] += float(case.get("time", 0))  # type: ignore[assignment]
    return found


if __name__ == "__main__":
    for file, time in seconds(Path(sys.argv[1])).most_common():
        if file and time >= LEAST:
            print(f'    "{file}": {time:.0f},')
