/*
 * Gestalt for C: a client of the erasure-coded in-memory key-value store, over its native protocol.
 *
 * A request is posted, looked after, and released. gestalt_i* return at once with a request, which ends by itself at its deadline at the
 * latest; gestalt_test, gestalt_wait* and completion queues say when; gestalt_result says what it has come to; gestalt_release lets it go
 * at any moment and never waits for anybody else. One background thread for each client moves the bytes.
 *
 * Clients, requests, queues and scans are numbers that are never used again in a process: whoever uses one too late gets GESTALT_HANDLE. 0 is none.
 * All functions may be called by any thread at any time.
 *
 * Buffers. What a key, a struct or a list points to is read before the call returns. The value of gestalt_iset and gestalt_istore, and the
 * buffer of gestalt_iget and gestalt_imget, belong to the request until it is over: do not write to the one, do not look at the other,
 * free neither. When gestalt_test has said so, gestalt_wait* or gestalt_cancel has returned GESTALT_OK, gestalt_queue_poll has given the
 * request, or gestalt_release has returned, the library touches them no more. In debug builds, and where GESTALT_CHECK_BUFFERS says so, a
 * write whose value was changed meanwhile comes to GESTALT_BUFFER_CHANGED.
 *
 * Every function that returns an int returns one of the codes below; gestalt_last_error() then says what was wrong with a call that returned
 * a negative one, in a sentence. After a fork the child makes clients of its own: the parent's numbers are GESTALT_HANDLE there.
 */
#ifndef GESTALT_H
#define GESTALT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes whenever a function or a struct does; compare it with gestalt_abi(). */
#define GESTALT_ABI 3

/* Answers. */
#define GESTALT_OK 0
#define GESTALT_MISS 1       /* there is no such key */
#define GESTALT_NOT_STORED 2 /* there is such a key (add), or there is none (replace, append, prepend) */
#define GESTALT_EXISTS 3     /* another version is there */
/* Calls that were wrong. */
#define GESTALT_NULL -1      /* a pointer that may not be null is null */
#define GESTALT_ARGUMENT -2  /* an argument is out of its range */
#define GESTALT_HANDLE -3    /* no such client, request or queue: it was closed or released, or never was */
#define GESTALT_URI -4       /* this does not name a cluster */
#define GESTALT_FULL -5      /* too many requests of the client have not been released, too many clients or queues */
#define GESTALT_BAD_KEY -6   /* a key has 1 to 250 bytes */
/* Failures. Of each gestalt_changed_nothing() says whether a write has surely not been done. */
#define GESTALT_TOO_LARGE -7
#define GESTALT_NOT_A_NUMBER -8
#define GESTALT_NO_NAMESPACE -9
#define GESTALT_SHORT_BUFFER -10  /* the buffer is too short; `needed` says how long it has to be */
#define GESTALT_PENDING -11       /* it is not over; or the time to wait is */
#define GESTALT_RELEASED -12      /* it was released while it was waited for */
#define GESTALT_CANCELLED -13
#define GESTALT_CLOSED -14        /* the client was closed */
#define GESTALT_UNREACHABLE -15   /* not sent to a node in time, or not all of it */
#define GESTALT_TIMED_OUT -16     /* the deadline has passed */
#define GESTALT_UNKNOWN -17       /* a node or its connection was lost: a write may or may not have been done */
#define GESTALT_BUSY -18
#define GESTALT_UNAVAILABLE -19   /* no primary could be reached in time */
#define GESTALT_LATE -20          /* the deadline had passed before it was begun */
#define GESTALT_OUT_OF_MEMORY -21 /* of the cluster */
#define GESTALT_LOST -22          /* more members were lost than the code makes up for */
#define GESTALT_CORRUPT -23
#define GESTALT_CHANGED -24       /* the value was replaced while it was read */
#define GESTALT_BUFFER_CHANGED -25
#define GESTALT_SYSTEM -26        /* the system refused a thread or a file descriptor */
#define GESTALT_INTERNAL -27      /* a fault of the library */
#define GESTALT_SCANS_OFF -28     /* the nodes do not say which keys there are */
#define GESTALT_EXPIRED -29       /* the session of a write ended before its end was known: it may or may not have been done */
#define GESTALT_TOO_OLD -30       /* the node is of an older release and does not know what was asked */

