/*
 * Values are received where they are wanted, and nowhere else once nobody waits for them. Argument: the URI of a server that sends one half of a
 * frame when it is asked for "pieces" or "answer", and the other half before whatever it is asked for next.
 */
#include <unistd.h>

#include "check.h"

enum { LEN = 60000, SENT = 30000, LONG = 300000 };

static gestalt_client client;

static unsigned char pattern(size_t at) { return (unsigned char)(at % 251 + 1); }

static int is_value(const unsigned char *buffer, size_t len) {
    size_t at;
    for (at = 0; at < len; at++)
        if (buffer[at] != pattern(at)) return 0;
    return 1;
}

/* The first half of a frame is in the buffer before there is another one. */
static gestalt_request ask_for_half(const char *key, unsigned char *buffer) {
    volatile unsigned char *last = buffer + SENT - 1;
    gestalt_request request;
    int is_over, tries = 0;
    memset(buffer, 0, LEN);
    CHECK(gestalt_iget(client, key, strlen(key), buffer, LEN, NULL, &request), GESTALT_OK);
    while (*last == 0 && ++tries < 10000) usleep(1000);
    CHECK(*last, pattern(SENT - 1));
    CHECK(gestalt_test(request, &is_over), GESTALT_OK);
    CHECK(is_over, 0);
    CHECK_TRUE(is_value(buffer, SENT));
    return request;
}

/* What comes behind the other half. */
static void ask_for_more(void) {
    static unsigned char more[LONG];
    gestalt_outcome outcome;
    memset(more, 0, LONG);
    CHECK(gestalt_bget(client, "more", 4, more, LONG, NULL, &outcome), GESTALT_OK);
    CHECK(outcome.len, LONG);
    CHECK_TRUE(is_value(more, LONG));
}

static void give_up(const char *key, int is_cancelled) {
    unsigned char *buffer = malloc(LEN);
    gestalt_request request = ask_for_half(key, buffer);
    gestalt_outcome outcome;
    size_t at;
    if (is_cancelled) {
        CHECK(gestalt_cancel(request), GESTALT_OK);
        CHECK(gestalt_result(request, &outcome), GESTALT_CANCELLED);
    } else
        CHECK(gestalt_release(request), GESTALT_OK);
    memset(buffer, 0xaa, LEN);
    ask_for_more();
    for (at = 0; at < LEN; at++) CHECK(buffer[at], 0xaa);
    if (is_cancelled) CHECK(gestalt_release(request), GESTALT_OK);
    free(buffer);
    /* AddressSanitizer would see that it is written to. */
    buffer = malloc(LEN);
    CHECK(gestalt_release(ask_for_half(key, buffer)), GESTALT_OK);
    free(buffer);
    ask_for_more();
}

static void lengths(void) {
    gestalt_request request;
    gestalt_outcome outcome;
    unsigned char *buffer = calloc(LONG + 1, 1);
    CHECK(gestalt_bget(client, "more", 4, buffer, LONG - 1, NULL, &outcome), GESTALT_SHORT_BUFFER);
    CHECK(outcome.needed, LONG);
    CHECK(buffer[0], 0);
    CHECK(gestalt_bget(client, "more", 4, buffer, LONG + 1, NULL, &outcome), GESTALT_OK);
    CHECK_TRUE(outcome.len == LONG && is_value(buffer, LONG) && buffer[LONG] == 0);
    /* The library's own. */
    CHECK(gestalt_iget(client, "more", 4, NULL, 0, NULL, &request), GESTALT_OK);
    CHECK(gestalt_wait(request, -1), GESTALT_OK);
    CHECK(gestalt_result(request, &outcome), GESTALT_OK);
    CHECK_TRUE(outcome.len == LONG && is_value(outcome.data, LONG));
    CHECK(gestalt_release(request), GESTALT_OK);
    free(buffer);
}

/* Many at a time, some of which are released at any moment. */
static void many(void) {
    enum { COUNT = 40 };
    unsigned char *buffers[COUNT];
    gestalt_request requests[COUNT];
    int i, turn;
    for (turn = 0; turn < 20; turn++) {
        for (i = 0; i < COUNT; i++) {
            buffers[i] = malloc(LONG);
            CHECK(gestalt_iget(client, "more", 4, buffers[i], LONG, NULL, &requests[i]), GESTALT_OK);
        }
        usleep((unsigned)turn * 200);
        for (i = 0; i < COUNT; i += 2) {
            CHECK(gestalt_release(requests[i]), GESTALT_OK);
            free(buffers[i]);
        }
        for (i = 1; i < COUNT; i += 2) {
            CHECK(gestalt_finish(requests[i], NULL), GESTALT_OK);
            CHECK_TRUE(is_value(buffers[i], LONG));
            free(buffers[i]);
        }
    }
}

int main(int argc, char **argv) {
    CHECK(argc, 2);
    CHECK(gestalt_connect(argv[1], NULL, &client), GESTALT_OK);
    lengths();
    give_up("pieces", 0);
    give_up("pieces", 1);
    give_up("answer", 0);
    give_up("answer", 1);
    many();
    CHECK(gestalt_close(client), GESTALT_OK);
    return 0;
}
