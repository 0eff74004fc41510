// The kernel that is compiled for one matrix. Before this text stands what is known of it: SOURCES, OUTPUTS, ADD (0 or 1), PLANES (0 or 1),
// GROUP (sources that are in registers at a time), and `combine_group`, the sums of each group, written out (`src/kernels.rs`): a
// product with 1 is an addition, one with 0 is nothing, and what several sums share is added once. Each source is read once.

#if PLANES

// Swaps bits (byte lane by byte lane, as an 8 by 8 matrix of word and bit) across the diagonal: words become planes, and back.
__device__ __forceinline__ void transpose(u32 *words) {
#pragma unroll
    for (u32 distance = 4; distance > 0; distance /= 2) {
        const u32 keep = distance == 4 ? 0x0f0f0f0f : distance == 2 ? 0x33333333 : 0x55555555;
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            if ((i & distance) == 0) {
                const u32 a = words[i], b = words[i + distance];
                words[i] = (a & keep) | (b << distance & ~keep);
                words[i + distance] = (a >> distance & keep) | (b & ~keep);
            }
        }
    }
}

#endif

// outputs = matrix * sources, or outputs ^= matrix * sources. The last three arguments are the generic kernel's.
extern "C" __global__ void __launch_bounds__(THREADS) combine(
    const Stripe *stripes, u32 stripe_count, const u64 *chunks, const u32 *, u32, u32
) {
    const Place place = place_of(stripes, stripe_count, chunks, SOURCES + OUTPUTS);
    u32 sums[OUTPUTS][WORDS] = {};
#pragma unroll
    for (u32 first = 0; first < SOURCES; first += GROUP) {
        u32 x[GROUP][WORDS] = {};
#pragma unroll
        for (u32 s = 0; s < GROUP; s++) {
            if (first + s < SOURCES) {
                load(place, first + s, x[s]);
            }
        }
#if PLANES
        // Plane b of source s is input 8 s + b.
#pragma unroll
        for (u32 s = 0; s < GROUP; s++) {
            transpose(x[s]);
        }
        combine_group(first / GROUP, &x[0][0], &sums[0][0]);
#else
#pragma unroll
        for (u32 word = 0; word < WORDS; word++) {
            u32 inputs[GROUP], outputs[OUTPUTS] = {};
#pragma unroll
            for (u32 s = 0; s < GROUP; s++) {
                inputs[s] = x[s][word];
            }
            combine_group(first / GROUP, inputs, outputs);
#pragma unroll
            for (u32 o = 0; o < OUTPUTS; o++) {
                sums[o][word] ^= outputs[o];
            }
        }
#endif
    }
#pragma unroll
    for (u32 o = 0; o < OUTPUTS; o++) {
#if PLANES
        transpose(sums[o]);
#endif
        if (ADD) {
            u32 before[WORDS];
            load(place, SOURCES + o, before);
#pragma unroll
            for (u32 word = 0; word < WORDS; word++) {
                sums[o][word] ^= before[word];
            }
        }
        store(place, SOURCES + o, sums[o]);
    }
}
