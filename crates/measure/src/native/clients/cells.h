/* What a client's process takes for an operation. A program defines how operations are asked for; this asks for them, cell by cell, and prints for
 * each: set or get, bytes of a value, operations asked for at once, operations, nanoseconds, and nanoseconds of CPU of all threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLIGHT 32
#define KEY_LEN 16
#define MAX_VALUE 100000

/* Operations that are asked for together: their keys, their values, or where those go. */
struct batch {
    size_t count, value_len;
    char keys[FLIGHT][KEY_LEN];
    char *values[FLIGHT];
};

/* Returns 0 if all of them were done, and what was read is as it was written. */
static int set_all(struct batch *batch);
static int get_all(struct batch *batch);

static int is_right(const struct batch *batch, const char *value, size_t len) {
    return len == batch->value_len && value[len - 1] == 'v';
}

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static void name_keys(struct batch *batch, size_t from, size_t keys) {
    for (size_t at = 0; at < batch->count; at++)
        snprintf(batch->keys[at], KEY_LEN, "%06zu-%08zu", batch->value_len, (from + at) % keys);
}

static void ask(struct batch *batch, int is_get) {
    if (is_get ? get_all(batch) : set_all(batch)) fail(is_get ? "get" : "set");
}

static void measure(struct batch *batch, int is_get, size_t keys, double nanoseconds) {
    size_t done = 0;
    double cpu = now(CLOCK_PROCESS_CPUTIME_ID), begun = now(CLOCK_MONOTONIC), wall;
    do {
        name_keys(batch, done, keys);
        ask(batch, is_get);
        done += batch->count;
        wall = now(CLOCK_MONOTONIC) - begun;
    } while (wall < nanoseconds);
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%s %zu %zu %zu %.0f %.0f\n", is_get ? "get" : "set", batch->value_len, batch->count, done, wall, cpu);
}

/* Values of this length, of so many keys. */
static void measure_length(size_t value_len, size_t keys, double nanoseconds) {
    struct batch batch = {1, value_len, {{0}}, {0}};
    for (size_t at = 0; at < FLIGHT; at++) batch.values[at] = memset(malloc(MAX_VALUE), 'v', MAX_VALUE);
    for (size_t from = 0; from < keys; from++) {
        name_keys(&batch, from, keys);
        ask(&batch, 0);
    }
    for (int is_get = 0; is_get < 2; is_get++) {
        batch.count = 1;
        measure(&batch, is_get, keys, nanoseconds);
        batch.count = FLIGHT;
        measure(&batch, is_get, keys, nanoseconds);
    }
    for (size_t at = 0; at < FLIGHT; at++) free(batch.values[at]);
}

static void measure_all(const char *milliseconds) {
    double nanoseconds = 1e6 * atof(milliseconds);
    measure_length(1024, 3200, nanoseconds);
    measure_length(100000, 320, nanoseconds);
}