typedef uint64_t gestalt_client;
typedef uint64_t gestalt_request;
typedef uint64_t gestalt_queue;
typedef uint64_t gestalt_scan;

#define GESTALT_MAX_KEY 250 /* bytes */

/* How a client is made. Null stands for all zeros. */
typedef struct gestalt_options {
    uint32_t size;         /* sizeof(gestalt_options) */
    uint32_t set;          /* of the two bits below */
    uint64_t timeout_ms;   /* of requests, and of making the client; 0 = as the URI says, or 10 s */
    uint32_t window;       /* most bytes of one value that are on their way; 0 = as the URI says, or 1 MiB */
    uint32_t max_requests; /* most requests that have not been released; 0 = 65,536 */
} gestalt_options;

#define GESTALT_LAZY 1u          /* the cluster is reached when something is asked of it */
#define GESTALT_CHECK_BUFFERS 2u /* values of writes are compared at their end with what they were */

/* What is not the same for all requests. Null stands for all zeros. */
typedef struct gestalt_call {
    uint32_t size;       /* sizeof(gestalt_call) */
    uint32_t set;        /* which of the fields below count that are named there; a bit that means nothing for a request is refused */
    gestalt_queue queue; /* where its end is told; 0 = nowhere */
    uint64_t tag;        /* yours; given back with its end */
    uint64_t timeout_ms; /* 0 = the client's */
    uint64_t version;    /* stores and deletes, GESTALT_WITH_VERSION: only if this version is there */
    uint64_t offset;     /* gets, GESTALT_WITH_RANGE: the part that begins here, ...; gestalt_ilocate, GESTALT_WITH_OFFSET: from this byte on */
    uint64_t length;     /* ... and has at most so many bytes */
    uint64_t initial;    /* incr and decr, GESTALT_WITH_INITIAL: the number if there is none yet; it lives for `ttl` */
    uint32_t flags;      /* stores: yours, kept with the value */
    uint32_t ttl;        /* stores: seconds to live, 0 = as the namespace says; gets, GESTALT_WITH_TTL: from now on, 0 = for ever */
} gestalt_call;

#define GESTALT_WITH_VERSION 1u
#define GESTALT_WITH_RANGE 2u
#define GESTALT_WITH_TTL 4u
#define GESTALT_WITH_INITIAL 8u
#define GESTALT_WITH_OFFSET 16u

/* One key of many. */
typedef struct gestalt_part {
    const void *key;
    size_t key_len;
    void *buffer; /* null and 0 = a buffer of the library's */
    size_t buffer_len;
} gestalt_part;

/* How the bytes of a value are dealt to its chunks. */
#define GESTALT_SPREAD 0u
#define GESTALT_WIDE 1u
#define GESTALT_COPY 2u

/* What a request has come to. What does not belong to it is 0. */
typedef struct gestalt_outcome {
    int32_t code;
    uint32_t flags;       /* the item's */
    uint64_t tag;         /* the call's */
    const void *data;     /* the value that was read: your buffer, or one of the library's, which lasts until the release */
    uint64_t len;         /* so many bytes of it */
    uint64_t needed;      /* with GESTALT_SHORT_BUFFER: the length that the buffer needs */
    uint64_t value_len;   /* length of the whole value */
    uint64_t version;     /* of the item */
    uint64_t number;      /* incr and decr: as it is now */
    uint32_t ttl;         /* seconds to live; UINT32_MAX = for ever */
    uint32_t idle;        /* stat: seconds since it was last read */
    uint32_t was_read;    /* stat: 1 if it has been read since it was stored */
    uint32_t chunk_len;   /* stat: longest chunk; 0 = it lies whole at one member, ... */
    uint32_t data_chunks; /* ... otherwise: data chunks of a stripe, ... */
    uint32_t layout;      /* ... and GESTALT_SPREAD, GESTALT_WIDE or GESTALT_COPY */
} gestalt_outcome;

/* A request that is over. */
typedef struct gestalt_event {
    gestalt_request request;
    uint64_t tag;
    int32_t code;
    uint32_t reserved;
} gestalt_event;

