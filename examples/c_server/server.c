/* server.c: an HTTP server around a model that dy2static.export_c wrote; README.md says how to build and use it.

   server spirals.weights [--host 127.0.0.1] [--port 8080] [--threads 4] [--timeout 10]
   server spirals.weights --sizes

   One thread, the loop, reads requests and writes answers, of all connections with poll(); so a slow client holds up
   nobody. A request that has arrived whole goes into a queue, from which a fixed number of workers take it. The model
   is shared by them, for nothing writes to it; each worker has a context of its own, the memory of its calls. */
#define _POSIX_C_SOURCE 200809L
#include "spirals.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    COLUMNS = 2,            /* numbers of a row */
    MAX_ROWS = 4096,        /* rows of a request */
    MAX_HEAD = 8 * 1024,    /* bytes of a request's head */
    MAX_BODY = 256 * 1024,  /* bytes of its body */
    MAX_CONNECTIONS = 256,  /* open at a time */
    MAX_THREADS = 256,
    MODEL_LIMIT = 64 << 20, /* bytes that a call of the model may have */
    IDLE_MS = 30 * 1000,    /* between two requests of a connection */
    LINGER_MS = 1000        /* for what the client still sends after the last answer */
};

/* FREE; READING: a request, or none yet; QUEUED: a worker has it, and nobody else touches it; WRITING: an answer;
   LINGERING: all is said, and what still comes is thrown away, so that the client can read the answer */
enum state { FREE, READING, QUEUED, WRITING, LINGERING };

typedef struct bytes {
    char *data;
    size_t size, room;
} bytes;

typedef struct connection {
    int fd;
    enum state state;
    int64_t deadline;       /* in milliseconds; not while QUEUED */
    bytes in, out;
    size_t sent;            /* of out */
    size_t head, body;      /* bytes of the request's head, 0 if it has not been read yet, and of its body */
    char method[8], path[64];
    int last, continued;    /* whether the connection ends after this answer; whether "100 Continue" was said */
    struct connection *next;
} connection;

static struct {
    int listener, wake[2]; /* a byte into wake[1] wakes the loop */
    int timeout;           /* milliseconds for a request to arrive, and for an answer to be taken */
    connection all[MAX_CONNECTIONS];
    pthread_mutex_t lock;  /* for what follows */
    pthread_cond_t some;
    connection *first, *end, *done; /* the queue, and what workers have answered */
    int ending;
} server = {.listener = -1, .wake = {-1, -1}, .lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};

static volatile sig_atomic_t stopping;

/* -- small things */

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int fail(const char *what) {
    fprintf(stderr, "server: %s\n", what);
    return 1;
}

/* Room for so many bytes more. Gives 0 if there is no memory. */
static int make_room(bytes *b, size_t more) {
    size_t room = b->room ? b->room : 1024;
    if (b->room - b->size >= more) return 1;
    while (room - b->size < more) room *= 2;
    char *data = realloc(b->data, room);
    if (!data) return 0;
    b->data = data;
    b->room = room;
    return 1;
}

static int append(bytes *b, const char *form, ...) {
    va_list args;
    va_start(args, form);
    int size = vsnprintf(0, 0, form, args);
    va_end(args);
    if (size < 0 || !make_room(b, (size_t)size + 1)) return 0;
    va_start(args, form);
    vsnprintf(b->data + b->size, (size_t)size + 1, form, args);
    va_end(args);
    b->size += (size_t)size;
    return 1;
}

static void drop(bytes *b) {
    free(b->data);
    *b = (bytes){0};
}

/* -- answers */

static const char *reason(int status) {
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 422: return "Unprocessable Content";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
    }
}

/* The whole answer into c->out. If there is no memory for it, c->out is empty, and the connection ends. */
static void answer(connection *c, int status, const char *text, size_t size) {
    bytes *out = &c->out;
    const char *allow = strcmp(c->path, "/predict") ? "GET, HEAD" : "POST";
    out->size = c->sent = 0;
    if (append(out, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n", status,
               reason(status), size) &&
        (status != 405 || append(out, "Allow: %s\r\n", allow)) &&
        append(out, "Connection: %s\r\n\r\n", c->last ? "close" : "keep-alive") && make_room(out, size)) {
        if (size && strcmp(c->method, "HEAD")) {
            memcpy(out->data + out->size, text, size);
            out->size += size;
        }
    } else {
        out->size = 0;
        c->last = 1;
    }
}

