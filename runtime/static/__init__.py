"""Static-graph mode: a Program is built by hand, then an executor runs it.

    main, startup = Program(), Program()
    with program_guard(main, startup):
        x, label = data("x", [None, 64]), data("label", [None, 1], "int64")
        prediction = fc(fc(x, 100, act="relu"), 10, act="softmax")
        loss = cross_entropy(prediction, label).mean()
        optimizer.SGD(0.01).minimize(loss)
    exe = Executor("cpu")
    exe.run(startup)
    (value,) = exe.run(main, feed={"x": ..., "label": ...}, fetch_list=[loss])
"""

from __future__ import annotations

from runtime.static import optimizer
from runtime.static.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from runtime.static.control import case, cond, switch_case, while_loop
from runtime.static.data_parallel import data_parallel
from runtime.static.executor import Executor, Scope, global_scope
from runtime.static.gradients import append_backward, gradients
from runtime.static.guard import (
    create_global_var,
    create_parameter,
    data,
    default_main_program,
    default_startup_program,
    program_guard,
)
from runtime.static.layers import accuracy, cross_entropy, fc
from runtime.static.program import ClonedProgram, Program
from runtime.static.py_func import py_func
from runtime.static.saving import LoadedProgram, load, save, save_inference_model

__all__ = [
    "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "ClonedProgram", "Executor", "LoadedProgram",
    "Program", "Scope", "accuracy", "append_backward", "case", "cond", "create_global_var", "create_parameter",
    "cross_entropy", "data", "data_parallel", "default_main_program", "default_startup_program", "fc", "global_scope",
    "gradients", "load", "optimizer", "program_guard", "py_func", "save", "save_inference_model", "switch_case",
    "while_loop",
]  # fmt: skip
