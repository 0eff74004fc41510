// What the kernels use of CUDA, for a processor: included before them. One thread runs all threads of a launch, one after the other;
// the kernels know no barrier and share no memory.
#pragma once

#include <cstdint>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)

struct dim3 {
    unsigned x, y, z;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

static thread_local dim3 blockIdx, threadIdx;

template <class T> static T __ldg(const T *address) {
    return *address;
}

template <class T> static void __stcs(T *address, T value) {
    *address = value;
}

namespace shim {
// PTX `prmt` in its default mode.
static inline std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    const std::uint64_t bytes = std::uint64_t(b) << 32 | a;
    std::uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned nibble = selector >> 4 * i & 15;
        const std::uint8_t byte = std::uint8_t(bytes >> 8 * (nibble & 7));
        const std::uint8_t chosen = nibble & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
        result |= std::uint32_t(chosen) << 8 * i;
    }
    return result;
}
}  // namespace shim

// How the emulated driver starts a kernel of this object.
struct Stripe;
typedef void Kernel(
    const Stripe *, unsigned, unsigned, const unsigned long long *, const unsigned *, unsigned, unsigned, unsigned);

extern "C" void shim_launch(Kernel *kernel, dim3 grid, dim3 block, void **arguments) {
    for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
        for (threadIdx.x = 0; threadIdx.x < block.x; threadIdx.x++) {
            kernel(
                *(const Stripe **)arguments[0], *(unsigned *)arguments[1], *(unsigned *)arguments[2],
                *(const unsigned long long **)arguments[3], *(const unsigned **)arguments[4],
                *(unsigned *)arguments[5], *(unsigned *)arguments[6], *(unsigned *)arguments[7]);
        }
    }
}