/* Where a key is at home. */
typedef struct gestalt_place {
    uint32_t slot;
    uint32_t group;
    uint32_t role;
    int32_t primary; /* its node; -1 = none now */
} gestalt_place;

/* Bytes of a value that lie on certain nodes, in turns of a cell. */
typedef struct gestalt_span {
    uint64_t start;
    uint64_t len;
    uint32_t cell_len;     /* 0 if there is one node */
    uint32_t node_count;
    const uint16_t *nodes; /* 65535 = nobody serves it now; lasts until the release */
} gestalt_span;

/* GESTALT_ABI of the header that the library was built with. */
uint32_t gestalt_abi(void);

/* The library's version, such as "0.1.0". */
const char *gestalt_version(void);

/* What was wrong with this thread's last call that failed; "" if none did. Valid until its next call that fails. */
const char *gestalt_last_error(void);

/* The name of a code, such as "NotStored"; "" if there is no such code. */
const char *gestalt_code_name(int code);

/* What a code means. */
const char *gestalt_code_text(int code);

/* 1 if a write that came to this has surely changed nothing and may be repeated, otherwise 0. */
int gestalt_changed_nothing(int code);

/*
 * Makes a client of gestalt://HOST:PORT[,HOST:PORT...][/NAMESPACE][?timeout=10s&window=BYTES]: some native listeners of the cluster. Waits
 * until one of them has told the map, unless the client is lazy: URI, UNREACHABLE.
 */
int gestalt_connect(const char *uri, const gestalt_options *options, gestalt_client *client);

/* Ends it: what is not over comes to GESTALT_CLOSED. Requests can still be looked at, and have to be released. Waits for its thread. */
int gestalt_close(gestalt_client client);

/* Stores a value, whatever was there. The value belongs to the request until it is over. */
int gestalt_iset(gestalt_client client, const void *key, size_t key_len, const void *value, size_t value_len, const gestalt_call *call,
                 gestalt_request *request);

/* The same by a mode: only if there is no such key, only if there is one, behind what there is, before it. */
int gestalt_istore(gestalt_client client, int mode, const void *key, size_t key_len, const void *value, size_t value_len,
                   const gestalt_call *call, gestalt_request *request);

#define GESTALT_SET 0
#define GESTALT_ADD 1
#define GESTALT_REPLACE 2
#define GESTALT_APPEND 3
#define GESTALT_PREPEND 4

/* The same, but the value may be reused as soon as this returns: it is copied. */
int gestalt_bset(gestalt_client client, int mode, const void *key, size_t key_len, const void *value, size_t value_len,
                 const gestalt_call *call, gestalt_request *request);

/*
 * Reads a value, or a part of it, into the buffer, which belongs to the request until it is over; null and 0 = into a buffer of the
 * library's, as long as what comes. What is longer than your buffer comes to SHORT_BUFFER, of any other failure the buffer may have parts.
 */
int gestalt_iget(gestalt_client client, const void *key, size_t key_len, void *buffer, size_t buffer_len, const gestalt_call *call,
                 gestalt_request *request);

/* The same of many keys, each with a request of its own. If one cannot be asked none is. */
int gestalt_imget(gestalt_client client, const gestalt_part *parts, size_t count, const gestalt_call *call, gestalt_request *requests);

/* Reads a value into your buffer and waits for it: its code. `outcome` may be null. */
int gestalt_bget(gestalt_client client, const void *key, size_t key_len, void *buffer, size_t buffer_len, const gestalt_call *call,
                 gestalt_outcome *outcome);

/* Removes a key. */
int gestalt_idelete(gestalt_client client, const void *key, size_t key_len, const gestalt_call *call, gestalt_request *request);

/* Adds to the number of a key; it wraps at 2^64. */
int gestalt_iincr(gestalt_client client, const void *key, size_t key_len, uint64_t delta, const gestalt_call *call, gestalt_request *request);

/* Takes from the number of a key; it stops at 0. */
int gestalt_idecr(gestalt_client client, const void *key, size_t key_len, uint64_t delta, const gestalt_call *call, gestalt_request *request);

