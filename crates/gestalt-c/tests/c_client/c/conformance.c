/*
 * Does the steps of the conformance suite. Argument: the URI of a cluster. Standard input has a step in each line: operation, key, value,
 * fill, flags, offset, length, version, delta, ttl, separated by tabs, "-" where there is none. Says of each what it came to, as JSON.
 */
#include "check.h"

enum { OP, KEY, VALUE, FILL, FLAGS, OFFSET, LENGTH, VERSION, DELTA, TTL, FIELDS };

static gestalt_client client;

static int has(const char *field) {
    return strcmp(field, "-") != 0;
}

static void say_value(const gestalt_outcome *outcome) {
    const char *bytes = outcome->data;
    uint64_t i;
    if (outcome->len <= 1000) {
        printf("{\"value\":\"%.*s\",\"flags\":%u}\n", (int)outcome->len, bytes, outcome->flags);
        return;
    }
    for (i = 0; i < outcome->len; i++) CHECK(bytes[i], 'x');
    printf("{\"fill\":%llu}\n", (unsigned long long)outcome->len);
}

static void get(char **field) {
    gestalt_call call = {0};
    gestalt_request request;
    gestalt_outcome outcome;
    int code;
    call.size = sizeof call;
    if (has(field[OFFSET])) {
        call.set = GESTALT_WITH_RANGE;
        call.offset = strtoull(field[OFFSET], NULL, 10);
        call.length = strtoull(field[LENGTH], NULL, 10);
    }
    code = gestalt_iget(client, field[KEY], strlen(field[KEY]), NULL, 0, &call, &request);
    if (code == GESTALT_OK) {
        CHECK(gestalt_wait(request, -1), GESTALT_OK);
        code = gestalt_result(request, &outcome);
    }
    if (code == GESTALT_OK)
        say_value(&outcome);
    else if (code == GESTALT_MISS)
        printf("{\"miss\":true}\n");
    else
        printf("{\"code\":\"%s\"}\n", gestalt_code_name(code));
    if (request) CHECK(gestalt_release(request), GESTALT_OK);
}

static int store(int mode, char **field) {
    gestalt_call call = {0};
    gestalt_request request;
    gestalt_outcome outcome;
    size_t len = has(field[FILL]) ? strtoull(field[FILL], NULL, 10) : strlen(field[VALUE]);
    char *value = malloc(len + 1);
    int code;
    call.size = sizeof call;
    if (has(field[FLAGS])) call.flags = (uint32_t)strtoul(field[FLAGS], NULL, 10);
    if (has(field[VERSION])) {
        call.set = GESTALT_WITH_VERSION;
        call.version = strtoull(field[VERSION], NULL, 10);
        if (strcmp(field[VERSION], "current") == 0) {
            CHECK(gestalt_istat(client, field[KEY], strlen(field[KEY]), NULL, &request), GESTALT_OK);
            CHECK(gestalt_finish(request, &outcome), GESTALT_OK);
            call.version = outcome.version;
        }
    }
    if (has(field[FILL]))
        memset(value, 'x', len);
    else
        memcpy(value, field[VALUE], len);
    code = gestalt_istore(client, mode, field[KEY], strlen(field[KEY]), value, len, &call, &request);
    if (code == GESTALT_OK) code = gestalt_finish(request, NULL);
    free(value);
    return code;
}

/* What came of a store, or of something that finds its key or does not. */
static void say(const char *word, int code) {
    if (code < 0)
        printf("{\"code\":\"%s\"}\n", gestalt_code_name(code));
    else
        printf("{\"%s\":%s}\n", word, code == GESTALT_OK ? "true" : "false");
}

static void add_number(char **field) {
    long long delta = strtoll(field[DELTA], NULL, 10);
    gestalt_request request;
    gestalt_outcome outcome;
    size_t key_len = strlen(field[KEY]);
    int code;
    if (delta < 0)
        code = gestalt_idecr(client, field[KEY], key_len, (uint64_t)-delta, NULL, &request);
    else
        code = gestalt_iincr(client, field[KEY], key_len, (uint64_t)delta, NULL, &request);
    if (code == GESTALT_OK) code = gestalt_finish(request, &outcome);
    if (code == GESTALT_OK)
        printf("{\"number\":%llu}\n", (unsigned long long)outcome.number);
    else if (code == GESTALT_MISS)
        printf("{\"miss\":true}\n");
    else
        say("", code);
}

static int by_bytes(const void *one, const void *other) {
    return strcmp(one, other);
}

static void scan(const char *prefix, size_t len) {
    static char keys[100][GESTALT_MAX_KEY + 1];
    size_t count = 0, key_len, i;
    gestalt_scan scan;
    int code;
    CHECK(gestalt_scan_open(client, prefix, len, &scan), GESTALT_OK);
    while (count < 100 && (code = gestalt_scan_next(scan, keys[count], sizeof keys[0], &key_len, -1)) == GESTALT_OK)
        keys[count++][key_len] = 0;
    CHECK(code, GESTALT_MISS);
    CHECK(gestalt_scan_close(scan), GESTALT_OK);
    qsort(keys, count, sizeof keys[0], by_bytes);
    printf("{\"keys\":[");
    for (i = 0; i < count; i++) printf("%s\"%s\"", i ? "," : "", keys[i]);
    printf("]}\n");
}

static void step(char **field) {
    static const char *stores[] = {"set", "add", "replace", "append", "prepend", NULL};
    gestalt_request request;
    size_t key_len = strlen(field[KEY]);
    int mode;
    for (mode = 0; stores[mode]; mode++)
        if (strcmp(field[OP], stores[mode]) == 0) {
            say("stored", store(mode, field));
            return;
        }
    if (strcmp(field[OP], "cas") == 0) {
        say("stored", store(GESTALT_SET, field));
    } else if (strcmp(field[OP], "get") == 0) {
        get(field);
    } else if (strcmp(field[OP], "add_number") == 0) {
        add_number(field);
    } else if (strcmp(field[OP], "touch") == 0) {
        uint32_t ttl = (uint32_t)strtoul(field[TTL], NULL, 10);
        CHECK(gestalt_itouch(client, field[KEY], key_len, ttl, NULL, &request), GESTALT_OK);
        say("found", gestalt_finish(request, NULL));
    } else if (strcmp(field[OP], "scan") == 0) {
        scan(field[KEY], key_len);
    } else if (strcmp(field[OP], "delete") == 0) {
        CHECK(gestalt_idelete(client, field[KEY], key_len, NULL, &request), GESTALT_OK);
        say("found", gestalt_finish(request, NULL));
    } else {
        CHECK_TRUE(!"an operation of the suite");
    }
}

int main(int argc, char **argv) {
    static char line[65536];
    CHECK(argc, 2);
    CHECK(gestalt_connect(argv[1], NULL, &client), GESTALT_OK);
    while (fgets(line, sizeof line, stdin)) {
        char *field[FIELDS], *at = line;
        int i;
        line[strcspn(line, "\n")] = 0;
        for (i = 0; i < FIELDS; i++) {
            field[i] = at;
            at += strcspn(at, "\t");
            if (*at) *at++ = 0;
        }
        step(field);
    }
    CHECK(gestalt_close(client), GESTALT_OK);
    return 0;
}
