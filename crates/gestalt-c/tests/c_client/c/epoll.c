/* A completion queue inside somebody else's epoll loop, beside a timer and a pipe. Argument: the URI of a cluster. */
#include <sys/epoll.h>
#include <unistd.h>

#include "check.h"

enum { KEYS = 500, IN_FLIGHT = 32 };

static gestalt_client client;
static gestalt_queue queue;
static char keys[KEYS][8], buffers[KEYS][8];
static int asked, ended;

static void ask(void) {
    gestalt_call call = {0};
    gestalt_request request;
    call.size = sizeof call;
    call.queue = queue;
    call.tag = (uint64_t)asked;
    sprintf(keys[asked], "e%d", asked);
    CHECK(gestalt_iset(client, keys[asked], strlen(keys[asked]), keys[asked], strlen(keys[asked]), &call, &request),
          GESTALT_OK);
    asked++;
}

/* A set is followed by a get of the same key; a get by the set of the next one. */
static void follow(const gestalt_event *event) {
    gestalt_call call = {0};
    gestalt_request request;
    gestalt_outcome outcome;
    uint64_t key = event->tag % KEYS;
    CHECK(event->code, GESTALT_OK);
    CHECK(gestalt_finish(event->request, &outcome), GESTALT_OK);
    if (event->tag < KEYS) {
        call.size = sizeof call;
        call.queue = queue;
        call.tag = KEYS + key;
        CHECK(gestalt_iget(client, keys[key], strlen(keys[key]), buffers[key], 8, &call, &request), GESTALT_OK);
        return;
    }
    CHECK_TRUE(outcome.len == strlen(keys[key]) && memcmp(buffers[key], keys[key], outcome.len) == 0);
    ended++;
    if (asked < KEYS) ask();
}

int main(int argc, char **argv) {
    struct epoll_event event = {0};
    int loop = epoll_create1(EPOLL_CLOEXEC), ends[2], others = 0, i;
    CHECK(argc, 2);
    CHECK(pipe(ends), 0);
    CHECK(gestalt_connect(argv[1], NULL, &client), GESTALT_OK);
    CHECK(gestalt_queue_open(&queue), GESTALT_OK);
    event.events = EPOLLIN;
    event.data.fd = gestalt_queue_fd(queue);
    CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event), 0);
    event.data.fd = ends[0];
    CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, ends[0], &event), 0);
    for (i = 0; i < IN_FLIGHT; i++) ask();
    CHECK(write(ends[1], "x", 1), 1);
    while (ended < KEYS) {
        gestalt_event over[64];
        size_t count, at;
        char byte;
        CHECK(epoll_wait(loop, &event, 1, 60000), 1);
        if (event.data.fd == ends[0]) {
            CHECK(read(ends[0], &byte, 1), 1);
            others++;
            continue;
        }
        CHECK(gestalt_queue_poll(queue, over, 64, 0, &count), GESTALT_OK);
        for (at = 0; at < count; at++) follow(&over[at]);
    }
    CHECK(others, 1);
    /* The queue is empty, and so its descriptor is quiet. */
    CHECK(epoll_wait(loop, &event, 1, 0), 0);
    CHECK(gestalt_queue_close(queue), GESTALT_OK);
    CHECK(gestalt_close(client), GESTALT_OK);
    close(loop);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