/* A line that says what is wrong. */
static void refuse(connection *c, int status, const char *form, ...) {
    char text[1200];
    va_list args;
    va_start(args, form);
    int size = vsnprintf(text, sizeof(text) - 1, form, args);
    va_end(args);
    if (size < 0) size = 0;
    if ((size_t)size > sizeof(text) - 2) size = sizeof(text) - 2;
    text[size] = '\n';
    answer(c, status, text, (size_t)size + 1);
}

/* The same, and the connection ends: where the next request begins is not known. */
#define REFUSE_AND_END(c, ...) ((c)->last = 1, refuse((c), __VA_ARGS__))

/* -- a worker: numbers in, the model, numbers out */

typedef struct worker {
    pthread_t thread;
    spirals_context *context;
    float *numbers; /* MAX_ROWS rows */
    bytes text;
} worker;

static int blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r' || letter == ','; }

/* The rows of a body: a line each, its numbers apart by blanks or commas; empty lines are none.
   Gives their number, or -1 with the answer made. */
static int read_rows(connection *c, float *numbers) {
    const char *at = c->in.data + c->head, *end = at + c->body;
    int rows = 0;
    for (int line = 1; at < end; line++) {
        int columns = 0;
        for (; at < end && *at != '\n';) {
            char word[48];
            size_t size = 0;
            if (blank(*at)) { at++; continue; }
            while (at < end && *at != '\n' && !blank(*at)) {
                if (size < sizeof(word) - 1) word[size] = *at >= ' ' && *at <= '~' ? *at : '?';
                size++;
                at++;
            }
            word[size < sizeof(word) ? size : sizeof(word) - 1] = 0;
            char *rest = word;
            /* strtof takes more than plain decimal numbers, "nan" and "0x1p3" */
            const int plain = size < sizeof(word) && strspn(word, "+-.0123456789eE") == size;
            const float number = plain ? strtof(word, &rest) : 0;
            if (!plain || *rest) {
                refuse(c, 400, "line %d: '%s%s' is not a number", line, word, size < sizeof(word) ? "" : "...");
                return -1;
            }
            if (!isfinite(number)) {
                refuse(c, 400, "line %d: '%s' is beyond float32", line, word);
                return -1;
            }
            if (rows == MAX_ROWS) {
                refuse(c, 413, "there are too many rows: at most %d are taken", MAX_ROWS);
                return -1;
            }
            if (columns < COLUMNS) numbers[rows * COLUMNS + columns] = number;
            columns++;
        }
        if (at < end) at++;
        if (columns && columns != COLUMNS) {
            refuse(c, 400, "line %d has %d number%s, and %d are needed", line, columns, columns == 1 ? "" : "s",
                   COLUMNS);
            return -1;
        }
        if (columns) rows++;
    }
    if (!rows) {
        refuse(c, 400, "the body holds no numbers: each line is a row of %d", COLUMNS);
        return -1;
    }
    return rows;
}

static int run(spirals_context *context, const float *numbers, int rows, spirals_outputs *out) {
    spirals_inputs in = {0};
    in.x.data = numbers;
    in.x.dtype = SPIRALS_FLOAT32;
    in.x.rank = 2;
    in.x.sizes[0] = rows;
    in.x.sizes[1] = COLUMNS;
    return spirals_run(context, &in, out);
}

static void predict(worker *w, connection *c) {
    const int rows = read_rows(c, w->numbers);
    if (rows < 0) return;
    spirals_outputs out = {0};
    const int code = run(w->context, w->numbers, rows, &out);
    if (code == SPIRALS_RAISED || code == SPIRALS_VALUE) {
        refuse(c, 422, "%s", spirals_error(w->context));
    } else if (code) {
        refuse(c, code == SPIRALS_MEMORY ? 503 : 500, "%s", spirals_error(w->context));
    } else {
        const float *found = out.out_0.data;
        const int64_t classes = out.out_0.sizes[1];
        w->text.size = 0;
        int whole = append(&w->text, "steps %" PRId64 "\n", out.out_1);
        for (int64_t at = 0; whole && at < rows * classes; at++)
            whole = append(&w->text, "%.9g%c", (double)found[at], (at + 1) % classes ? ' ' : '\n');
        if (whole) answer(c, 200, w->text.data, w->text.size);
        else refuse(c, 503, "there is no memory");
    }
}

