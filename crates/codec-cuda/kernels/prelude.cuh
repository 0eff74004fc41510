// What all kernels share. The same text is compiled by NVRTC for a card and, with `emulator/shim.h` before it, for a processor.
//
// A launch combines many stripes at once: each has its own chunks, of its own length. All stripes together are cut into tiles;
// a block computes one tile of all outputs, each thread VECTORS vectors of 16 bytes of it.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef VECTORS
#define VECTORS 1
#endif

enum : u32 {
    THREADS = 256,
    VECTOR_BYTES = 16,
    // From one vector of a thread to its next: neighbouring threads load neighbouring vectors.
    STEP_BYTES = THREADS * VECTOR_BYTES,
    TILE_BYTES = STEP_BYTES * VECTORS,
    // 32-bit words of one chunk that a thread has at a time.
    WORDS = 4 * VECTORS,
};

// One set of chunks of one length.
struct Stripe {
    // Tiles of all stripes before it.
    u64 first_tile;
    // Bytes of each chunk.
    u64 len;
    // Whether all chunks begin at multiples of 16.
    u64 aligned;
};

// The part of a stripe that a thread works on.
struct Place {
    // Addresses of the stripe's sources, then of its outputs.
    const u64 *chunks;
    u64 len;
    // Where the thread's first vector begins.
    u64 offset;
    bool aligned;
};

// PTX `prmt`: byte i of the result is byte number (selector >> 4i) & 7 of b:a, or all of its sign where bit 3 is set.
__device__ __forceinline__ u32 permute(u32 a, u32 b, u32 selector) {
#ifdef __CUDACC__
    u32 result;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
    return result;
#else
    return shim::permute(a, b, selector);
#endif
}

// The last stripe that begins at or before `tile`: those without bytes are passed over.
__device__ __forceinline__ u32 stripe_of(const Stripe *stripes, u32 count, u64 tile) {
    u32 low = 0, high = count;
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (stripes[middle].first_tile <= tile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

__device__ __forceinline__ Place place_of(const Stripe *stripes, u32 count, const u64 *chunks, u32 roles) {
    const u32 at = stripe_of(stripes, count, blockIdx.x);
    const u64 tile = blockIdx.x - stripes[at].first_tile;
    return {
        chunks + u64(at) * roles,
        stripes[at].len,
        tile * TILE_BYTES + threadIdx.x * VECTOR_BYTES,
        stripes[at].aligned != 0,
    };
}

// Bytes of vector number `vector` of the thread that are within the chunk.
__device__ __forceinline__ u32 bytes_in(const Place &place, u32 vector) {
    const u64 offset = place.offset + u64(vector) * STEP_BYTES;
    if (offset >= place.len) {
        return 0;
    }
    return place.len - offset < VECTOR_BYTES ? u32(place.len - offset) : u32(VECTOR_BYTES);
}

// The thread's words of chunk number `role`; zeros beyond its end.
__device__ __forceinline__ void load(const Place &place, u32 role, u32 (&words)[WORDS]) {
#pragma unroll
    for (u32 vector = 0; vector < VECTORS; vector++) {
        const u64 address = place.chunks[role] + place.offset + u64(vector) * STEP_BYTES;
        const u32 count = bytes_in(place, vector);
        uint4 loaded = {0, 0, 0, 0};
        if (place.aligned && count == VECTOR_BYTES) {
            loaded = __ldcs((const uint4 *)address);
        } else {
            u32 parts[4] = {0, 0, 0, 0};
#pragma unroll
            for (u32 i = 0; i < VECTOR_BYTES; i++) {
                if (i < count) {
                    parts[i / 4] |= u32(((const u8 *)address)[i]) << 8 * (i % 4);
                }
            }
            loaded = {parts[0], parts[1], parts[2], parts[3]};
        }
        words[4 * vector] = loaded.x;
        words[4 * vector + 1] = loaded.y;
        words[4 * vector + 2] = loaded.z;
        words[4 * vector + 3] = loaded.w;
    }
}

// The inverse of `load`; nothing is stored beyond the end.
__device__ __forceinline__ void store(const Place &place, u32 role, const u32 (&words)[WORDS]) {
#pragma unroll
    for (u32 vector = 0; vector < VECTORS; vector++) {
        const u64 address = place.chunks[role] + place.offset + u64(vector) * STEP_BYTES;
        const u32 count = bytes_in(place, vector);
        const u32 *part = words + 4 * vector;
        if (place.aligned && count == VECTOR_BYTES) {
            const uint4 stored = {part[0], part[1], part[2], part[3]};
            __stcs((uint4 *)address, stored);
        } else {
#pragma unroll
            for (u32 i = 0; i < VECTOR_BYTES; i++) {
                if (i < count) {
                    ((u8 *)address)[i] = u8(part[i / 4] >> 8 * (i % 4));
                }
            }
        }
    }
}
