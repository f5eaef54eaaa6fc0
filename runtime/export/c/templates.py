"""The files of an exported library: header, source, example, Makefile. ``@`` stands for its name, ``@@`` for it in
capitals.
"""

from __future__ import annotations

HEADER = r"""/* @.h: $about, as C. Made by dy2static.export_c; docs/export_c.md of dy2static says more.

   @model *model; char text[256];
   if (@load("@.weights", &model, text, sizeof(text))) ...            once; any number of threads may use it
   @context *context = @context_new(model, 0);                        one for each thread
   @inputs in = {0}; @outputs out = {0};
   in.$first = ...
   if (@run(context, &in, &out)) puts(@error(context));               as often as you like
   @context_free(context); @free(model);
*/
#ifndef @@H
#define @@H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { /* what functions give back */
    @@OK = 0,
    @@RAISED = 1,   /* your function raised an exception: @error() has its name, its text and your line */
    @@VALUE = 2,    /* an operator does not take a value: an index, a size, a whole number beyond 64 bits */
    @@ARGUMENT = 3, /* an argument has the wrong dtype, rank or size */
    @@MEMORY = 4,   /* there is no memory, or no more than the context may have */
    @@BUFFER = 5,   /* a result is larger than the buffer that you gave for it */
    @@FILE = 6      /* the file of weights cannot be read, is damaged, or belongs to another model */
};

enum { /* dtypes */
    @@NONE = 0, @@FLOAT32 = 1, @@FLOAT64 = 2, @@INT64 = 3, @@INT32 = 4, @@INT16 = 5, @@INT8 = 6, @@UINT8 = 7, @@BOOL = 8
};

/* A tensor, its elements row after row; those of @@BOOL are bytes, 0 or 1.
   As an argument: data, dtype, rank and sizes are yours. data may be 0 if there are no elements.
   As a result: all four are told. data is memory of the context, valid until its next call; if you set buffer and
   capacity (bytes) before, the elements are written there, and data is buffer. dtype is @@NONE for Python's None. */
typedef struct @tensor {
    const void *data;
    int32_t dtype, rank;
    int64_t sizes[$rank];
    void *buffer;
    size_t capacity;
} @tensor;

/* A list of tensors (items), of whole numbers and bools (ints) or of floats; length is -1 for None. It is memory of the
   context, valid until its next call. */
typedef struct @list {
    int64_t length;
    const @tensor *items;
    const int64_t *ints;
    const double *floats;
} @list;

typedef struct @inputs {
$inputs
} @inputs;

/* $tree */
typedef struct @outputs {
$outputs
} @outputs;

typedef struct @model @model;     /* the weights; nothing writes to it once it is loaded */
typedef struct @context @context; /* the memory of one call at a time */

/* Reads the weights. Gives @@OK, or an error, and what it is in text (of so many bytes; it may be 0). */
int @load(const char *path, @model **model, char *text, size_t room);
/* The same of bytes in memory, which must stay as they are as long as the model is used; aligned to 8 bytes. */
int @load_memory(const void *bytes, size_t size, @model **model, char *text, size_t room);
void @free(@model *model);

/* The memory of calls of one thread, at most limit bytes (0: as much as there is); 0 if there is no memory. */
@context *@context_new(const @model *model, size_t limit);
void @context_free(@context *context);

/* Runs the function. Results stay valid until the context's next call, or its end. */
int @run(@context *context, const @inputs *in, @outputs *out);
/* What went wrong in the last call: "fit.py:12: ValueError: no convergence". Empty if nothing did. */
const char *@error(const @context *context);
/* The most bytes that calls of this context needed at a time. */
size_t @memory(const @context *context);

#ifdef __cplusplus
}
#endif
#endif
"""

SOURCE_HEAD = r"""/* @.c: made by dy2static.export_c. It needs @.h and C's own library, nothing else. */
#include "@.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef D2S_VECTORS /* set by the Makefile with -fopenmp-simd */
#define D2S_SIMD(text) _Pragma(text)
#else
#define D2S_SIMD(text)
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define D2S_IVDEP _Pragma("GCC ivdep")
#else
#define D2S_IVDEP
#endif
enum { RAISED = @@RAISED, ARGUMENT = @@ARGUMENT };

"""

