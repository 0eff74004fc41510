/* Each function, right and wrong. Arguments: the URI of a cluster, and that of a port where nobody answers. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static gestalt_client client;

static gestalt_call nothing(void) {
    gestalt_call call;
    memset(&call, 0, sizeof call);
    call.size = sizeof call;
    return call;
}

static void set(const char *key, const char *value) {
    gestalt_request request;
    gestalt_outcome outcome;
    CHECK(gestalt_iset(client, key, strlen(key), value, strlen(value), NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, &outcome), GESTALT_OK);
    CHECK_TRUE(outcome.version > 0);
}

static void values(void) {
    gestalt_request request;
    gestalt_outcome outcome;
    gestalt_call call = nothing();
    char buffer[16];
    call.flags = 9;
    call.ttl = 600;
    call.tag = 77;
    CHECK(gestalt_istore(client, GESTALT_SET, "k", 1, "hello", 5, &call, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, &outcome), GESTALT_OK);
    CHECK(outcome.tag, 77);
    CHECK(gestalt_iget(client, "k", 1, NULL, 0, NULL, &request), GESTALT_OK);
    CHECK(gestalt_wait(request, -1), GESTALT_OK);
    CHECK(gestalt_result(request, &outcome), GESTALT_OK);
    CHECK(outcome.len, 5);
    CHECK(outcome.flags, 9);
    CHECK_TRUE(outcome.ttl > 500 && outcome.ttl <= 600);
    CHECK_TRUE(memcmp(outcome.data, "hello", 5) == 0);
    CHECK(gestalt_release(request), GESTALT_OK);
    /* A buffer that is too short stays as it is, and it is said how long it has to be. */
    memset(buffer, '-', sizeof buffer);
    CHECK(gestalt_bget(client, "k", 1, buffer, 4, NULL, &outcome), GESTALT_SHORT_BUFFER);
    CHECK(outcome.needed, 5);
    CHECK(buffer[0], '-');
    CHECK(gestalt_bget(client, "k", 1, buffer, 5, NULL, &outcome), GESTALT_OK);
    CHECK_TRUE(outcome.data == buffer && outcome.len == 5 && memcmp(buffer, "hello-", 6) == 0);
    call = nothing();
    call.set = GESTALT_WITH_RANGE | GESTALT_WITH_TTL;
    call.offset = 1;
    call.length = 3;
    CHECK(gestalt_bget(client, "k", 1, buffer, 3, &call, &outcome), GESTALT_OK);
    CHECK_TRUE(outcome.len == 3 && outcome.value_len == 5 && memcmp(buffer, "ell", 3) == 0);
    CHECK(gestalt_bget(client, "none", 4, buffer, 3, NULL, NULL), GESTALT_MISS);
    /* A version. */
    call = nothing();
    call.set = GESTALT_WITH_VERSION;
    call.version = outcome.version + 1;
    CHECK(gestalt_iset(client, "k", 1, "x", 1, &call, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_EXISTS);
    call.version = outcome.version;
    CHECK(gestalt_bset(client, GESTALT_REPLACE, "k", 1, "y", 1, &call, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_OK);
    CHECK(gestalt_idelete(client, "k", 1, &call, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_EXISTS);
}

static void the_rest(void) {
    gestalt_request request;
    gestalt_outcome outcome;
    gestalt_call call = nothing();
    gestalt_place place;
    gestalt_span span;
    size_t count;
    call.set = GESTALT_WITH_INITIAL;
    call.initial = 40;
    CHECK(gestalt_iincr(client, "n", 1, 5, &call, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, &outcome), GESTALT_OK);
    CHECK(outcome.number, 40);
    CHECK(gestalt_iincr(client, "n", 1, 5, NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, &outcome), GESTALT_OK);
    CHECK(outcome.number, 45);
    CHECK(gestalt_idecr(client, "n", 1, 50, NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, &outcome), GESTALT_OK);
    CHECK(outcome.number, 0);
    CHECK(gestalt_itouch(client, "n", 1, 300, NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_OK);
    CHECK(gestalt_istat(client, "n", 1, NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, &outcome), GESTALT_OK);
    /* As in memcached a number that shrinks keeps its length. */
    CHECK_TRUE(outcome.value_len == 2 && outcome.ttl <= 300 && outcome.chunk_len == 0);
    CHECK(gestalt_ilocate(client, "n", 1, NULL, &request), GESTALT_OK);
    CHECK(gestalt_wait(request, 60000), GESTALT_OK);
    CHECK(gestalt_places(request, &place, NULL, 0, &count), GESTALT_SHORT_BUFFER);
    CHECK(count, 1);
    CHECK(gestalt_places(request, &place, &span, 1, &count), GESTALT_OK);
    CHECK_TRUE(span.len == 2 && span.node_count == 1 && span.nodes[0] == place.primary);
    CHECK(gestalt_release(request), GESTALT_OK);
    call.size = sizeof call;
    call.set = GESTALT_WITH_OFFSET;
    for (call.offset = 1; call.offset <= 2; call.offset++) {
        CHECK(gestalt_ilocate(client, "n", 1, &call, &request), GESTALT_OK);
        CHECK(gestalt_wait(request, 60000), GESTALT_OK);
        CHECK(gestalt_result(request, &outcome), GESTALT_OK);
        CHECK(outcome.value_len, 2);
        CHECK(gestalt_places(request, &place, &span, 1, &count), GESTALT_OK);
        CHECK(count, 2 - call.offset);
        CHECK(gestalt_release(request), GESTALT_OK);
    }
    CHECK(gestalt_istat(client, "n", 1, &call, &request), GESTALT_ARGUMENT);
    CHECK(gestalt_idelete(client, "n", 1, NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_OK);
    CHECK(gestalt_idelete(client, "n", 1, NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_MISS);
}

static void many(void) {
    enum { COUNT = 300 };
    gestalt_part parts[COUNT];
    gestalt_request requests[COUNT];
    gestalt_outcome outcome;
    char keys[COUNT][8], buffers[COUNT][8];
    size_t index;
    int i;
    for (i = 0; i < COUNT; i++) {
        sprintf(keys[i], "m%d", i);
        CHECK(gestalt_iset(client, keys[i], strlen(keys[i]), keys[i], strlen(keys[i]), NULL, &requests[i]), GESTALT_OK);
    }
    CHECK(gestalt_wait_all(requests, COUNT, -1), GESTALT_OK);
    CHECK(gestalt_wait_any(requests, COUNT, 0, &index), GESTALT_OK);
    for (i = 0; i < COUNT; i++) {
        CHECK(gestalt_finish(requests[i], NULL), GESTALT_OK);
        parts[i].key = keys[i];
        parts[i].key_len = strlen(keys[i]);
        parts[i].buffer = buffers[i];
        parts[i].buffer_len = sizeof buffers[i];
    }
    CHECK(gestalt_imget(client, parts, COUNT, NULL, requests), GESTALT_OK);
    CHECK(gestalt_wait_any(requests, COUNT, 60000, &index), GESTALT_OK);
    CHECK(gestalt_result(requests[index], &outcome), GESTALT_OK);
    for (i = 0; i < COUNT; i++) {
        CHECK(gestalt_finish(requests[i], &outcome), GESTALT_OK);
        CHECK_TRUE(outcome.len == strlen(keys[i]) && memcmp(buffers[i], keys[i], outcome.len) == 0);
    }
    /* All or none. */
    parts[COUNT - 1].key_len = 0;
    CHECK(gestalt_imget(client, parts, COUNT, NULL, requests), GESTALT_BAD_KEY);
    CHECK(requests[0], 0);
}

/* Long values are sent from where they are, and arrive where they are wanted. */
static void long_values(void) {
    size_t len = 700000, i;
    gestalt_request request;
    gestalt_outcome outcome;
    char *value = malloc(len), *back = malloc(len);
    for (i = 0; i < len; i++) value[i] = (char)(i * 7 + i / 251);
    CHECK(gestalt_iset(client, "long", 4, value, len, NULL, &request), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_OK);
    CHECK(gestalt_bget(client, "long", 4, back, len, NULL, &outcome), GESTALT_OK);
    CHECK_TRUE(outcome.len == len && memcmp(value, back, len) == 0);
    CHECK(gestalt_bget(client, "long", 4, back, len - 1, NULL, &outcome), GESTALT_SHORT_BUFFER);
    CHECK(outcome.needed, len);
    CHECK(gestalt_iget(client, "long", 4, NULL, 0, NULL, &request), GESTALT_OK);
    CHECK(gestalt_wait(request, -1), GESTALT_OK);
    CHECK(gestalt_result(request, &outcome), GESTALT_OK);
    CHECK_TRUE(outcome.len == len && memcmp(value, outcome.data, len) == 0);
    CHECK(gestalt_release(request), GESTALT_OK);
    /* After a release the memory is ours, at whatever moment it comes: AddressSanitizer would see a later use. */
    for (i = 0; i < 60; i++) {
        char *mine = malloc(len), *yours = malloc(len);
        gestalt_request write, read;
        memcpy(mine, value, len);
        CHECK(gestalt_iset(client, "mine", 4, mine, len, NULL, &write), GESTALT_OK);
        CHECK(gestalt_iget(client, "long", 4, yours, len, NULL, &read), GESTALT_OK);
        usleep((unsigned)(i * 40));
        CHECK(gestalt_release(write), GESTALT_OK);
        CHECK(gestalt_release(read), GESTALT_OK);
        memset(mine, 0, len);
        memset(yours, 0, len);
        free(mine);
        free(yours);
    }
    /* The same with the ends of requests that are cancelled; the connection is as good as before. */
    CHECK(gestalt_iset(client, "mine", 4, value, len, NULL, &request), GESTALT_OK);
    CHECK(gestalt_cancel(request), GESTALT_OK);
    CHECK_TRUE(gestalt_result(request, &outcome) == GESTALT_CANCELLED || outcome.code == GESTALT_OK);
    CHECK(gestalt_release(request), GESTALT_OK);
    CHECK(gestalt_bget(client, "long", 4, back, len, NULL, NULL), GESTALT_OK);
    CHECK_TRUE(memcmp(value, back, len) == 0);
    free(value);
    free(back);
}

/* The library was built for tests, and looks. A request that had ended before the change has nothing to say of it. */
static void changed_buffers(void) {
    static char value[200000];
    gestalt_request request;
    int ended, tries = 0;
    do {
        CHECK(gestalt_iset(client, "sealed", 6, value, sizeof value, NULL, &request), GESTALT_OK);
        value[150000]++;
        ended = gestalt_finish(request, NULL);
    } while (ended == GESTALT_OK && ++tries < 100);
    CHECK(ended, GESTALT_BUFFER_CHANGED);
    CHECK(gestalt_changed_nothing(GESTALT_BUFFER_CHANGED), 0);
    /* A copy may be changed. */
    CHECK(gestalt_bset(client, GESTALT_SET, "sealed", 6, value, sizeof value, NULL, &request), GESTALT_OK);
    value[150000]++;
    CHECK(gestalt_finish(request, NULL), GESTALT_OK);
}

static void wrong(void) {
    static const char long_key[251];
    gestalt_request request = 5;
    gestalt_outcome outcome;
    gestalt_call call = nothing();
    char buffer[1];
    size_t index;
    int is_over;
    CHECK(gestalt_iget(client, NULL, 1, NULL, 0, NULL, &request), GESTALT_NULL);
    CHECK(request, 0);
    CHECK(gestalt_iget(client, "", 0, NULL, 0, NULL, &request), GESTALT_BAD_KEY);
    CHECK(gestalt_iget(client, long_key, 251, NULL, 0, NULL, &request), GESTALT_BAD_KEY);
    CHECK(gestalt_iget(client, "k", 1, NULL, 0, NULL, NULL), GESTALT_NULL);
    CHECK(gestalt_iget(client, "k", 1, NULL, 1, NULL, &request), GESTALT_NULL);
    CHECK(gestalt_iget(client, "k", 1, buffer, SIZE_MAX, NULL, &request), GESTALT_ARGUMENT);
    CHECK(gestalt_iset(client, "k", 1, NULL, 1, NULL, &request), GESTALT_NULL);
    CHECK(gestalt_iset(client, "k", 1, buffer, SIZE_MAX, NULL, &request), GESTALT_ARGUMENT);
    CHECK(gestalt_istore(client, 5, "k", 1, "x", 1, NULL, &request), GESTALT_ARGUMENT);
    CHECK(gestalt_bget(client, "k", 1, NULL, 0, NULL, NULL), GESTALT_NULL);
    CHECK(gestalt_imget(client, NULL, 2, NULL, &request), GESTALT_NULL);
    CHECK(gestalt_imget(client, NULL, SIZE_MAX, NULL, &request), GESTALT_ARGUMENT);
    call.size = 3;
    CHECK(gestalt_iget(client, "k", 1, NULL, 0, &call, &request), GESTALT_ARGUMENT);
    call = nothing();
    call.set = GESTALT_WITH_VERSION;
    CHECK(gestalt_iget(client, "k", 1, NULL, 0, &call, &request), GESTALT_ARGUMENT);
    call.set = 0;
    call.queue = 12345678;
    CHECK(gestalt_iget(client, "k", 1, NULL, 0, &call, &request), GESTALT_HANDLE);
    CHECK(gestalt_iget(client + 1000000, "k", 1, NULL, 0, NULL, &request), GESTALT_HANDLE);
    CHECK_TRUE(strstr(gestalt_last_error(), "no such client") != NULL);
    /* A client is no request. */
    CHECK(gestalt_test(client, &is_over), GESTALT_HANDLE);
    CHECK(gestalt_wait(0, 0), GESTALT_HANDLE);
    CHECK(gestalt_wait_any(NULL, 0, 0, &index), GESTALT_ARGUMENT);
    CHECK(gestalt_wait_all(NULL, 1, 0), GESTALT_NULL);
    CHECK(gestalt_iset(client, "k", 1, "x", 1, NULL, &request), GESTALT_OK);
    CHECK(gestalt_wait(request, -1), GESTALT_OK);
    CHECK(gestalt_test(request, NULL), GESTALT_NULL);
    CHECK(gestalt_result(request, NULL), GESTALT_NULL);
    CHECK(gestalt_places(request, NULL, NULL, 0, NULL), GESTALT_ARGUMENT);
    CHECK(gestalt_release(request), GESTALT_OK);
    CHECK(gestalt_release(request), GESTALT_HANDLE);
    CHECK(gestalt_result(request, &outcome), GESTALT_HANDLE);
    CHECK(gestalt_cancel(request), GESTALT_HANDLE);
    CHECK(gestalt_finish(request, NULL), GESTALT_HANDLE);
    CHECK(gestalt_connect(NULL, NULL, &request), GESTALT_NULL);
    CHECK(gestalt_connect("gestalt://x", NULL, NULL), GESTALT_NULL);
    CHECK(gestalt_connect("http://127.0.0.1", NULL, &request), GESTALT_URI);
    CHECK(gestalt_close(0), GESTALT_HANDLE);
}

static void scans(void) {
    gestalt_scan scan;
    char key[GESTALT_MAX_KEY];
    size_t len;
    int code;
    CHECK(gestalt_scan_open(client, NULL, 3, &scan), GESTALT_NULL);
    CHECK(gestalt_scan_open(client, "k", GESTALT_MAX_KEY + 1, &scan), GESTALT_BAD_KEY);
    CHECK(gestalt_scan_open(client, NULL, 0, NULL), GESTALT_NULL);
    CHECK(gestalt_scan_open(0, NULL, 0, &scan), GESTALT_HANDLE);
    CHECK(gestalt_scan_open(client, "no such key", 11, &scan), GESTALT_OK);
    CHECK(gestalt_scan_next(scan, key, 10, &len, -1), GESTALT_SHORT_BUFFER);
    CHECK(gestalt_scan_next(scan, NULL, sizeof key, &len, -1), GESTALT_NULL);
    CHECK(gestalt_scan_next(scan, key, sizeof key, NULL, -1), GESTALT_NULL);
    /* Nothing has come yet. */
    CHECK(gestalt_scan_next(scan, key, sizeof key, &len, 0), GESTALT_PENDING);
    CHECK(gestalt_scan_next(scan, key, sizeof key, &len, -1), GESTALT_MISS);
    CHECK(gestalt_scan_close(scan), GESTALT_OK);
    CHECK(gestalt_scan_next(scan, key, sizeof key, &len, 0), GESTALT_HANDLE);
    CHECK(gestalt_scan_close(scan), GESTALT_HANDLE);
    CHECK(gestalt_scan_open(client, NULL, 0, &scan), GESTALT_OK);
    while ((code = gestalt_scan_next(scan, key, sizeof key, &len, -1)) == GESTALT_OK) CHECK_TRUE(len > 0 && len <= sizeof key);
    CHECK(code, GESTALT_MISS);
    CHECK(gestalt_scan_close(scan), GESTALT_OK);
}

static void queues(void) {
    gestalt_queue queue;
    gestalt_event events[4];
    gestalt_request requests[4], other;
    gestalt_call call = nothing();
    gestalt_outcome outcome;
    size_t count, total = 0;
    uint64_t tags = 0;
    int i;
    CHECK(gestalt_queue_open(NULL), GESTALT_NULL);
    CHECK(gestalt_queue_open(&queue), GESTALT_OK);
    CHECK_TRUE(gestalt_queue_fd(queue) >= 0);
    CHECK(gestalt_queue_fd(queue + 1000), GESTALT_HANDLE);
    CHECK(gestalt_queue_poll(queue, events, 4, 0, &count), GESTALT_PENDING);
    CHECK(gestalt_queue_poll(queue, events, 4, 30, &count), GESTALT_PENDING);
    CHECK(gestalt_queue_poll(queue, events, 0, 0, &count), GESTALT_ARGUMENT);
    CHECK(gestalt_queue_poll(queue, NULL, 1, 0, &count), GESTALT_NULL);
    CHECK(gestalt_queue_poll(queue, events, 1, 0, NULL), GESTALT_NULL);
    call.queue = queue;
    for (i = 0; i < 4; i++) {
        call.tag = (uint64_t)(i + 1);
        CHECK(gestalt_iget(client, "none", 4, NULL, 0, &call, &requests[i]), GESTALT_OK);
    }
    while (total < 4) {
        CHECK(gestalt_queue_poll(queue, events, 3, -1, &count), GESTALT_OK);
        for (i = 0; i < (int)count; i++) {
            tags += events[i].tag;
            CHECK(events[i].code, GESTALT_MISS);
            CHECK(gestalt_finish(events[i].request, NULL), GESTALT_MISS);
        }
        total += count;
    }
    CHECK(tags, 1 + 2 + 3 + 4);
    /* What is released is in no queue. */
    CHECK(gestalt_iget(client, "none", 4, NULL, 0, &call, &other), GESTALT_OK);
    CHECK(gestalt_wait(other, -1), GESTALT_OK);
    CHECK(gestalt_release(other), GESTALT_OK);
    CHECK(gestalt_queue_poll(queue, events, 4, 0, &count), GESTALT_PENDING);
    CHECK(gestalt_iget(client, "none", 4, NULL, 0, &call, &other), GESTALT_OK);
    CHECK(gestalt_queue_close(queue), GESTALT_OK);
    CHECK(gestalt_queue_close(queue), GESTALT_HANDLE);
    CHECK(gestalt_finish(other, &outcome), GESTALT_MISS);
}

/* A descriptor that is asked for late knows what is there. */
static void late_descriptor(void) {
    gestalt_queue queue;
    gestalt_event event;
    gestalt_request request;
    gestalt_call call = nothing();
    struct pollfd descriptor = {-1, POLLIN, 0};
    size_t count;
    CHECK(gestalt_queue_open(&queue), GESTALT_OK);
    call.queue = queue;
    CHECK(gestalt_iget(client, "none", 4, NULL, 0, &call, &request), GESTALT_OK);
    CHECK(gestalt_wait(request, -1), GESTALT_OK);
    descriptor.fd = gestalt_queue_fd(queue);
    CHECK(poll(&descriptor, 1, 0), 1);
    CHECK(gestalt_queue_poll(queue, &event, 1, 0, &count), GESTALT_OK);
    CHECK(poll(&descriptor, 1, 0), 0);
    CHECK(gestalt_release(request), GESTALT_OK);
    CHECK(gestalt_queue_close(queue), GESTALT_OK);
}

static gestalt_request watched;
static int seen;

static void *watch(void *unused) {
    (void)unused;
    seen = gestalt_wait(watched, -1);
    return NULL;
}

/* Nobody answers: deadlines are kept, and whoever waits is woken. */
static void silence(const char *uri) {
    gestalt_options options;
    gestalt_client lazy;
    gestalt_request request;
    gestalt_outcome outcome;
    gestalt_call call = nothing();
    pthread_t thread;
    size_t index;
    int is_over;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.timeout_ms = 300;
    CHECK(gestalt_connect(uri, &options, &lazy), GESTALT_UNREACHABLE);
    CHECK(lazy, 0);
    options.set = 64;
    CHECK(gestalt_connect(uri, &options, &lazy), GESTALT_ARGUMENT);
    options.set = GESTALT_LAZY;
    options.max_requests = 2;
    options.timeout_ms = 60000;
    CHECK(gestalt_connect(uri, &options, &lazy), GESTALT_OK);
    call.timeout_ms = 200;
    CHECK(gestalt_iset(lazy, "k", 1, "v", 1, &call, &request), GESTALT_OK);
    CHECK(gestalt_test(request, &is_over), GESTALT_OK);
    CHECK(is_over, 0);
    CHECK(gestalt_result(request, &outcome), GESTALT_PENDING);
    CHECK(gestalt_wait(request, 20), GESTALT_PENDING);
    CHECK(gestalt_wait_any(&request, 1, 20, &index), GESTALT_PENDING);
    CHECK(gestalt_finish(request, NULL), GESTALT_UNREACHABLE);
    CHECK(gestalt_changed_nothing(GESTALT_UNREACHABLE), 1);
    CHECK(gestalt_iget(lazy, "k", 1, NULL, 0, NULL, &watched), GESTALT_OK);
    CHECK(pthread_create(&thread, NULL, watch, NULL), 0);
    CHECK(gestalt_iget(lazy, "k", 1, NULL, 0, NULL, &request), GESTALT_OK);
    CHECK(gestalt_iget(lazy, "k", 1, NULL, 0, NULL, &outcome.tag), GESTALT_FULL);
    usleep(50000);
    CHECK(gestalt_release(watched), GESTALT_OK);
    CHECK(pthread_join(thread, NULL), 0);
    CHECK_TRUE(seen == GESTALT_RELEASED || seen == GESTALT_OK);
    CHECK(gestalt_close(lazy), GESTALT_OK);
    CHECK(gestalt_finish(request, NULL), GESTALT_CLOSED);
    CHECK(gestalt_iget(lazy, "k", 1, NULL, 0, NULL, &request), GESTALT_HANDLE);
}

int main(int argc, char **argv) {
    CHECK(argc, 3);
    CHECK(gestalt_abi(), GESTALT_ABI);
    CHECK_TRUE(strlen(gestalt_version()) >= 5);
    CHECK_TRUE(strcmp(gestalt_last_error(), "") == 0);
    CHECK_TRUE(strcmp(gestalt_code_name(GESTALT_NOT_STORED), "NotStored") == 0);
    CHECK_TRUE(strlen(gestalt_code_text(GESTALT_UNKNOWN)) > 10);
    CHECK_TRUE(strcmp(gestalt_code_name(99), "") == 0);
    CHECK(gestalt_connect(argv[1], NULL, &client), GESTALT_OK);
    set("k", "v");
    values();
    the_rest();
    many();
    long_values();
    changed_buffers();
    wrong();
    scans();
    queues();
    late_descriptor();
    silence(argv[2]);
    CHECK(gestalt_close(client), GESTALT_OK);
    CHECK(gestalt_close(client), GESTALT_HANDLE);
    return 0;
}
