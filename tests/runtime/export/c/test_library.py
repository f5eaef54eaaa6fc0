"""The library around the function: hostile callers, threads, memory, weights, and what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch

import dy2static
from dy2static import InputSpec, StorageError
from tests.runtime.export.c.harness import CC, STRICT, Library, exported, needs_cc, written
from tests.runtime.export.c.programs import Cnn, Mlp, decay, f32, scanned


@pytest.fixture(scope="module")
def decaying(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return exported(decay, tmp_path_factory.mktemp("lib") / "decay", [f32(None, 3)])


@needs_cc
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x tensor float32 2\n1 2\n", "argument 'x' has 1 dimensions, and 2 are needed"),
        ("x tensor float32\n1\n", "argument 'x' has 0 dimensions, and 2 are needed"),
        ("x tensor float32 1 1 3\n1 2 3\n", "argument 'x' has 3 dimensions, and 2 are needed"),
        ("x tensor float32 1 4\n1 2 3 4\n", "argument 'x' has size 4 in dimension 1, and 3 is needed"),
        ("x tensor float32 -5 3\n", "argument 'x' has size -5 in dimension 0"),
        ("x tensor float32 9223372036854775807 3\n", "argument 'x' has size 9223372036854775807 in dimension 0"),
        ("x tensor float64 1 3\n1 2 3\n", "argument 'x' has dtype 2, and 1 is needed"),
        ("x tensor nonsense 1 3\n1 2 3\n", "argument 'x' has dtype 0, and 1 is needed"),
    ],
)
def test_an_argument_that_does_not_fit_is_an_error_code(decaying: Library, text: str, said: str) -> None:
    answer = decaying.run(text=text)
    assert answer.code == 3 and said in answer.said


@needs_cc
def test_an_exception_of_the_users_has_its_line_and_text(decaying: Library) -> None:
    answer = decaying.run(torch.full((1, 3), 1e30))
    line = next(number for number, text in enumerate(
        Path(decay.__code__.co_filename).read_text().splitlines(), 1) if "no convergence" in text)  # fmt: skip
    assert answer.code == 1
    assert f"programs.py:{line}: ValueError: no convergence after 41 steps, at True" in answer.said


@needs_cc
def test_an_index_out_of_range_names_the_operator_and_the_line(tmp_path: Path) -> None:
    def pick(x, i):
        return x[i[0].item()]

    library = exported(pick, tmp_path / "pick", [f32(None), InputSpec([1], "int64")])
    assert library.run(torch.ones(3), torch.tensor([1])).code == 0
    answer = library.run(torch.ones(3), torch.tensor([3]))
    assert answer.code == 2 and "test_library.py:" in answer.said and "aten.select.int" in answer.said


@needs_cc
def test_numbers_beyond_64_bits_are_an_error(tmp_path: Path) -> None:
    def square(x):
        n = x[0].item()
        return n * n

    library = exported(square, tmp_path / "square", [InputSpec([1], "int64")])
    assert library.run(torch.tensor([-3])).results == {"result": 9}
    answer = library.run(torch.tensor([2**40]))
    assert answer.code == 2 and "beyond 64 bits" in answer.said


@needs_cc
@pytest.mark.parametrize("limit", [1, 200, 2_000, 5_000])
def test_a_limit_of_memory_is_an_error_code_and_no_leak(tmp_path: Path, limit: int) -> None:
    library = exported(scanned, tmp_path / "scanned", [f32(None, 3), f32(3)])
    answer = library.run(torch.ones(500, 3), torch.zeros(3), limit=limit)
    assert answer.code == 4 and "there is no memory" in answer.said
    assert library.run(torch.ones(500, 3), torch.zeros(3), limit=10**7).code == 0


_FAILING = r"""
#include <stdlib.h>
#include <stdio.h>
#include "@.h"
void *__real_malloc(size_t size);
static long left;
void *__wrap_malloc(size_t size) { return left-- > 0 ? __real_malloc(size) : 0; }
int main(void) {
    static float data[300];
    @model *model; @context *context;
    @inputs in = {0}; static @outputs out;
    int failed = 0, worked = 0;
    char text[100];
    left = 1 << 20;
    if (@load("@.weights", &model, text, sizeof(text))) return 90;
    in.x.data = data; in.x.dtype = 1; in.x.rank = 2; in.x.sizes[0] = 100; in.x.sizes[1] = 3;
    in.h.data = data; in.h.dtype = 1; in.h.rank = 1; in.h.sizes[0] = 3;
    for (long allowed = 0; allowed < 700; allowed++) {
        left = 1 << 20;
        if (!(context = @context_new(model, 0))) return 91;
        left = allowed;
        int code = @run(context, &in, &out);
        left = 1 << 20;
        if (code == @@MEMORY) failed++; else if (code) return 92; else worked++;
        if (@run(context, &in, &out)) return 93; /* and it works again when there is memory */
        @context_free(context);
    }
    @free(model);
    printf("%d %d\n", failed, worked);
    return 0;
}
"""

_THREADS = r"""
#include <pthread.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include "@.h"
static @model *model;
static void *work(void *given) {
    const long number = (long)given;
    float data[6 * 3], h[3] = {0};
    float first[6 * 3];
    @inputs in = {0}; @outputs out;
    @context *context = @context_new(model, 0);
    memset(&out, 0, sizeof(out));
    for (int i = 0; i < 18; i++) data[i] = (float)(i * (number + 1)) / 18;
    in.x.data = data; in.x.dtype = 1; in.x.rank = 2; in.x.sizes[0] = 6; in.x.sizes[1] = 3;
    in.h.data = h; in.h.dtype = 1; in.h.rank = 1; in.h.sizes[0] = 3;
    for (int call = 0; call < 2000; call++) {
        in.x.sizes[0] = call ? 1 + call % 6 : 6;
        if (@run(context, &in, &out)) return (void *)1;
        if (!call) memcpy(first, out.out_0.data, sizeof(first));
        if (out.out_0.sizes[0] != in.x.sizes[0] || memcmp(first, out.out_0.data, 12 * (size_t)in.x.sizes[0]))
            return (void *)2;
    }
    @context_free(context);
    return 0;
}
int main(void) {
    pthread_t threads[8];
    char text[100];
    long bad = 0;
    if (@load("@.weights", &model, text, sizeof(text))) return 90;
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 8; i++) { void *found; pthread_join(threads[i], &found); bad += (long)found; }
    @free(model);
    return (int)bad;
}
"""


def _driven(library: Library, text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    name = library.folder.name
    text = text.replace("@@", f"{name.upper()}_").replace("@.", f"{name}.").replace("@", f"{name}_")
    (library.folder / "driver.c").write_text(text)
    assert CC is not None
    subprocess.run([CC, "-std=gnu11", "-g", "-O1", *flags, "driver.c", f"{name}.c", "-o", "driver", "-lm"],
                   cwd=library.folder, check=True)  # fmt: skip
    return subprocess.run(["./driver"], cwd=library.folder, capture_output=True, text=True, timeout=300)


def growing(x, h):
    outs, sizes = [], []
    for i in range(x.shape[0]):
        h = torch.tanh(x[i] + h * 0.5)
        if h.sum() > -9:
            outs.append(h)
        sizes.append(i * 0.5)
    return outs, sizes, torch.cat(outs), h


@needs_cc
def test_every_allocation_may_fail(tmp_path: Path) -> None:
    library = exported(growing, tmp_path / "scanned", [f32(None, 3), f32(3)])
    for flags in (["-fsanitize=address,undefined", "-DD2S_EXACT"], []):
        done = _driven(library, _FAILING, "-Wl,--wrap=malloc", *flags)
        assert done.returncode == 0, done.stderr[-2000:]
        failed, worked = map(int, done.stdout.split())
        assert failed > 9 and worked > 0 and "Sanitizer" not in done.stderr


@needs_cc
def test_eight_threads_run_one_library(tmp_path: Path) -> None:
    library = exported(scanned, tmp_path / "scanned", [f32(None, 3), f32(3)])
    done = _driven(library, _THREADS, "-pthread", "-fsanitize=thread")
    if "unexpected memory mapping" in done.stderr:
        done = _driven(library, _THREADS, "-pthread")
    assert done.returncode == 0 and "ThreadSanitizer" not in done.stderr, done.stderr[-2000:]


@needs_cc
def test_damaged_and_foreign_weights_are_refused(tmp_path: Path) -> None:
    torch.manual_seed(0)
    library = exported(Mlp(), tmp_path / "mlp", [f32(None, 8)])
    whole = (library.folder / "mlp.weights").read_bytes()
    x = torch.ones(1, 8)
    for content, said in [
        (whole[:200], "cut off"), (whole + b"\0" * 64, "cut off"), (b"", "no file of weights"),
        (b"x" * len(whole), "no file of weights"), (whole[:500] + b"\1" + whole[501:], "damaged"),
        (whole[:8] + b"\1\2\3\4" + whole[12:], "another model"),
    ]:  # fmt: skip
        (library.folder / "other").write_bytes(content)
        answer = library.run(x, weights="other")
        assert answer.code == 6 and said in answer.said
    assert library.run(x, weights="nowhere").code == 6
    assert library.run(x).code == 0


def test_what_c_cannot_do_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    def noisy(x):
        y = x * 2
        return y + torch.randn(3)

    with pytest.raises(StorageError, match=r"\[D2S530\] exported C has no form for aten\.randn") as caught:
        dy2static.export_c(noisy, tmp_path / "noisy", [f32(3)])
    assert caught.value.location is not None and "torch.randn(3)" in caught.value.location.text
    assert os.listdir(tmp_path) == []


def test_writes_and_state_are_refused(tmp_path: Path) -> None:
    def grow(x):
        x += 1
        return x

    with pytest.raises(StorageError, match=r"\[D2S531\] exported C has no form for the write to 'x'"):
        dy2static.export_c(grow, tmp_path / "grow", [f32(3)])
    assert os.listdir(tmp_path) == []


def test_a_folder_is_replaced_only_if_it_is_an_export(tmp_path: Path) -> None:
    def double(x):
        return x * 2

    folder = tmp_path / "double"
    assert dy2static.export_c(double, folder, [f32(3)]) == folder
    before = (folder / "double.c").read_text()
    assert dy2static.export_c(double, folder, [f32(3)]) == folder
    assert (folder / "double.c").read_text() == before
    assert os.listdir(tmp_path) == ["double"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("a year of work")
    with pytest.raises(FileExistsError):
        dy2static.export_c(double, tmp_path / "mine", [f32(3)])
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "a year of work"
    with pytest.raises(ValueError, match="no name"):
        dy2static.export_c(double, tmp_path / "other", [f32(3)], name="1; rm -rf")


def test_no_text_of_the_users_is_code(tmp_path: Path) -> None:
    def hostile(x):
        if x.sum() > 0:
            raise ValueError('*/ "); abort(); /* ??/ \\ %s %n @ $inputs é')
        return x

    folder = dy2static.export_c(hostile, tmp_path / "hostile", [f32(None)])
    if CC is not None:
        command = [CC, *STRICT, "main.c", "hostile.c", "-o", "strict", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        library = Library(folder, ["x"])
        answer = library.run(torch.ones(2))
        assert answer.code == 1
        assert 'ValueError: */ "); abort(); /* ??/ \\ %s %n @ $inputs é' in answer.said


@needs_cc
def test_results_may_go_to_the_callers_buffers(tmp_path: Path) -> None:
    def double(x):
        return x[:, 1] * 2

    library = exported(double, tmp_path / "double", [f32(None, 2)])
    text = r"""
