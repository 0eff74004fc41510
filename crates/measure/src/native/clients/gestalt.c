/* The C client: ./gestalt MILLISECONDS URI */
#include <gestalt.h>

#include "cells.h"

static gestalt_client client;

static int set_all(struct batch *batch) {
    gestalt_request requests[FLIGHT];
    int failed = 0;
    for (size_t at = 0; at < batch->count; at++)
        if (gestalt_iset(client, batch->keys[at], KEY_LEN - 1, batch->values[at], batch->value_len, NULL, &requests[at]) != GESTALT_OK)
            return 1;
    for (size_t at = 0; at < batch->count; at++) failed |= gestalt_finish(requests[at], NULL) != GESTALT_OK;
    return failed;
}

static int get_all(struct batch *batch) {
    gestalt_request requests[FLIGHT];
    gestalt_part parts[FLIGHT];
    for (size_t at = 0; at < batch->count; at++) {
        batch->values[at][batch->value_len - 1] = 0;
        parts[at] = (gestalt_part){batch->keys[at], KEY_LEN - 1, batch->values[at], batch->value_len};
    }
    if (gestalt_imget(client, parts, batch->count, NULL, requests) != GESTALT_OK) return 1;
    int failed = 0;
    for (size_t at = 0; at < batch->count; at++) {
        gestalt_outcome outcome;
        failed |= gestalt_finish(requests[at], &outcome) != GESTALT_OK || !is_right(batch, outcome.data, outcome.len);
    }
    return failed;
}

int main(int argc, char **argv) {
    if (argc != 3 || gestalt_connect(argv[2], NULL, &client) != GESTALT_OK) {
        fprintf(stderr, "%s\n", gestalt_last_error());
        return 1;
    }
    measure_all(argv[1]);
    gestalt_close(client);
    return 0;
}
