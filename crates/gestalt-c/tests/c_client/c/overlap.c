/*
 * How much of a transfer's time its caller can compute in, as OHB has it: pure is the time of a transfer that is waited for, computed the time of
 * as much computing, both the time of a transfer with that computing beside it; overlap = 1 - (both - computed) / pure. Arguments: the URI of a
 * cluster, bytes of a value, rounds. Says for writes and for reads: overlap in per cent, pure, computed and both in microseconds, medians.
 */
#include <time.h>

#include "check.h"

static gestalt_client client;
static size_t len;
static char *value;
static volatile unsigned long sink;

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void compute(unsigned long turns) {
    unsigned long sum = 1, i;
    for (i = 0; i < turns; i++) sum = sum * 6364136223846793005ul + i;
    sink = sum;
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *times, int count) {
    qsort(times, (size_t)count, sizeof *times, by_size);
    return times[count / 2];
}

/* How long a turn takes when nobody takes the processor away: the best of many. */
static double turn_us(void) {
    double best = 1e9, begun, took;
    int i;
    for (i = 0; i < 200; i++) {
        begun = now_us();
        compute(20000);
        took = now_us() - begun;
        if (took < best) best = took;
    }
    return best / 20000;
}

/* One transfer, with so much computing beside it. */
static double transfer(int reads, unsigned long turns) {
    gestalt_request request;
    double begun = now_us();
    if (reads)
        CHECK(gestalt_iget(client, "overlap", 7, value, len, NULL, &request), GESTALT_OK);
    else
        CHECK(gestalt_iset(client, "overlap", 7, value, len, NULL, &request), GESTALT_OK);
    if (turns) compute(turns);
    CHECK(gestalt_finish(request, NULL), GESTALT_OK);
    return now_us() - begun;
}

static void measure(int reads, int rounds, double *times) {
    double pure, computed, both, begun;
    unsigned long turns;
    int i;
    for (i = 0; i < rounds; i++) times[i] = transfer(reads, 0);
    pure = median(times, rounds);
    turns = (unsigned long)(pure / turn_us());
    for (i = 0; i < rounds; i++) {
        begun = now_us();
        compute(turns);
        times[i] = now_us() - begun;
    }
    computed = median(times, rounds);
    for (i = 0; i < rounds; i++) times[i] = transfer(reads, turns);
    both = median(times, rounds);
    printf("%s %zu bytes: overlap %.0f %%, pure %.0f us, computed %.0f us, both %.0f us\n", reads ? "get" : "set", len,
           100 * (1 - (both - computed) / pure), pure, computed, both);
}

int main(int argc, char **argv) {
    int rounds, reads;
    double *times;
    CHECK(argc, 4);
    len = strtoull(argv[2], NULL, 10);
    rounds = atoi(argv[3]);
    value = calloc(len, 1);
    times = calloc((size_t)rounds, sizeof *times);
    CHECK(gestalt_connect(argv[1], NULL, &client), GESTALT_OK);
    for (reads = 0; reads < 2; reads++) measure(reads, rounds, times);
    CHECK(gestalt_close(client), GESTALT_OK);
    free(times);
    free(value);
    return 0;
}