CALLS = {
    "d2s_check": r"""
/* an argument of the right dtype, rank and sizes (-1: any), in memory that may be read */
static int d2s_check(ctx *c, const @tensor *t, const char *name, int dtype, i64 width, int rank, const i64 *sizes) {
    i64 count = 1, whole = 1;
    char text[160];
    text[0] = 0;
    if (t->dtype != dtype) snprintf(text, sizeof(text), "dtype %d, and %d is needed", (int)t->dtype, dtype);
    else if (t->rank != rank) snprintf(text, sizeof(text), "%d dimensions, and %d are needed", (int)t->rank, rank);
    for (int d = 0; d < rank && !text[0]; d++) {
        const i64 size = t->sizes[d];
        if (size < 0 || size > INT32_MAX || (size && whole > ((i64)1 << 40) / size))
            snprintf(text, sizeof(text), "size %lld in dimension %d", (long long)size, d);
        else if (sizes[d] >= 0 && size != sizes[d])
            snprintf(text, sizeof(text), "size %lld in dimension %d, and %lld is needed", (long long)size, d,
                     (long long)sizes[d]);
        else { count *= size; whole *= size ? size : 1; }
    }
    if (!text[0] && count && !t->data) snprintf(text, sizeof(text), "no data");
    if (!text[0] && (uintptr_t)t->data % (uintptr_t)width) snprintf(text, sizeof(text), "data that is not aligned");
    if (!text[0]) return 0;
    c->code = ARGUMENT;
    d2s_say(c, "argument '"); d2s_say(c, name); d2s_say(c, "' has "); d2s_say(c, text);
    return 1;
}
""",
    "d2s_differ": r"""
static void d2s_differ(ctx *c, const char *name, int dim, i64 wanted, i64 size) {
    char text[160];
    snprintf(text, sizeof(text), "' has size %lld in dimension %d, and other arguments say %lld", (long long)size, dim,
             (long long)wanted);
    c->code = ARGUMENT;
    d2s_say(c, "argument '"); d2s_say(c, name); d2s_say(c, text);
}
""",
    "d2s_none": r"""
static inline void d2s_none(@tensor *t) { t->data = 0; t->dtype = @@NONE; t->rank = 0; }
""",
    "d2s_result": r"""
/* a result; what is not the context's own memory is copied */
static int d2s_result(ctx *c, @tensor *t, buf *b, const void *data, int dtype, i64 width, int rank, const i64 *sizes) {
    i64 bytes = width;
    t->dtype = dtype; t->rank = rank;
    for (int d = 0; d < rank; d++) { t->sizes[d] = sizes[d]; if (!sizes[d]) bytes = 0; }
    for (int d = 0; d < rank && bytes; d++) bytes *= sizes[d];
    if (t->buffer) {
        if ((uint64_t)bytes > t->capacity) {
            c->code = @@BUFFER;
            d2s_say(c, "a buffer for a result is too small: "); d2s_say_int(c, bytes); d2s_say(c, " bytes are needed");
            return 1;
        }
        d2s_copy(t->buffer, data, bytes);
        t->data = t->buffer;
        return 0;
    }
    if (b->src >= 0) {
        buf *own = d2s_new(c, bytes);
        if (!own) return 1;
        d2s_copy(own->data, data, bytes);
        data = own->data;
    } else b->rc++;
    t->data = data;
    return 0;
}
""",
    "d2s_items": r"""
static int d2s_items(ctx *c, @list *out, const lst *l, int dtype, i64 width, int rank) {
    buf *room = d2s_new(c, l->len * (i64)sizeof(@tensor));
    if (!room) return 1;
    @tensor *items = (@tensor *)(void *)room->data;
    out->length = l->len; out->items = items;
    for (i64 i = 0; i < l->len; i++) {
        const i64 *words = l->at + i * l->width;
        memset(items + i, 0, sizeof(@tensor));
        buf *b = (buf *)words[0];
        if (b && d2s_result(c, items + i, b, (const void *)words[1], dtype, width, rank, words + 3)) return 1;
    }
    return 0;
}
""",
}