static void wake_loop(void) {
    const char byte = 0;
    const ssize_t written = write(server.wake[1], &byte, 1); /* a pipe that is full wakes as well */
    (void)written;
}

static void *work(void *given) {
    worker *w = given;
    pthread_mutex_lock(&server.lock);
    for (;;) {
        while (!server.first && !server.ending) pthread_cond_wait(&server.some, &server.lock);
        connection *c = server.first;
        if (!c) break;
        server.first = c->next;
        pthread_mutex_unlock(&server.lock);
        predict(w, c);
        pthread_mutex_lock(&server.lock);
        c->next = server.done;
        server.done = c;
        wake_loop();
    }
    pthread_mutex_unlock(&server.lock);
    return 0;
}

/* -- the loop: requests */

static void end_connection(connection *c) {
    if (c->fd >= 0) close(c->fd);
    drop(&c->in);
    drop(&c->out);
    c->fd = -1;
    c->state = FREE;
}

/* Takes the answer in c->out to its client. */
static void begin_writing(connection *c) {
    if (!c->out.size) { end_connection(c); return; }
    c->state = WRITING;
    c->deadline = now() + server.timeout;
}

static int is_name(const char *text, size_t size, const char *name) {
    return size == strlen(name) && !strncasecmp(text, name, size);
}

/* Whether a list of words apart by commas has a word. */
static int has_word(const char *text, size_t size, const char *word) {
    const char *end = text + size;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text)), *stop = comma ? comma : end;
        while (text < stop && (*text == ' ' || *text == '\t')) text++;
        const char *last = stop;
        while (last > text && (last[-1] == ' ' || last[-1] == '\t')) last--;
        if (is_name(text, (size_t)(last - text), word)) return 1;
        text = stop + 1;
    }
    return 0;
}

