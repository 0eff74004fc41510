/* All functions of the library, right and wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gestalt_codec.h"

#define LEN 1000
#define MAX 16

static int line_of_failure;

#define REQUIRE(condition)               \
  do {                                   \
    if (!(condition)) {                  \
      line_of_failure = __LINE__;        \
      return;                            \
    }                                    \
  } while (0)

struct stripe {
  uint8_t *chunks[MAX];
  uint32_t count;
};

/* Each chunk is its own piece of memory, so that a sanitizer sees what is read or written beyond it. */
static struct stripe make_stripe(uint32_t count) {
  struct stripe stripe;
  uint32_t i, j, state = 1;
  stripe.count = count;
  for (i = 0; i < count; ++i) {
    stripe.chunks[i] = malloc(LEN);
    for (j = 0; j < LEN; ++j) {
      state = state * 1664525u + 1013904223u;
      stripe.chunks[i][j] = (uint8_t)(state >> 24);
    }
  }
  return stripe;
}

static void free_stripe(struct stripe *stripe) {
  uint32_t i;
  for (i = 0; i < stripe->count; ++i) free(stripe->chunks[i]);
}

static int encode(const gestalt_codec *codec, struct stripe *stripe, uint32_t k) {
  return gestalt_codec_encode(codec, (const uint8_t *const *)stripe->chunks, stripe->chunks + k, LEN);
}

/* Every pair of chunks is made from the others. */
static void repairs(const gestalt_codec *codec, struct stripe *stripe) {
  uint32_t a, b, i;
  uint8_t *made[2];
  made[0] = malloc(LEN);
  made[1] = malloc(LEN);
  for (a = 0; a < stripe->count; ++a) {
    for (b = a + 1; b < stripe->count; ++b) {
      uint32_t present[MAX], wanted[2];
      const uint8_t *chunks[MAX];
      size_t count = 0;
      for (i = 0; i < stripe->count; ++i) {
        if (i == a || i == b) continue;
        present[count] = i;
        chunks[count++] = stripe->chunks[i];
      }
      wanted[0] = a;
      wanted[1] = b;
      REQUIRE(gestalt_codec_decode(codec, present, chunks, count, wanted, made, 2, LEN) == GESTALT_CODEC_OK);
      REQUIRE(memcmp(made[0], stripe->chunks[a], LEN) == 0 && memcmp(made[1], stripe->chunks[b], LEN) == 0);
      REQUIRE(gestalt_codec_decode(codec, present, chunks, 2, wanted, made, 2, LEN) == GESTALT_CODEC_LOST);
    }
  }
  free(made[0]);
  free(made[1]);
}

static void deltas(const gestalt_codec *codec, struct stripe *stripe, uint32_t k) {
  uint8_t delta[10], fresh[10], *part[MAX];
  struct stripe again = make_stripe(stripe->count);
  uint32_t j, m = stripe->count - k;
  memset(fresh, 'x', sizeof fresh);
  REQUIRE(gestalt_codec_delta(stripe->chunks[1] + 5, fresh, delta, sizeof delta) == GESTALT_CODEC_OK);
  memcpy(stripe->chunks[1] + 5, fresh, sizeof fresh);
  for (j = 0; j < m; ++j) part[j] = stripe->chunks[k + j] + 5;
  REQUIRE(gestalt_codec_apply_delta(codec, 1, delta, part, sizeof delta) == GESTALT_CODEC_OK);
  for (j = 0; j < k; ++j) memcpy(again.chunks[j], stripe->chunks[j], LEN);
  REQUIRE(encode(codec, &again, k) == GESTALT_CODEC_OK);
  for (j = k; j < stripe->count; ++j) REQUIRE(memcmp(again.chunks[j], stripe->chunks[j], LEN) == 0);
  REQUIRE(gestalt_codec_apply_delta(codec, k, delta, part, sizeof delta) == GESTALT_CODEC_ROLE);
  free_stripe(&again);
}

