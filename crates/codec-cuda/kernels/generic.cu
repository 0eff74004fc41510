// The kernels that need no compiler on the machine that runs them: the matrix is data. Shipped as PTX.

enum : u32 { OUTPUTS_A_PASS = 8 };

// `tables` holds eight words for each coefficient, row by row: those of `Tables`, and three of padding. A block takes some of the
// outputs of its tile; the next ones are its neighbours', so that what it has loaded is still in the cache.
template <bool ADD>
__device__ __forceinline__ void combine_generic(
    const Stripe *stripes, u32 stripe_count, u32 each, const u64 *chunks, const u32 *tables, u32 sources, u32 outputs
) {
    const u32 passes = (outputs + OUTPUTS_A_PASS - 1) / OUTPUTS_A_PASS;
    const Place place =
        place_of(stripes, stripe_count, each, chunks, sources + outputs, blockIdx.x / passes);
    const u32 first = blockIdx.x % passes * OUTPUTS_A_PASS;
    u32 sums[OUTPUTS_A_PASS][WORDS] = {};
    for (u32 source = 0; source < sources; source++) {
        u32 words[WORDS];
        load<false>(place, source, words);
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
                load<true>(place, sources + first + output, before);
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
    const Stripe *stripes, u32 stripe_count, u32 each, const u64 *chunks, const u32 *tables, u32 sources, u32 outputs,
    u32
) {
    combine_generic<false>(stripes, stripe_count, each, chunks, tables, sources, outputs);
}

// outputs ^= matrix * sources
extern "C" __global__ void __launch_bounds__(THREADS) combine_add(
    const Stripe *stripes, u32 stripe_count, u32 each, const u64 *chunks, const u32 *tables, u32 sources, u32 outputs,
    u32
) {
    combine_generic<true>(stripes, stripe_count, each, chunks, tables, sources, outputs);
}