/* "POST /predict HTTP/1.1": gives the minor version, or -1 with the answer made. */
static int read_first_line(connection *c, const char *line, size_t size) {
    const char *end = line + size, *space = memchr(line, ' ', size);
    const char *path = space ? space + 1 : end, *stop = path < end ? memchr(path, ' ', (size_t)(end - path)) : 0;
    const size_t method = space ? (size_t)(space - line) : 0;
    if (!method || !stop || *path != '/' || end - stop != 9 || memcmp(stop, " HTTP/", 6) || stop[7] != '.') {
        REFUSE_AND_END(c, 400, "the first line is no request of HTTP");
        return -1;
    }
    if (stop[6] != '1' || (stop[8] != '0' && stop[8] != '1')) {
        REFUSE_AND_END(c, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
        return -1;
    }
    const char *query = memchr(path, '?', (size_t)(stop - path));
    const size_t length = (size_t)((query ? query : stop) - path);
    /* what is longer than any that there is stays empty, and is not found */
    if (method < sizeof(c->method)) memcpy(c->method, line, method);
    if (length < sizeof(c->path)) memcpy(c->path, path, length);
    return stop[8] - '0';
}

/* The head of a request, of so many bytes. Gives 0 with the answer made for what is none. */
static int read_head(connection *c, size_t head) {
    const char *at = c->in.data, *end = at + head - 2; /* without the empty line */
    const char *stop = memchr(at, '\r', (size_t)(end - at));
    int have_length = 0, waits = 0;
    memset(c->method, 0, sizeof(c->method));
    memset(c->path, 0, sizeof(c->path));
    if (memchr(c->in.data, 0, head)) return REFUSE_AND_END(c, 400, "the head holds a zero byte"), 0;
    if (stop[1] != '\n') return REFUSE_AND_END(c, 400, "a line of the head has no proper end"), 0;
    const int minor = read_first_line(c, at, (size_t)(stop - at));
    if (minor < 0) return 0;
    c->last = minor == 0;
    c->body = 0;
    for (at = stop + 2; at < end; at = stop + 2) {
        stop = memchr(at, '\r', (size_t)(end - at));
        if (!stop || stop[1] != '\n') return REFUSE_AND_END(c, 400, "a line of the head has no proper end"), 0;
        const char *colon = memchr(at, ':', (size_t)(stop - at));
        if (!colon || colon == at || memchr(at, ' ', (size_t)(colon - at)) || memchr(at, '\t', (size_t)(colon - at)))
            return REFUSE_AND_END(c, 400, "a line of the head is no 'name: value'"), 0;
        const size_t name = (size_t)(colon - at);
        const char *value = colon + 1, *last = stop;
        while (value < last && (*value == ' ' || *value == '\t')) value++;
        while (last > value && (last[-1] == ' ' || last[-1] == '\t')) last--;
        const size_t size = (size_t)(last - value);
        if (is_name(at, name, "content-length")) {
            uint64_t length = 0;
            for (size_t digit = 0; digit < size; digit++) {
                if (value[digit] < '0' || value[digit] > '9') length = UINT64_MAX;
                else if (length < UINT64_MAX / 16) length = length * 10 + (uint64_t)(value[digit] - '0');
            }
            if (!size || length == UINT64_MAX || (have_length && length != c->body))
                return REFUSE_AND_END(c, 400, "Content-Length is no number of bytes"), 0;
            have_length = 1;
            if (length > MAX_BODY)
                return REFUSE_AND_END(c, 413, "the body is too large: at most %d bytes are taken", MAX_BODY), 0;
            c->body = (size_t)length;
        } else if (is_name(at, name, "transfer-encoding")) {
            return REFUSE_AND_END(c, 411, "Transfer-Encoding is not taken: send Content-Length"), 0;
        } else if (is_name(at, name, "connection")) {
            if (has_word(value, size, "close")) c->last = 1;
            else if (has_word(value, size, "keep-alive")) c->last = 0;
        } else if (is_name(at, name, "expect")) {
            waits = is_name(value, size, "100-continue");
        }
    }
    if (!strcmp(c->method, "POST") && !have_length)
        return REFUSE_AND_END(c, 411, "Content-Length is missing: how many bytes has the body?"), 0;
    c->head = head;
    c->continued = !waits;
    return 1;
}

static const char USAGE[] =
    "POST /predict   each line of the body is a row of 2 numbers, apart by blanks or commas;\n"
    "                the answer is \"steps N\", and a line for each row: the likelihood of each class\n"
    "GET /health     ok\n";

/* A request that has arrived whole: it is answered, or given to the workers. */
static void take(connection *c) {
    const int get = !strcmp(c->method, "GET") || !strcmp(c->method, "HEAD"), post = !strcmp(c->method, "POST");
    if (stopping) c->last = 1;
    if (!strcmp(c->path, "/predict")) {
        if (post) {
            c->state = QUEUED;
            c->next = 0;
            pthread_mutex_lock(&server.lock);
            if (server.first) server.end->next = c;
            else server.first = c;
            server.end = c;
            pthread_cond_signal(&server.some);
            pthread_mutex_unlock(&server.lock);
            return;
        }
        refuse(c, 405, "/predict takes POST");
    } else if (!strcmp(c->path, "/health") || !strcmp(c->path, "/")) {
        if (!get) refuse(c, 405, "%s takes GET", c->path);
        else if (c->path[1]) answer(c, 200, "ok\n", 3);
        else answer(c, 200, USAGE, sizeof(USAGE) - 1);
    } else {
        refuse(c, 404, "there is no such path here; there are /predict, /health and /");
    }
    begin_writing(c);
}

/* Where a head ends: behind its empty line. 0 if it has not come yet. */
static size_t end_of_head(const bytes *in) {
    for (size_t at = 0; at + 4 <= in->size; at++)
        if (!memcmp(in->data + at, "\r\n\r\n", 4)) return at + 4;
    return 0;
}

/* Looks at what has arrived. */
static void advance(connection *c) {
    if (!c->head) {
        const size_t head = end_of_head(&c->in);
        if (head > MAX_HEAD || (!head && c->in.size >= MAX_HEAD)) {
            REFUSE_AND_END(c, 431, "the head is too large: at most %d bytes are taken", MAX_HEAD);
            begin_writing(c);
            return;
        }
        if (!head) return;
        if (!read_head(c, head)) { begin_writing(c); return; }
    }
    if (c->in.size >= c->head + c->body) { take(c); return; }
    if (!c->continued) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        c->continued = 1;
        if (send(c->fd, text, sizeof(text) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(text) - 1) end_connection(c);
    }
}

/* The next request of the connection, of which something may have come already. */
static void begin_reading(connection *c) {
    const size_t used = c->head + c->body;
    if (c->in.size > used) memmove(c->in.data, c->in.data + used, c->in.size - used);
    c->in.size -= used;
    c->head = c->body = 0;
    c->method[0] = c->path[0] = 0;
    c->last = 0;
    c->state = READING;
    if (!c->in.size) { drop(&c->in); drop(&c->out); }
    c->deadline = now() + (c->in.size ? server.timeout : IDLE_MS);
    if (c->in.size) advance(c);
}

static void on_readable(connection *c) {
    const size_t wanted = c->head ? c->head + c->body : MAX_HEAD;
    if (!make_room(&c->in, 4096)) { end_connection(c); return; }
    size_t room = c->in.room - c->in.size;
    if (room > wanted - c->in.size) room = wanted - c->in.size;
    const ssize_t got = recv(c->fd, c->in.data + c->in.size, room, 0);
    if (got < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) end_connection(c);
    } else if (got == 0) {
        if (!c->in.size) { end_connection(c); return; }
        if (c->head) REFUSE_AND_END(c, 400, "the request is cut off: %zu of the %zu bytes of its body have come",
                                    c->in.size - c->head, c->body);
        else REFUSE_AND_END(c, 400, "the request is cut off in its head");
        begin_writing(c);
    } else {
        if (!c->in.size) c->deadline = now() + server.timeout; /* for the whole request */
        c->in.size += (size_t)got;
        advance(c);
    }
}

