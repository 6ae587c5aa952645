"""Which test runs where: the one place that decides.

Below the name of a file, each line of the table has a verdict and a pattern: a test without
`test_` before it, or `test[row]`; `*` stands for any text. The first line that fits a test
decides. What no line fits has the verdict behind the name of its file; where there is none, or
no such file, it is quick on every backend.

    quick     in the quick suite of every backend
    compiled  quick on PyTorch, slow on JAX and TensorFlow, which compile each model
    either    as `compiled`, but on JAX or on TensorFlow alone, drawn by its name: for code that
              is written in `keras.ops`
    torch     on PyTorch alone, since no backend changes its result
    slow      slow on every backend
    once      slow, on PyTorch alone

Behind a pattern, `1/3` runs a third of these rows where they are slow, drawn by their names and
the backend's: rows of a product, whose values other rows have, too.

So a new test needs a line only if it takes seconds, or if it says nothing new on the other
backends. A slow test has the mark `slow`; one that does not run on this backend is deselected.
"""

import re
from zlib import crc32

# What a verdict means: whether the test is slow on PyTorch, and on the others; None: not run.
VERDICTS = {
    "quick": (False, False),
    "compiled": (False, True),
    "either": (False, {"jax": 0, "tensorflow": 1}),
    "torch": (False, None),
    "slow": (True, True),
    "once": (True, None),
}