#include "@.h"
int main(void) {
    float data[8] = {0, 1, 0, 2, 0, 3, 0, 4}, room[4] = {0};
    char text[100];
    @model *model; @inputs in = {0}; @outputs out = {0};
    if (@load("@.weights", &model, text, sizeof(text))) return 90;
    @context *context = @context_new(model, 0);
    in.x.data = data; in.x.dtype = @@FLOAT32; in.x.rank = 2; in.x.sizes[0] = 4; in.x.sizes[1] = 2;
    out.result.buffer = room; out.result.capacity = 12;
    if (@run(context, &in, &out) != @@BUFFER) return 91;
    if (out.result.sizes[0] != 4) return 92;
    out.result.capacity = 16;
    if (@run(context, &in, &out) || out.result.data != room || room[3] != 8) return 93;
    in.x.sizes[0] = 0; in.x.data = 0;
    if (@run(context, &in, &out) || out.result.sizes[0]) return 94;
    if (@run(0, &in, &out) != @@ARGUMENT || @run(context, 0, &out) != @@ARGUMENT) return 95;
    @context_free(context); @context_free(0); @free(model); @free(0);
    return 0;
}
"""
    done = _driven(library, text, "-fsanitize=address,undefined")
    assert done.returncode == 0, f"{done.returncode} {done.stderr[-2000:]}"


@needs_cc
def test_the_makefile_and_the_example_work_as_they_are(tmp_path: Path) -> None:
    torch.manual_seed(0)
    folder = dy2static.export_c(Cnn(), tmp_path / "net", [f32(None, 3, 16, 16)])
    subprocess.run(["make"], cwd=folder, check=True, capture_output=True)
    done = subprocess.run(["./example", "inputs.txt"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and "out_0 tensor float32 2 5" in done.stdout, done.stderr


@needs_cc
def test_a_loaded_layer_is_exported_as_it_is(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = Mlp().eval()
    dy2static.save(layer, tmp_path / "mlp", [f32(None, 8)])
    loaded = dy2static.load(tmp_path / "mlp")
    folder = dy2static.export_c(loaded, tmp_path / "net")
    other = dy2static.export_c(layer, tmp_path / "other", [f32(None, 8)], name="net")
    assert (folder / "net.c").read_text() == (other / "net.c").read_text()
    assert (folder / "net.weights").read_bytes() == (other / "net.weights").read_bytes()
    assert written(["x"], [torch.ones(1)]) == "x tensor float32 1\n1.0\n"
