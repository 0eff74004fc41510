/*
 * Gestalt's erasure codes over GF(2^8), for C.
 *
 * A code has k data roles 0..k and m parity roles k..k+m. Chunks are byte strings of one length, each with a pointer of its own; any
 * length and any alignment will do. Every function that returns an int returns GESTALT_CODEC_OK or one of the negative numbers below,
 * and gestalt_codec_last_error() then says what was wrong, in a sentence; nothing has been written to chunks in that case.
 *
 * A codec may be used by any number of threads at once, except while gestalt_codec_set_place or gestalt_codec_free is called with it.
 * No function starts a thread. Where a place other than "processor" is set, the driver of a card may.
 */
#ifndef GESTALT_CODEC_H
#define GESTALT_CODEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes whenever a function does; compare it with gestalt_codec_abi(). */
#define GESTALT_CODEC_ABI 1

#define GESTALT_CODEC_OK 0
#define GESTALT_CODEC_NULL -1     /* a pointer that may not be null is null */
#define GESTALT_CODEC_NAME -2     /* a name that no family, scheme or place has */
#define GESTALT_CODEC_CODE -3     /* no such code: too many roles, or a matrix that could not repair some losses */
#define GESTALT_CODEC_ROLE -4     /* a role that the code has not, or that is listed twice */
#define GESTALT_CODEC_LENGTH -5   /* a length or a count that cannot be */
#define GESTALT_CODEC_LOST -6     /* more is lost than the chunks at hand make up for */
#define GESTALT_CODEC_OVERLAP -7  /* an output shares bytes with another buffer */
#define GESTALT_CODEC_INTERNAL -8 /* a fault of the library */

typedef struct gestalt_codec gestalt_codec;

/* GESTALT_CODEC_ABI of the header that the library was built with. */
uint32_t gestalt_codec_abi(void);

/* The library's version, such as "0.1.0". */
const char *gestalt_codec_version(void);

/* What was wrong with this thread's last call that failed; "" if none did. Valid until its next call that fails. */
const char *gestalt_codec_last_error(void);

/*
 * Makes a Reed-Solomon code: any k of its k + m chunks determine the rest. Families are "rs" (ours), "lch" (ours, by a transform),
 * "isal-cauchy", "isal-vandermonde", "jerasure-reed_sol_van" and "jerasure-cauchy", whose chunks are those of the libraries that they
 * are named after. NAME for another family, CODE unless k >= 1 and k + m <= 256 and the family's matrix repairs any m losses.
 * *codec is set to null on failure.
 */
int gestalt_codec_new(const char *family, uint32_t k, uint32_t m, gestalt_codec **codec);

/* Makes the code of a scheme's name: "lrc(12,2,2)", "rs(3+2)", "xor(4+1)", "rep(3)", "isal-cauchy(10+4)". */
int gestalt_codec_new_scheme(const char *scheme, gestalt_codec **codec);

/* Frees it; null is no codec and is ignored. */
void gestalt_codec_free(gestalt_codec *codec);

/*
 * Where to compute from now on: "processor" (the default), "auto" (on a card where that was measured to be faster) or "card" (on a card
 * where there is one). The bytes are the same. Where there is no card, or it fails, the processor does it.
 */
int gestalt_codec_set_place(gestalt_codec *codec, const char *place);

/* How many operations of this codec a card has done. 0 for null. */
uint64_t gestalt_codec_card_operations(const gestalt_codec *codec);

/* Data roles; 0 for null. */
uint32_t gestalt_codec_k(const gestalt_codec *codec);

/* Parity roles; 0 for null. */
uint32_t gestalt_codec_m(const gestalt_codec *codec);

/* By what parity row `parity` (0..m) multiplies data role `data` (0..k). */
int gestalt_codec_coefficient(const gestalt_codec *codec, uint32_t parity, uint32_t data, uint8_t *coefficient);

/* Chunks of a multiple of this many bytes suit all users of one pool; it is what Ceph's isa and jerasure pad to. */
size_t gestalt_codec_alignment(void);

/* The length of a chunk of an object: a k-th of it, rounded up to a multiple of `alignment`. LENGTH if that is no size_t. */
int gestalt_codec_chunk_size(const gestalt_codec *codec, size_t object_len, size_t alignment, size_t *chunk_len);

/* Computes the m parity chunks from the k data chunks. Parities may not overlap anything; data chunks may be the same memory. */
int gestalt_codec_encode(const gestalt_codec *codec, const uint8_t *const *data, uint8_t *const *parity, size_t chunk_len);

/*
 * Computes the chunks of the roles `wanted` (data or parity) from those of the roles `present`, of which those that are not needed are
 * not read. LOST if the present ones do not determine them.
 */
int gestalt_codec_decode(const gestalt_codec *codec, const uint32_t *present, const uint8_t *const *present_chunks, size_t present_count, const uint32_t *wanted, uint8_t *const *wanted_chunks, size_t wanted_count, size_t chunk_len);

/*
 * Which of the roles `available` to read for having those of `wanted` at the smallest sum of `costs` (one for each available role; null:
 * as few as possible). `minimum` has room for available_count roles; *minimum_count of them are written, in ascending order. LOST if
 * the available ones do not determine what is wanted.
 */
int gestalt_codec_minimum_to_decode(const gestalt_codec *codec, const uint32_t *wanted, size_t wanted_count, const uint32_t *available, const uint32_t *costs, size_t available_count, uint32_t *minimum, size_t *minimum_count);

/*
 * outputs[o] = the sum over s of coefficients[o * sources_count + s] * sources[s], byte by byte in the field: for those who bring a matrix of
 * their own. Up to 256 sources and outputs, at least one of each.
 */
int gestalt_codec_combine(uint32_t sources_count, uint32_t outputs_count, const uint8_t *coefficients, const uint8_t *const *sources, uint8_t *const *outputs, size_t len);

/* delta = old_bytes XOR new_bytes. */
int gestalt_codec_delta(const uint8_t *old_bytes, const uint8_t *new_bytes, uint8_t *delta, size_t len);

/* Brings the m parities up to date after data role `data_role` changed by `delta`: each of `parity` is the same range of a parity chunk. */
int gestalt_codec_apply_delta(const gestalt_codec *codec, uint32_t data_role, const uint8_t *delta, uint8_t *const *parity, size_t len);

#ifdef __cplusplus
}
#endif

#endif