SOURCE_TAIL = r"""
struct @model { const char *bytes; char *own; };
struct @context { ctx c; };

static int d2s_refuse(char *text, size_t room, const char *why) {
    if (text && room) snprintf(text, room, "%s", why);
    return @@FILE;
}

static uint64_t d2s_digest(const char *bytes, size_t size) { /* the sum of all words, and the sum of these sums */
    uint64_t sum = 1, sums = 0, word;
    for (size_t i = 0; i + 8 <= size; i += 8) { memcpy(&word, bytes + i, 8); sum += word; sums += sum; }
    return sums ^ (sum << 17 | sum >> 47);
}

int @load_memory(const void *bytes, size_t size, @model **model, char *text, size_t room) {
    static const unsigned char head[8] = {'d', '2', 's', 'w', 1, 0, 0, 0};
    uint64_t words[4];
    const uint16_t order = 1;
    if (model) *model = 0;
    if (text && room) text[0] = 0;
    if (!model || !bytes) return @@ARGUMENT;
    if (!*(const unsigned char *)&order) return d2s_refuse(text, room, "weights are for machines with low bytes first");
    if ((uintptr_t)bytes % 8) return d2s_refuse(text, room, "the bytes of the weights are not aligned");
    if (size < 40 || memcmp(bytes, head, 8)) return d2s_refuse(text, room, "this is no file of weights");
    memcpy(words, (const char *)bytes + 8, 32);
    if (words[0] != UINT64_C($fingerprint)) return d2s_refuse(text, room, "these are the weights of another model");
    if (words[1] != $size || size != 64 + words[1]) return d2s_refuse(text, room, "the file of weights is cut off");
    if (words[2] != d2s_digest((const char *)bytes + 64, size - 64))
        return d2s_refuse(text, room, "the file of weights is damaged");
    if (!(*model = calloc(1, sizeof(@model)))) {
        d2s_refuse(text, room, "there is no memory");
        return @@MEMORY;
    }
    (*model)->bytes = (const char *)bytes + 64;
    return @@OK;
}

int @load(const char *path, @model **model, char *text, size_t room) {
    FILE *file = path && model ? fopen(path, "rb") : 0;
    char *bytes = 0;
    size_t size = 64 + (size_t)$size, got;
    int code;
    if (model) *model = 0;
    if (!path || !model) return @@ARGUMENT;
    if (!file) return d2s_refuse(text, room, "the file of weights cannot be opened");
    if (!(bytes = malloc(size + 1))) {
        fclose(file);
        d2s_refuse(text, room, "there is no memory");
        return @@MEMORY;
    }
    got = fread(bytes, 1, size + 1, file);
    fclose(file);
    if (!(code = @load_memory(bytes, got, model, text, room))) (*model)->own = bytes;
    else free(bytes);
    return code;
}

void @free(@model *model) {
    if (model) free(model->own);
    free(model);
}

@context *@context_new(const @model *model, size_t limit) {
    @context *found = model ? calloc(1, sizeof(@context)) : 0;
    if (found) { found->c.weights = model->bytes; found->c.limit = limit; }
    return found;
}

void @context_free(@context *context) {
    if (context) while (context->c.all) d2s_free(&context->c, context->c.all);
    free(context);
}

int @run(@context *context, const @inputs *in, @outputs *out) {
    if (!context || !in || !out) return @@ARGUMENT;
    ctx *c = &context->c;
    d2s_reset(c);
    if (!@code(c, in, out)) return @@OK;
    if (!c->code) {
        c->code = c->no_memory ? @@MEMORY : @@VALUE;
        c->text[0] = 0;
        d2s_say(c, c->no_memory ? "there is no memory" : places[c->at]);
    }
    return c->code;
}

const char *@error(const @context *context) { return context ? context->c.text : "there is no context"; }

size_t @memory(const @context *context) { return context ? context->c.most : 0; }
"""