static void on_writable(connection *c) {
    const ssize_t put = send(c->fd, c->out.data + c->sent, c->out.size - c->sent, MSG_NOSIGNAL);
    if (put < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) end_connection(c);
        return;
    }
    c->sent += (size_t)put;
    if (c->sent < c->out.size) return;
    if (c->last) {
        shutdown(c->fd, SHUT_WR);
        c->state = LINGERING;
        c->deadline = now() + LINGER_MS;
    } else begin_reading(c);
}

static void on_rest(connection *c) {
    char text[4096];
    const ssize_t got = recv(c->fd, text, sizeof(text), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) end_connection(c);
}

static void on_deadline(connection *c) {
    if (c->state != READING || !c->in.size) { end_connection(c); return; }
    REFUSE_AND_END(c, 408, "the request has not come whole within %d ms", server.timeout);
    begin_writing(c);
}

/* -- the loop: connections */

/* A free place; if there is none, that of a connection that waits for nothing. 0 if there is none of these either. */
static connection *free_place(void) {
    connection *idle = 0;
    for (connection *c = server.all; c < server.all + MAX_CONNECTIONS; c++) {
        if (c->state == FREE) return c;
        if ((c->state == LINGERING || (c->state == READING && !c->in.size)) && (!idle || c->deadline < idle->deadline))
            idle = c;
    }
    if (idle) end_connection(idle);
    return idle;
}

/* Takes a new connection. Gives 0 if the system has no place for it now. */
static int on_connect(void) {
    static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 31\r\nConnection: close\r\n\r\n"
                               "there are too many connections\n";
    const int fd = accept(server.listener, 0, 0), on = 1;
    if (fd < 0) return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
    connection *c = fcntl(fd, F_SETFL, O_NONBLOCK) ? 0 : free_place();
    if (!c) {
        const ssize_t sent = send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL);
        (void)sent;
        close(fd);
        return 1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *c = (connection){.fd = fd, .state = READING, .deadline = now() + IDLE_MS};
    return 1;
}

