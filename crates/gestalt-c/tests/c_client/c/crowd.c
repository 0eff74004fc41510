/*
 * Threads that know nothing of each other post, look at, cancel, wait for and release the same requests. Argument: the URI of a cluster. No call
 * may come to anything but what the header allows, nobody waits for ever, and buffers are free after releases.
 */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 6, SLOTS = 64, TURNS = 4000, LEN = 20000 };

static gestalt_client client;
static gestalt_queue queue;
static gestalt_request slots[SLOTS];
static long done;
static pthread_barrier_t all_released;

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Whoever takes a request out of its slot releases it. */
static gestalt_request take(unsigned slot) {
    return __atomic_exchange_n(&slots[slot], 0, __ATOMIC_ACQ_REL);
}

static void post(unsigned slot, unsigned turn, char *value, char *buffer) {
    gestalt_call call = {0};
    gestalt_request request, before;
    call.size = sizeof call;
    call.queue = turn % 3 ? queue : 0;
    call.timeout_ms = 20000;
    if (turn % 2)
        CHECK(gestalt_iset(client, "crowd", 5, value, LEN, &call, &request), GESTALT_OK);
    else
        CHECK(gestalt_iget(client, "crowd", 5, buffer, LEN, &call, &request), GESTALT_OK);
    before = __atomic_exchange_n(&slots[slot], request, __ATOMIC_ACQ_REL);
    if (before) CHECK(gestalt_release(before), GESTALT_OK);
}

static void look(gestalt_request request, unsigned turn) {
    gestalt_outcome outcome;
    gestalt_event event;
    size_t count;
    int is_over, code;
    switch (turn % 5) {
    case 0:
        code = gestalt_test(request, &is_over);
        CHECK_TRUE(code == GESTALT_OK || code == GESTALT_HANDLE || code == GESTALT_RELEASED);
        break;
    case 1:
        code = gestalt_wait(request, 30000);
        CHECK_TRUE(code == GESTALT_OK || code == GESTALT_HANDLE || code == GESTALT_RELEASED);
        break;
    case 2:
        code = gestalt_result(request, &outcome);
        CHECK_TRUE(code == GESTALT_OK || code == GESTALT_PENDING || code == GESTALT_HANDLE || code == GESTALT_RELEASED ||
                   code == GESTALT_CANCELLED || code == GESTALT_MISS);
        break;
    case 3:
        code = gestalt_cancel(request);
        CHECK_TRUE(code == GESTALT_OK || code == GESTALT_HANDLE);
        break;
    default:
        code = gestalt_queue_poll(queue, &event, 1, 1, &count);
        CHECK_TRUE(code == GESTALT_OK || code == GESTALT_PENDING);
    }
}

static void *work(void *seed) {
    unsigned state = (unsigned)(size_t)seed, turn;
    char *value = calloc(LEN, 1), *buffer = malloc(LEN);
    for (turn = 0; turn < TURNS; turn++) {
        unsigned slot = next(&state) % SLOTS, what = next(&state) % 4;
        gestalt_request request = __atomic_load_n(&slots[slot], __ATOMIC_ACQUIRE);
        if (what == 0) post(slot, next(&state), value, buffer);
        if (what == 1 && (request = take(slot))) CHECK(gestalt_release(request), GESTALT_OK);
        if (what > 1 && request) look(request, next(&state));
    }
    /* What was posted from here may be released by others, who may be about to: so buffers stay until all have ended. */
    __atomic_add_fetch(&done, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < THREADS) usleep(1000);
    for (turn = 0; turn < SLOTS; turn++) {
        gestalt_request request = take(turn);
        if (request) CHECK(gestalt_release(request), GESTALT_OK);
    }
    pthread_barrier_wait(&all_released);
    free(value);
    free(buffer);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    gestalt_event event;
    gestalt_request request;
    size_t count, i;
    CHECK(argc, 2);
    CHECK(gestalt_connect(argv[1], NULL, &client), GESTALT_OK);
    CHECK(gestalt_queue_open(&queue), GESTALT_OK);
    CHECK(pthread_barrier_init(&all_released, NULL, THREADS), 0);
    for (i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL), 0);
    /* Nothing is left, and it works. */
    CHECK(gestalt_queue_poll(queue, &event, 1, 0, &count), GESTALT_PENDING);
    CHECK(gestalt_iset(client, "crowd", 5, "x", 1, NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_OK);
    CHECK(gestalt_queue_close(queue), GESTALT_OK);
    CHECK(gestalt_close(client), GESTALT_OK);
    return 0;
}
