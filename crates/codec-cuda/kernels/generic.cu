// The kernels that need no compiler on the machine that runs them: the matrix is data. Shipped as PTX.

enum : u32 { OUTPUTS_A_PASS = 4 };

// `tables` holds eight words for each coefficient, row by row: those of `Tables`, and three of padding. Blocks in y take four
// outputs each.
template <bool ADD>
__device__ __forceinline__ void combine_generic(
    const Stripe *stripes, u32 stripe_count, const u64 *chunks, const u32 *tables, u32 sources, u32 outputs
) {
    const Place place = place_of(stripes, stripe_count, chunks, sources + outputs);
    const u32 first = blockIdx.y * OUTPUTS_A_PASS;
    u32 sums[OUTPUTS_A_PASS][WORDS] = {};
    for (u32 source = 0; source < sources; source++) {
        u32 words[WORDS];
        load(place, source, words);
        Selectors selectors[WORDS / 2];
#pragma unroll
        for (u32 pair = 0; pair < WORDS / 2; pair++) {
            selectors[pair] = selectors_of(words[2 * pair], words[2 * pair + 1]);
        }
#pragma unroll
        for (u32 output = 0; output < OUTPUTS_A_PASS; output++) {
            if (first + output < outputs) {
                const u32 *table = tables + 8 * (u64(first + output) * sources + source);
                const uint4 eights = *(const uint4 *)table;
                const Tables of = {{eights.x, eights.y}, {eights.z, eights.w}, table[4]};
#pragma unroll
                for (u32 pair = 0; pair < WORDS / 2; pair++) {
                    add_products(selectors[pair], of, sums[output][2 * pair], sums[output][2 * pair + 1]);
                }
            }
        }
    }
#pragma unroll
    for (u32 output = 0; output < OUTPUTS_A_PASS; output++) {
        if (first + output < outputs) {
#pragma unroll
            for (u32 pair = 0; pair < WORDS / 2; pair++) {
                untangle(sums[output][2 * pair], sums[output][2 * pair + 1]);
            }
            if (ADD) {
                u32 before[WORDS];
                load(place, sources + first + output, before);
#pragma unroll
                for (u32 word = 0; word < WORDS; word++) {
                    sums[output][word] ^= before[word];
                }
            }
            store(place, sources + first + output, sums[output]);
        }
    }
}

// outputs = matrix * sources
extern "C" __global__ void __launch_bounds__(THREADS) combine_set(
    const Stripe *stripes, u32 stripe_count, const u64 *chunks, const u32 *tables, u32 sources, u32 outputs
) {
    combine_generic<false>(stripes, stripe_count, chunks, tables, sources, outputs);
}

// outputs ^= matrix * sources
extern "C" __global__ void __launch_bounds__(THREADS) combine_add(
    const Stripe *stripes, u32 stripe_count, const u64 *chunks, const u32 *tables, u32 sources, u32 outputs
) {
    combine_generic<true>(stripes, stripe_count, chunks, tables, sources, outputs);
}