/* Lets a key live for `ttl` seconds from now on; 0 = for ever. */
int gestalt_itouch(gestalt_client client, const void *key, size_t key_len, uint32_t ttl, const gestalt_call *call, gestalt_request *request);

/* Asks what is known of a key. */
int gestalt_istat(gestalt_client client, const void *key, size_t key_len, const gestalt_call *call, gestalt_request *request);

/*
 * Asks where the bytes of a key lie; gestalt_places gives them, at most 512 spans. If the last of these ends before the value does
 * (`value_len` of the outcome), the rest is asked for with GESTALT_WITH_OFFSET and that end as `offset`: TOO_OLD where a node does not know
 * that. It is of the same value as long as `version` is the same.
 */
int gestalt_ilocate(gestalt_client client, const void *key, size_t key_len, const gestalt_call *call, gestalt_request *request);

/* Whether a request is over: *is_over is 1 or 0. */
int gestalt_test(gestalt_request request, int *is_over);

/* Waits until a request is over; PENDING when `timeout_ms` has passed first (below 0 = never), RELEASED if somebody releases it meanwhile. */
int gestalt_wait(gestalt_request request, int64_t timeout_ms);

/* Waits until one of them is over: *index is its place in the list. */
int gestalt_wait_any(const gestalt_request *requests, size_t count, int64_t timeout_ms, size_t *index);

/* Waits until all of them are over. */
int gestalt_wait_all(const gestalt_request *requests, size_t count, int64_t timeout_ms);

/* Ends a request now, if it is not over: CANCELLED. A write may or may not have been done. */
int gestalt_cancel(gestalt_request request);

/* Lets a request go, cancelled if it is not over. Whoever waits for it is woken, no queue gives it any more. */
int gestalt_release(gestalt_request request);

/* What a request has come to: its code, also in *outcome. PENDING if it is not over. */
int gestalt_result(gestalt_request request, gestalt_outcome *outcome);

/* Waits for the end of a request, says what it has come to, and releases it. A buffer of the library's is gone then. `outcome` may be null. */
int gestalt_finish(gestalt_request request, gestalt_outcome *outcome);

/* After gestalt_ilocate: where the key is at home, and where its bytes lie. *count is how many spans there are; SHORT_BUFFER if that is more
 * than `capacity`. */
int gestalt_places(gestalt_request request, gestalt_place *place, gestalt_span *spans, size_t capacity, size_t *count);

/* Makes a completion queue: requests whose call names it are in it once they are over, in that order, until they are polled or released. */
int gestalt_queue_open(gestalt_queue *queue);

/* A descriptor that can be read (epoll, poll, select) while the queue is not empty; or a negative code. Neither read from it nor close it. */
int gestalt_queue_fd(gestalt_queue queue);

/* Takes at most `capacity` requests out of it, as soon as there is one; PENDING when `timeout_ms` has passed first (below 0 = never, 0 = at
 * once). They still have to be released. */
int gestalt_queue_poll(gestalt_queue queue, gestalt_event *events, size_t capacity, int64_t timeout_ms, size_t *count);

/* Ends it, with its descriptor; the requests go on, and whoever waits is woken with HANDLE. */
int gestalt_queue_close(gestalt_queue queue);

/*
 * Begins to list the keys that begin with a prefix, in the client's namespace; null and 0 = all. In no order; each key that is there from the
 * beginning to the end comes at least once. Nodes allow it with --native-scans.
 */
int gestalt_scan_open(gestalt_client client, const void *prefix, size_t prefix_len, gestalt_scan *scan);

/*
 * Waits for the next key and puts it into your buffer of at least GESTALT_MAX_KEY bytes. MISS when there are no more; PENDING when
 * `timeout_ms` has passed first (below 0 = never): then it comes with the next call. After any other failure there are no more.
 * CORRUPT when all keys have come that can be read, and there were items whose keys are damaged.
 */
int gestalt_scan_next(gestalt_scan scan, void *key, size_t capacity, size_t *key_len, int64_t timeout_ms);

/* Ends it, at its end or before. */
int gestalt_scan_close(gestalt_scan scan);

#ifdef __cplusplus
}
#endif

#endif