TABLE = """
test_accelerate.py  torch
    compiled  models_of_every_structure
    compiled  training_goes_on_as_if_nothing_had_happened
    compiled  a_loss_scale_goes_along
    compiled  layers_that_stay_keep_their_states
test_against_keras.py
    compiled  plain_layer[LSTM-*]
    slow      plain_layer
    once      keras_own_tests_pass[MomentumLSTMCell-*]
    slow      keras_own_tests_pass
test_arguments.py  compiled
    quick     messages_name_the_layer_and_the_shapes_of_its_user[AdamLSTM]
    quick     extreme_step_sizes_are_computed_as_they_are[1e-30-AdamLSTM]
    torch     the_momentum_of_equation_14_is_below_1
    torch     every_argument_is_in_the_config[*-SRLSTM]
    torch     every_argument_is_in_the_config[*-AdamGRU-reset-before]
    torch     every_argument_is_in_the_config[*-MCRM-momentum]
    torch     every_argument_is_in_the_config[*-AdamDTRIV-cayley]
    once      every_argument_is_in_the_config
test_atomic_files.py  torch
test_benchmarks.py  torch
test_conjugate_gradients.py  torch
    quick     iterates_are_those_of_the_textbook[True-7]
    compiled  it_stops_where_progress_is_small[small]
    quick     it_stops_*
    quick     line_search_*
test_convert.py  compiled
    quick     a_layer_keeps_its_options[dropout]
    torch     a_layer_keeps_its_options
    quick     recurrent_bias
    torch     errors_say_what_is_wrong
    torch     a_copy_that_computes_another_function_warns
test_convert_exact.py  either
    either    exact_copies_predict_the_same[alone-*]  1/3
    compiled  exact_copies_predict_the_same[masked-SRGRU]
    compiled  exact_copies_predict_the_same[sequential-MomentumLSTM]
    slow      exact_copies_predict_the_same  1/4
    torch     what_has_no_exact_copy_is_refused
test_convert_models.py  either
    quick     statistics_are_copied
    quick     the_original_is_left_alone
    compiled  a_vocabulary_is_copied
test_curvature.py  compiled
    slow      products_are_those_of_the_explicit_matrix[AdamLSTM]
    quick     products_have_masks_and_sample_weights[True]
test_derivatives.py  compiled
    quick     second_derivatives_are_those_of_the_steps[AdamLSTM-holes]
    compiled  second_derivatives_are_those_of_the_steps  1/3
    quick     vectorized_map_equals_a_loop[AdamLSTM]
    quick     gradients_of_each_sample_and_forward_mode[AdamLSTM]
    compiled  gradients_of_each_sample_and_forward_mode  1/2
    compiled  vectorized_map_equals_a_loop  1/2
    torch     a_sequence_of_no_steps_is_refused
test_diagnostics.py  compiled
    quick     gradient_norms_are_those_of_a_restart_from_h[AdamLSTM]
    quick     memory_map_equals_the_states_of_prefixes[AdamLSTM-True]
    quick     memory_map_holds_states_at_masked_steps[False-AdamLSTM-holes]
    torch     norms_of_float64_are_as_small_as_they_are
    torch     *refuse*
test_distribution.py  slow
test_docs.py
    slow      examples_of_the_pages[*first_model.md]
    slow      examples_of_the_pages[*from_lstm_to_file.md]
    once      examples_of_the_pages[*own_rule.md]
    once      examples_of_the_pages[*tune.md]
    once      examples_of_the_pages[*scikit_learn.md]
    once      examples_of_the_pages[*compare.md]
    slow      examples_of_the_pages[README.md]
    once      examples_of_the_pages[*csv.md]
    # Those that call a backend's own functions, or make graphs or files.
    compiled  examples_of_the_pages[*own_cell.md]
    compiled  examples_of_the_pages[*streaming.md]
    compiled  examples_of_the_pages[*states_and_masks.md]
    compiled  examples_of_the_pages[*accelerate.md]
    torch     examples_of_the_pages
    torch     docstring_examples
    torch     defaults_are_those_that_docstrings_tell
    torch     the_readme_reads_well_on_a_package_index
    torch     links_anchors_and_pictures_of_the_pages_exist
    torch     commands_of_the_pages_exist
test_docs_tables.py  torch
test_dtypes.py  compiled
    slow      finite[AdamLSTM-*-long]
    quick     finite[AdamLSTM-mixed_float16-huge]
    compiled  finite[AdamLSTM-*]
    once      finite[*-long]  1/3
    torch     finite[*-mixed_float16-*]
    once      finite  1/4
    quick     float64_is_exact[AdamLSTM]
    quick     half_precision_is_close_to_float32[mixed_float16-AdamLSTM]
    quick     trains_in_mixed_precision[AdamLSTM]
    compiled  *[*AdamLSTM*]
    compiled  *[*MCRM-momentum*]
    torch     float64_is_exact
    torch     half_precision_is_close_to_float32
    torch     trains_in_mixed_precision
test_equations.py
    # On JAX and TensorFlow one layer meets the options that a backend may take otherwise, and
    # one of each recurrence the native kernel.
    torch     layer_equals_oracle[SRLSTM-released-*]
    quick     layer_equals_oracle[SRLSTM-mask_dead_row-step]
    quick     layer_equals_oracle[SRLSTM-mask_last_output-step]
    quick     layer_equals_oracle[SRLSTM-mask_zero_output-step]
    quick     layer_equals_oracle[SRLSTM-mask_backwards-step]
    quick     layer_equals_oracle[SRLSTM-mask_unroll-step]
    quick     layer_equals_oracle[SRLSTM-dropout_1-step]
    quick     layer_equals_oracle[SRLSTM-dropout_mask-step]
    quick     layer_equals_oracle[SRLSTM-recurrent_dropout-step]
    quick     layer_equals_oracle[AdamLSTM-mask_all_states-*]
    quick     layer_equals_oracle[AdamGRU-mask_all_states-native]
    quick     layer_equals_oracle[MomentumRNN-mask_all_states-native]
    quick     layer_equals_oracle[AdamRNN-hidden-mask_all_states-*]
    quick     layer_equals_oracle[AdamDTRIV-cayley-mask_all_states-native]
    quick     layer_equals_oracle[MCRM-momentum-mask_all_states-native]
    quick     layer_equals_oracle[NestedLSTM-mask_all_states-native]
    compiled  layer_equals_oracle[SRLSTM-*-step]
    compiled  layer_equals_oracle[AdamLSTM-*-native]  1/3
    compiled  layer_equals_oracle[MomentumGRU-*]  1/4
    compiled  layer_equals_oracle[MCRM-momentum-*]  1/4
    compiled  layer_equals_oracle[*-plain-native]  1/4
    torch     layer_equals_oracle[*all_states-*]
    torch     layer_equals_oracle[*-mask_backwards-*]
    torch     layer_equals_oracle[*-dropout_1-*]
    once      layer_equals_oracle[*-native]  1/2
    torch     layer_equals_oracle
test_examples.py  torch
    slow      several_devices
    once      quick_look_resumes
    once      the_notebook_runs
    once      it_runs[streaming-2]
    once      which_layer_tries_the_numbers_that_it_names
test_export.py
    slow      a_file_of_one_step_predicts_step_by_step
    slow      a_file_predicts_the_same
    slow      the_matrix_of_an_orthogonal_layer_is_computed_when_the_file_is_loaded
test_fuzz.py  torch
    compiled  drawn_programs_equal_their_steps
test_golden.py  torch
    compiled  lstm_equals_released_code[nesterov_lstm_restart]
    compiled  dtriv_equals_released_code[momentum_dtriv]
    compiled  nested_equals_released_code[mcrm]
test_gpu_programs.py  compiled
    quick     *cuda[AdamLSTM-masked]
    quick     *cuda[NAGGRU-masked]
    quick     *operations_of_cudnn[AdamLSTM-masked]
    quick     *operations_of_cudnn[NAGGRU-masked]
    quick     what_cudnn_is_given_by_jax_are_the_weights_of_the_steps[AdamLSTM]
    compiled  a_training_step_of_*  1/2
test_hessian_free.py  either
    quick     a_quadratic_is_solved_in_two_updates[options0]
    quick     one_step_of_cg_is_nesterovs_momentum
    torch     bad_arguments_are_refused
    torch     config_has_every_argument_and_rebuilds_the_optimizer
test_hessian_free_model.py  either
    slow      fit_has_metrics_validation_callbacks_and_sample_weights
    slow      an_interrupted_training_equals_an_uninterrupted_one[0.3]
    compiled  compiled_with_several_steps_at_once
    compiled  float64_is_exact
    torch     *refused*
test_learned_momentum.py
    quick     its_numbers_are_as_exact_as_the_slots[mixed_float16]
    compiled  its_numbers_are_as_exact_as_the_slots
    torch     the_first_numbers_are_those_given
    torch     spread_is_uniform_in_the_logarithm_of_the_time_scale
    torch     a_number_out_of_range_is_refused
    compiled  a_layer_of_keras_starts_at_momentum_0
    compiled  time_scales_are_those_that_were_learned
    quick     every_path_equals_the_steps[native-LSTM-unit-slots]
    compiled  every_path_equals_the_steps[*-LSTM-unit-*]  1/3
    compiled  every_path_equals_the_steps[*-unit-slots]  1/3
    torch     every_path_equals_the_steps[*-unit-*]
    torch     every_path_equals_the_steps[*-LSTM-*]
    once      every_path_equals_the_steps
    quick     it_starts_as_heavy_ball[LSTM-unit-free]
    torch     it_starts_as_heavy_ball
test_diagnostic_plots.py  torch
test_native.py  torch
    quick     arrays_that_do_not_fit_are_refused
    # The kernel is the same for every backend; how it is called is the same for every row.
    quick     every_shape_equals_the_steps[3-AdamLSTM-ragged]
    compiled  every_shape_equals_the_steps[3-SRGRU-wide]
    compiled  every_shape_equals_the_steps[3-MCRM-NAG-ragged]
    torch     every_shape_equals_the_steps[*-drops]
    torch     every_shape_equals_the_steps[3-AdamLSTM-*]
    torch     every_shape_equals_the_steps[3-SRGRU-*]
    torch     every_shape_equals_the_steps[3-NAGRNN-*]
    torch     every_shape_equals_the_steps[3-MomentumDTRIV-*]
    torch     every_shape_equals_the_steps[3-MCRM-NAG-*]
    torch     every_shape_equals_the_steps[3-*-ragged]
    torch     every_shape_equals_the_steps[1-*-chunks]
    once      every_shape_equals_the_steps  1/3
    quick     inference_equals_the_steps[*-NAGLSTM]
    compiled  inference_equals_the_steps
    quick     predictions_keep_h_of_the_steps_that_are_wanted[False-NAGLSTM]
    compiled  predictions_keep_h_of_the_steps_that_are_wanted
    quick     a_batch_of_no_samples[AdamLSTM]
    quick     a_step_size_that_is_a_tensor[False]
test_native_backends.py
    slow      jax_transforms_in_*
    slow      a_second_derivative_of_a_jax_trace_that_has_ended
    slow      without_the_interface_of_xla_the_numbers_stay
    slow      torch_compiles_a_graph_without_breaks
    slow      derivatives_of_tensorflow_where_tapes_do_not_record
test_native_compiling.py  torch
    once      an_update_compiles_what_it_changes
    once      the_tile_of_other_processors
    quick     without_it_everything_is_as_before
    quick     jax_that_would_crash_does_not_call_the_kernel
test_native_process.py
    slow      a_process_ends_while_a_step_runs
    slow      calls_keep_no_memory
test_needs.py  torch
test_new_cell.py  either
    quick     it_equals_its_equations[Adam-dead_row]
    compiled  it_equals_its_equations  1/3
test_optimizers.py  compiled
    quick     equations
    torch     bad_*_is_refused
    torch     config_*
    compiled  options_of_keras  1/3
test_orthogonal.py  either
    quick     both_starts_have_the_rotation_that_is_drawn[1.0-expm]
    quick     a_gradient_by_the_skew_part_exists_at_zero[expm]
    quick     a_call_that_changes_the_base_is_not_repeated
test_orthogonal_training.py  either
    slow      orthogonal_after_many_updates[1000-*]
    compiled  several_steps_in_one_compiled_execution
test_overflow.py
    quick     a_second_moment_that_overflows*[AdamGRU-native]
    quick     a_second_moment_that_overflows*[RMSPropLSTM-gpu]
    compiled  a_second_moment_that_overflows*
    quick     powers_of_a_large_momentum_overflow_on_no_path[*-MomentumLSTM]
    compiled  powers_of_a_large_momentum_overflow_on_no_path
    quick     behind_the_last_step_of_a_sample_nothing_overflows[cpu-MomentumGRU]
    compiled  behind_the_last_step_of_a_sample_nothing_overflows
test_paths.py
    torch     bidirectional_and_models_take_the_fast_path[*AdamLSTM*]
    torch     bidirectional_and_models_take_the_fast_path[*MCRM-momentum*]
    once      bidirectional_and_models_take_the_fast_path  1/3
    # Each recurrence and each kind of rule meets every kind of call.
    quick     kernels_equal_the_steps[*-NAGGRU-slots]
    compiled  kernels_equal_the_steps[native-Momentum*-*-dropouts]  1/3
    compiled  kernels_equal_the_steps[*-NAGLSTM-*]
    compiled  kernels_equal_the_steps[gpu-AdamLSTM-*]  1/3
    compiled  kernels_equal_the_steps[native-AdamLSTM-*slots]
    compiled  kernels_equal_the_steps[*-MCRM-momentum-*]  1/3
    compiled  kernels_equal_the_steps[native-RMSPropGRU-*]  1/3
    compiled  kernels_equal_the_steps[gpu-RMSPropGRU-*slots]
    compiled  kernels_equal_the_steps[*-MomentumRNN-plain]
    compiled  kernels_equal_the_steps[*-SRLSTM-released-plain]
    compiled  kernels_equal_the_steps[*-SRLSTM-released-slots]
    compiled  kernels_equal_the_steps[*-AdamDTRIV-cayley-plain]
    compiled  kernels_equal_the_steps[*-AdamDTRIV-cayley-slots]
    compiled  kernels_equal_the_steps[*-Momentum*-slots]
    once      kernels_equal_the_steps  1/6
    torch     kernels_equal_the_steps_in_float64[AdamLSTM-*]
    torch     kernels_equal_the_steps_in_float64[MCRM-momentum-*]
    once      kernels_equal_the_steps_in_float64  1/3
    quick     large_products_before_the_loop_equal_those_in_it[plain-SRLSTM-released]
    compiled  large_products_before_the_loop_equal_those_in_it  1/3
    quick     loops_equal_the_steps[AdamLSTM]
    compiled  loops_equal_the_steps
    quick     what_is_masked_may_be_nan_or_infinite[SRLSTM-nan]
    compiled  what_is_masked_may_be_nan_or_infinite  1/3
    compiled  kernels_in_half_precision_equal_the_steps
    quick     stateful_layers_go_on_from_their_slots[native-AdamLSTM]
    compiled  stateful_layers_go_on_from_their_slots  1/3
    quick     linear_rules_of_every_kind_equal_the_steps[cpu-65-Mean]
    compiled  linear_rules_of_every_kind_equal_the_steps  1/3
    quick     filter_equals_the_steps_of_the_rule[65-*]
    torch     filter_equals_the_steps_of_the_rule
    quick     the_kernel_of_a_memory_without_bias[GRUCell-native]
    compiled  the_kernel_of_a_memory_without_bias
    quick     an_unmasked_nan_reaches_few_steps_before_it[holes-cpu]
    compiled  an_unmasked_nan_reaches_few_steps_before_it
    compiled  an_input_wider_than_the_drive_is_driven_on_a_gpu
    quick     half_precision_around_the_layer[*AdamLSTM*]
    compiled  half_precision_around_the_layer
test_plain_layers.py
    # On JAX and TensorFlow each recurrence, each way through time and each path once.
    quick     values_and_gradients_are_those_of_keras[LSTM-LSTM-native-holes]
    quick     values_and_gradients_are_those_of_keras[GRU-GRU-native-dropout]
    quick     values_and_gradients_are_those_of_keras[SimpleRNN-SimpleRNN-native-zeros]
    torch     values_and_gradients_are_those_of_keras[*-fused-*]
    compiled  values_and_gradients_are_those_of_keras  1/3
    torch     what_no_path_serves_runs_as_in_keras
    torch     arguments_config_and_names_are_those_of_keras
    quick     a_stateful_layer_trains_on_from_its_states[GRU-GRU]
    compiled  a_stateful_layer_trains_on_from_its_states
    compiled  files[LSTM-LSTM]
    once      files
    compiled  fit_takes_the_kernel
    slow      function_transforms_and_compilers_of_torch
test_plan.py
    torch     every_call_has_one_plan_that_serves_it
    torch     each_condition_alone_keeps_a_kernel_away
test_properties.py
    compiled  a_memory_with_dropout_trains
    quick     the_velocity_past_a_samples_end_is_silent[MomentumGRU]
    compiled  the_velocity_past_a_samples_end_is_silent
    quick     a_bare_cell_keeps_the_dtypes_of_its_states[mixed_float16-SRLSTM]
    compiled  a_bare_cell_keeps_the_dtypes_of_its_states  1/3
test_repeatability.py  compiled
    quick     the_native_kernel_repeats_itself_with_as_many_threads[MomentumLSTM-3]
    torch     the_native_kernel_repeats_itself_with_as_many_threads[*-3]
    torch     the_native_kernel_repeats_itself_with_as_many_threads[MomentumLSTM-1]
    once      the_native_kernel_repeats_itself_with_as_many_threads
    compiled  the_other_paths_repeat_themselves  1/2
    slow      another_process_gives_the_same[1]
    once      another_process_gives_the_same
test_rotations.py  torch
    quick     initializers_follow_keras
    quick     rotation_and_its_gradient_under_a_compiler[3.0-*]
    quick     *float64*
test_saving.py
    slow      a_backend_that_only_predicts_predicts_the_same
    quick     file_of_an_earlier_release_loads[lstm-0.1.0]
    compiled  file_of_an_earlier_release_loads
    quick     round_trip[bidirectional-SRLSTM]
    quick     round_trip[bare-AdamDTRIV-cayley]
    quick     round_trip[bare-MCRM-momentum]
    torch     round_trip[bare-AdamRNN-hidden]
    torch     round_trip[bare-AdamGRU-reset-before]
    torch     round_trip[bare-SRLSTM-released]
    slow      round_trip[bare-MomentumLSTM]
    slow      round_trip[bare-AdamLSTM]
    slow      round_trip[bare-MomentumGRU]
    slow      round_trip[bare-MomentumDTRIV]
    once      round_trip  1/3
    compiled  weights_file_round_trip
    slow      the_next_backend_predicts_the_same_in_a_fresh_process
test_scale_free.py  torch
    quick     the_gain_of_the_input_changes_nothing[AdamLSTM-4.0]
test_streaming.py  either
    compiled  step_by_step_equals_predict[False-*]  1/4
    compiled  step_by_step_equals_predict[True-SRLSTM]  1/4
    slow      step_by_step_equals_predict  1/4
    torch     what_needs_other_steps_is_refused
    compiled  a_vocabulary_is_copied
test_traces.py
    slow      loops_for_files_equal_the_steps[open*]
test_training.py  torch
    quick     jit_compile[dropout-AdamLSTM]
    slow      jit_compile[*-AdamLSTM]
    slow      jit_compile[plain-*]  1/3
    torch     jit_compile
    quick     *[*AdamLSTM*]
    compiled  *[*MomentumDTRIV*]
    compiled  *[*MCRM-momentum*]
    compiled  training_step_is_traced_once
test_tuning_search.py  torch
    slow      first_trials_come_first[bayesian]
    compiled  models_and_graphs_of_earlier_trials_are_freed
    compiled  files_hold_every_trial
    compiled  the_best_model_loads_and_has_its_score
test_tuning_space.py  torch
    quick     each_branch_trains[MomentumRNN]
test_tuning_interruptions.py  torch
    once      a_killed_process_loses_no_trial_and_keeps_no_lock
    once      an_interrupted_search_tries_what_a_whole_one_tries[bayesian]
    torch     a_disk_that_was_full_at_the_end_of_a_trial_costs_it_alone[trial]
    once      a_disk_that_was_full_at_the_end_of_a_trial_costs_it_alone
    torch     an_error_of_the_machine_stops_the_search_and_costs_no_trial[the*]
    once      an_error_of_the_machine_stops_the_search_and_costs_no_trial
    torch     a_damaged_file_of_a_trial_loses_nothing[torn]
    once      a_damaged_file_of_a_trial_loses_nothing
    quick     data_differ_in_values_type_shape_and_place
test_tuning_workers.py  torch
    once      every_trial_ends_once_though_a_worker_and_the_chief_are_killed
test_types.py
    once      type_checkers_tell_mistakes_from_right_calls
test_wrappers.py  torch
    compiled  dynamic_time_with_a_mask[True-SRLSTM]
    quick     *[*SRLSTM]
    quick     stateful_*[*MCRM-momentum]
    compiled  *[*MCRM-momentum]
    compiled  *[*AdamLSTM]  1/2
    compiled  *[*MomentumDTRIV]  1/4
"""