static void code(const char *family, uint32_t k, uint32_t m) {
  gestalt_codec *codec = NULL;
  struct stripe stripe = make_stripe(k + m);
  uint8_t coefficient = 0;
  size_t len = 0;
  REQUIRE(gestalt_codec_new(family, k, m, &codec) == GESTALT_CODEC_OK);
  REQUIRE(gestalt_codec_k(codec) == k && gestalt_codec_m(codec) == m);
  REQUIRE(gestalt_codec_coefficient(codec, 0, 0, &coefficient) == GESTALT_CODEC_OK && coefficient != 0);
  REQUIRE(gestalt_codec_coefficient(codec, m, 0, &coefficient) == GESTALT_CODEC_ROLE);
  REQUIRE(gestalt_codec_chunk_size(codec, 1000 * k + 1, gestalt_codec_alignment(), &len) == GESTALT_CODEC_OK);
  REQUIRE(len == 1024);
  REQUIRE(gestalt_codec_chunk_size(codec, 1, 0, &len) == GESTALT_CODEC_LENGTH);
  REQUIRE(encode(codec, &stripe, k) == GESTALT_CODEC_OK);
  repairs(codec, &stripe);
  if (line_of_failure) return;
  REQUIRE(gestalt_codec_set_place(codec, "auto") == GESTALT_CODEC_OK);
  REQUIRE(gestalt_codec_set_place(codec, "attic") == GESTALT_CODEC_NAME);
  repairs(codec, &stripe);
  if (line_of_failure) return;
  REQUIRE(gestalt_codec_card_operations(codec) == 0);
  deltas(codec, &stripe, k);
  gestalt_codec_free(codec);
  free_stripe(&stripe);
}

