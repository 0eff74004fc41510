/*
 * A process that forks while requests of it are under way. Argument: the URI of a cluster. In the child the parent's numbers lead nowhere, at
 * once and without a word on stderr; it makes a client of its own. The parent's go on.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char *uri;

static void child(gestalt_client parents, gestalt_queue queue, gestalt_request request) {
    gestalt_client own;
    gestalt_request other;
    gestalt_event event;
    size_t count;
    int is_over;
    CHECK(gestalt_iget(parents, "k", 1, NULL, 0, NULL, &other), GESTALT_HANDLE);
    CHECK(gestalt_test(request, &is_over), GESTALT_HANDLE);
    CHECK(gestalt_wait(request, -1), GESTALT_HANDLE);
    CHECK(gestalt_release(request), GESTALT_HANDLE);
    CHECK(gestalt_queue_poll(queue, &event, 1, -1, &count), GESTALT_HANDLE);
    CHECK(gestalt_close(parents), GESTALT_HANDLE);
    CHECK(gestalt_connect(uri, NULL, &own), GESTALT_OK);
    CHECK_TRUE(own > request);
    CHECK(gestalt_iset(own, "child", 5, "here", 4, NULL, &other), GESTALT_OK);
    CHECK(gestalt_wait(other, -1), GESTALT_OK);
    CHECK(gestalt_release(other), GESTALT_OK);
    CHECK(gestalt_close(own), GESTALT_OK);
    _exit(0);
}

int main(int argc, char **argv) {
    gestalt_client client;
    gestalt_queue queue;
    gestalt_request request;
    char buffer[16];
    int status;
    CHECK(argc, 2);
    uri = argv[1];
    CHECK(gestalt_connect(uri, NULL, &client), GESTALT_OK);
    CHECK(gestalt_queue_open(&queue), GESTALT_OK);
    CHECK(gestalt_iget(client, "k", 1, buffer, sizeof buffer, NULL, &request), GESTALT_OK);
    pid_t forked = fork();
    if (forked == 0) child(client, queue, request);
    CHECK(waitpid(forked, &status, 0), forked);
    CHECK(status, 0);
    CHECK(gestalt_wait(request, -1), GESTALT_OK);
    CHECK(gestalt_release(request), GESTALT_OK);
    CHECK(gestalt_iget(client, "child", 5, buffer, sizeof buffer, NULL, &request), GESTALT_OK);
    CHECK(gestalt_wait(request, -1), GESTALT_OK);
    CHECK(memcmp(buffer, "here", 4), 0);
    CHECK(gestalt_release(request), GESTALT_OK);
    CHECK(gestalt_close(client), GESTALT_OK);
    return 0;
}