def lines():
    """Return the lines of the table, and what becomes of the other tests of each file.

    A line is a file, a pattern, a verdict, and of how many rows one runs.
    """
    found, others = [], {}
    for line in TABLE.split("\n"):
        if line.startswith("test_"):
            file, verdict = (*line.split(), "quick")[:2]
            others[file] = VERDICTS[verdict], 1
        elif line and not line.strip().startswith("#"):
            verdict, test, *share = line.split()
            rows = int(share[0].removeprefix("1/")) if share else 1
            # A test stands for its rows.
            text = re.escape(f"{file}::test_{test}").replace(r"\*", ".*") + r"(\[.*)?"
            found.append((file, re.compile(text), VERDICTS[verdict], rows))
    return found, others


def name_of(item):
    return f"{item.path.name}::{item.name}"


def select(items, backend):
    """Mark slow tests, and return the tests that run here and those that do not."""
    (table, others), here, elsewhere = lines(), [], []
    for item in items:
        name = name_of(item)
        fitting = (found for _, pattern, *found in table if pattern.fullmatch(name))
        verdict, rows = next(fitting, others.get(item.path.name, (VERDICTS["quick"], 1)))
        slow = verdict[0 if backend == "torch" else 1]
        if isinstance(slow, dict):
            slow = True if crc32(name.encode()) % 2 == slow[backend] else None
        if slow and crc32(f"{backend} {name}".encode()) % rows:
            slow = None
        if slow:
            item.add_marker("slow")
        (elsewhere if slow is None else here).append(item)
    return here, elsewhere


def stale(items):
    """Return the lines that fit no test of the files that were collected."""
    names = {name_of(item) for item in items}
    files = {item.path.name for item in items}
    return [
        pattern.pattern
        for file, pattern, *_ in lines()[0]
        if file in files and not any(map(pattern.fullmatch, names))
    ]
