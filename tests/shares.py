"""Of tests with many cases, one case in how many runs by default, so that all default tests take less than ten minutes.

    python -m pytest -q -m "slow or not slow" -k "not third_party" --junitxml=times.xml     # all, on an idle machine
    python -m tests.shares times.xml

prints ``SHARES`` anew: what the cases of a test may take together is ``SECONDS``, or what ``MORE`` says. The others are
slow tests (see ``tests.sampling``). A test that is not in the table runs with all its cases.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 1.0
MORE = {
    "tests/conformance/test_conformance.py::test_case": 30.0,
    "tests/end_to_end/test_try.py::test_like_eager": 4.0,
    "tests/end_to_end/test_escaping_exceptions.py::test_caught": 4.0,
    "tests/end_to_end/test_kept_by_loops.py::test_kept": 4.0,
    "tests/runtime/native/test_conformance.py::test_case": 5.0,
    "tests/end_to_end/test_container_programs.py::test_as_eager": 6.0,
}
"""Those that are the whole in small, or about errors that were silent."""
WHOLE = ("tests/test_layout.py", "tests/runtime/tracer/test_goldens.py")
"""Files of which all cases run: each is about a file of its own."""

SHARES: dict[str, int] = {
    "tests/conformance/test_conformance.py::test_case": 3,
    "tests/conformance/test_in_pieces.py::test_case": 3,
    "tests/docs/test_errors.py::test_example": 4,
    "tests/docs/test_errors_in_pieces.py::test_example": 3,
    "tests/dy2static/cli/test_splice.py::test_real_files_keep_all_comments": 2,
    "tests/dy2static/operators/test_calls.py::test_modules": 3,
    "tests/dy2static/operators/test_itertools.py::test_as_eager": 5,
    "tests/dy2static/operators/test_staged_counts.py::test_one_program_serves_all_counts": 4,
    "tests/dy2static/test_converted_module.py::test_pickle_holds_the_module_as_it_was": 2,
    "tests/dy2static/test_guarded_facts.py::test_a_fact_changes": 6,
    "tests/dy2static/test_guards.py::test_the_call_after_a_change_is_right": 3,
    "tests/dy2static/test_pipeline.py::test_programs_convert_control_flow_only": 3,
    "tests/dy2static/test_pipeline.py::test_programs_convert_whole": 3,
    "tests/dy2static/test_pipeline.py::test_random_programs": 2,
    "tests/dy2static/test_pipeline_stdlib.py::test_converted_modules_do_what_they_did": 5,
    "tests/dy2static/test_pipeline_stdlib.py::test_files_convert": 5,
    "tests/dy2static/test_saved_methods.py::test_other_metadata_is_refused_before_anything_is_written": 2,
    "tests/dy2static/transforms/test_elif_chain.py::test_long": 3,
    "tests/end_to_end/test_aliases.py::test_write": 3,
    "tests/end_to_end/test_arguments_of_exceptions.py::test_of_a_path": 3,
    "tests/end_to_end/test_arguments_reached_otherwise.py::test_a_container_that_is_reached_otherwise_is_one_object":
        16,
    "tests/end_to_end/test_arguments_written.py::test_gradients_of_what_was_written": 6,
    "tests/end_to_end/test_arguments_written.py::test_the_callers_tensor_is_written": 4,
    "tests/end_to_end/test_around_training.py::test_a_scaler_outside": 2,
    "tests/end_to_end/test_around_training.py::test_autocast_around": 2,
    "tests/end_to_end/test_around_training.py::test_autocast_inside": 3,
    "tests/end_to_end/test_around_training.py::test_averaged_models": 3,
    "tests/end_to_end/test_around_training.py::test_clipping_and_accumulation": 4,
    "tests/end_to_end/test_around_training.py::test_loaders_with_workers": 3,
    "tests/end_to_end/test_around_training.py::test_schedules": 4,
    "tests/end_to_end/test_attributes_beside_items.py::test_containers_keep_their_attributes": 18,
    "tests/end_to_end/test_attributes_beside_items.py::test_containers_keep_their_attributes_when_loaded": 8,
    "tests/end_to_end/test_attributes_beside_items.py::test_records_keep_their_attributes": 4,
    "tests/end_to_end/test_attributes_that_leave.py::test_like_eager": 2,
    "tests/end_to_end/test_autocast.py::test_loaded_operators": 6,
    "tests/end_to_end/test_autocast.py::test_modules": 3,
    "tests/end_to_end/test_autocast.py::test_operators_that_autocast_changes": 2,
    "tests/end_to_end/test_boundary.py::test_layers_of_torch": 4,
    "tests/end_to_end/test_boundary.py::test_results_that_no_call_can_make": 5,
    "tests/end_to_end/test_builtins_given_staged_values.py::test_bounds_of_islice_that_it_does_not_take": 2,
    "tests/end_to_end/test_builtins_given_staged_values.py::test_equal": 2,
    "tests/end_to_end/test_cached_helpers.py::test_plain_arguments": 2,
    "tests/end_to_end/test_cached_helpers_kept_clean.py::test_a_cache_holds_nothing_of_a_trace": 3,
    "tests/end_to_end/test_checkpoints.py::test_a_module_whose_buffers_the_loop_updates": 2,
    "tests/end_to_end/test_checkpoints.py::test_any_number_of_states": 2,
    "tests/end_to_end/test_checkpoints.py::test_gradients_of_gradients": 2,
    "tests/end_to_end/test_checkpoints.py::test_nothing_differs_from_the_loop_without_the_option": 10,
    "tests/end_to_end/test_chosen_bounds.py::test_as_eager": 5,
    "tests/end_to_end/test_classes_changed.py::test_a_change_is_seen": 2,
    "tests/end_to_end/test_classes_made_inside.py::test_each_call_has_its_own": 3,
    "tests/end_to_end/test_container_programs.py::test_as_eager": 5,
    "tests/end_to_end/test_containers_before_loops.py::test_so_does_that_of_a_file": 4,
    "tests/end_to_end/test_containers_before_loops.py::test_the_first_goes_where_it_is_put": 9,
    "tests/end_to_end/test_containers_changed_on_paths.py::test_as_eager": 3,
    "tests/end_to_end/test_containers_made_on_one_path.py::test_holds_what_its_path_left": 7,
    "tests/end_to_end/test_containers_that_differ.py::test_equal_eager": 2,
    "tests/end_to_end/test_dataclass_identity.py::test_as_eager": 3,
    "tests/end_to_end/test_dataclasses_in_lists.py::test_all_names_of_an_item_see_a_change": 2,
    "tests/end_to_end/test_dataclasses_in_lists.py::test_as_eager": 2,
    "tests/end_to_end/test_dataclasses_in_loops.py::test_as_eager": 3,
    "tests/end_to_end/test_debugger.py::test_one_that_keeps_what_it_sees": 4,
    "tests/end_to_end/test_debugger.py::test_one_that_looks_on": 16,
    "tests/end_to_end/test_dependent_results.py::test_results_that_are_views": 2,
    "tests/end_to_end/test_dependent_results.py::test_the_graph_between_results": 4,
    "tests/end_to_end/test_dependent_results.py::test_the_switch_gives_eagers_graph": 3,
    "tests/end_to_end/test_deques.py::test_equal_eager": 2,
    "tests/end_to_end/test_detached_written.py::test_detached_written": 3,
    "tests/end_to_end/test_differing_items.py::test_as_eager": 2,
    "tests/end_to_end/test_differing_types.py::test_after_a_branch": 2,
    "tests/end_to_end/test_escaping_exceptions.py::test_caught": 3,
    "tests/end_to_end/test_escaping_exceptions.py::test_loaded": 15,
    "tests/end_to_end/test_exceptions.py::test_as_in_eager": 3,
    "tests/end_to_end/test_exported_program.py::test_constructs": 8,
    "tests/end_to_end/test_facts_of_paths.py::test_facts_of_one_path": 8,
    "tests/end_to_end/test_facts_of_paths.py::test_what_raises_for_every_number": 7,
    "tests/end_to_end/test_finally.py::test_a_finally_that_leaves": 2,
    "tests/end_to_end/test_gradients_by_joined_tensors.py::test_as_in_eager": 5,
    "tests/end_to_end/test_gradients_by_joined_tensors.py::test_refused_where_it_is_asked": 2,
    "tests/end_to_end/test_handlers_of_values.py::test_every_function_of_numbers": 3,
    "tests/end_to_end/test_identity_of_state.py::test_by_place": 2,
    "tests/end_to_end/test_identity_of_state.py::test_by_what_is_around": 3,
    "tests/end_to_end/test_identity_of_values.py::test_which_object_it_is": 2,
    "tests/end_to_end/test_identity_through_loops.py::test_who_is_who": 10,
    "tests/end_to_end/test_identity_with_gradients.py::test_what_is_one_object": 3,
    "tests/end_to_end/test_imports.py::test_running_a_file_imports_neither": 4,
    "tests/end_to_end/test_items_that_are_one_object.py::test_as_eager": 7,
    "tests/end_to_end/test_joined_views.py::test_raises_what_eager_raises": 5,
    "tests/end_to_end/test_kept_by_loops.py::test_kept": 5,
    "tests/end_to_end/test_layouts_of_paths.py::test_what_reads_memory": 2,
    "tests/end_to_end/test_leaves_made_inside.py::test_results_need_a_gradient_as_in_eager": 3,
    "tests/end_to_end/test_library_operators.py::test_the_family": 4,
    "tests/end_to_end/test_library_reads.py::test_a_change_is_seen": 3,
    "tests/end_to_end/test_library_reads.py::test_syntax_and_builtins_that_ask_for_items": 3,
    "tests/end_to_end/test_lists_changed_under_loops.py::test_as_eager": 3,
    "tests/end_to_end/test_lists_of_lists.py::test_equal_eager": 2,
    "tests/end_to_end/test_lists_of_nested_constructs.py::test_equal_eager": 4,
    "tests/end_to_end/test_lists_of_several_variables.py::test_as_eager": 5,
    "tests/end_to_end/test_loop_gradient.py::test_gradient_of_the_weight": 2,
    "tests/end_to_end/test_messages_about_classes.py::test_as_eager": 3,
    "tests/end_to_end/test_mistakes.py::test_the_exception_of_eager": 2,
    "tests/end_to_end/test_modules_that_change_weights.py::test_on_paths": 2,
    "tests/end_to_end/test_modules_that_change_weights.py::test_they_do_at_each_call": 3,
    "tests/end_to_end/test_nested_uses.py::test_equal_eager": 3,
    "tests/end_to_end/test_numpy_arrays.py::test_arrays_are_eagers": 6,
    "tests/end_to_end/test_numpy_arrays.py::test_every_function_of_the_table": 5,
    "tests/end_to_end/test_objects_made_inside.py::test_each_call_makes_its_own": 15,
    "tests/end_to_end/test_objects_made_inside.py::test_no_file_holds_them": 4,
    "tests/end_to_end/test_objects_of_an_iteration.py::test_later_code_knows_the_object": 16,
    "tests/end_to_end/test_onnx.py::test_constructs": 4,
    "tests/end_to_end/test_operands_that_are_written.py::test_some_backwards_are_eagers": 11,
    "tests/end_to_end/test_operands_that_are_written.py::test_what_detach_gives_is_the_same_memory": 3,
    "tests/end_to_end/test_operator_errors.py::test_products_of_mixed_dtypes": 5,
    "tests/end_to_end/test_operators_of_classes.py::test_they_decide_on_tensors": 2,
    "tests/end_to_end/test_overwritten_values.py::test_backward_is_eagers": 7,
    "tests/end_to_end/test_packed_sequences.py::test_recurrent_layers": 6,
    "tests/end_to_end/test_parts_of_modules_changed.py::test_a_change_between_calls_is_seen": 2,
    "tests/end_to_end/test_piece_snippets.py::test_snippet": 3,
    "tests/end_to_end/test_pythons_rules.py::test_in_straight_code": 4,
    "tests/end_to_end/test_refused_writes.py::test_a_view_without_a_history_that_is_one_of_several": 3,
    "tests/end_to_end/test_row_uses.py::test_equal_eager": 4,
    "tests/end_to_end/test_rows_made_anew.py::test_as_eager": 5,
    "tests/end_to_end/test_rows_of_several.py::test_equal_eager": 9,
    "tests/end_to_end/test_scans.py::test_stacked": 6,
    "tests/end_to_end/test_scans.py::test_what_looks_like_one": 2,
    "tests/end_to_end/test_settings.py::test_operators_run_under_them": 4,
    "tests/end_to_end/test_shared_variables.py::test_live": 3,
    "tests/end_to_end/test_sizes.py::test_layers_need_few_programs": 4,
    "tests/end_to_end/test_sizes.py::test_layouts": 7,
    "tests/end_to_end/test_sizes.py::test_numbers_of_rows": 4,
    "tests/end_to_end/test_squeezed_sizes.py::test_as_in_eager": 9,
    "tests/end_to_end/test_staged_arguments.py::test_staged_arguments": 5,
    "tests/end_to_end/test_stale_views.py::test_paths_that_eager_runs": 2,
    "tests/end_to_end/test_stale_views.py::test_raises_what_eager_raises": 5,
    "tests/end_to_end/test_stale_views.py::test_results_under_no_grad_that_are_views_of_what_the_operator_made": 7,
    "tests/end_to_end/test_stale_views.py::test_views_made_under_no_grad_that_are_written_and_not_read": 2,
    "tests/end_to_end/test_stars_of_grown_lists.py::test_as_eager": 3,
    "tests/end_to_end/test_state_with_history.py::test_backward_of_each_call": 3,
    "tests/end_to_end/test_tensors_of_lists.py::test_a_list_that_grows": 2,
    "tests/end_to_end/test_texts.py::test_texts_are_those_of_eager": 3,
    "tests/end_to_end/test_torch_checks.py::test_a_check_raises_its_own_exception_with_its_message": 2,
    "tests/end_to_end/test_torch_checks.py::test_other_checks": 2,
    "tests/end_to_end/test_torch_reads_tensors.py::test_training_for_quantised_weights": 2,
    "tests/end_to_end/test_trained_models.py::test_as_in_eager": 10,
    "tests/end_to_end/test_trained_models.py::test_in_c": 3,
    "tests/end_to_end/test_training_inside.py::test_a_scheduler_inside": 4,
    "tests/end_to_end/test_training_inside.py::test_an_optimizer": 8,
    "tests/end_to_end/test_training_inside.py::test_an_optimizer_in_a_loop_or_branch": 6,
    "tests/end_to_end/test_training_inside.py::test_batch_normalisation": 3,
    "tests/end_to_end/test_training_inside.py::test_gradients": 7,
    "tests/end_to_end/test_training_inside.py::test_loops": 3,
    "tests/end_to_end/test_training_inside.py::test_other_executors": 2,
    "tests/end_to_end/test_transformer_encoder.py::test_a_mask_that_may_be_causal": 2,
    "tests/end_to_end/test_transformer_encoder.py::test_padding": 6,
    "tests/end_to_end/test_try.py::test_like_eager": 2,
    "tests/end_to_end/test_tuples_that_grew.py::test_uses": 3,
    "tests/end_to_end/test_unknown_sizes.py::test_a_size_that_may_be_one": 2,
    "tests/end_to_end/test_unpacking_of_several.py::test_equal_eager": 6,
    "tests/end_to_end/test_unread_results.py::test_operators_raise_though_nothing_reads_their_results": 5,
    "tests/end_to_end/test_unread_results.py::test_python_raises_though_nothing_reads_its_results": 7,
    "tests/end_to_end/test_varying_lists.py::test_a_list_of_tensors": 8,
    "tests/end_to_end/test_views_in_turn.py::test_views": 3,
    "tests/end_to_end/test_views_with_some_history.py::test_views_with_some_history": 4,
    "tests/end_to_end/test_vmap.py::test_conformance_programs_are_what_they_are_row_by_row": 10,
    "tests/end_to_end/test_weak_references.py::test_it_is_the_callers_object": 7,
    "tests/end_to_end/test_writes_through_reshapes.py::test_as_eager_live_and_loaded": 3,
    "tests/examples/test_adaptive_classifier.py::test_static_equals_eager": 10,
    "tests/fuzz/test_fuzz.py::test_programs_about_one_thing": 7,
    "tests/fuzz/test_fuzz.py::test_programs_about_one_thing_that_once_failed": 3,
    "tests/fuzz/test_fuzz.py::test_random_program": 4,
    "tests/runtime/autodiff/test_array.py::test_a_list_is_read_as_it_was_while_it_grows": 3,
    "tests/runtime/autodiff/test_checkpoints.py::test_steps_and_states_are_as_few_as_promised": 3,
    "tests/runtime/autodiff/test_lists_passed_on.py::test_gradients": 4,
    "tests/runtime/autodiff/test_memory.py::test_nothing_waits_for_the_collector": 6,
    "tests/runtime/autodiff/test_memory.py::test_the_peak_is_at_most_eagers": 2,
    "tests/runtime/autodiff/test_nesting.py::test_every_pair": 4,
    "tests/runtime/autodiff/test_nesting.py::test_three_deep": 3,
    "tests/runtime/autodiff/test_scan.py::test_gradients_are_autograds": 4,
    "tests/runtime/calling/test_conformance.py::test_case": 3,
    "tests/runtime/calling/test_strategy.py::test_results_without_a_pass": 3,
    "tests/runtime/executor/test_random_programs.py::test_random_grad_modes": 2,
    "tests/runtime/executor/test_random_programs.py::test_random_programs": 4,
    "tests/runtime/executor/test_reuse.py::test_a_row_gives_the_same_bits_and_layout_in_the_place_of_its_operand": 9,
    "tests/runtime/executor/test_reuse.py::test_a_row_makes_dense_memory_of_its_own": 8,
    "tests/runtime/export/c/test_library.py::test_a_limit_of_memory_is_an_error_code_and_no_leak": 4,
    "tests/runtime/export/c/test_library.py::test_an_argument_that_does_not_fit_is_an_error_code": 2,
    "tests/runtime/export/c/test_programs.py::test_exported_c_gives_what_eager_gives": 6,
    "tests/runtime/export/onnx/test_conformance.py::test_case": 3,
    "tests/runtime/export/onnx/test_operators.py::test_uses": 2,
    "tests/runtime/export/test_capability.py::test_row": 3,
    "tests/runtime/export/test_capability.py::test_what_a_path_decides_becomes_a_path_of_its_own": 2,
    "tests/runtime/kernels/test_compiles.py::test_nvcc": 2,
    "tests/runtime/kernels/test_nest_in_cuda.py::test_pairs_of_dtypes": 4,
    "tests/runtime/kernels/test_nest_in_cuda.py::test_with_numbers": 6,
    "tests/runtime/kernels/test_random_nests.py::test_random_nests": 2,
    "tests/runtime/kernels/test_rows_in_cuda.py::test_layer_norm": 5,
    "tests/runtime/kernels/test_rows_in_cuda.py::test_layer_norm_backward": 4,
    "tests/runtime/kernels/test_rows_in_cuda.py::test_softmax": 2,
    "tests/runtime/kernels/test_training.py::test_a_module_trains_as_eager": 2,
    "tests/runtime/native/test_cache.py::test_a_damaged_library_is_made_again": 4,
    "tests/runtime/native/test_chunks.py::test_functions": 4,
    "tests/runtime/native/test_chunks.py::test_scans": 2,
    "tests/runtime/native/test_conformance.py::test_case": 3,
    "tests/runtime/native/test_elementary.py::test_errors": 2,
    "tests/runtime/native/test_gather.py::test_in_loops": 2,
    "tests/runtime/native/test_halves.py::test_functions": 2,
    "tests/runtime/native/test_halves.py::test_operators": 3,
    "tests/runtime/native/test_pointwise.py::test_functions_of_one_float": 4,
    "tests/runtime/native/test_pointwise.py::test_pairs_of_dtypes": 3,
    "tests/runtime/native/test_rows.py::test_activations": 2,
    "tests/runtime/native/test_rows.py::test_layer_norm": 3,
    "tests/runtime/native/test_threads.py::test_eight_threads": 2,
    "tests/runtime/native/test_views.py::test_reductions_over_dimensions": 3,
    "tests/runtime/native/test_views.py::test_views_and_what_reads_them": 3,
    "tests/runtime/ops/test_checkpoint.py::test_few_steps_are_computed_again": 3,
    "tests/runtime/passes/test_fold_conv_bn.py::test_values_and_gradients_are_eagers_but_for_rounding": 3,
    "tests/runtime/passes/test_hoist.py::test_gradients_are_eagers": 2,
    "tests/runtime/serving/test_predictor.py::test_close_waits_for_what_runs_and_takes_no_more": 2,
    "tests/runtime/serving/test_predictor.py::test_eight_threads_with_mixed_shapes": 3,
    "tests/runtime/static/test_building.py::test_modules_of_torch": 2,
    "tests/runtime/static/test_saving.py::test_training_goes_on": 4,
    "tests/runtime/static/test_saving.py::test_what_is_refused": 10,
    "tests/runtime/static/test_training.py::test_steps_are_those_of_torch": 3,
    "tests/runtime/storage/test_golden.py::test_it_runs_and_trains_like_the_module": 3,
    "tests/runtime/torch_internals/test_fake_calls.py::test_a_remembered_result_equals_a_fresh_one": 2,
    "tests/runtime/tracer/recording/test_attempt.py::test_a_fault_anywhere_in_an_attempt": 4,
    "tests/runtime/tracer/values/test_unification.py::test_both_values_fit_what_they_are_joined_to": 4,
    "tests/runtime/translated/test_as_module.py::test_another_dtype_is_one_error_at_once": 7,
    "tests/runtime/translated/test_as_module.py::test_copies_are_whole_and_independent": 4,
    "tests/runtime/translated/test_as_module.py::test_torch_compile_around_it": 2,
}


def share(test: str) -> int:
    """One case of a test in how many runs by default; ``test``: its file and name."""
    return SHARES.get(test, 1)


def shares(report: Path) -> dict[str, int]:
    """The table for a report in JUnit's format, which names modules and classes."""
    seconds: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        name, bracket, _ = case.get("name", "").partition("[")
        parts = case.get("classname", "").split(".")
        for length in range(len(parts), 0, -1):
            file = "/".join(parts[:length]) + ".py"
            if bracket and (ROOT / file).is_file():
                test = "::".join([file, *parts[length:], name])
                seconds[test] += float(case.get("time", 0))  # type: ignore[assignment]
                cases[test] += 1
    found = {}
    for test, count in sorted(cases.items()):
        most = max(MORE.get(test, SECONDS), seconds[test] / count)
        if seconds[test] > 1.25 * most and not test.startswith(WHOLE):
            found[test] = min(math.ceil(seconds[test] / most), count)
    return found


if __name__ == "__main__":
    for test, number in shares(Path(sys.argv[1])).items():
        line = f'    "{test}": {number},'
        print(line if len(line) <= 120 else line.replace(": ", ":\n        "))