EXAMPLE = r"""/* main.c: reads arguments from a file of text, runs the function, prints the results in the same form.

   ./example inputs.txt [weights [limit of memory in bytes]]

   x tensor float32 2 3         a name, what it is, its dtype, its sizes; then its elements
   1 2 3 4 5 6
*/
#include "@.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtypes[] = {"none", "float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"};
static const size_t widths[] = {0, 4, 8, 8, 4, 2, 1, 1, 1};

static int fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    return 100;
}

static int read_tensor(FILE *file, const char *name, @tensor *t) {
    char line[512], word[64], *at;
    size_t count = 1;
    int used = 0;
    do {
        if (!fgets(line, sizeof(line), file)) return fail("an argument is missing in the file");
    } while (line[0] == '\n' || line[0] == '#');
    at = line;
    if (sscanf(at, "%63s%n", word, &used) != 1 || strcmp(word, name)) return fail("another argument was expected");
    at += used;
    if (sscanf(at, " tensor %63s%n", word, &used) != 1) return fail("a tensor was expected");
    at += used;
    for (int d = 1; d < 9; d++) if (!strcmp(word, dtypes[d])) t->dtype = d;
    while (t->rank < $rank && sscanf(at, "%" SCNd64 "%n", &t->sizes[t->rank], &used) == 1) {
        count *= t->sizes[t->rank] > 0 ? (size_t)t->sizes[t->rank] : 0;
        t->rank++;
        at += used;
    }
    if (count > ((size_t)1 << 32)) count = 0;
    if (!(t->buffer = calloc(count + 1, 8))) return fail("there is no memory");
    for (size_t i = 0; i < count; i++) {
        if (fscanf(file, "%63s", word) != 1) return fail("elements are missing in the file");
        switch (t->dtype) {
        case @@FLOAT32: ((float *)t->buffer)[i] = strtof(word, 0); break;
        case @@FLOAT64: ((double *)t->buffer)[i] = strtod(word, 0); break;
        case @@INT64: ((int64_t *)t->buffer)[i] = strtoll(word, 0, 10); break;
        case @@INT32: ((int32_t *)t->buffer)[i] = (int32_t)strtol(word, 0, 10); break;
        case @@INT16: ((int16_t *)t->buffer)[i] = (int16_t)strtol(word, 0, 10); break;
        case @@INT8: ((int8_t *)t->buffer)[i] = (int8_t)strtol(word, 0, 10); break;
        default: ((uint8_t *)t->buffer)[i] = (uint8_t)strtol(word, 0, 10);
        }
    }
    if (count && !fgets(line, sizeof(line), file)) line[0] = 0; /* the rest of the last line */
    t->data = t->buffer;
    return 0;
}

static inline void print_tensor(const char *name, const @tensor *t) {
    size_t count = 1;
    if (t->dtype == @@NONE) { printf("%s none\n", name); return; }
    printf("%s tensor %s", name, dtypes[t->dtype]);
    for (int d = 0; d < t->rank; d++) { printf(" %" PRId64, t->sizes[d]); count *= (size_t)t->sizes[d]; }
    printf("\n");
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)t->data + i * widths[t->dtype];
        const char *end = i + 1 < count ? " " : "\n";
        switch (t->dtype) {
        case @@FLOAT32: printf("%.9g%s", (double)*(const float *)(const void *)at, end); break;
        case @@FLOAT64: printf("%.17g%s", *(const double *)(const void *)at, end); break;
        case @@INT64: printf("%" PRId64 "%s", *(const int64_t *)(const void *)at, end); break;
        case @@INT32: printf("%" PRId32 "%s", *(const int32_t *)(const void *)at, end); break;
        case @@INT16: printf("%d%s", *(const int16_t *)(const void *)at, end); break;
        case @@INT8: printf("%d%s", *(const int8_t *)(const void *)at, end); break;
        default: printf("%d%s", *(const uint8_t *)(const void *)at, end);
        }
    }
}

static inline void print_list(const char *name, const @list *list) {
    char text[128];
    if (list->length < 0) { printf("%s none\n", name); return; }
    printf("%s list %" PRId64 "\n", name, list->length);
    for (int64_t i = 0; i < list->length; i++) {
        snprintf(text, sizeof(text), "%s[%" PRId64 "]", name, i);
        if (list->items) print_tensor(text, &list->items[i]);
        else if (list->ints) printf("%s int %" PRId64 "\n", text, list->ints[i]);
        else printf("%s float %.17g\n", text, list->floats[i]);
    }
}

int main(int argc, char **argv) {
    @model *model = 0;
    @context *context = 0;
    static @inputs in;
    static @outputs out;
    char text[256];
    int code = argc < 2 ? fail("usage: example inputs.txt [weights [limit]]") : 0;
    FILE *file = code ? 0 : fopen(argv[1], "r");
    if (!code && !file) code = fail("the file of inputs cannot be opened");
    if (!code && (code = @load(argc > 2 ? argv[2] : "@.weights", &model, text, sizeof(text)))) fail(text);
    if (!code && !(context = @context_new(model, argc > 3 ? (size_t)strtoull(argv[3], 0, 10) : 0)))
        code = fail("there is no memory");
$reading
    if (!code && (code = @run(context, &in, &out))) fail(@error(context));
    if (!code) {
$printing
        fprintf(stderr, "memory: %zu KiB\n", (@memory(context) + 1023) / 1024);
    }
    if (file) fclose(file);
$freeing
    @context_free(context);
    @free(model);
    return code;
}
"""

MAKEFILE = r"""# make, then ./example inputs.txt
CC ?= cc
CFLAGS ?= -O3 -march=native
VECTORS ?= -DD2S_VECTORS -fopenmp-simd

example: main.c @.c @.h
	$(CC) -std=c11 -Wall -Wextra $(CFLAGS) $(VECTORS) main.c @.c -o $@ -lm

lib@.a: @.c @.h
	$(CC) -std=c11 -Wall -Wextra $(CFLAGS) $(VECTORS) -c @.c -o @.o
	$(AR) rcs $@ @.o

clean:
	rm -f example @.o lib@.a
"""
