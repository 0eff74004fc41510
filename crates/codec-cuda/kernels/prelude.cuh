// What all kernels share. The same text is compiled by NVRTC for a card and, with `emulator/shim.h` before it, for a processor.
//
// A launch combines many stripes at once: each has its own chunks, of its own length. All stripes together are cut into tiles;
// a block computes one tile of its outputs, each thread a vector of 16 bytes of it.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

enum : u32 {
    THREADS = 128,
    VECTOR_BYTES = 16,
    // Neighbouring threads load neighbouring vectors.
    TILE_BYTES = THREADS * VECTOR_BYTES,
    // 32-bit words of one chunk that a thread has at a time.
    WORDS = 4,
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
    // Where the thread's vector begins.
    u64 offset;
    bool aligned;
    // Bytes of the vector that are within the chunk.
    u32 count;
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

// Where the thread works in tile number `tile` of all stripes. `each` is the number of tiles of every stripe, or 0 if they differ.
__device__ __forceinline__ Place place_of(
    const Stripe *stripes, u32 count, u32 each, const u64 *chunks, u32 roles, u32 tile
) {
    const u32 at = each != 0 ? tile / each : stripe_of(stripes, count, tile);
    const u64 of_stripe = each != 0 ? tile % each : tile - stripes[at].first_tile;
    const u64 len = stripes[at].len, offset = of_stripe * TILE_BYTES + threadIdx.x * VECTOR_BYTES;
    const u64 left = offset < len ? len - offset : 0;
    return {
        chunks + u64(at) * roles,
        offset,
        stripes[at].aligned != 0,
        left < VECTOR_BYTES ? u32(left) : u32(VECTOR_BYTES),
    };
}

// 16 bytes that begin anywhere: of the two aligned vectors that hold them. What else is in these is read, too, and dropped.
__device__ __forceinline__ uint4 load_anywhere(u64 address) {
    const uint4 *vectors = (const uint4 *)(address & ~u64(15));
    const uint4 first = vectors[0], second = address & 15 ? vectors[1] : first;
    u32 words[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
#pragma unroll
    for (u32 i = 0; i < 6; i++) {
        words[i] = address & 8 ? words[i + 2] : words[i];
    }
#pragma unroll
    for (u32 i = 0; i < 5; i++) {
        words[i] = address & 4 ? words[i + 1] : words[i];
    }
    const u32 selector = 0x3210 + 0x1111 * u32(address & 3);
    return {
        permute(words[0], words[1], selector),
        permute(words[1], words[2], selector),
        permute(words[2], words[3], selector),
        permute(words[3], words[4], selector),
    };
}

// The last bytes of a chunk, one by one, and zeros.
__device__ __forceinline__ uint4 load_end(u64 address, u32 count) {
    u64 low = 0, high = 0;
#pragma unroll 1
    for (u32 i = 0; i < count; i++) {
        const u64 byte = ((const u8 *)address)[i];
        if (i < 8) {
            low |= byte << 8 * i;
        } else {
            high |= byte << 8 * (i - 8);
        }
    }
    return {u32(low), u32(low >> 32), u32(high), u32(high >> 32)};
}

// The thread's words of chunk number `role`; zeros beyond its end. A chunk that is WRITTEN later is not read as if it never were.
template <bool WRITTEN> __device__ __forceinline__ void load(const Place &place, u32 role, u32 (&words)[WORDS]) {
    const u64 address = place.chunks[role] + place.offset;
    uint4 loaded;
    if (place.aligned && place.count == VECTOR_BYTES) {
        loaded = WRITTEN ? *(const uint4 *)address : __ldg((const uint4 *)address);
    } else if (place.count == VECTOR_BYTES) {
        loaded = load_anywhere(address);
    } else {
        loaded = load_end(address, place.count);
    }
    words[0] = loaded.x;
    words[1] = loaded.y;
    words[2] = loaded.z;
    words[3] = loaded.w;
}

// The first `count` of 16 bytes, to anywhere: whole words where they are, and single bytes before and after.
__device__ __forceinline__ void store_anywhere(u64 address, u32 count, const u32 *part) {
    u64 low = part[0] | u64(part[1]) << 32, high = part[2] | u64(part[3]) << 32;
    u32 step = 0;
#pragma unroll 1
    for (u32 i = 0; i < count; i += step) {
        if ((address + i) % 4 == 0 && count - i >= 4) {
            *(u32 *)(address + i) = u32(low);
            step = 4;
        } else {
            *(u8 *)(address + i) = u8(low);
            step = 1;
        }
        low = low >> 8 * step | high << (64 - 8 * step);
        high >>= 8 * step;
    }
}

// The inverse of `load`; nothing is stored beyond the end.
__device__ __forceinline__ void store(const Place &place, u32 role, const u32 (&words)[WORDS]) {
    const u64 address = place.chunks[role] + place.offset;
    if (place.aligned && place.count == VECTOR_BYTES) {
        const uint4 stored = {words[0], words[1], words[2], words[3]};
        __stcs((uint4 *)address, stored);
    } else {
        store_anywhere(address, place.count, words);
    }
}
