// Products by table: a byte is cut into bits 0..2, bits 4..6, and bits 3 and 7; the product is the sum of an entry of a table of
// eight, of eight, and of four. `prmt` looks four bytes up at once; its selector is four nibbles of which the highest bit must be
// 0, so the parts of two words are interleaved: nibble 2i of a selector is of byte i of the first word, nibble 2i + 1 of the second.

// A coefficient's tables: its products with 0..7, with 16 * (0..7), and with 0, 8, 128, 136.
struct Tables {
    u32 low[2];
    u32 high[2];
    u32 ends;
};

// The parts of two words, ready to select.
struct Selectors {
    u32 low, high, ends;
};

__device__ __forceinline__ Selectors selectors_of(u32 first, u32 second) {
    const u32 low = (first & 0x0f0f0f0f) | (second << 4 & 0xf0f0f0f0);
    const u32 high = (first >> 4 & 0x0f0f0f0f) | (second & 0xf0f0f0f0);
    return {low & 0x77777777, high & 0x77777777, (low >> 3 & 0x11111111) | (high >> 2 & 0x22222222)};
}

// Adds the products of two words to two sums whose bytes are interleaved like the selectors.
__device__ __forceinline__ void add_products(const Selectors &of, const Tables &tables, u32 &first, u32 &second) {
    first ^= permute(tables.low[0], tables.low[1], of.low) ^ permute(tables.high[0], tables.high[1], of.high)
        ^ permute(tables.ends, 0, of.ends);
    second ^= permute(tables.low[0], tables.low[1], of.low >> 16)
        ^ permute(tables.high[0], tables.high[1], of.high >> 16) ^ permute(tables.ends, 0, of.ends >> 16);
}

// Puts the bytes of two sums where they belong.
__device__ __forceinline__ void untangle(u32 &first, u32 &second) {
    const u32 even = permute(first, second, 0x6420), odd = permute(first, second, 0x7531);
    first = even;
    second = odd;
}