/* What workers have answered. */
static void on_wake(void) {
    char text[256];
    while (read(server.wake[0], text, sizeof(text)) > 0) continue;
    pthread_mutex_lock(&server.lock);
    connection *done = server.done;
    server.done = 0;
    pthread_mutex_unlock(&server.lock);
    while (done) {
        connection *c = done;
        done = c->next;
        begin_writing(c);
    }
}

/* No more connections and requests; those that have begun are answered. Gives whether some have. */
static int winding_up(void) {
    int busy = 0;
    if (server.listener >= 0) {
        close(server.listener);
        server.listener = -1;
    }
    for (connection *c = server.all; c < server.all + MAX_CONNECTIONS; c++) {
        if (c->state == READING && !c->in.size) end_connection(c);
        busy |= c->state != FREE;
    }
    return busy;
}

static void loop(void) {
    static struct pollfd polled[MAX_CONNECTIONS + 2];
    int64_t listen_from = 0;
    while (!stopping || winding_up()) {
        int64_t until = INT64_MAX, time = now();
        polled[0] = (struct pollfd){.fd = server.wake[0], .events = POLLIN};
        polled[1] = (struct pollfd){.fd = time < listen_from ? -1 : server.listener, .events = POLLIN};
        if (time < listen_from) until = listen_from;
        for (int at = 0; at < MAX_CONNECTIONS; at++) {
            const connection *c = server.all + at;
            const int ours = c->state != FREE && c->state != QUEUED;
            polled[at + 2] = (struct pollfd){.fd = ours ? c->fd : -1, .events = c->state == WRITING ? POLLOUT : POLLIN};
            if (ours && c->deadline < until) until = c->deadline;
        }
        int wait = -1; /* IDLE_MS and an hour of --timeout are far from INT_MAX */
        if (until != INT64_MAX) wait = until > time ? (int)(until - time) : 0;
        if (poll(polled, MAX_CONNECTIONS + 2, wait) < 0) {
            if (errno != EINTR) { fail("poll failed"); return; }
            continue;
        }
        time = now();
        for (int at = 0; at < MAX_CONNECTIONS; at++) {
            connection *c = server.all + at;
            if (polled[at + 2].revents & POLLNVAL) end_connection(c);
            else if (polled[at + 2].revents && c->state == WRITING) on_writable(c);
            else if (polled[at + 2].revents && c->state == READING) on_readable(c);
            else if (polled[at + 2].revents && c->state == LINGERING) on_rest(c);
            /* also for one that always has something to read, or to write */
            if (c->state != FREE && c->state != QUEUED && c->deadline <= time) on_deadline(c);
        }
        if (polled[0].revents) on_wake();
        if (polled[1].revents && !stopping && !on_connect()) listen_from = time + 100;
    }
}

/* -- start and end */

static void on_signal(int number) {
    const int kept = errno;
    (void)number;
    stopping = 1;
    wake_loop();
    errno = kept;
}

/* Listens at a port, 0 for any that is free. Gives the port, or -1. */
static int listen_at(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof(address);
    const int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    server.listener = fd;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) { errno = EINVAL; return -1; }
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 128)) return -1;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) || getsockname(fd, (struct sockaddr *)&address, &size)) return -1;
    return ntohs(address.sin_port);
}

