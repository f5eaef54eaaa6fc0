"""Which operators a file may hold."""

from __future__ import annotations

import pytest
import torch

from runtime.errors import StorageError
from runtime.ir.parser import parse_program
from runtime.storage.allowed import allowed_operators, check_operators, namespaces


def program(line: str):
    return parse_program(f'program "f" {{ input %x : f32[] = "x" {line} @ "user.py":3:4  return %x as $0 }}')


@pytest.mark.parametrize(
    "name",
    [
        "aten.from_file.default",
        "aten.set_.source_Tensor",
        "aten.resize_.default",
        "aten.set_data.default",
        "aten.record_stream.default",
        "aten._cufft_clear_plan_cache.default",
        "aten.requires_grad_.default",
        "aten._reshape_alias.default",
        "aten._sparse_coo_tensor_unsafe.default",
        "aten._print.default",
        "aten.manual_seed.default",
        "aten.save.default",
        "aten._foobar.default",
        "aten._test_check_tensor.default",
    ],
)
def test_dangerous_operators_are_not_listed(name: str) -> None:
    assert name not in allowed_operators()
    with pytest.raises(StorageError, match=rf"'{name}' is not among(.|\n)*user\.py:3"):
        check_operators(program(f"%y : f32[] = {name}(%x)"))


@pytest.mark.parametrize(
    "name",
    [
        "aten.add.Tensor",
        "aten.linear.default",
        "aten.dropout.default",
        "aten.batch_norm.default",
        "aten.lstm.input",
        "aten.scaled_dot_product_attention.default",
        "aten.einsum.default",
        "aten.conv2d.default",
        "aten.conv2d.padding",
        "aten.layer_norm.default",
        "aten.embedding.default",
        "aten.copy_.default",
        "aten.add_.Tensor",
        "aten.select.int",
        "aten.cross_entropy_loss.default",
        "aten.rand_like.default",
        "aten.bernoulli_.float",
        "aten.index_put_.default",
        "aten._foreach_add_.Scalar",
        "aten.stft.center",
        "aten.linalg_svd.default",
        "aten.multinomial.default",
    ],
)
def test_computations_are_listed(name: str) -> None:
    assert name in allowed_operators()


def test_no_listed_operator_touches_storages_files_or_streams() -> None:
    allowed = {"Tensor", "int", "bool", "float", "number", "str", "Device", "Generator", "SymInt", "Scalar"}
    known = 0
    for name in allowed_operators():
        _, packet, overload = name.split(".")
        found = getattr(getattr(torch.ops.aten, packet, None), overload, None)
        if found is None:
            continue  # an operator of another version of torch
        known += 1
        schema = found._schema
        for one in (*schema.arguments, *schema.returns):
            text = str(one.type)
            for wrapper in ("List[", "Optional["):
                text = text.replace(wrapper, "").replace("]", "")
            assert text in allowed, (name, text)
            assert one.name not in ("filename", "file", "storage", "stream"), name
    assert known > 2000


def test_other_libraries_need_permission() -> None:
    custom = program("%y : f32[] = mylib.op.default(%x)")
    assert namespaces(custom) == ["mylib"]
    with pytest.raises(StorageError, match=r"belongs to the library 'mylib'(.|\n)*allow=\['mylib'\]"):
        check_operators(custom)
    check_operators(custom, ["mylib"])


@pytest.mark.parametrize(
    "name",
    [
        "_c10d_functional.all_reduce.default",
        "profiler._record_function_enter.default",
        "prims.add.default",
        "inductor.accumulate_grad_.default",
    ],
)
def test_torchs_other_libraries_need_permission_too(name: str) -> None:
    with pytest.raises(StorageError, match="belongs to the library"):
        check_operators(program(f"%y : f32[] = {name}(%x)"))


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
def test_only_errors_may_be_raised(name: str) -> None:
    with pytest.raises(StorageError, match=f"{name} is no error"):
        check_operators(program(f'raise() attrs {{exception: "{name}"}}'))
    check_operators(program('raise() attrs {exception: "ValueError"} raise() attrs {exception: "solver.NotConverged"}'))


def test_operator_inside_a_branch_is_found() -> None:
    with pytest.raises(StorageError, match="from_file"):
        check_operators(program('cond(%x) { %y : f32[] = aten.from_file.default("f") } { }'))