static void reads(void) {
  gestalt_codec *codec = NULL;
  const uint32_t wanted[] = {3}, roles[] = {0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, local[] = {0, 1, 2, 4, 5, 12};
  const uint32_t available[] = {0, 1, 3, 4}, costs[] = {1, 1, 9, 1}, two[] = {2}, cheap[] = {0, 1, 4};
  uint32_t minimum[15];
  size_t count = 0;
  REQUIRE(gestalt_codec_new_scheme("lrc(12,2,2)", &codec) == GESTALT_CODEC_OK);
  REQUIRE(gestalt_codec_minimum_to_decode(codec, wanted, 1, roles, NULL, 15, minimum, &count) == GESTALT_CODEC_OK);
  REQUIRE(count == 6 && memcmp(minimum, local, sizeof local) == 0);
  gestalt_codec_free(codec);
  REQUIRE(gestalt_codec_new("rs", 3, 2, &codec) == GESTALT_CODEC_OK);
  REQUIRE(gestalt_codec_minimum_to_decode(codec, two, 1, available, costs, 4, minimum, &count) == GESTALT_CODEC_OK);
  REQUIRE(count == 3 && memcmp(minimum, cheap, sizeof cheap) == 0);
  REQUIRE(gestalt_codec_minimum_to_decode(codec, two, 1, available, costs, 2, minimum, &count) == GESTALT_CODEC_LOST);
  REQUIRE(strstr(gestalt_codec_last_error(), "role 2 cannot be computed") != NULL);
  gestalt_codec_free(codec);
}

/* Where there is a card, real or emulated, it gives the same bytes, and is used when it is asked for. */
static void card(void) {
  gestalt_codec *codec = NULL;
  struct stripe stripe = make_stripe(6), again = make_stripe(6);
  uint32_t i;
  REQUIRE(gestalt_codec_new("rs", 4, 2, &codec) == GESTALT_CODEC_OK);
  REQUIRE(encode(codec, &stripe, 4) == GESTALT_CODEC_OK);
  REQUIRE(gestalt_codec_set_place(codec, "card") == GESTALT_CODEC_OK);
  REQUIRE(encode(codec, &again, 4) == GESTALT_CODEC_OK);
  for (i = 0; i < 6; ++i) REQUIRE(memcmp(stripe.chunks[i], again.chunks[i], LEN) == 0);
  repairs(codec, &stripe);
  if (line_of_failure) return;
  REQUIRE(gestalt_codec_card_operations(codec) > 0 || getenv("GESTALT_REQUIRE_CUDA") == NULL);
  gestalt_codec_free(codec);
  free_stripe(&stripe);
  free_stripe(&again);
}

static void combinations(void) {
  struct stripe stripe = make_stripe(4);
  const uint8_t rows[] = {1, 1, 0, 2};
  REQUIRE(gestalt_codec_combine(2, 2, rows, (const uint8_t *const *)stripe.chunks, stripe.chunks + 2, LEN) == GESTALT_CODEC_OK);
  REQUIRE(stripe.chunks[2][7] == (stripe.chunks[0][7] ^ stripe.chunks[1][7]));
  REQUIRE(stripe.chunks[3][7] == (uint8_t)(stripe.chunks[1][7] << 1 ^ (stripe.chunks[1][7] & 0x80 ? 0x1d : 0)));
  REQUIRE(gestalt_codec_combine(2, 0, rows, (const uint8_t *const *)stripe.chunks, NULL, LEN) == GESTALT_CODEC_LENGTH);
  REQUIRE(gestalt_codec_combine(2, 2, NULL, (const uint8_t *const *)stripe.chunks, stripe.chunks + 2, LEN) == GESTALT_CODEC_NULL);
  free_stripe(&stripe);
}

static void refusals(void) {
  gestalt_codec *codec = NULL;
  struct stripe stripe = make_stripe(5);
  const uint32_t twice[] = {0, 0, 1, 2}, lost[] = {4}, beyond[] = {9};
  uint8_t *overlapping[2], *none[2] = {NULL, NULL};
  REQUIRE(gestalt_codec_abi() == GESTALT_CODEC_ABI && gestalt_codec_version()[0] != '\0');
  REQUIRE(gestalt_codec_new("rs", 0, 2, &codec) == GESTALT_CODEC_CODE && codec == NULL);
  REQUIRE(gestalt_codec_new("rs", 4294967295u, 4294967295u, &codec) == GESTALT_CODEC_CODE);
  REQUIRE(gestalt_codec_new("isal-vandermonde", 22, 4, &codec) == GESTALT_CODEC_CODE);
  REQUIRE(strstr(gestalt_codec_last_error(), "is not MDS") != NULL);
  REQUIRE(gestalt_codec_new("none such", 3, 2, &codec) == GESTALT_CODEC_NAME);
  REQUIRE(gestalt_codec_new("\xff", 3, 2, &codec) == GESTALT_CODEC_NAME);
  REQUIRE(gestalt_codec_new(NULL, 3, 2, &codec) == GESTALT_CODEC_NULL);
  REQUIRE(gestalt_codec_new("rs", 3, 2, NULL) == GESTALT_CODEC_NULL);
  REQUIRE(gestalt_codec_new_scheme("lrc(1,2)", &codec) == GESTALT_CODEC_NAME);
  REQUIRE(gestalt_codec_new("rs", 3, 2, &codec) == GESTALT_CODEC_OK);
  REQUIRE(encode(NULL, &stripe, 3) == GESTALT_CODEC_NULL);
  REQUIRE(gestalt_codec_encode(codec, NULL, stripe.chunks + 3, LEN) == GESTALT_CODEC_NULL);
  REQUIRE(gestalt_codec_encode(codec, (const uint8_t *const *)stripe.chunks, none, LEN) == GESTALT_CODEC_NULL);
  REQUIRE(gestalt_codec_encode(codec, (const uint8_t *const *)stripe.chunks, stripe.chunks + 3, 0) == GESTALT_CODEC_LENGTH);
  REQUIRE(gestalt_codec_encode(codec, (const uint8_t *const *)stripe.chunks, stripe.chunks + 3, (size_t)-1) == GESTALT_CODEC_LENGTH);
  overlapping[0] = stripe.chunks[3];
  overlapping[1] = stripe.chunks[3] + 1;
  REQUIRE(gestalt_codec_encode(codec, (const uint8_t *const *)stripe.chunks, overlapping, LEN - 1) == GESTALT_CODEC_OVERLAP);
  REQUIRE(gestalt_codec_decode(codec, twice, (const uint8_t *const *)stripe.chunks, 4, lost, stripe.chunks + 4, 1, LEN) == GESTALT_CODEC_ROLE);
  REQUIRE(gestalt_codec_decode(codec, twice + 1, (const uint8_t *const *)stripe.chunks, 3, beyond, stripe.chunks + 4, 1, LEN) == GESTALT_CODEC_ROLE);
  REQUIRE(gestalt_codec_decode(codec, twice, (const uint8_t *const *)stripe.chunks, 300, lost, stripe.chunks + 4, 1, LEN) == GESTALT_CODEC_LENGTH);
  REQUIRE(gestalt_codec_k(NULL) == 0 && gestalt_codec_m(NULL) == 0 && gestalt_codec_card_operations(NULL) == 0);
  gestalt_codec_free(codec);
  gestalt_codec_free(NULL);
  free_stripe(&stripe);
}

int main(void) {
  static const char *const families[] = {"rs", "lch", "isal-cauchy", "isal-vandermonde", "jerasure-reed_sol_van", "jerasure-cauchy"};
  size_t i;
  for (i = 0; i < sizeof families / sizeof *families && !line_of_failure; ++i) code(families[i], 4, 2);
  if (!line_of_failure) reads();
  if (!line_of_failure) card();
  if (!line_of_failure) combinations();
  if (!line_of_failure) refusals();
  if (line_of_failure) {
    fprintf(stderr, "line %d: %s\n", line_of_failure, gestalt_codec_last_error());
    return 1;
  }
  return 0;
}