static int serve(const spirals_model *model, const char *host, int port, int threads) {
    static worker workers[MAX_THREADS];
    struct sigaction action = {.sa_handler = on_signal}, ignored = {.sa_handler = SIG_IGN};
    sigset_t stop, before;
    int made = 0, started = 0, code = 1;
    for (int at = 0; at < MAX_CONNECTIONS; at++) server.all[at].fd = -1;
    sigemptyset(&action.sa_mask);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    if (pipe(server.wake) || fcntl(server.wake[0], F_SETFL, O_NONBLOCK) || fcntl(server.wake[1], F_SETFL, O_NONBLOCK)) {
        fail("there is no pipe");
        goto end;
    }
    sigaction(SIGPIPE, &ignored, 0);
    sigaction(SIGTERM, &action, 0);
    sigaction(SIGINT, &action, 0);
    if ((port = listen_at(host, port)) < 0) {
        fprintf(stderr, "server: cannot listen at %s: %s\n", host, strerror(errno));
        goto end;
    }
    for (; made < threads; made++) {
        workers[made].context = spirals_context_new(model, MODEL_LIMIT);
        workers[made].numbers = malloc(sizeof(float) * COLUMNS * MAX_ROWS);
        if (!workers[made].context || !workers[made].numbers) { made++; fail("there is no memory"); goto end; }
    }
    pthread_sigmask(SIG_BLOCK, &stop, &before); /* signals are for the loop's thread */
    while (started < threads && !pthread_create(&workers[started].thread, 0, work, workers + started)) started++;
    pthread_sigmask(SIG_SETMASK, &before, 0);
    if (started < threads) { fail("a thread cannot be started"); goto end; }
    printf("listening at http://%s:%d with %d threads\n", host, port, threads);
    fflush(stdout);
    loop();
    code = !stopping;
    if (!code) printf("stopped\n");
end:
    pthread_mutex_lock(&server.lock);
    server.ending = 1;
    pthread_cond_broadcast(&server.some);
    pthread_mutex_unlock(&server.lock);
    for (int at = 0; at < started; at++) pthread_join(workers[at].thread, 0);
    for (int at = 0; at < made; at++) {
        spirals_context_free(workers[at].context);
        free(workers[at].numbers);
        drop(&workers[at].text);
    }
    for (int at = 0; at < MAX_CONNECTIONS; at++) if (server.all[at].state != FREE) end_connection(server.all + at);
    if (server.listener >= 0) close(server.listener);
    for (int at = 0; at < 2; at++) if (server.wake[at] >= 0) close(server.wake[at]);
    return code;
}

/* What a worker needs: the memory that the model's calls take, for points all over the plane. */
static int print_sizes(const spirals_model *model) {
    static float numbers[MAX_ROWS * COLUMNS];
    static const int counts[] = {1, 100, MAX_ROWS};
    for (int at = 0; at < MAX_ROWS * COLUMNS; at++) numbers[at] = (float)(at * 37 % 2001 - 1000) / 1000;
    for (int at = 0; at < 3; at++) {
        spirals_outputs out = {0};
        spirals_context *context = spirals_context_new(model, MODEL_LIMIT);
        if (!context || run(context, numbers, counts[at], &out)) {
            fail(spirals_error(context));
            spirals_context_free(context);
            return 1;
        }
        printf("working memory     %8.1f KiB  for each thread, in requests of %d row%s\n",
               (double)spirals_memory(context) / 1024, counts[at], counts[at] == 1 ? "" : "s");
        spirals_context_free(context);
    }
    return 0;
}

/* A whole number from the least to the most; -1 for what is none. */
static int number_of(const char *text, int least, int most) {
    char *end;
    errno = 0;
    const long found = text ? strtol(text, &end, 10) : -1;
    return text && *text && !*end && !errno && found >= least && found <= most ? (int)found : -1;
}

int main(int count, char **texts) {
    static const char usage[] = "usage: server WEIGHTS [--host IPV4] [--port 8080] [--threads 4] [--timeout SECONDS]\n"
                                "       server WEIGHTS --sizes";
    const char *host = "127.0.0.1";
    int port = 8080, threads = 4, timeout = 10, sizes = 0;
    char text[256];
    spirals_model *model;
    if (count < 2 || texts[1][0] == '-') { fail(usage); return 2; }
    for (int at = 2; at < count; at++) {
        const char *value = at + 1 < count ? texts[at + 1] : 0;
        if (!strcmp(texts[at], "--sizes")) { sizes = 1; continue; }
        if (!strcmp(texts[at], "--host") && value) host = value;
        else if (!strcmp(texts[at], "--port")) port = number_of(value, 0, 65535);
        else if (!strcmp(texts[at], "--threads")) threads = number_of(value, 1, MAX_THREADS);
        else if (!strcmp(texts[at], "--timeout")) timeout = number_of(value, 1, 3600);
        else port = -1;
        at++;
        if (port < 0 || threads < 0 || timeout < 0) { fail(usage); return 2; }
    }
    if (spirals_load(texts[1], &model, text, sizeof(text))) return fail(text);
    server.timeout = timeout * 1000;
    const int code = sizes ? print_sizes(model) : serve(model, host, port, threads);
    spirals_free(model);
    return code;
}
