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
    "tests/conformance/test_conformance.py": 51,
    "tests/end_to_end/test_container_programs.py": 49,
    "tests/end_to_end/test_debugger.py": 38,
    "tests/runtime/native/test_pointwise.py": 31,
    "tests/runtime/calling/test_takeover.py": 30,
    "tests/runtime/native/test_cache.py": 29,
    "tests/end_to_end/test_imports.py": 28,
    "tests/fuzz/test_fuzz.py": 28,
    "tests/end_to_end/test_transformer_encoder.py": 26,
    "tests/end_to_end/test_vmap.py": 26,
    "tests/runtime/export/c/test_programs.py": 25,
    "tests/end_to_end/test_arguments_reached_otherwise.py": 24,
    "tests/end_to_end/test_identity_of_state.py": 23,
    "tests/end_to_end/test_autocast.py": 22,
    "tests/end_to_end/test_items_that_are_one_object.py": 21,
    "tests/runtime/executor/test_reuse.py": 20,
    "tests/end_to_end/test_overwritten_values.py": 19,
    "tests/dy2static/test_saving.py": 19,
    "tests/end_to_end/test_state_changes.py": 19,
    "tests/end_to_end/test_detached_written.py": 17,
    "tests/runtime/export/c/test_library.py": 16,
    "tests/end_to_end/test_unread_results.py": 16,
    "tests/runtime/native/test_threads.py": 15,
    "tests/examples/test_adaptive_classifier.py": 14,
    "tests/runtime/native/test_conformance.py": 14,
    "tests/dy2static/test_guarded_facts.py": 14,
    "tests/dy2static/test_converted_module.py": 14,
    "tests/runtime/passes/test_hoist.py": 14,
    "tests/dy2static/test_pipeline.py": 14,
    "tests/end_to_end/test_objects_of_an_iteration.py": 14,
    "tests/end_to_end/test_mistakes.py": 13,
    "tests/end_to_end/test_peers.py": 13,
    "tests/runtime/native/test_halves.py": 13,
    "tests/runtime/autodiff/test_nesting.py": 13,
    "tests/end_to_end/test_number_arguments.py": 13,
    "tests/end_to_end/test_facts_of_paths.py": 12,
    "tests/end_to_end/test_tensors_of_lists.py": 12,
    "tests/end_to_end/test_objects_made_inside.py": 12,
    "tests/end_to_end/test_scans.py": 12,
    "tests/runtime/native/test_views.py": 12,
    "tests/runtime/native/test_chunks.py": 12,
    "tests/end_to_end/test_arguments_written.py": 12,
    "tests/end_to_end/test_boundary.py": 12,
    "tests/end_to_end/test_stale_views.py": 12,
    "tests/end_to_end/test_staged_index.py": 11,
    "tests/end_to_end/test_tensor_surface.py": 11,
    "tests/end_to_end/test_shown_containers.py": 11,
    "tests/end_to_end/test_containers_made_on_one_path.py": 11,
    "tests/end_to_end/test_views_with_some_history.py": 11,
    "tests/end_to_end/test_staged_arguments.py": 11,
    "tests/end_to_end/test_cached_helpers_kept_clean.py": 10,
    "tests/runtime/executor/test_random_programs.py": 10,
    "tests/end_to_end/test_sizes.py": 10,
    "tests/end_to_end/test_views_in_turn.py": 9,
    "tests/runtime/native/test_rows.py": 9,
    "tests/end_to_end/test_rows_of_several.py": 9,
    "tests/end_to_end/test_shared_variables.py": 9,
    "tests/end_to_end/test_joined_views.py": 9,
    "tests/end_to_end/test_operator_errors.py": 8,
    "tests/dy2static/test_pipeline_stdlib.py": 8,
    "tests/dy2static/test_generate.py": 8,
    "tests/end_to_end/test_internal_errors.py": 8,
    "tests/docs/test_export_c.py": 8,
    "tests/dy2static/test_static_function.py": 7,
    "tests/dy2static/operators/test_itertools.py": 7,
    "tests/runtime/storage/test_operands.py": 7,
    "tests/dy2static/operators/test_calls.py": 7,
    "tests/end_to_end/test_library_operators.py": 7,
    "tests/end_to_end/test_try.py": 7,
    "tests/runtime/ir/test_parser.py": 7,
    "tests/end_to_end/test_classes_made_inside.py": 6,
    "tests/runtime/native/test_scalar.py": 6,
    "tests/end_to_end/test_containers_that_differ.py": 6,
    "tests/runtime/ops/test_scalar.py": 6,
    "tests/end_to_end/test_layouts_of_paths.py": 6,
    "tests/end_to_end/test_unknown_sizes.py": 6,
    "tests/docs/test_errors.py": 6,
    "tests/end_to_end/test_row_uses.py": 6,
    "tests/end_to_end/test_containers_by_reference.py": 6,
    "tests/runtime/autodiff/test_array.py": 6,
    "tests/end_to_end/test_dependent_results.py": 6,
    "tests/runtime/native/test_losses.py": 5,
    "tests/runtime/native/test_background.py": 5,
    "tests/runtime/native/test_products.py": 5,
    "tests/dy2static/operators/test_staged_counts.py": 5,
    "tests/dy2static/cli/test_main.py": 5,
    "tests/end_to_end/test_chosen_bounds.py": 5,
    "tests/end_to_end/test_identity_with_gradients.py": 5,
    "tests/runtime/autodiff/test_memory.py": 5,
    "tests/end_to_end/test_lists_of_lists.py": 5,
    "tests/runtime/native/test_gather.py": 5,
    "tests/end_to_end/test_nested_uses.py": 5,
    "tests/end_to_end/test_lists_changed_under_loops.py": 5,
    "tests/runtime/autodiff/test_while_loop.py": 5,
    "tests/dy2static/transforms/test_elif_chain.py": 5,
    "tests/end_to_end/test_settings.py": 5,
    "tests/end_to_end/test_torch_checks.py": 5,
    "tests/end_to_end/test_stars_of_grown_lists.py": 5,
    "tests/dy2static/cli/test_splice.py": 4,
    "tests/end_to_end/test_dataclasses_in_lists.py": 4,
    "tests/end_to_end/test_tuples_that_grew.py": 4,
    "tests/end_to_end/test_texts.py": 4,
    "tests/end_to_end/test_differing_types.py": 4,
    "tests/end_to_end/test_staged_uses.py": 4,
    "tests/end_to_end/test_metadata_in_place.py": 4,
    "tests/runtime/calling/test_conformance.py": 4,
    "tests/end_to_end/test_aliases.py": 4,
    "tests/end_to_end/test_parts_of_modules_changed.py": 4,
    "tests/runtime/autodiff/test_node.py": 4,
    "tests/runtime/autodiff/test_lists_passed_on.py": 4,
    "tests/end_to_end/test_dataclass_identity.py": 4,
    "tests/end_to_end/test_messages_about_classes.py": 4,
    "tests/end_to_end/test_one_of_several_given.py": 4,
    "tests/runtime/storage/test_files.py": 4,
    "tests/dy2static/test_guards.py": 3,
    "tests/runtime/autodiff/test_scan.py": 3,
    "tests/end_to_end/test_comparing_methods.py": 3,
    "tests/runtime/autodiff/test_dtypes.py": 3,
    "tests/end_to_end/test_unpacking_of_several.py": 3,
    "tests/end_to_end/test_shapes_of_parts.py": 3,
    "tests/runtime/calling/test_strategy.py": 3,
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
