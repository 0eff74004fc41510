/*
 * 10,000 requests in flight while nodes are lost. Argument: the URI of a cluster. Says "running" once all keys are stored, goes on until its
 * standard input ends, and checks of each request that it ends within its deadline, and of each value that it is the key's.
 */
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { KEYS = 2000, IN_FLIGHT = 10000, DEADLINE_MS = 2000, SLACK_MS = 3000 };

static gestalt_client client;
static gestalt_queue queue;

typedef struct slot {
    char key[16], value[64], buffer[64];
    long long since;
    int is_get;
} slot;

static slot slots[IN_FLIGHT];
static long counts[64];

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void ask(slot *slot, unsigned turn) {
    gestalt_call call = {0};
    gestalt_request request;
    unsigned key = turn % KEYS;
    call.size = sizeof call;
    call.queue = queue;
    call.tag = (uint64_t)(slot - slots);
    call.timeout_ms = DEADLINE_MS;
    sprintf(slot->key, "f%u", key);
    slot->is_get = turn >= KEYS && turn % 3 != 0;
    slot->since = now_ms();
    if (slot->is_get) {
        CHECK(gestalt_iget(client, slot->key, strlen(slot->key), slot->buffer, sizeof slot->buffer, &call, &request),
              GESTALT_OK);
        return;
    }
    sprintf(slot->value, "%u:%u", key, turn);
    CHECK(gestalt_iset(client, slot->key, strlen(slot->key), slot->value, strlen(slot->value), &call, &request),
          GESTALT_OK);
}

static void judge(const gestalt_event *event) {
    slot *slot = &slots[event->tag];
    gestalt_outcome outcome;
    long long took = now_ms() - slot->since;
    CHECK(gestalt_finish(event->request, &outcome), event->code);
    CHECK_TRUE(took <= DEADLINE_MS + SLACK_MS);
    counts[32 + event->code]++;
    if (slot->is_get) {
        size_t len = strlen(slot->key) - 1;
        CHECK_TRUE(event->code != GESTALT_MISS);
        if (event->code == GESTALT_OK)
            CHECK_TRUE(memcmp(slot->buffer, slot->key + 1, len) == 0 && slot->buffer[len] == ':');
    }
}

static int input_has_ended(void) {
    struct pollfd input = {0, POLLIN, 0};
    return poll(&input, 1, 0) != 0;
}

static void drain(int until, unsigned *turn) {
    int in_flight = until ? IN_FLIGHT : 0;
    while (until ? !input_has_ended() : in_flight < IN_FLIGHT) {
        gestalt_event events[256];
        size_t count, i;
        CHECK(gestalt_queue_poll(queue, events, 256, DEADLINE_MS + SLACK_MS, &count), GESTALT_OK);
        for (i = 0; i < count; i++) {
            judge(&events[i]);
            if (until) ask(&slots[events[i].tag], (*turn)++);
        }
        if (!until) in_flight += (int)count;
    }
}

static int works(void) {
    gestalt_event event;
    size_t count;
    ask(&slots[0], 0);
    CHECK(gestalt_queue_poll(queue, &event, 1, -1, &count), GESTALT_OK);
    CHECK(gestalt_finish(event.request, NULL), event.code);
    return event.code == GESTALT_OK;
}

int main(int argc, char **argv) {
    unsigned turn = 0, i;
    CHECK(argc, 2);
    CHECK(gestalt_connect(argv[1], NULL, &client), GESTALT_OK);
    CHECK(gestalt_queue_open(&queue), GESTALT_OK);
    for (; turn < KEYS; turn++) {
        gestalt_event event;
        size_t count;
        ask(&slots[0], turn);
        CHECK(gestalt_queue_poll(queue, &event, 1, -1, &count), GESTALT_OK);
        CHECK(event.code, GESTALT_OK);
        CHECK(gestalt_finish(event.request, NULL), GESTALT_OK);
    }
    for (i = 0; i < IN_FLIGHT; i++) ask(&slots[i], turn++);
    printf("running\n");
    fflush(stdout);
    drain(1, &turn);
    drain(0, &turn);
    /* After all that it works as before, or will in a moment. */
    for (i = 0; !works(); i++) {
        CHECK_TRUE(i < 40);
        usleep(250000);
    }
    CHECK(gestalt_queue_close(queue), GESTALT_OK);
    CHECK(gestalt_close(client), GESTALT_OK);
    for (i = 0; i < 64; i++)
        if (counts[i]) printf("%s %ld\n", gestalt_code_name((int)i - 32), counts[i]);
    return 0;
}
