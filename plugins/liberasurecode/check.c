/*
 * Encodes an object with one of liberasurecode's backends, prints a sum of each fragment's data, and makes the object from every choice of
 * k fragments that lacks the first ones. Run with Debian's libisal and with ours, it has to print the same.
 *
 *   check vand|cauchy K M
 */
#include <erasurecode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT_LEN 100003
#define HEADER_LEN 80

static unsigned long long sum(const char *bytes, uint64_t len) {
  unsigned long long sum = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < len; ++i) sum = (sum ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return sum;
}

int main(int argc, char **argv) {
  struct ec_args args = {.hd = 0, .ct = CHKSUM_NONE};
  static char object[OBJECT_LEN];
  char **data = NULL, **parity = NULL, *fragments[64], *whole = NULL, *again;
  uint64_t len = 0, whole_len = 0;
  unsigned state = 1;
  if (argc != 4) return 2;
  args.k = atoi(argv[2]);
  args.m = atoi(argv[3]);
  for (int i = 0; i < OBJECT_LEN; ++i) object[i] = (char)((state = state * 1664525u + 1013904223u) >> 24);
  const int desc = liberasurecode_instance_create(
      strcmp(argv[1], "vand") == 0 ? EC_BACKEND_ISA_L_RS_VAND : EC_BACKEND_ISA_L_RS_CAUCHY, &args);
  if (desc <= 0) return printf("no such backend here: %d\n", desc), 1;
  if (liberasurecode_encode(desc, object, OBJECT_LEN, &data, &parity, &len)) return printf("not encoded\n"), 1;
  for (int i = 0; i < args.k; ++i) printf("%016llx\n", sum(data[i] + HEADER_LEN, len - HEADER_LEN));
  for (int j = 0; j < args.m; ++j) printf("%016llx\n", sum(parity[j] + HEADER_LEN, len - HEADER_LEN));
  for (int lost = 1; lost <= args.m; ++lost) {
    for (int i = 0; i < args.k; ++i) fragments[i] = i + lost < args.k ? data[i + lost] : parity[i + lost - args.k];
    if (liberasurecode_decode(desc, fragments, args.k, len, 0, &whole, &whole_len)) return printf("not decoded\n"), 1;
    if (whole_len != OBJECT_LEN || memcmp(whole, object, OBJECT_LEN)) return printf("another object\n"), 1;
    liberasurecode_decode_cleanup(desc, whole);
    again = malloc(len);
    if (liberasurecode_reconstruct_fragment(desc, fragments, args.k, len, 0, again)) return printf("not rebuilt\n"), 1;
    if (memcmp(again + HEADER_LEN, data[0] + HEADER_LEN, len - HEADER_LEN)) return printf("another fragment\n"), 1;
    free(again);
  }
  liberasurecode_encode_cleanup(desc, data, parity);
  liberasurecode_instance_destroy(desc);
  return 0;
}
