/* libmemcached, over the text protocol: ./libmemcached MILLISECONDS HOST:PORT...; without arguments it says its name and version. */
#include <libmemcached/memcached.h>

#include "cells.h"

/* One that waits for each answer, and one that gathers writes until they are flushed: for one server, since 1.1.4 ends in an assertion
 * (io.cc:548) where it gathers for several. */
static memcached_st *waits, *gathers;

static int told(memcached_return_t code) {
    if (code != MEMCACHED_SUCCESS) fprintf(stderr, "%s: ", memcached_strerror(NULL, code));
    return code != MEMCACHED_SUCCESS;
}

static int set_all(struct batch *batch) {
    int is_one = batch->count == 1;
    for (size_t at = 0; at < batch->count; at++) {
        memcached_return_t code =
            memcached_set(is_one ? waits : gathers, batch->keys[at], KEY_LEN - 1, batch->values[at], batch->value_len, 0, 0);
        if (code != MEMCACHED_SUCCESS && (is_one || code != MEMCACHED_BUFFERED)) return told(code);
    }
    return is_one ? 0 : told(memcached_flush_buffers(gathers));
}

static int get_all(struct batch *batch) {
    const char *keys[FLIGHT];
    size_t lengths[FLIGHT], come = 0;
    for (size_t at = 0; at < batch->count; at++) {
        keys[at] = batch->keys[at];
        lengths[at] = KEY_LEN - 1;
    }
    if (memcached_mget(waits, keys, lengths, batch->count) != MEMCACHED_SUCCESS) return 1;
    memcached_result_st result;
    memcached_return_t code;
    memcached_result_create(waits, &result);
    while (memcached_fetch_result(waits, &result, &code)) 
        come += (size_t)is_right(batch, memcached_result_value(&result), memcached_result_length(&result));
    memcached_result_free(&result);
    return come != batch->count;
}

static memcached_st *connect_to(int count, char **servers) {
    memcached_st *client = memcached_create(NULL);
    memcached_behavior_set(client, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
    for (int at = 0; at < count; at++) {
        char *colon = strrchr(servers[at], ':');
        if (!colon) return NULL;
        char *host = strndup(servers[at], (size_t)(colon - servers[at]));
        memcached_server_add(client, host, (in_port_t)atoi(colon + 1));
        free(host);
    }
    return client;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        printf("libmemcached %s\n", memcached_lib_version());
        return 0;
    }
    waits = connect_to(argc - 2, argv + 2);
    gathers = connect_to(1, argv + 2);
    if (!waits || !gathers) return 1;
    memcached_behavior_set(gathers, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 1);
    measure_all(argv[1]);
    memcached_free(waits);
    memcached_free(gathers);
    return 0;
}
