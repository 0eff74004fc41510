/* What all these programs need. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gestalt.h"

/* That an expression has a value; otherwise where, what it had, and what the library says. */
#define CHECK(expression, wanted)                                                                                  \
    do {                                                                                                           \
        long long got_ = (long long)(expression), wanted_ = (long long)(wanted);                                   \
        if (got_ != wanted_) {                                                                                     \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #expression, got_, wanted_,  \
                    gestalt_last_error());                                                                         \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

#define CHECK_TRUE(expression) CHECK(!!(expression), 1)

#endif
