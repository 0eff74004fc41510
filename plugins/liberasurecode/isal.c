/*
 * `libisal.so.2` as far as liberasurecode looks into it, over Gestalt's codec.
 *
 * liberasurecode's table of backends is compiled in, so there is no way to add a name to it. Its backends isa_l_rs_vand and isa_l_rs_cauchy,
 * however, load ISA-L by this file's name and look up six functions: these. Whoever finds this library first (LD_LIBRARY_PATH of one
 * service) runs those backends on this codec, with the same fragments. It is no ISA-L for anyone else.
 *
 * `ec_init_tables` keeps the coefficient in the first byte of the 32 that ISA-L has for each; nobody but `ec_encode_data` reads them.
 */
#include <stdlib.h>
#include <string.h>

#include "gestalt_codec.h"

#define VISIBLE __attribute__((visibility("default")))
#define TABLE_LEN 32

VISIBLE unsigned char gf_mul(unsigned char a, unsigned char b) {
  unsigned product = 0;
  unsigned bits = a;
  for (; b; b >>= 1, bits = bits << 1 ^ (bits & 0x80 ? 0x11d : 0)) {
    if (b & 1) product ^= bits;
  }
  return (unsigned char)product;
}

/* a^254, which is 1/a, and 0 for 0. */
static unsigned char inverse(unsigned char a) {
  unsigned char result = 1;
  int bit;
  for (bit = 1; bit < 8; ++bit) {
    a = gf_mul(a, a);
    result = gf_mul(result, a);
  }
  return result;
}

static void identity(unsigned char *matrix, int k) {
  memset(matrix, 0, (size_t)k * k);
  for (int i = 0; i < k; ++i) matrix[i * k + i] = 1;
}

VISIBLE void gf_gen_rs_matrix(unsigned char *matrix, int n, int k) {
  unsigned char power = 1;
  identity(matrix, k);
  for (int row = k; row < n; ++row, power = gf_mul(power, 2)) {
    unsigned char entry = 1;
    for (int column = 0; column < k; ++column, entry = gf_mul(entry, power)) matrix[row * k + column] = entry;
  }
}

VISIBLE void gf_gen_cauchy1_matrix(unsigned char *matrix, int n, int k) {
  identity(matrix, k);
  for (int row = k; row < n; ++row) {
    for (int column = 0; column < k; ++column) matrix[row * k + column] = inverse((unsigned char)(row ^ column));
  }
}

static void swap_rows(unsigned char *matrix, int n, int a, int b) {
  for (int column = 0; column < n; ++column) {
    const unsigned char kept = matrix[a * n + column];
    matrix[a * n + column] = matrix[b * n + column];
    matrix[b * n + column] = kept;
  }
}

/* row *= factor, or row += factor * other. */
static void scale(unsigned char *row, int n, unsigned char factor) {
  for (int column = 0; column < n; ++column) row[column] = gf_mul(row[column], factor);
}

static void add(unsigned char *row, const unsigned char *other, int n, unsigned char factor) {
  for (int column = 0; column < n; ++column) row[column] ^= gf_mul(other[column], factor);
}

/* Gauss and Jordan; -1 for a singular matrix. `in` is used up, as by ISA-L. */
VISIBLE int gf_invert_matrix(unsigned char *in, unsigned char *out, const int n) {
  identity(out, n);
  for (int pivot = 0; pivot < n; ++pivot) {
    int found = pivot;
    while (found < n && in[found * n + pivot] == 0) ++found;
    if (found == n) return -1;
    swap_rows(in, n, pivot, found);
    swap_rows(out, n, pivot, found);
    const unsigned char factor = inverse(in[pivot * n + pivot]);
    scale(in + pivot * n, n, factor);
    scale(out + pivot * n, n, factor);
    for (int row = 0; row < n; ++row) {
      const unsigned char share = row == pivot ? 0 : in[row * n + pivot];
      add(in + row * n, in + pivot * n, n, share);
      add(out + row * n, out + pivot * n, n, share);
    }
  }
  return 0;
}

VISIBLE void ec_init_tables(int k, int rows, unsigned char *coefficients, unsigned char *tables) {
  for (int i = 0; i < k * rows; ++i) tables[i * TABLE_LEN] = coefficients[i];
}

/* ISA-L's has no way to fail. What this is not given room for, or is given wrongly, would be wrong bytes: better no process. */
VISIBLE void ec_encode_data(int len, int k, int rows, unsigned char *tables, unsigned char **data, unsigned char **coding) {
  unsigned char *coefficients = malloc((size_t)k * rows);
  if (!coefficients) abort();
  for (int i = 0; i < k * rows; ++i) coefficients[i] = tables[i * TABLE_LEN];
  if (gestalt_codec_combine(k, rows, coefficients, (const uint8_t *const *)data, coding, len)) abort();
  free(coefficients);
}
