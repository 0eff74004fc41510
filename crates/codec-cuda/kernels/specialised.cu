// The kernel that is compiled for one matrix. Before this text stands what is known of it: SOURCES, OUTPUTS, ADD (0 or 1), GROUP (sources
// that are in registers at a time), and `combine_group`, the sums of each group, written out (`src/kernels.rs`): a product with 1 is
// an addition, one with 0 is nothing, and what several sums share is added once. Each source is read once.

// outputs = matrix * sources, or outputs ^= matrix * sources, for the OUTPUTS outputs from number `first_output` on of all `outputs`.
extern "C" __global__ void __launch_bounds__(THREADS) combine(
    const Stripe *stripes, u32 stripe_count, u32 each, const u64 *chunks, const u32 *, u32, u32 outputs, u32 first_output
) {
    const Place place = place_of(stripes, stripe_count, each, chunks, SOURCES + outputs, blockIdx.x);
    u32 sums[OUTPUTS][WORDS] = {};
#pragma unroll
    for (u32 first = 0; first < SOURCES; first += GROUP) {
        u32 x[GROUP][WORDS] = {};
#pragma unroll
        for (u32 s = 0; s < GROUP; s++) {
            if (first + s < SOURCES) {
                load<false>(place, first + s, x[s]);
            }
        }
#pragma unroll
        for (u32 word = 0; word < WORDS; word++) {
            u32 inputs[GROUP], added[OUTPUTS] = {};
#pragma unroll
            for (u32 s = 0; s < GROUP; s++) {
                inputs[s] = x[s][word];
            }
            combine_group(first / GROUP, inputs, added);
#pragma unroll
            for (u32 o = 0; o < OUTPUTS; o++) {
                sums[o][word] ^= added[o];
            }
        }
    }
#pragma unroll
    for (u32 o = 0; o < OUTPUTS; o++) {
        if (ADD) {
            u32 before[WORDS];
            load<true>(place, SOURCES + first_output + o, before);
#pragma unroll
            for (u32 word = 0; word < WORDS; word++) {
                sums[o][word] ^= before[word];
            }
        }
        store(place, SOURCES + first_output + o, sums[o]);
    }
}
