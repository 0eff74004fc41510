// Rows as polynomials in x, whose coefficients are sums of sources: evaluated from the highest power on, by multiplications with x.

// Each byte times x, in GF(2^8) with x^8 + x^4 + x^3 + x^2 + 1.
__device__ __forceinline__ u32 times_x(u32 bytes) {
    const u32 carries = permute(bytes, 0, 0xba98);
    return ((bytes + bytes) & 0xfefefefe) ^ (carries & 0x1d1d1d1d);
}
